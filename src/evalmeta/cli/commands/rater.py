"""`evalmeta rater`: show the prompts of the LLM rater, and measure raters on labelled pairs."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.options import PATH
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import json_option, print_json, print_table
from evalmeta.engine.raters.calibration import agreement, agreement_by_rule
from evalmeta.engine.raters.judge import Rubric
from evalmeta.engine.raters.llm.prompts import METRICS, PROMPT_VERSION, answer_schema, rubric_message, system_message
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, NotFound
from evalmeta.model.definition import HistoryMessage
from evalmeta.model.expectations import canonical_name
from evalmeta.model.generated_data import Action, Passage
from evalmeta.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.engine.raters.calibration import Agreement, RatedPair
    from evalmeta.model.json_value import JsonObject

_COLUMNS: Final = ("Decided", "Right", "Accuracy", "Wrong passes", "Wrong failures")
_SHOWN_PAIRS: Final = 20


@click.group()
def rater() -> None:
    """Show the prompts of the LLM rater, and measure how well raters judge."""


@rater.command()
@click.argument(
    "metric", required=False, shell_complete=lambda _, __, begun: [each for each in METRICS if each.startswith(begun)]
)
@json_option
def show(*, metric: str | None, as_json: bool) -> None:
    """Print the prompts of the LLM rater exactly as a model receives them.

    METRIC is an expectation's name. By default, the prompts of all metrics are printed.
    The text to rate follows each prompt as one JSON object.

    \b
    evalmeta rater show bot_response_rating
    evalmeta rater show --json
    """
    metrics = METRICS if metric is None else (_known(metric),)
    if as_json:
        print_json(_prompts_json(metrics))
    else:
        click.echo("\n\n".join(_page(each) for each in metrics))


def _known(metric: str) -> str:
    name = canonical_name(metric)
    if name in METRICS:
        return name
    near = get_close_matches(name, METRICS, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise NotFound(f"the LLM rater has no prompt for {metric!r}", actions=(f"{hint}It has: {', '.join(METRICS)}.",))


def _page(metric: str) -> str:
    parts = (
        f"# {metric}, prompt v{PROMPT_VERSION}",
        f"## System message\n\n{system_message(metric).rstrip()}",
        f"## User message, with your texts in it\n\n{_example(metric)}",
        f"## Schema of the answer\n\n{json.dumps(answer_schema(metric), indent=2)}",
    )
    return "\n\n".join(parts)


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


def _prompts_json(metrics: Sequence[str]) -> JsonObject:
    return {
        "version": PROMPT_VERSION,
        "prompts": [
            {
                "metric": metric,
                "system": system_message(metric),
                "user": _example(metric),
                "schema": answer_schema(metric),
            }
            for metric in metrics
        ],
    }


@rater.command()
@click.argument("file", type=PATH)
@click.option("--rater", "name", default="rules", show_default=True, metavar="NAME", help="A rater of evalmeta.toml.")
@json_option
def check(*, file: Path, name: str, as_json: bool) -> int:
    """Measure a rater on pairs that people have judged.

    FILE contains JSON lines, or CSV with a header, with the fields expected, actual and
    right (true or false), and optionally utterance, rule and split. The table shows for
    each rule how often it decided, and how often it was right. Wrong decisions are
    listed. A rater without rules has one row. The exit code is 1 if pairs could not be
    rated.

    \b
    evalmeta rater check pairs.jsonl
    evalmeta rater check pairs.csv --rater panel
    """
    judged = run_async(api.calibration.check_rater(file, rater=name))
    errors = [one.explanation for one in judged if one.verdict.value == "ERROR"]
    status = EXIT_FAILED if errors else EXIT_PASSED
    if as_json:
        print_json(_json(judged), status=status)
    else:
        _print(judged)
        if errors:
            click.echo(f"\n{len(errors)} pairs could not be rated; the first: {errors[0]}")
    return status


def _splits(judged: Sequence[RatedPair]) -> dict[str, tuple[RatedPair, ...]]:
    names = dict.fromkeys(one.pair.split for one in judged)
    return {name: tuple(one for one in judged if one.pair.split == name) for name in names}


def _print(judged: Sequence[RatedPair]) -> None:
    for number, (name, part) in enumerate(_splits(judged).items()):
        if number:
            click.echo()
        _print_split(name, part)
    wrong = [one for one in judged if one.is_decided and not one.is_right]
    if wrong:
        click.echo("\nDecided wrongly:")
    for one in wrong[:_SHOWN_PAIRS]:
        click.echo(f"  {one.verdict.value}  {one_line(one.pair.expected)} | {one_line(one.pair.actual)}")
        click.echo(f"        {one_line(one.explanation)}")
    if len(wrong) > _SHOWN_PAIRS:
        click.echo(f"  and {len(wrong) - _SHOWN_PAIRS} more; --json lists all")


def _print_split(name: str, judged: Sequence[RatedPair]) -> None:
    total = agreement(judged)
    click.echo(
        f"{name or 'all'}: {total.pairs} pairs, {total.decided} decided ({total.coverage:.1%}), "
        f"{total.undecided} undecided" + (f", {total.errors} errors" if total.errors else "")
    )
    rows = [(rule, *_cells(each)) for rule, each in agreement_by_rule(judged).items()]
    print_table(("Rule", *_COLUMNS), [*rows, ("all", *_cells(total))])


def _cells(agreement: Agreement) -> tuple[str, ...]:
    accuracy = "-" if agreement.accuracy is None else f"{agreement.accuracy:.1%}"
    counts = (agreement.decided, agreement.right, agreement.wrong_passes, agreement.wrong_failures)
    decided, right, *wrong = map(str, counts)
    return (decided, right, accuracy, *wrong)


def _json(judged: Sequence[RatedPair]) -> JsonObject:
    return {
        "splits": [
            {
                "split": name,
                **_agreement_json(agreement(part)),
                "rules": [{"rule": rule, **_agreement_json(each)} for rule, each in agreement_by_rule(part).items()],
            }
            for name, part in _splits(judged).items()
        ],
        "pairs": [_pair_json(one) for one in judged],
    }


def _agreement_json(agreement: Agreement) -> JsonObject:
    return {
        "pairs": agreement.pairs,
        "decided": agreement.decided,
        "right": agreement.right,
        "accuracy": agreement.accuracy,
        "wrongPasses": agreement.wrong_passes,
        "wrongFailures": agreement.wrong_failures,
        "undecided": agreement.undecided,
        "errors": agreement.errors,
    }


def _pair_json(one: RatedPair) -> JsonObject:
    return {
        "expected": one.pair.expected,
        "actual": one.pair.actual,
        "right": one.pair.right,
        "split": one.pair.split,
        "verdict": one.verdict.value,
        "rule": one.rule,
        "explanation": one.explanation,
    }
