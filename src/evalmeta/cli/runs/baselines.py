"""Baselines in the `test` commands: the options, the comparisons that are printed, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api, limits
from evalmeta.cli.options import FILE, IntRange, option_group
from evalmeta.cli.output import note, print_styled
from evalmeta.cli.suggestions import completed
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_FAILED, EXIT_PASSED, Suggestion, UsageError
from evalmeta.model.comparison import Standing
from evalmeta.report.comparison import suite_lines, verdict
from evalmeta.report.report import BaselineVerdict
from evalmeta.report.text import and_more, count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.api.runs.comparisons import Comparator
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.cli.options import Command
    from evalmeta.model.comparison import Comparison, SuiteComparison
    from evalmeta.package.project import Project

_SHOWN_TESTS: Final = 3
_COLOURS: Final = {"worse": "red", "better": "green"}


class BaselineOption(NamedTuple):
    """The values of --baseline, --suspect and --confirm.

    Attributes:
        suspects_fail: whether a suspect case fails the command.
        most_answers: how often a suspect case is asked again at most; 0 to ask none.
        must_confirm: whether the user asked for it, so that an org that cannot run single cases is refused.
        history: reports of earlier runs that are not in the project's database.
    """

    path: Path
    suspects_fail: bool
    most_answers: int = 0
    must_confirm: bool = False
    history: tuple[Path, ...] = ()

    def open(self, project: Project) -> Comparator:
        """Open the file or the run, and read the history; raise the same errors as `open_baseline`."""
        baseline = api.runs.baselines.open_baseline(project, self.path)
        history = tuple(run for path in self.history for run in api.runs.baselines.read_results(path))
        return api.runs.comparisons.Comparator(
            baseline, self.suspects_fail, project, self.most_answers, self.must_confirm, history
        )


suspect_option = click.option(
    "--suspect",
    type=click.Choice(("show", "fail")),
    default="show",
    show_default=True,
    help="Whether a suspect case fails the command. It passed before and does not pass now, but is not known to be"
    " broken.",
)
_baseline = click.option(
    "--baseline",
    type=FILE,
    metavar="FILE|RUN|BRANCH",
    help="Compare with this baseline; failures that are already in it do not count. With 'previous', each run is"
    " compared with the last complete run of its test; with a branch such as 'main', with its last runs there.",
)


class _Confirm(IntRange):
    """A number of answers, or `auto`."""

    name = "auto|N"

    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or the one that stands for `auto`."""
        return _AUTO if value in {"auto", _AUTO} else int(super().convert(value, param, ctx))


_AUTO: Final = -1
_confirm = click.option(
    "--confirm",
    type=_Confirm(0, limits.MAX_ANSWERS_AGAIN),
    metavar="auto|N",
    default="auto",
    show_default=True,
    help="Ask each case that passed before and does not pass now again, at most N times, until it passes once or is"
    f" known to be broken. auto: at most {limits.MAX_ANSWERS_AGAIN} times; 0: never.",
)


_history = click.option(
    "--history",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="A JSON report of earlier runs, for agents whose answers are alike within a run; repeatable."
    "  [default: the project's store]",
)


def baseline_option(command: Command) -> Command:
    """Add --baseline and --suspect, as the parameter `baseline`: None without --baseline."""
    return option_group("baseline", _option, (_baseline, suspect_option))(command)


def confirming_option(command: Command) -> Command:
    """Add --baseline, --suspect and --confirm, as the parameter `baseline`: None without --baseline."""
    return option_group("baseline", _option, (_baseline, suspect_option, _confirm, _history))(command)


def _option(
    *, baseline: Path | None, suspect: str, confirm: int = 0, history: tuple[Path, ...] = ()
) -> BaselineOption | None:
    if baseline is not None:
        most = limits.MAX_ANSWERS_AGAIN if confirm == _AUTO else confirm
        return BaselineOption(baseline, suspect == "fail", most, confirm > 0, history)
    if history:
        raise UsageError("--history needs --baseline", actions=["Add --baseline FILE."])
    if confirm > 0:
        raise UsageError("--confirm needs --baseline: it asks suspect cases again, which passed in the baseline")
    return None


class Judgement(NamedTuple):
    """What a baseline decides about the runs of a command, each with its comparison, None if it lacks their test.

    Failures that the baseline has are ignored, even if a run misses its pass rate because of them. Regressions fail.
    New cases must reach the run's pass rate. A test that is not in the baseline, without decided cases, or with too few
    judged results is judged on its own. Errors and time-outs are never ignored.
    """

    comparator: Comparator
    suite: SuiteComparison
    pairs: list[tuple[FinishedRun, Comparison | None]]

    @classmethod
    def of(cls, comparator: Comparator, finished: Sequence[FinishedRun]) -> Judgement:
        """Compare runs with a baseline; this reads all their results."""
        suite = comparator.compare([run.run for run in finished])
        tests = {comparison.after: comparison for comparison in suite.tests}
        return cls(comparator, suite, [(run, tests.get(run.run.id)) for run in finished])

    def verdicts(self) -> list[BaselineVerdict | None]:
        """Return what the baseline decides about each run; None for those that are judged on their own."""
        return [self._verdict(*pair) for pair in self.pairs]

    def code(self, code: int) -> int:
        """Return the exit code that replaces the runs' own."""
        if code not in {EXIT_PASSED, EXIT_EXPECTATION_FAILED}:
            return code
        if any(case.is_unconfirmed for test in self.suite.tests for case in test.cases):
            return EXIT_FAILED
        return EXIT_EXPECTATION_FAILED if any(self._fails(*pair) for pair in self.pairs) else EXIT_PASSED

    def show(self, code: int, *, err: bool) -> None:
        """Print how the runs compare, and why that replaces or keeps their own exit code."""
        label, new_code = self.comparator.baseline.label, self.code(code)
        if not err and self.suite.tests:
            click.echo()
        fails = self.comparator.suspects_fail
        print_comparisons(self.suite, suspects_fail=fails, project=self.comparator.project, err=err)
        for run, comparison in self.pairs:
            if comparison is None:
                note(f"{run.run.definition} is not in {label}: its run is judged on its own")
        if others := self.comparator.baseline.tests_without(run.run for run, _ in self.pairs):
            verb = "was" if len(others) == 1 else "were"
            note(f"{count(len(others), 'test')} in {label} {verb} not run: {and_more(others, _SHOWN_TESTS)}")
        if new_code == EXIT_PASSED and (suspects := len(self.suite.suspects)):
            verb = "does" if suspects == 1 else "do"
            why = f"exit 0, but {count(suspects, 'suspect case')} passed in {label} and {verb} not pass now"
            print_styled([("worse", why)], _COLOURS, err=err)
        elif why := self._why(new_code, code):
            click.echo(f"exit {new_code}: {why} {label}", err=err)

    def _verdict(self, finished: FinishedRun, comparison: Comparison | None) -> BaselineVerdict | None:
        if comparison is None or _is_judged_alone(finished):
            return None
        unconfirmed = any(case.is_unconfirmed for case in comparison.cases)
        passed = not (unconfirmed or self._fails(finished, comparison))
        text = verdict(comparison, suspects_fail=self.comparator.suspects_fail)
        why = text if passed else f"{self._why_failed([comparison])} {self.comparator.baseline.label}"
        return BaselineVerdict(comparison, passed, why)

    def _why(self, new_code: int, code: int) -> str:
        """Return why the comparison decides the exit code; empty if the runs alone decide it."""
        if new_code == EXIT_PASSED:
            return "" if new_code == code else _why_ignored(self.suite.tests)
        failing = [test for finished, test in self.pairs if test and self._fails(finished, test)]
        if new_code == EXIT_EXPECTATION_FAILED and failing:
            return self._why_failed(failing)
        return "" if new_code == code else self._why_failed(self.suite.tests)

    def _fails(self, finished: FinishedRun, comparison: Comparison | None) -> bool:
        if comparison is None or _is_judged_alone(finished):
            return not finished.summary.succeeded
        if comparison.is_regression(suspects_fail=self.comparator.suspects_fail) or self._falls_with_others(comparison):
            return True
        return _misses_pass_rate(comparison, finished.summary.min_pass_rate)

    def _falls_with_others(self, comparison: Comparison) -> bool:
        """Return whether all tests together became significantly worse, this one among them."""
        fell = comparison.significance is not None and comparison.significance.change == "worse"
        return fell and self.suite.is_significantly == "worse"

    def _why_failed(self, comparisons: Sequence[Comparison]) -> str:
        """Return why a comparison fails runs that passed; the label of the baseline follows."""
        if unconfirmed := sum(case.is_unconfirmed for test in comparisons for case in test.cases):
            return f"{count(unconfirmed, 'suspect case')} ended in errors when asked again, and passed in"
        if broken := sum(len(test.of(Standing.BROKEN)) for test in comparisons):
            return f"{count(broken, 'case')} broke compared with"
        if any(test.is_significantly == "worse" for test in comparisons):
            return "significantly worse than"
        return self._why_else(comparisons)

    def _why_else(self, comparisons: Sequence[Comparison]) -> str:
        if lost := sum(len(test.lost) for test in comparisons):
            return f"{count(lost, 'case')} ended in errors and passed in"
        if self.comparator.suspects_fail and (suspects := sum(len(test.suspects) for test in comparisons)):
            return f"{count(suspects, 'suspect case')} did not pass again, and passed in"
        new = sum(case.is_new_failure for test in comparisons for case in test.cases)
        verb = "is" if new == 1 else "are"
        return (
            f"{count(new, 'failing case')} {verb} not in" if new else "all tests together are significantly worse than"
        )


def print_comparisons(
    suite: SuiteComparison, *, suspects_fail: bool, project: Project | None = None, err: bool = False
) -> None:
    """Print comparisons, one below the other, and how to ask suspect cases again in a project."""
    for lines in suite_lines(suite, suspects_fail=suspects_fail):
        print_styled(lines, _COLOURS, err=err)
    ways = [ask_again(test, project) for test in suite.tests] if project else []
    for way in dict.fromkeys(filter(None, ways)):
        click.echo(f"  {way}", err=err)


def ask_again(comparison: Comparison, project: Project) -> str:
    """Return how to ask the suspect cases of a test again; empty if that shows nothing, or the command has done it."""
    if not any(case.left_to_ask for case in comparison.suspects):
        return ""
    context = click.get_current_context(silent=True)
    if context and context.params.get("baseline") and "confirm" in context.params:
        return ""
    words = ("--wait", "--baseline", comparison.before)
    return completed(Suggestion("Ask suspect cases again", "test", "run", *_selected(comparison, project), *words))


def _selected(comparison: Comparison, project: Project) -> tuple[str, ...]:
    """Return the words of `test run` that select the test of a comparison."""
    if api.agent_tests.file_of_run(project, comparison.after) is None:
        return "--api-name", comparison.name
    return api.runs.reruns.file_words(project, api.runs.comparisons.load_run(project, comparison.after))


def _why_ignored(comparisons: Sequence[Comparison]) -> str:
    """Return why a comparison passes runs that failed; the label of the baseline follows."""
    failing = [case for test in comparisons for case in test.cases if case.after and case.after.failed]
    if any(not case.before or not case.before.failed for case in failing):
        return "nothing is significantly worse than"
    return f"{count(len(failing), 'failure')} {'is' if len(failing) == 1 else 'are'} already in"


def _is_judged_alone(finished: FinishedRun) -> bool:
    return finished.summary.pass_rate is None or not finished.summary.judges_enough


def _misses_pass_rate(comparison: Comparison, min_pass_rate: float) -> bool:
    """Return whether the cases that were never judged before do not reach the run's pass rate."""
    unknown = [case.after for case in comparison.cases if case.after and not (case.before and case.before.decided)]
    passed, decided = sum(side.passed for side in unknown), sum(side.decided for side in unknown)
    return any(case.is_new_failure for case in comparison.cases) and passed < min_pass_rate * decided
