"""`evalmeta rater`: what raters go by, and how well they rate.

`evalmeta rater check`: how far a rater can be trusted, measured on labelled pairs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.groups import LazyGroup
from evalmeta.cli.jobs import run_async
from evalmeta.cli.output import json_option, print_json, print_table
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.engine.raters.calibration import Agreement, RatedPair
    from evalmeta.model.json_value import JsonObject


@click.group(
    cls=LazyGroup, rows={"check": "evalmeta.cli.commands.rater:check", "show": "evalmeta.cli.commands.rater:show"}
)
def rater() -> None:
    """See what raters go by, and how well they rate."""


def _complete_metric(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from evalmeta.engine.raters.llm.prompts import METRICS  # noqa: PLC0415 - not needed for --help

    return [metric for metric in METRICS if metric.startswith(begun)]


@click.command()
@click.argument("metric", required=False, shell_complete=_complete_metric)
@json_option
def show(*, metric: str | None, as_json: bool) -> None:
    """Print the prompts of the LLM rater, word for word as a model gets them.

    METRIC is an expectation's name; without it, all are printed. What is to be rated
    follows each prompt as one JSON object.

    \b
    evalmeta rater show bot_response_rating
    evalmeta rater show --json
    """
    from evalmeta.engine.raters.llm.prompts import METRICS  # noqa: PLC0415 - not needed for --help

    metrics = METRICS if metric is None else (_known(metric),)
    if as_json:
        print_json(_prompts_json(metrics))
    else:
        click.echo("\n\n".join(_page(each) for each in metrics))


def _known(metric: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - not needed for --help

    from evalmeta.engine.raters.llm.prompts import METRICS  # noqa: PLC0415 - likewise
    from evalmeta.errors import NotFound  # noqa: PLC0415 - likewise
    from evalmeta.model.expectations import canonical_name  # noqa: PLC0415 - likewise

    name = canonical_name(metric)
    if name in METRICS:
        return name
    near = get_close_matches(name, METRICS, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise NotFound(f"the LLM rater has no prompt for {metric!r}", actions=(f"{hint}It has: {', '.join(METRICS)}.",))


def _page(metric: str) -> str:
    import json  # noqa: PLC0415 - not needed for --help

    from evalmeta.engine.raters.llm.prompts import PROMPT_VERSION, answer_schema, system_message  # noqa: PLC0415

    parts = (
        f"# {metric}, prompt v{PROMPT_VERSION}",
        f"## System message\n\n{system_message(metric).rstrip()}",
        f"## User message, with your texts in it\n\n{_example(metric)}",
        f"## Schema of the answer\n\n{json.dumps(answer_schema(metric), indent=2)}",
    )
    return "\n\n".join(parts)


def _example(metric: str) -> str:
    from evalmeta.engine.raters.judge import Rubric  # noqa: PLC0415 - likewise
    from evalmeta.engine.raters.llm.prompts import rubric_message  # noqa: PLC0415 - not needed for --help
    from evalmeta.model.definition import HistoryMessage  # noqa: PLC0415 - likewise
    from evalmeta.model.generated_data import Action, Passage  # noqa: PLC0415 - likewise

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
    from evalmeta.engine.raters.llm.prompts import PROMPT_VERSION, answer_schema, system_message  # noqa: PLC0415

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


_COLUMNS: Final = ("Decided", "Right", "Accuracy", "Wrong passes", "Wrong failures")
_SHOWN: Final = 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--rater", default="rules", show_default=True, metavar="NAME", help="A rater of evalmeta.toml.")
@json_option
def check(*, file: Path, rater: str, as_json: bool) -> int:
    """Measure a rater on pairs that people have judged.

    FILE has JSON lines, or CSV with a header, with the fields expected, actual and right
    (true or false), and if wanted utterance, rule and split. The table tells for each rule
    how often it decided, and how often rightly; pairs that it decided wrongly are listed.
    A rater without rules has one row. Exit 1 when pairs could not be rated.

    \b
    evalmeta rater check pairs.jsonl
    evalmeta rater check pairs.csv --rater panel
    """
    from evalmeta.api.calibration import check_rater  # noqa: PLC0415 - not needed for --help

    judged = run_async(check_rater(file, rater=rater))
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
    wrong = list(_wrong(judged))
    if wrong:
        click.echo("\nDecided wrongly:")
        click.echo("\n".join(wrong[:_SHOWN]))
    if len(wrong) > _SHOWN:
        click.echo(f"  and {len(wrong) - _SHOWN} more; --json lists all")


def _print_split(name: str, judged: Sequence[RatedPair]) -> None:
    from evalmeta.engine.raters.calibration import agreement, agreement_by_rule  # noqa: PLC0415 - not needed for --help

    total = agreement(judged)
    click.echo(
        f"{name or 'all'}: {total.pairs} pairs, {total.decided} decided ({total.coverage:.1%}), "
        f"{total.undecided} undecided" + (f", {total.errors} errors" if total.errors else "")
    )
    rows = [(rule, *_cells(each)) for rule, each in agreement_by_rule(judged).items()]
    print_table(("Rule", *_COLUMNS), [*rows, ("all", *_cells(total))])


def _cells(agreement: Agreement) -> tuple[str, ...]:
    accuracy = "-" if agreement.accuracy is None else f"{agreement.accuracy:.1%}"
    return (
        f"{agreement.decided}",
        f"{agreement.right}",
        accuracy,
        f"{agreement.wrong_passes}",
        f"{agreement.wrong_failures}",
    )


def _wrong(judged: Sequence[RatedPair]) -> Iterator[str]:
    from evalmeta.report.text import one_line  # noqa: PLC0415 - not needed for --help

    for one in judged:
        if one.is_decided and not one.is_right:
            yield f"  {one.verdict.value}  {one_line(one.pair.expected)} | {one_line(one.pair.actual)}"
            yield f"        {one_line(one.explanation)}"


def _json(judged: Sequence[RatedPair]) -> JsonObject:
    from evalmeta.engine.raters.calibration import agreement, agreement_by_rule  # noqa: PLC0415 - not needed for --help

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
