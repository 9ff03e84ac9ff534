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
from evalmeta.cli.output import json_option, note, print_json, print_table, warn
from evalmeta.engine.interfaces import Rubric
from evalmeta.engine.metrics import METRICS, OWN
from evalmeta.engine.raters.calibration import Share, agreement, agreement_by_rule
from evalmeta.engine.raters.labels import write_pairs
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
from evalmeta.report.text import attributes_json, count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.api.judging.calibration import Checked
    from evalmeta.engine.raters.calibration import Agreement, ExampleChoice, Probe, RatedPair
    from evalmeta.engine.raters.llm.prompts import CustomRubric
    from evalmeta.model.json_value import JsonObject, JsonValue


_COLUMNS: Final = ("Decided", "Right", "Accuracy", "Wrong passes", "Wrong failures")
_SHOWN_PAIRS: Final = 20
_LABELLED: Final = ("utterance", "expected", "actual", "right")


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
    return (
        f"# {metric}, prompt v{PROMPT_VERSION}\n\n"
        f"## System message\n\n{_system(metric, rubric).rstrip()}\n\n"
        f"## User message, with your texts in it\n\n{_example(metric)}\n\n"
        f"## Schema of the answer\n\n{json.dumps(answer_schema(metric, rubric), indent=2)}"
    )


def _system(metric: str, rubric: CustomRubric) -> str:
    return system_message(metric, rubric) + last_words("<nonce>")


def _example(metric: str) -> str:
    return rubric_message(
        Rubric(
            *(metric, "<the utterance>", "<the agent's answer>", "<the expectedValue>"),
            (HistoryMessage("<user or agent>", "<what was said before>"),),
            (Action("<the action's name>", {}, "<what it gave>"),),
            passages=(Passage("<the document's address>", "<the passage's text>"),),
            facts=("<an expected fact>",),
            guidelines=("<a guideline>",),
        )
    )


def _prompts_json(metrics: Sequence[str], rubric: CustomRubric) -> JsonObject:
    prompts: list[JsonValue] = [
        {
            "metric": metric,
            "system": _system(metric, rubric),
            "user": _example(metric),
            "schema": answer_schema(metric, rubric),
        }
        for metric in metrics
    ]
    return {"version": PROMPT_VERSION, "prompts": prompts}


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
    missed = [*_missed_minimums(total, min_agreement=min_agreement, min_decided=min_decided)]
    status = EXIT_FAILED if total.errors else EXIT_EXPECTATION_FAILED if missed else EXIT_PASSED
    if as_json:
        print_json(_check_json(checked), status=status, warnings=missed)
    else:
        _print_check(checked, rater=name, saved=save_examples)
        for line in missed:
            warn(line)
    return status


def _missed_minimums(total: Agreement, *, min_agreement: float | None, min_decided: float | None) -> Iterator[str]:
    """Say which minimums a rater misses; without a decided pair, it misses every minimum of agreement."""
    agreed, decided = total.agreement.value, total.coverage.value or 0.0
    if min_agreement is not None and (agreed is None or agreed < min_agreement):
        found = "no pair was decided" if agreed is None else f"agreement is {agreed:.1%}"
        yield f"{found}; --min-agreement is {min_agreement:.1%}"
    if min_decided is not None and decided < min_decided:
        yield f"{decided:.1%} of the pairs were decided; --min-decided is {min_decided:.1%}"


def _print_check(checked: Checked, *, rater: str, saved: Path | None) -> None:
    """Print the tables of a check, and its wrong decisions."""
    for number, (name, part) in enumerate(_splits(checked.rated).items()):
        if number:
            click.echo()
        _print_split(name, part)
    if checked.left_out:
        click.echo(f"\n{checked.left_out} pairs are examples of the rater and were left out.")
    _print_probes(checked.probes)
    _print_wrong(checked.rated)
    if checked.choice is not None:
        _print_choice(checked.choice, rater, saved)
    if usage := checked.usage:
        answers = f"Requests: {usage.requests:,}, answers from the cache: {usage.cached:,}"
        click.echo(f"\n{answers}, tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out.")
    errors = [pair.explanation for pair in checked.rated if pair.verdict.value == "ERROR"]
    if errors:
        click.echo(f"\n{count(len(errors), 'pair')} could not be rated; the first: {errors[0]}")


def _splits(rated: Sequence[RatedPair]) -> dict[str, tuple[RatedPair, ...]]:
    names = dict.fromkeys(pair.pair.split for pair in rated)
    return {name: tuple(pair for pair in rated if pair.pair.split == name) for name in names}


def _print_split(name: str, rated: Sequence[RatedPair]) -> None:
    total = agreement(rated)
    click.echo(
        f"{name or 'all'}: {count(total.pairs, 'pair')}, {total.decided} decided ({total.coverage.value or 0:.1%}), "
        f"{total.undecided} undecided" + (f", {count(total.errors, 'error')}" if total.errors else "")
    )
    rows = [(rule, *_cells(agreed)) for rule, agreed in agreement_by_rule(rated).items()]
    print_table(("Rule", *_COLUMNS), [*rows, ("all", *_cells(total))])
    kappa = "-" if total.kappa is None else f"{total.kappa:.2f}"
    measures = [
        ("agreement on decided pairs", *_share_cells(total.agreement)),
        ("Cohen's kappa", kappa, "", ""),
        ("right answers that pass", *_share_cells(total.true_positives)),
        ("wrong answers that fail", *_share_cells(total.true_negatives)),
        ("decided", *_share_cells(total.coverage)),
    ]
    click.echo()
    print_table(("Measure", "Value", "95 % interval", "Pairs"), measures)


def _cells(total: Agreement) -> tuple[str, ...]:
    accuracy, *_ = _share_cells(total.agreement)
    return f"{total.decided}", f"{total.right}", accuracy, f"{total.wrong_passes}", f"{total.wrong_failures}"


def _share_cells(share: Share) -> tuple[str, str, str]:
    value, interval = share.value, share.interval
    if value is None or interval is None:
        return "-", "", "0 of 0"
    return f"{value:.1%}", f"{interval.low:.1%} to {interval.high:.1%}", f"{share.count} of {share.total}"


def _print_probes(probes: Sequence[Probe]) -> None:
    rows = [
        (probe.name, *_share_cells(probe.flips), str(probe.undecided), str(probe.errors))
        for probe in probes
        if probe.decided or probe.undecided or probe.errors
    ]
    if rows:
        click.echo("\nVerdicts that change with the form of the answer:")
        print_table(("Form", "Changed", "95 % interval", "Pairs", "Undecided", "Errors"), rows)


def _print_wrong(rated: Sequence[RatedPair]) -> None:
    wrong = [pair for pair in rated if pair.is_decided and not pair.is_right]
    if wrong:
        click.echo("\nDecided wrongly:")
    for pair in wrong[:_SHOWN_PAIRS]:
        click.echo(f"  {pair.verdict.value}  {one_line(pair.pair.expected)} | {one_line(pair.pair.actual)}")
        click.echo(f"        {one_line(pair.explanation)}")
    if len(wrong) > _SHOWN_PAIRS:
        click.echo(f"  and {len(wrong) - _SHOWN_PAIRS} more; --json lists all")


def _print_choice(choice: ExampleChoice, rater: str, saved: Path | None) -> None:
    click.echo(f"\n{len(choice.examples)} examples, measured on {choice.before.pairs} held-out pairs:")
    rows = [
        (name, *_share_cells(agreed.agreement), f"{agreed.right} of {agreed.pairs}")
        for name, agreed in (("before", choice.before), ("after", choice.after))
    ]
    print_table(("", "Agreement", "95 % interval", "Decided pairs", "Right of all"), rows)
    if not choice.is_better:
        click.echo("The examples do not improve the rater. Do not add them.")
        return
    if saved is None:
        click.echo(f"Write these lines to a file, or add --save-examples FILE:\n\n{write_pairs(choice.examples)}")
    file = "examples.jsonl" if saved is None else saved.as_posix()
    click.echo(f'Then add this line to [raters.{rater}] in evalmeta.toml:\n\nexamples = "{file}"')


def _check_json(checked: Checked) -> JsonObject:
    """Return a check as JSON, with every pair."""
    choice, usage = checked.choice, checked.usage
    return {
        "all": _agreement_json(agreement(checked.rated)),
        "splits": [
            {
                "split": name,
                **_agreement_json(agreement(part)),
                "rules": [
                    {"rule": rule, **_agreement_json(agreed)} for rule, agreed in agreement_by_rule(part).items()
                ],
            }
            for name, part in _splits(checked.rated).items()
        ],
        "probes": [_probe_json(probe) for probe in checked.probes],
        "leftOut": checked.left_out,
        "examples": _choice_json(choice) if choice else None,
        "usage": attributes_json(usage, "requests", "cached", "input_tokens", "output_tokens") if usage else None,
        "pairs": [*map(_pair_json, checked.rated)],
    }


def _agreement_json(total: Agreement) -> JsonObject:
    return {
        **attributes_json(total, "pairs", "decided", "right"),
        "accuracy": total.agreement.value,
        **attributes_json(total, "wrong_passes", "wrong_failures", "undecided", "errors"),
        "agreement": _share_json(total.agreement),
        "kappa": total.kappa,
        "truePositiveRate": _share_json(total.true_positives),
        "trueNegativeRate": _share_json(total.true_negatives),
        "coverage": _share_json(total.coverage),
    }


def _share_json(share: Share) -> JsonObject:
    low, high = share.interval or (None, None)
    return {"value": share.value, "low": low, "high": high, "count": share.count, "of": share.total}


def _probe_json(probe: Probe) -> JsonObject:
    return {
        "form": probe.name,
        "changed": _share_json(probe.flips),
        **attributes_json(probe, "undecided", "errors"),
        "pairs": [*map(_pair_json, probe.flipped)],
    }


def _choice_json(choice: ExampleChoice) -> JsonObject:
    return {
        "pairs": [attributes_json(example, *_LABELLED) for example in choice.examples],
        "before": _agreement_json(choice.before),
        "after": _agreement_json(choice.after),
        "isBetter": choice.is_better,
    }


def _pair_json(rated: RatedPair) -> JsonObject:
    labelled = attributes_json(rated.pair, *_LABELLED, "split")
    return {**labelled, **attributes_json(rated, "verdict", "rule", "explanation")}
