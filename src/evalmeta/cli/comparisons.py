"""Comparing runs: the option --baseline of the `test` commands, the printed comparison, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api
from evalmeta.cli.options import option_group
from evalmeta.cli.output import note, print_styled, warn
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_PASSED
from evalmeta.model.statistics import Standing
from evalmeta.report.comparison import comparison_lines
from evalmeta.report.report import why_incomplete
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.api.comparisons import Baseline
    from evalmeta.api.finished_runs import FinishedRun
    from evalmeta.cli.options import Command, Decorator
    from evalmeta.model.run import Run
    from evalmeta.model.statistics import Comparison, FailOn
    from evalmeta.package.project import Project


_COLOURS: Final = {"worse": "red", "better": "green"}

fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(("broken", "significant")),
    default="broken",
    show_default=True,
    help="Exit with 100 if a case passed and now fails, or only if a change is statistically significant.",
)


class BaselineOption(NamedTuple):
    """The values of --baseline and --fail-on."""

    path: Path
    fail_on: FailOn

    def open(self, project: Project) -> Comparator:
        """Open the file or the run: raises like `open_baseline`."""
        return Comparator(api.comparisons.open_baseline(project, self.path), self.fail_on)


class Comparator(NamedTuple):
    """A baseline that was opened, and which differences fail."""

    baseline: Baseline
    fail_on: FailOn

    def compare(self, finished: Sequence[FinishedRun]) -> list[tuple[FinishedRun, Comparison | None]]:
        """Return the comparison of each run, None if its test is not in the baseline."""
        return [(each, api.comparisons.compare_with(self.baseline, each.run)) for each in finished]


def baseline_option(command: Command) -> Command:
    """Add --baseline and --fail-on, as the parameter `baseline`: None without --baseline."""
    option = click.option(
        "--baseline",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE|RUN",
        help="Compare with it, and ignore what already failed there.",
    )
    options: Sequence[Decorator] = (option, fail_on_option)
    return option_group("baseline", _baseline, options)(command)


def _baseline(*, baseline: Path | None, fail_on: FailOn) -> BaselineOption | None:
    return None if baseline is None else BaselineOption(baseline, fail_on)


def judge_by_baseline(comparator: Comparator | None, finished: Sequence[FinishedRun], *, code: int, err: bool) -> int:
    """Print how runs compare with a baseline, and return the exit code that replaces the runs' own.

    Failures that the baseline has are ignored, even if a run misses its pass rate because of them. Broken cases
    fail, and so do new cases that fail, unless --fail-on is "significant". A test that is not in the baseline, or
    without decided cases, is judged on its own. Errors and time-outs are never ignored.

    Args:
        comparator: what to compare with; None returns the code unchanged.
        finished: the runs that were reported.
        code: the exit code of the runs themselves.
        err: prints to stderr, when stdout is only for the report.
    """
    if comparator is None:
        return code
    pairs, label, fail_on = comparator.compare(finished), comparator.baseline.label, comparator.fail_on
    compared = [comparison for _, comparison in pairs if comparison is not None]
    if not err and compared:
        click.echo()
    print_comparisons(compared, fail_on=fail_on, err=err)
    for each, comparison in pairs:
        if comparison is None:
            note(f"{each.run.definition} is not in {label}: its run is judged on its own")
    judged = _code(pairs, fail_on, code)
    if judged != code:
        why = _why_failed(compared, fail_on) if judged else _why_ignored(compared)
        click.echo(f"exit {judged}: {why} {label}", err=err)
    return judged


def code_by_baseline(comparator: Comparator | None, finished: Sequence[FinishedRun], *, code: int) -> int:
    """Return the exit code that `judge_by_baseline` returns, without printing."""
    return code if comparator is None else _code(comparator.compare(finished), comparator.fail_on, code)


def print_comparisons(comparisons: Iterable[Comparison], *, fail_on: FailOn, err: bool = False) -> None:
    """Print comparisons, one below the other."""
    for place, comparison in enumerate(comparisons):
        if place:
            click.echo(err=err)
        print_styled(comparison_lines(comparison, fail_on=fail_on), _COLOURS, err=err)


def exit_code_of(comparisons: Iterable[Comparison], fail_on: FailOn) -> int:
    """Return 100 if a test became worse, otherwise 0."""
    worse = any(each.is_regression(fail_on) for each in comparisons)
    return EXIT_EXPECTATION_FAILED if worse else EXIT_PASSED


def warn_if_incomplete(run: Run) -> None:
    """Warn of a run that did not complete, whose missing cases were not removed from the test."""
    if why := why_incomplete(run):
        warn(f"{run.id} is not complete, {why}")


def _why_failed(comparisons: Sequence[Comparison], fail_on: FailOn) -> str:
    """Return why a comparison fails runs that passed; the label of the baseline follows."""
    if fail_on == "significant":
        return "worse by more than noise than"
    if broken := sum(len(each.of(Standing.BROKEN)) for each in comparisons):
        return f"{count(broken, 'case')} broke against"
    new = sum(case.is_new_failure for each in comparisons for case in each.cases)
    return f"{count(new, 'failing case')} {'is' if new == 1 else 'are'} not in"


def _why_ignored(comparisons: Sequence[Comparison]) -> str:
    """Return why a comparison passes runs that failed; the label of the baseline follows."""
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
