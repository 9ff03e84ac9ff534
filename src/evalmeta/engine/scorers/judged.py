"""Metrics that a rater judges: evalmeta's own as a whole, and those of other systems by labels or in parts.

A rater also carries out the prompts of custom scorers (AiAgentScorerDefinition), which are about a conversation.
The score of evalmeta's own metrics is the rating.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from inspect import isawaitable
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.interfaces import BEST_RATING, Exchange, Rater, Rating, Rubric, Scorer
from evalmeta.engine.metrics import METRICS, OWN, Judged, Metric, Need, Part
from evalmeta.engine.scorers.actions import ACTIONS_UNKNOWN
from evalmeta.engine.scorers.results import not_passing_silence, undecided, when_ready
from evalmeta.errors import RaterError
from evalmeta.model.agent_scorer import FindScorer, PromptScorer, knows_steps, scorer_of_terms, session_view
from evalmeta.model.expectations import canonical_name
from evalmeta.model.run import NEEDS_MODEL, TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalmeta.engine.scorers.judged_terms import Terms
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject


NEEDS_LLM: Final = f"{NEEDS_MODEL}judge this, and this run has none"
_TOLERANCE: Final = 1e-9
_ADK_SAMPLES: Final = 5
# One rationale of many must not fill the explanation.
_MAX_RATIONALE: Final = limits.MAX_ERROR_CHARS // 4
_PART_LINE: Final = re.compile(r"\d+\. (yes|no), (.*?): (.*)")


def rated_by(rater: Rater, *, threshold: float = 3.0) -> Scorer:
    """Return a scorer that asks a rater; the score is the rating, 0 to 5, and UNDECIDED has none."""

    def score_rated(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        actual, expected = exchange.generated.outcome, (expectation.expected_value or "").strip()
        metric = canonical_name(expectation.name)
        if "reference" in METRICS[metric].needs and not expected:
            return undecided(expectation, "expectedValue is missing, so the response cannot be compared", actual=actual)
        own, instructions = expectation.terms.get("threshold"), expectation.terms.get("instructions", "")
        if not isinstance(instructions, str):
            raise RaterError(f"the term instructions is not valid: it must be a text, not {instructions!r:.50}")
        least = float(own) if isinstance(own, int | float) else threshold
        rubric = replace(_rubric_of(metric, exchange, expected), threshold=least, instructions=instructions)

        def result(rating: object) -> TestResult:
            shown = expectation.expected_value or ""
            if rating is None:
                return undecided(expectation, NEEDS_LLM, expected=shown, actual=actual)
            return _rated(expectation, _with_valid_score(_rating(rating)), expected=shown, actual=actual)

        return when_ready(rater(rubric), result)

    return score_rated


def _rubric_of(metric: str, exchange: Exchange, expected: str = "") -> Rubric:
    generated = exchange.generated
    return Rubric(metric, exchange.utterance, generated.outcome, expected, exchange.history, generated.actions)


def _rated(expectation: Expectation, rating: Rating, *, expected: str, actual: str) -> TestResult:
    """Return the result with the rating's own verdict and score."""
    name, label = expectation.name, expectation.label
    return TestResult(
        name, rating.verdict, expected, actual, rating.score, rating.explanation, label, rater=rating.rater
    )


def _rating(returned: object) -> Rating:
    """Return what a rater returned; raise RaterError unless it is a Rating."""
    if not isinstance(returned, Rating):
        raise RaterError(f"the rater returned {type(returned).__name__}, which is not a Rating")
    return returned


def _with_valid_score(rating: Rating) -> Rating:
    """Return a rating; raise RaterError if it has a score that is not from 0 to 5."""
    if rating.score is not None and not 0 <= rating.score <= BEST_RATING:
        raise RaterError(f"{rating.rater} returned the rating {rating.score}, which is not from 0 to {BEST_RATING:g}")
    return rating


# Whether the data that a metric needs is there, and what to report if not.
_DATA: Final[Mapping[Need, tuple[Callable[[Rubric, Terms], bool], str]]] = {
    "answer": (lambda rubric, _: bool(rubric.actual.strip()), "the agent's answer has no text"),
    "guidelines": (lambda rubric, _: bool(rubric.guidelines), "no guidelines"),
    "passages": (
        lambda rubric, _: bool(rubric.passages),
        "no retrieved context with content, neither from the agent nor in the data or its trace",
    ),
    "reference": (lambda rubric, _: bool(rubric.expected), "no reference with which to compare the final response"),
    "rubrics": (lambda _, terms: bool(terms.rubrics), "no rubrics"),
    "truth": (
        lambda rubric, _: bool(rubric.facts or rubric.expected),
        "neither expected facts nor an expected response",
    ),
}


class _Question(NamedTuple):
    """One expectation of one exchange, ready to be judged; `threshold` is the minimum rating of a yes."""

    expectation: Expectation
    metric: Metric
    terms: Terms
    threshold: float
    expected: str
    actual: str
    parts: tuple[Part, ...]
    remark: str

    @property
    def mean_threshold(self) -> float | None:
        return self.terms.threshold if self.metric.is_averaged else None


def judge_scorers(rater: Rater, *, threshold: float = 3.0) -> Mapping[str, Scorer]:
    """Return the scorers of all judged metrics by name; UNDECIDED if the rater cannot judge it or data is missing.

    `threshold` is the minimum rating, 0 to 5, that means yes for raters that return no verdict. An empty answer passes
    only metrics of ADK, as in ADK, and those that judge the retrieved passages.
    """
    scorers = {name: _scorer(metric, rater, threshold) for name, metric in METRICS.items() if name not in OWN}
    return {
        name: scorer if METRICS[name].is_averaged or METRICS[name].shows_passages else not_passing_silence(scorer)
        for name, scorer in scorers.items()
    }


def _scorer(metric: Metric, rater: Rater, threshold: float) -> Scorer:
    def score_judged(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        from evalmeta.engine.scorers.judged_terms import read_terms

        terms = read_terms(expectation)
        rubric = _rubric(expectation, exchange, metric, terms, threshold)
        parts = metric.parts(rubric, terms) if metric.parts else [Part("", rubric)]
        if len(parts) > limits.MAX_JUDGED_PARTS:
            raise RaterError(f"there are {len(parts):,} parts to judge; at most {limits.MAX_JUDGED_PARTS} are judged")
        passages = exchange.generated.retrieved or ()
        unknown = sum(passage.content is None for passage in passages) if "passages" in metric.needs else 0
        question = _Question(
            expectation,
            metric,
            terms,
            threshold,
            expectation.expected_value
            or "\n".join((*terms.facts, *terms.guidelines, *(r.text for r in terms.rubrics))),
            ", ".join(passage.uri for passage in rubric.passages) if metric.shows_passages else rubric.actual,
            tuple(parts),
            f" ({unknown} of {len(passages)} passages have no content)" if unknown else "",
        )
        for need in metric.needs:
            has_data, lack = _DATA[need]
            if not has_data(rubric, terms):
                # Without data of the file the result does not count in a mean; without an answer or a rater it does.
                result = _undecided(question, lack)
                return result if need == "answer" else result._replace(threshold=None)
        if metric.judges_actions and rubric.actions is None:
            return _undecided(question, ACTIONS_UNKNOWN)
        return _ask(question, rater)

    return score_judged


def _rubric(expectation: Expectation, exchange: Exchange, metric: Metric, terms: Terms, threshold: float) -> Rubric:
    if metric.rating_scale is not None and terms.threshold is not None:
        threshold = metric.rating_scale * terms.threshold - _TOLERANCE
    passages = exchange.generated.retrieved or ()
    return replace(
        _rubric_of(expectation.name, exchange, "" if terms.facts else (expectation.expected_value or "").strip()),
        threshold=threshold,
        passages=tuple(passage for passage in passages if passage.content is not None),
        actions=_actions(exchange) if metric.judges_conversation else exchange.generated.actions,
        facts=terms.facts,
        guidelines=terms.guidelines,
        samples=(terms.num_samples or _ADK_SAMPLES) if metric.is_pooled else terms.num_samples,
        is_pooled=metric.is_pooled,
    )


def _actions(exchange: Exchange) -> tuple[Action, ...] | None:
    """Return the actions of all turns in order; None if those of any turn are unknown."""
    turns = [*(turn.generated.actions for turn in exchange.earlier), exchange.generated.actions]
    known = [actions for actions in turns if actions is not None]
    return tuple(chain.from_iterable(known)) if len(known) == len(turns) else None


def _ask(question: _Question, rater: Rater) -> TestResult | Awaitable[TestResult]:
    first, *others = question.parts
    rating = rater(first.rubric)
    if rating is None:
        return _undecided(question, NEEDS_LLM)
    ratings = [rating, *(rater(part.rubric) for part in others)]
    # Offline raters return their ratings at once.
    return _awaited(question, ratings) if any(map(isawaitable, ratings)) else _result(question, ratings)


async def _awaited(question: _Question, ratings: list[Rating | Awaitable[Rating] | None]) -> TestResult:
    # All are awaited, also if one of them fails.
    answers = iter(await asyncio.gather(*filter(isawaitable, ratings), return_exceptions=True))
    answered = [next(answers) if isawaitable(rating) else rating for rating in ratings]
    for answer in answered:
        if isinstance(answer, BaseException):
            raise answer
    return _result(question, answered)


def _result(question: _Question, returned: Sequence[object]) -> TestResult:
    ratings = [_with_valid_score(_rating(rating)) for rating in returned]
    broken = next((rating for rating in ratings if rating.verdict is Verdict.ERROR), None)
    if broken:
        raise RaterError(broken.explanation)
    unsure = next((rating for rating in ratings if rating.verdict is Verdict.UNDECIDED and rating.score is None), None)
    if unsure:
        return _undecided(question, unsure.explanation)._replace(rater=unsure.rater)
    decided = (Verdict.PASS, Verdict.FAILURE)
    answers = [
        rating.verdict is Verdict.PASS if rating.verdict in decided else (rating.score or 0.0) >= question.threshold
        for rating in ratings
    ]
    minimum = question.terms.threshold
    score = question.metric.score(Judged(ratings, answers, question.terms))
    if minimum is not None and abs(score - minimum) <= _TOLERANCE:
        score = minimum
    if minimum is None and not question.metric.is_decided:
        verdict = Verdict.UNDECIDED
    else:
        verdict = Verdict.PASS if (all(answers) if minimum is None else score >= minimum) else Verdict.FAILURE
    rating = Rating(score, verdict, _explanation(question, ratings, answers), ratings[0].rater)
    result = _rated(question.expectation, rating, expected=question.expected, actual=question.actual)
    return result._replace(threshold=question.mean_threshold, is_measured=verdict is Verdict.UNDECIDED)


def _explanation(question: _Question, ratings: Sequence[Rating], answers: Sequence[bool]) -> str:
    """Return the rationale, with one line for each part if there are parts."""
    if not question.metric.parts:
        return f"{ratings[0].explanation}{question.remark}"
    judged = zip(question.parts, ratings, answers, strict=True)
    parts = [JudgedPart("yes" if yes else "no", part.name, rating.explanation) for part, rating, yes in judged]
    return write_parts(parts, remark=question.remark)


def _undecided(question: _Question, explanation: str) -> TestResult:
    result = undecided(question.expectation, explanation, expected=question.expected, actual=question.actual)
    return result._replace(threshold=question.mean_threshold)


class JudgedPart(NamedTuple):
    """One of the things that were judged one by one, such as a passage: yes or no, its name, and why."""

    label: str
    name: str
    rationale: str


def write_parts(parts: Sequence[JudgedPart], *, remark: str = "") -> str:
    """Return the explanation: the number of parts with a yes, then a line for each part."""
    yes = sum(judged_part.label == "yes" for judged_part in parts)
    lines = [f"{yes} of {len(parts)}{remark}"]
    for number, part in enumerate(parts, 1):
        name, rationale = (" ".join(text.split()) for text in (part.name, part.rationale))
        cut = rationale if len(rationale) <= _MAX_RATIONALE else f"{rationale[: _MAX_RATIONALE - 1]}…"
        # A colon and a blank end the name.
        lines.append(f"{number}. {part.label}, {name.replace(': ', ':')}: {cut}")
    return "\n".join(lines)


def read_parts(explanation: str) -> tuple[JudgedPart, ...]:
    """Return the parts that `write_parts` wrote, with long rationales cut; none for any other text."""
    matches = map(_PART_LINE.fullmatch, explanation.split("\n")[1:])
    return tuple(JudgedPart(*match.groups()) for match in matches if match)


_NEEDS_LLM: Final = f"{NEEDS_MODEL}carry out the prompt of this custom scorer, and this run has none"


def no_scorer(name: str) -> str:
    """Find no custom scorer: there is no project that could have it."""
    return f"the custom scorer {name!r} cannot be found: the run has no project and no org"


def custom_scorer(rater: Rater, find: FindScorer) -> Scorer:
    """Return the scorer of all custom scorers; UNDECIDED, with the reason, if nothing can judge by one.

    A label passes by its outcomeType, a number by the threshold of the specification; all other scores are reported and
    not judged. Source: @salesforce/agents, `agentScorers/types` (labels, outcomes, the session view).
    """

    def score_custom(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        scorer = find(expectation.name)
        if not isinstance(scorer, PromptScorer):
            return undecided(expectation, scorer, actual=exchange.generated.outcome)
        return _by_prompt(scorer, rater, expectation, exchange, _session_of(exchange))

    return score_custom


def prompt_scorer(rater: Rater) -> Scorer:
    """Return the scorer of expectations that have the prompt of a judge among their terms (`scorer_of_terms`).

    The judge reads the inputs of the turn, or the conversation that the terms have as `session`. If `judges_actions`
    is true, and the actions are not known, nothing is judged.
    """

    def score_prompt(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        terms = expectation.terms
        given = terms.get("session")
        session = given if isinstance(given, dict) else _session_of(exchange)
        if terms.get("judges_actions") and not knows_steps(session, of_all=isinstance(given, dict)):
            return undecided(expectation, ACTIONS_UNKNOWN, actual=exchange.generated.outcome)
        inputs = exchange.case.turns[len(exchange.earlier)].inputs
        if inputs is not None and given is None:
            session = {**session, "inputs": inputs}
        scorer = scorer_of_terms(expectation.label or expectation.name, terms)
        return _by_prompt(scorer, rater, expectation, exchange, session)

    return score_prompt


def _session_of(exchange: Exchange) -> JsonObject:
    return session_view(exchange.case.history, exchange.earlier, exchange.utterance, exchange.generated)


def _by_prompt(
    scorer: PromptScorer, rater: Rater, expectation: Expectation, exchange: Exchange, session: JsonObject
) -> TestResult | Awaitable[TestResult]:
    def result(returned: object) -> TestResult:
        if returned is None:
            return undecided(expectation, _NEEDS_LLM, actual=exchange.generated.outcome)
        rating = _rating(returned)
        actual = rating.output or exchange.generated.outcome
        is_measured = rating.verdict is Verdict.UNDECIDED and bool(rating.output)
        rated = _rated(expectation, rating, expected=_passing_scores(scorer), actual=actual)
        return rated._replace(is_measured=is_measured)

    samples = None if scorer.labels or scorer.is_numeric else 1
    rubric = replace(_rubric_of(scorer.name, exchange), samples=samples, scorer=scorer, session=session)
    return when_ready(rater(rubric), result)


def _passing_scores(scorer: PromptScorer) -> str:
    """Return which scores pass; empty if none is judged."""
    if scorer.labels:
        return " or ".join(label.value for label in scorer.labels if label.outcome == "Pass")
    threshold = scorer.values.threshold
    return f"at least {threshold:g}" if scorer.is_numeric and threshold is not None else ""
