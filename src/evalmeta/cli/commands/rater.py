"""`evalmeta rater`: show the prompts of the LLM rater, and measure raters on labelled pairs."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from evalmeta import api, limits
from evalmeta.cli.groups import FullHelpGroup
from evalmeta.cli.options import FILE, PATH, FloatRange, IntRange
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import json_option, note, print_json, warn
from evalmeta.cli.rater_reports import check_json, missed_minimums, print_check
from evalmeta.engine.interfaces import Rubric
from evalmeta.engine.metrics import METRICS, OWN
from evalmeta.engine.raters.calibration import agreement
from evalmeta.engine.raters.llm.prompts import (
    NO_RUBRIC,
    PROMPT_VERSION,
    answer_schema,
    last_words,
    rubric_message,
    system_message,
)
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_FAILED, EXIT_PASSED, NotFound, UsageError
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.expectations import OUTCOME, canonical_name
from evalmeta.model.generated_data import Action, Passage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.engine.raters.llm.prompts import CustomRubric
    from evalmeta.model.json_value import JsonObject

_SHARE: Final = FloatRange(0, 1)


class _CheckOptions(TypedDict):
    """The options that the library takes as they are."""

    metric: str
    label_threshold: float | None
    probes: int | None
    examples: int
    seed: int
    max_requests: int


@click.group(cls=FullHelpGroup)
def rater() -> None:
    """Show the prompts of the LLM rater, and measure how well raters judge."""


@rater.command()
@click.argument(
    "metric",
    required=False,
    shell_complete=lambda _, __, begun: [metric for metric in METRICS if metric.startswith(begun)],
)
@click.option("--rater", "name", metavar="NAME", help="An LLM rater of evalmeta.toml, whose rubric is added.")
@json_option
def show(*, metric: str | None, name: str | None, as_json: bool) -> None:
    """Print the prompts of the LLM rater exactly as a model receives them.

    METRIC is an expectation's name. By default, the prompts of all metrics are printed.
    The text to rate follows each prompt as one JSON object. Every request has another
    nonce.

    \b
    evalmeta rater show bot_response_rating
    evalmeta rater show bot_response_rating --rater judge
    evalmeta rater show --json
    """
    metrics = tuple(METRICS) if metric is None else (_known(metric),)
    rubric = NO_RUBRIC if name is None else api.judging.calibration.custom_rubric(name)
    if as_json:
        print_json(_prompts_json(metrics, rubric))
    else:
        click.echo("\n\n".join(_page(metric, rubric) for metric in metrics))


def _known(metric: str) -> str:
    name = canonical_name(metric)
    if name in METRICS:
        return name
    near = get_close_matches(name, METRICS, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise NotFound(f"the LLM rater has no prompt for {metric!r}", actions=(f"{hint}It has: {', '.join(METRICS)}.",))


def _page(metric: str, rubric: CustomRubric) -> str:
    parts = (
        f"# {metric}, prompt v{PROMPT_VERSION}",
        f"## System message\n\n{_system(metric, rubric).rstrip()}",
        f"## User message, with your texts in it\n\n{_example(metric)}",
        f"## Schema of the answer\n\n{json.dumps(answer_schema(metric, rubric), indent=2)}",
    )
    return "\n\n".join(parts)


def _system(metric: str, rubric: CustomRubric) -> str:
    return system_message(metric, rubric) + last_words("<nonce>")


def _example(metric: str) -> str:
    rubric = Rubric(
        metric,
        "<the utterance>",
        "<the agent's answer>",
        "<the expectedValue>",
        (HistoryMessage("<user or agent>", "<what was said before>"),),
        (Action("<the action's name>", {}, "<what it gave>"),),
        passages=(Passage("<the document's address>", "<the passage's text>"),),
        facts=("<an expected fact>",),
        guidelines=("<a guideline>",),
    )
    return rubric_message(rubric)


def _prompts_json(metrics: Sequence[str], rubric: CustomRubric) -> JsonObject:
    return {
        "version": PROMPT_VERSION,
        "prompts": [
            {
                "metric": metric,
                "system": _system(metric, rubric),
                "user": _example(metric),
                "schema": answer_schema(metric, rubric),
            }
            for metric in metrics
        ],
    }


@rater.command()
@click.argument("file", type=PATH)
@click.option("--rater", "name", default="rules", show_default=True, metavar="NAME", help="A rater of evalmeta.toml.")
@click.option(
    "--metric",
    type=click.Choice(tuple(OWN)),
    default=OUTCOME,
    show_default=True,
    metavar="NAME",
    help=f"What the pairs are judged by: {', '.join(OWN)}.",
)
@click.option(
    "--label-threshold",
    type=FloatRange(),
    metavar="SCORE",
    help="Lowest score that counts as right, if labels are scores.",
)
@click.option(
    "--min-agreement", type=_SHARE, metavar="SHARE", help="Exit with 100 if the agreement on decided pairs is lower."
)
@click.option("--min-decided", type=_SHARE, metavar="SHARE", help="Exit with 100 if fewer pairs are decided.")
@click.option(
    "--probes",
    type=IntRange(0),
    metavar="N",
    help=f"Number of pairs to rate again in other forms.  [default: {limits.PROBED_PAIRS}; all for the rater rules]",
)
@click.option("--examples", type=IntRange(0), default=0, metavar="N", help="Choose N examples for an LLM rater.")
@click.option("--save-examples", type=FILE, metavar="FILE", help="New file for the chosen examples.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the pairs for probes and examples.")
@click.option(
    "--max-requests",
    type=IntRange(1),
    default=limits.CHECK_REQUESTS,
    show_default=True,
    metavar="N",
    help="Limit of requests to a model.",
)
@json_option
def check(
    *,
    file: Path,
    name: str,
    min_agreement: float | None,
    min_decided: float | None,
    save_examples: Path | None,
    as_json: bool,
    **options: Unpack[_CheckOptions],
) -> int:
    """Measure how well a rater agrees with people.

    FILE contains JSON Lines, or CSV with a header, with the fields expected, actual and
    right (true or false), and optionally utterance, reason, rule and split. Labels and
    field names of other systems are read too. Quality metrics such as coherence need no
    expected.

    The tables show agreement, Cohen's kappa, the share of right answers that pass, and
    that of wrong answers that fail, with 95 % intervals. They also show how often each rule
    was right, and how many verdicts change with the form of an answer. Undecided pairs do
    not count in the agreement; --min-decided limits them. The exit code is 1 if pairs could
    not be rated.

    \b
    evalmeta rater check pairs.jsonl
    evalmeta rater check pairs.csv --rater panel --min-agreement 0.8 --min-decided 0.9
    evalmeta rater check pairs.jsonl --rater judge --examples 4 --save-examples examples.jsonl
    """
    if save_examples is not None and not options["examples"]:
        raise UsageError("--save-examples needs --examples", actions=("Add --examples 4.",))
    if save_examples is not None and save_examples.exists():
        raise UsageError(f"{save_examples}: the file exists", actions=("Choose another name, or delete the file.",))

    def announce(requests: int) -> None:
        note(f"Checking {name} with at most {requests:,} requests.")

    checked = run_async(api.judging.calibration.check_rater(file, rater=name, on_start=announce, **options))
    if checked.choice is not None and save_examples is not None:
        api.judging.calibration.save_examples(checked.choice, save_examples)
    total = agreement(checked.rated)
    missed = [*missed_minimums(total, min_agreement=min_agreement, min_decided=min_decided)]
    status = EXIT_FAILED if total.errors else EXIT_EXPECTATION_FAILED if missed else EXIT_PASSED
    if as_json:
        print_json(check_json(checked), status=status, warnings=missed)
    else:
        print_check(checked, rater=name, saved=save_examples)
        for line in missed:
            warn(line)
    return status
