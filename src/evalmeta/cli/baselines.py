"""Baselines in the `test` commands: the options, the comparisons that are printed, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api, limits
from evalmeta.cli.options import FILE, option_group
from evalmeta.cli.output import note, print_styled
from evalmeta.cli.ranges import IntRange
from evalmeta.cli.rerun_commands import file_words
from evalmeta.cli.suggestions import completed
from evalmeta.engine.confirmation import answers_needed
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_FAILED, EXIT_PASSED, Suggestion, UsageError
from evalmeta.model.statistics import Standing
from evalmeta.report.comparison import comparison_lines, is_unchanged, verdict
from evalmeta.report.report import BaselineVerdict
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from evalmeta.api.comparisons import Baseline
    from evalmeta.api.finished_runs import FinishedRun
    from evalmeta.cli.options import Command
    from evalmeta.model.run import Run
    from evalmeta.model.statistics import Comparison, FailOn
    from evalmeta.package.project import Project

_COLOURS: Final = {"worse": "red", "better": "green"}
_USUAL_ANSWERS: Final = 5
_FAIL: Final = {True: "fails", False: "fail"}


fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(("significant", "broken")),
    default="significant",
    show_default=True,
    help="significant: exit with 100 if the agent became worse by more than chance explains. broken: also for each"
    " case that passed and now fails.",
)


class BaselineOption(NamedTuple):
    """The values of --baseline, --fail-on and --confirm."""

    path: Path
    fail_on: FailOn
    confirm: int | None = None

    def open(self, project: Project) -> Comparator:
        """Open the file or the run; raise the same errors as `open_baseline`."""
        return Comparator(api.comparisons.open_baseline(project, self.path), self.fail_on, project, self.confirm)


class Comparator(NamedTuple):
    """A baseline that was opened, and which differences fail.

    Attributes:
        project: the project whose later runs may have asked suspect cases again.
        confirm: how often suspect cases are asked again before they count; None if they are not.
    """

    baseline: Baseline
    fail_on: FailOn
    project: Project | None = None
    confirm: int | None = None

    def compare(self, finished: Sequence[FinishedRun]) -> list[tuple[FinishedRun, Comparison | None]]:
        """Return the comparison of each run, None if its test is not in the baseline."""
        return [(each, self._compare(each.run)) for each in finished]

    def _compare(self, run: Run) -> Comparison | None:
        again = api.comparisons.new_answers(self.project, run) if self.project else {}
        return api.comparisons.compare_with(self.baseline, run, again=again if again or self.confirm else None)


def baseline_option(command: Command) -> Command:
    """Add --baseline and --fail-on, as the parameter `baseline`: None without --baseline."""
    return option_group("baseline", _option, (_baseline, fail_on_option))(command)


def confirming_option(command: Command) -> Command:
    """Add --baseline, --fail-on and --confirm, as the parameter `baseline`: None without --baseline."""
    confirm = click.option(
        "--confirm",
        type=IntRange(1, limits.MAX_ITERATIONS),
        metavar="N",
        help="Run cases that passed in the baseline and now fail N more times before they count.",
    )
    return option_group("baseline", _option, (_baseline, fail_on_option, confirm))(command)


_baseline = click.option(
    "--baseline",
    type=FILE,
    metavar="FILE|RUN",
    help="Compare with this baseline; failures that are already in it do not count. "
    "With 'previous', each run is compared with the last complete run of its test.",
)


def _option(*, baseline: Path | None, fail_on: FailOn, confirm: int | None = None) -> BaselineOption | None:
    if baseline is not None:
        return BaselineOption(baseline, fail_on, confirm)
    if confirm is not None:
        raise UsageError("--confirm needs --baseline: it reruns cases that passed in the baseline and now fail")
    return None


def judge_by_baseline(comparator: Comparator | None, finished: Sequence[FinishedRun], *, code: int, err: bool) -> int:
    """Print how runs compare with a baseline, and return the exit code that replaces the runs' own.

    Failures that the baseline has are ignored, even if a run misses its pass rate because of them. Regressions fail.
    New cases must reach the run's pass rate. A test that is not in the baseline, without decided cases, or with too few
    judged results is judged on its own. Errors and time-outs are never ignored.
    """
    if comparator is None:
        return code
    pairs, label, fail_on = comparator.compare(finished), comparator.baseline.label, comparator.fail_on
    compared = [comparison for _, comparison in pairs if comparison is not None]
    if not err and compared:
        click.echo()
    print_comparisons(compared, fail_on=fail_on, project=comparator.project, err=err)
    for each, comparison in pairs:
        if comparison is None:
            note(f"{each.run.definition} is not in {label}: its run is judged on its own")
    judged = _code(pairs, fail_on, code)
    suspects = sum(len(each.of(Standing.SUSPECT)) for each in compared)
    if judged == EXIT_PASSED and suspects:
        why = f"exit 0, but {count(suspects, 'suspect case')} passed in {label} and {_FAIL[suspects == 1]} now"
        print_styled([("worse", why)], _COLOURS, err=err)
    elif why := _why(pairs, fail_on, judged, code):
        click.echo(f"exit {judged}: {why} {label}", err=err)
    return judged


def _why(pairs: Sequence[tuple[FinishedRun, Comparison | None]], fail_on: FailOn, judged: int, code: int) -> str:
    """Return why the comparison decides the exit code; empty if the runs alone decide it."""
    compared = [comparison for _, comparison in pairs if comparison is not None]
    if judged == EXIT_PASSED:
        return "" if judged == code else _why_ignored(compared)
    failing = [comparison for each, comparison in pairs if comparison and _fails(each, comparison, fail_on)]
    if judged == EXIT_EXPECTATION_FAILED and failing:
        return _why_failed(failing, fail_on)
    return "" if judged == code else _why_failed(compared, fail_on)


def verdicts_by_baseline(
    comparator: Comparator | None, finished: Sequence[FinishedRun]
) -> list[BaselineVerdict | None]:
    """Return what the baseline decides about each run; None for those that are judged on their own."""
    if comparator is None:
        return [None] * len(finished)
    return [_verdict(each, comparison, comparator) for each, comparison in comparator.compare(finished)]


def _verdict(finished: FinishedRun, comparison: Comparison | None, comparator: Comparator) -> BaselineVerdict | None:
    if comparison is None or _is_judged_alone(finished):
        return None
    fail_on, label = comparator.fail_on, comparator.baseline.label
    unconfirmed = any(each.is_unconfirmed for each in comparison.cases)
    passed = not (unconfirmed or _fails(finished, comparison, fail_on))
    text = verdict(comparison, fail_on=fail_on) if passed else f"{_why_failed([comparison], fail_on)} {label}"
    return BaselineVerdict(comparison, passed, text)


def code_by_baseline(comparator: Comparator | None, finished: Sequence[FinishedRun], *, code: int) -> int:
    """Return the exit code that `judge_by_baseline` returns, without printing."""
    return code if comparator is None else _code(comparator.compare(finished), comparator.fail_on, code)


def print_comparisons(
    comparisons: Iterable[Comparison], *, fail_on: FailOn, project: Project | None = None, err: bool = False
) -> None:
    """Print comparisons, one below the other, and how to run suspect cases again in a project."""
    comparisons = list(comparisons)
    # The option counts for all tests of a command.
    number = max(map(_answers, comparisons), default=0)
    changed = [each for each in comparisons if len(comparisons) == 1 or not is_unchanged(each)]
    if same := len(comparisons) - len(changed):
        click.echo(f"{same:,} of {count(len(comparisons), 'test')}: no change", err=err)
    ways = ["" if project is None else ask_again(each, project, number) for each in changed]
    for place, (comparison, way) in enumerate(zip(changed, ways, strict=True)):
        if place or same:
            click.echo(err=err)
        once = "" if way in ways[place + 1 :] else way
        print_styled(comparison_lines(comparison, fail_on=fail_on, ask_again=once), _COLOURS, err=err)


def _answers(comparison: Comparison) -> int:
    """Return how often to ask the suspect cases of a test again; 0 if there are none."""
    suspects = comparison.of(Standing.SUSPECT)
    asked = max((each.again.decided for each in suspects if each.again), default=0)
    return max(_USUAL_ANSWERS, answers_needed(comparison), 2 * asked) if suspects else 0


def ask_again(comparison: Comparison, project: Project, number: int) -> str:
    """Return how to ask the suspect cases of a test again `number` times before they count; empty if there are none."""
    if not comparison.of(Standing.SUSPECT):
        return ""
    context = click.get_current_context(silent=True)
    if context and "confirm" in context.params and not context.params.get("extend"):
        return f"Add --confirm {number} to run suspect cases again before they count."
    words = ("--wait", "--baseline", comparison.before, "--confirm", f"{number}")
    test = _selected(comparison, project)
    return completed(Suggestion("Run suspect cases again before they count", "test", "run", *test, *words))


def _selected(comparison: Comparison, project: Project) -> tuple[str, ...]:
    """Return the words of `test run` that select the test of a comparison."""
    if api.agent_tests.file_of_run(project, comparison.after) is None:
        return "--api-name", comparison.name
    return file_words(project, api.comparisons.load_run(project, comparison.after))


def _why_failed(comparisons: Sequence[Comparison], fail_on: FailOn) -> str:
    """Return why a comparison fails runs that passed; the label of the baseline follows."""
    if unconfirmed := sum(case.is_unconfirmed for each in comparisons for case in each.cases):
        return f"{count(unconfirmed, 'suspect case')} ended in errors when run again, and passed in"
    standings = (Standing.BROKEN, Standing.SUSPECT) if fail_on == "broken" else (Standing.BROKEN,)
    if broken := sum(len(each.of(*standings)) for each in comparisons):
        return f"{count(broken, 'case')} broke compared with"
    if any(each.is_significantly == "worse" for each in comparisons):
        return "significantly worse than"
    if lost := sum(len(each.lost) for each in comparisons):
        return f"{count(lost, 'case')} ended in errors and passed in"
    new = sum(case.is_new_failure for each in comparisons for case in each.cases)
    return f"{count(new, 'failing case')} {'is' if new == 1 else 'are'} not in"


def _why_ignored(comparisons: Sequence[Comparison]) -> str:
    """Return why a comparison passes runs that failed; the label of the baseline follows."""
    failing = [case for each in comparisons for case in each.cases if case.after and case.after.failed]
    if any(not case.before or not case.before.failed for case in failing):
        return "nothing is significantly worse than"
    return f"{count(len(failing), 'failure')} {'is' if len(failing) == 1 else 'are'} already in"


def _code(pairs: Sequence[tuple[FinishedRun, Comparison | None]], fail_on: FailOn, code: int) -> int:
    if code not in {EXIT_PASSED, EXIT_EXPECTATION_FAILED}:
        return code
    if any(each.is_unconfirmed for _, comparison in pairs if comparison for each in comparison.cases):
        return EXIT_FAILED
    for finished, comparison in pairs:
        if _fails(finished, comparison, fail_on):
            return EXIT_EXPECTATION_FAILED
    return EXIT_PASSED


def _is_judged_alone(finished: FinishedRun) -> bool:
    return finished.summary.pass_rate is None or not finished.summary.judges_enough


def _fails(finished: FinishedRun, comparison: Comparison | None, fail_on: FailOn) -> bool:
    if comparison is None or _is_judged_alone(finished):
        return not finished.summary.succeeded
    return _misses_pass_rate(comparison, finished.summary.min_pass_rate) or comparison.is_regression(fail_on)


def _misses_pass_rate(comparison: Comparison, min_pass_rate: float) -> bool:
    """Return whether the cases that were never judged before do not reach the run's pass rate."""
    unknown = [each.after for each in comparison.cases if each.after and not (each.before and each.before.decided)]
    passed, decided = sum(each.passed for each in unknown), sum(each.decided for each in unknown)
    return any(each.is_new_failure for each in comparison.cases) and passed < min_pass_rate * decided
