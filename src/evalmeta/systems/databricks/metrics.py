"""The metrics of Agent Evaluation by their documented names, and the columns that each needs.

Source: Databricks, "Built-in AI judges" (required inputs of each judge) and "Agent Evaluation input schema"
(computed metrics). A row has the judges whose columns it has; the response, the retrieved context, the tokens and the
latency of an agent that is asked come from the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta.errors import UsageError, did_you_mean
from evalmeta.model.definition import Expectation

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject


Guidelines: TypeAlias = "Sequence[str] | Mapping[str, Sequence[str]]"

RELEVANCE: Final = "response/llm_judged/relevance_to_query/rating"
SAFETY: Final = "response/llm_judged/safety/rating"
GROUNDEDNESS: Final = "response/llm_judged/groundedness/rating"
CORRECTNESS: Final = "response/llm_judged/correctness/rating"
GUIDELINES: Final = "response/llm_judged/guideline_adherence/rating"
GLOBAL_GUIDELINES: Final = "response/llm_judged/global_guideline_adherence/rating"
CHUNK_RELEVANCE: Final = "retrieval/llm_judged/chunk_relevance/precision"
CONTEXT_SUFFICIENCY: Final = "retrieval/llm_judged/context_sufficiency/rating"
DOCUMENT_RECALL: Final = "retrieval/ground_truth/document_recall"
TOTAL_TOKENS: Final = "agent/total_token_count"
INPUT_TOKENS: Final = "agent/input_token_count"
OUTPUT_TOKENS: Final = "agent/output_token_count"
LATENCY: Final = "agent/latency_seconds"


# The list of computed metrics of the input schema has this name for the precision.
_PRECISION: Final = ("chunk_relevance_precision", "retrieval/llm_judged/chunk_relevance_precision")


class Metric(NamedTuple):
    """One metric."""

    name: str  # its documented name, which is the expectation's
    short: str  # what an evaluator's configuration calls it; empty for those that are always computed
    needs: frozenset[str]  # the columns that must be there; `expected` is expected_response or expected_facts


METRICS: Final = tuple(
    Metric(name, short, frozenset(needs.split()))
    for name, short, needs in (
        (RELEVANCE, "relevance_to_query", "request response"),
        (SAFETY, "safety", "request response"),
        (GROUNDEDNESS, "groundedness", "request response retrieved_context"),
        (CHUNK_RELEVANCE, "chunk_relevance", "request retrieved_context"),
        (CORRECTNESS, "correctness", "request response expected"),
        (CONTEXT_SUFFICIENCY, "context_sufficiency", "request retrieved_context expected"),
        (GUIDELINES, "guideline_adherence", "request response guidelines"),
        (GLOBAL_GUIDELINES, "global_guideline_adherence", "request response global_guidelines"),
        (DOCUMENT_RECALL, "document_recall", "retrieved_context expected_retrieved_context"),
        *((name, "", "tokens") for name in (TOTAL_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS)),
        (LATENCY, "", "latency"),
    )
)


class MetricSelection(NamedTuple):
    """The configuration of an evaluator: global guidelines in groups by name, its metrics, and those that it names."""

    global_guidelines: Mapping[str, Sequence[str]]
    metrics: Sequence[Metric]
    named: AbstractSet[str] = frozenset()


class RowExpectations(NamedTuple):
    """The expectations of one row."""

    columns: AbstractSet[str]  # the columns that exist, in the words of `Metric.needs`
    expected_response: str | None = None
    expected_facts: Sequence[str] = ()
    guidelines: Mapping[str, Sequence[str]] = {}  # in groups by name; the name of the only group may be empty
    uris: Sequence[str] = ()


def select_metrics(metrics: Sequence[str] | None, global_guidelines: Guidelines | None) -> MetricSelection:
    """Return the configuration of an evaluator; raise UsageError if a name or the guidelines are not valid.

    `metrics` are short or documented names; None is all. Tokens and latency are always computed.
    """
    groups = _groups(() if global_guidelines is None else global_guidelines)
    if metrics is None:
        return MetricSelection(groups, METRICS)
    if isinstance(metrics, str):
        raise UsageError("'metrics' is a text, not a list of names", actions=(f"Write [{metrics!r}].",))
    by_name = {name: metric for metric in METRICS for name in (metric.short, metric.name) if name}
    by_name |= dict.fromkeys(_PRECISION, by_name[CHUNK_RELEVANCE])
    for name in metrics:
        if name not in by_name:
            shorts = [metric.short for metric in METRICS if metric.short]
            raise UsageError(f"{str(name)!r:.100} is not a known metric", actions=(did_you_mean(str(name), shorts),))
    chosen = {by_name[name].name for name in metrics}
    kept = [metric for metric in METRICS if metric.name in chosen or not metric.short]
    return MetricSelection(groups, kept, chosen)


def _groups(guidelines: object) -> Mapping[str, Sequence[str]]:
    """Return guidelines as lists by name, without empty lists; the name of a plain list is empty."""
    groups: dict[str, Sequence[str]] = {}
    for name, group in guidelines.items() if isinstance(guidelines, Mapping) else [("", guidelines)]:
        if not isinstance(group, list | tuple) or not all(isinstance(text, str) for text in group):
            message = "guidelines are a list of texts, or lists of texts by name"
            raise UsageError(message, actions=('Write ["The response must ..."].',))
        if group:
            groups[str(name)] = list(group)
    return groups


def expectations_of(asks: RowExpectations, wanted: MetricSelection) -> tuple[Expectation, ...]:
    """Return an expectation for every selected metric whose columns exist; guidelines have one for each group."""
    columns = asks.columns | ({"global_guidelines"} if wanted.global_guidelines else set())
    return tuple(
        expectation
        for metric in wanted.metrics
        if metric.needs <= columns
        for expectation in _expectations(metric.name, asks, wanted)
    )


def _expectations(name: str, asks: RowExpectations, wanted: MetricSelection) -> Iterator[Expectation]:
    if name in {GUIDELINES, GLOBAL_GUIDELINES}:
        groups = asks.guidelines if name == GUIDELINES else wanted.global_guidelines
        for label, group in groups.items():
            yield Expectation(name, label=label or None, terms={"guidelines": list(group)})
    elif name in {CORRECTNESS, CONTEXT_SUFFICIENCY}:
        terms: JsonObject = {"facts": list(asks.expected_facts)} if asks.expected_facts else {}
        yield Expectation(name, asks.expected_response, terms=terms)
    elif name == DOCUMENT_RECALL:
        yield Expectation(name, terms={"uris": list(asks.uris)})
    else:
        yield Expectation(name)
