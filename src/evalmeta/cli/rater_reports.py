"""What `evalmeta rater check` prints: tables, or the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.output import print_table
from evalmeta.engine.raters.calibration import Share, agreement, agreement_by_rule
from evalmeta.engine.raters.labels import write_pairs
from evalmeta.report.text import count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.api.judging.calibration import Checked
    from evalmeta.engine.raters.calibration import Agreement, ExampleChoice, Probe, RatedPair
    from evalmeta.engine.raters.llm.providers import Usage
    from evalmeta.model.json_value import JsonObject

_COLUMNS: Final = ("Decided", "Right", "Accuracy", "Wrong passes", "Wrong failures")
_SHOWN_PAIRS: Final = 20


def missed_minimums(total: Agreement, *, min_agreement: float | None, min_decided: float | None) -> Iterator[str]:
    """Say which minimums a rater misses; without a decided pair, it misses every minimum of agreement."""
    agreed, decided = total.agreement.value, total.coverage.value or 0.0
    if min_agreement is not None and (agreed is None or agreed < min_agreement):
        found = "no pair was decided" if agreed is None else f"agreement is {agreed:.1%}"
        yield f"{found}; --min-agreement is {min_agreement:.1%}"
    if min_decided is not None and decided < min_decided:
        yield f"{decided:.1%} of the pairs were decided; --min-decided is {min_decided:.1%}"


def print_check(checked: Checked, *, rater: str, saved: Path | None) -> None:
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
    if checked.usage is not None:
        click.echo(f"\n{_usage_line(checked.usage)}")
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
    counts = (total.decided, total.right, total.wrong_passes, total.wrong_failures)
    decided, right, *wrong = map(str, counts)
    return (decided, right, _share_cells(total.agreement)[0], *wrong)


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
    count, pairs = len(choice.examples), choice.before.pairs
    click.echo(f"\n{count} examples, measured on {pairs} held-out pairs:")
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


def _usage_line(usage: Usage) -> str:
    return (
        f"Requests: {usage.requests:,}, answers from the cache: {usage.cached:,}, "
        f"tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out."
    )


def check_json(checked: Checked) -> JsonObject:
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
        "usage": _usage_json(usage) if usage else None,
        "pairs": [_pair_json(pair) for pair in checked.rated],
    }


def _agreement_json(total: Agreement) -> JsonObject:
    return {
        "pairs": total.pairs,
        "decided": total.decided,
        "right": total.right,
        "accuracy": total.agreement.value,
        "wrongPasses": total.wrong_passes,
        "wrongFailures": total.wrong_failures,
        "undecided": total.undecided,
        "errors": total.errors,
        "agreement": _share_json(total.agreement),
        "kappa": total.kappa,
        "truePositiveRate": _share_json(total.true_positives),
        "trueNegativeRate": _share_json(total.true_negatives),
        "coverage": _share_json(total.coverage),
    }


def _share_json(share: Share) -> JsonObject:
    interval = share.interval
    return {
        "value": share.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "count": share.count,
        "of": share.total,
    }


def _probe_json(probe: Probe) -> JsonObject:
    return {
        "form": probe.name,
        "changed": _share_json(probe.flips),
        "undecided": probe.undecided,
        "errors": probe.errors,
        "pairs": [_pair_json(pair) for pair in probe.flipped],
    }


def _choice_json(choice: ExampleChoice) -> JsonObject:
    return {
        "pairs": [
            _labelled(example.expected, example.actual, example.utterance, right=example.right)
            for example in choice.examples
        ],
        "before": _agreement_json(choice.before),
        "after": _agreement_json(choice.after),
        "isBetter": choice.is_better,
    }


def _usage_json(usage: Usage) -> JsonObject:
    return {
        "requests": usage.requests,
        "cached": usage.cached,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
    }


def _labelled(expected: str, actual: str, utterance: str, *, right: bool) -> JsonObject:
    return {"utterance": utterance, "expected": expected, "actual": actual, "right": right}


def _pair_json(rated: RatedPair) -> JsonObject:
    pair = rated.pair
    return {
        **_labelled(pair.expected, pair.actual, pair.utterance, right=pair.right),
        "split": pair.split,
        "verdict": rated.verdict.value,
        "rule": rated.rule,
        "explanation": rated.explanation,
    }
