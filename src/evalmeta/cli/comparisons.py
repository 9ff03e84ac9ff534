"""Comparing runs, as the `test` commands share it: the option --baseline, what is printed, what it exits with."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import click

from evalmeta.cli.output import note, wants_colour
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_PASSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evalmeta.api.comparisons import Baseline
    from evalmeta.api.runs import FinishedRun
    from evalmeta.model.run import Run
    from evalmeta.model.statistics import Comparison, FailOn
    from evalmeta.package.project import Project


_T = TypeVar("_T")
_Command: TypeAlias = "Callable[..., _T]"  # type: ignore[explicit-any]
_COLOURS: Final = {"worse": "red", "better": "green"}

fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(("broken", "significant")),
    default="broken",
    show_default=True,
    help="What exits with 100: a case that passed and now fails, or only what is more than noise.",
)


class Against(NamedTuple):
    """What runs are compared with, and what of it fails."""

    path: Path
    fail_on: FailOn

    def open(self, project: Project) -> Standard:
        """Opens the file or the run: raises like `open_baseline`."""
        from evalmeta.api.comparisons import open_baseline  # noqa: PLC0415 - not needed for --help

        return Standard(open_baseline(project, self.path), self.fail_on)


class Standard(NamedTuple):
    """What runs are compared with, opened; and what of the comparison fails."""

    baseline: Baseline
    fail_on: FailOn


def baseline_option(command: _Command[_T]) -> _Command[_T]:
    """Adds --baseline and --fail-on, and gives the command what they say as `against`: None without --baseline."""

    @wraps(command)
    def run(*, baseline: Path | None, fail_on: FailOn, **others: object) -> _T:
        return command(against=None if baseline is None else Against(baseline, fail_on), **others)

    decorated: _Command[_T] = fail_on_option(run)
    option = click.option(
        "--baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE|RUN",
        help="Compare with it; what failed there already is forgiven.",
    )
    return option(decorated)


def judge_by_baseline(standard: Standard | None, finished: Sequence[FinishedRun], *, code: int, err: bool) -> int:
    """Prints how runs compare with a baseline, and gives the exit code in place of the runs' own.

    Failures that the baseline knows are forgiven, also where they make a run miss its pass
    rate; what broke fails, and so does a new case that fails, unless only what is
    significant does. A test that is not in the baseline, or of which nothing was decided,
    counts by itself. Errors, or a wait that ran out, are not forgiven.

    Args:
        standard: what to compare with; None gives the code as it is.
        finished: the runs that were reported.
        code: what the runs exit with by themselves.
        err: prints to stderr, where stdout is for the report alone.
    """
    if standard is None:
        return code
    baseline, fail_on = standard
    from evalmeta.api.comparisons import compare_with  # noqa: PLC0415 - not needed for --help

    pairs = [(each, compare_with(baseline, each.run)) for each in finished]
    compared = [comparison for _, comparison in pairs if comparison is not None]
    if not err and compared:
        click.echo()
    print_comparisons(compared, fail_on=fail_on, err=err)
    for each, comparison in pairs:
        if comparison is None:
            note(f"{each.run.definition} is not in {baseline.label}: its run counts by itself")
    judged = _code(pairs, fail_on, code)
    if judged != code:
        why = _why_failed(compared, fail_on) if judged else _why_forgiven(compared)
        click.echo(f"exit {judged}: {why} {baseline.label}", err=err)
    return judged


def code_by_baseline(standard: Standard | None, finished: Sequence[FinishedRun], *, code: int) -> int:
    """Gives the exit code that `judge_by_baseline` gives, and prints nothing."""
    if standard is None:
        return code
    from evalmeta.api.comparisons import compare_with  # noqa: PLC0415 - not needed for --help

    return _code([(each, compare_with(standard.baseline, each.run)) for each in finished], standard.fail_on, code)


def print_comparisons(comparisons: Iterable[Comparison], *, fail_on: FailOn, err: bool = False) -> None:
    """Prints comparisons, one below the other."""
    from evalmeta.report.comparison import comparison_lines  # noqa: PLC0415 - not needed for --help

    for place, comparison in enumerate(comparisons):
        if place:
            click.echo(err=err)
        for style, text in comparison_lines(comparison, fail_on=fail_on):
            styled = click.style(text, fg=_COLOURS.get(style), bold=style == "title" or None)
            click.echo(styled, err=err, color=wants_colour(err=err))


def exit_code_of(comparisons: Iterable[Comparison], fail_on: FailOn) -> int:
    """Gives 100 when a test became worse, else 0."""
    worse = any(each.is_regression(fail_on) for each in comparisons)
    return EXIT_EXPECTATION_FAILED if worse else EXIT_PASSED


def remark_on(run: Run) -> None:
    """Warns of a run that did not complete: cases that it has not are not gone."""
    from evalmeta.report.report import why_incomplete  # noqa: PLC0415 - not needed for --help

    if why := why_incomplete(run):
        note(f"Warning: {run.id} is not complete, {why}")


def _why_failed(comparisons: Sequence[Comparison], fail_on: FailOn) -> str:
    """Says why a comparison fails what passed by itself, up to the name of what it was compared with."""
    from evalmeta.model.statistics import Standing  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.text import count  # noqa: PLC0415 - likewise

    if fail_on == "significant":
        return "worse by more than noise than"
    if broken := sum(len(each.of(Standing.BROKEN)) for each in comparisons):
        return f"{count(broken, 'case')} broke against"
    new = sum(case.is_new_failure for each in comparisons for case in each.cases)
    return f"{count(new, 'failing case')} {'is' if new == 1 else 'are'} not in"


def _why_forgiven(comparisons: Sequence[Comparison]) -> str:
    """Says why a comparison forgives what failed by itself, up to the name of what it was compared with."""
    from evalmeta.report.text import count  # noqa: PLC0415 - not needed for --help

    failing = [case for each in comparisons for case in each.cases if case.after and case.after.failed]
    if any(not case.before or not case.before.failed for case in failing):
        return "nothing that failed is a regression against"
    return f"{count(len(failing), 'failure')} {'is' if len(failing) == 1 else 'are'} known to"


def _code(pairs: Sequence[tuple[FinishedRun, Comparison | None]], fail_on: FailOn, code: int) -> int:
    if code not in {EXIT_PASSED, EXIT_EXPECTATION_FAILED}:
        return code
    failed = any(_fails(each, comparison, fail_on) for each, comparison in pairs)
    return EXIT_EXPECTATION_FAILED if failed else EXIT_PASSED


def _fails(finished: FinishedRun, comparison: Comparison | None, fail_on: FailOn) -> bool:
    summary = finished.summary
    if comparison is None or summary.pass_rate is None:
        return not summary.succeeded
    new_failure = fail_on == "broken" and any(each.is_new_failure for each in comparison.cases)
    return new_failure or comparison.is_regression(fail_on)
