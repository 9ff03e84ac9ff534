"""Baselines in the `test` commands: the options, the comparisons that are printed, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api, limits
from evalmeta.cli.groups import completed
from evalmeta.cli.options import FILE, Command, IntRange, option_group
from evalmeta.cli.output import note, print_styled
from evalmeta.errors import EXIT_PASSED, Suggestion, UsageError
from evalmeta.report.comparison import suite_lines
from evalmeta.report.text import and_more, count

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.api.runs.comparisons import Comparator
    from evalmeta.api.runs.decision import Decision
    from evalmeta.model.comparison import Comparison, SuiteComparison
    from evalmeta.package.project import Project
    from evalmeta.report.comparison import Explain

_SHOWN_TESTS: Final = 3
COLOURS: Final = {"worse": "red", "better": "green"}


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


def show_decision(decision: Decision, code: int, *, err: bool) -> None:
    """Print how the runs compare, and why that replaces or keeps their own exit code."""
    label, new_code = decision.comparator.baseline.label, decision.code(code)
    if not err and decision.suite.tests:
        click.echo()
    fails = decision.comparator.suspects_fail
    print_comparisons(decision.suite, suspects_fail=fails, project=decision.comparator.project, err=err)
    for run, comparison in decision.pairs:
        if comparison is None:
            note(f"{run.run.definition} is not in {label}: its run is judged on its own")
    if others := decision.comparator.baseline.tests_without(run.run for run, _ in decision.pairs):
        verb = "was" if len(others) == 1 else "were"
        note(f"{count(len(others), 'test')} in {label} {verb} not run: {and_more(others, _SHOWN_TESTS)}")
    if new_code == EXIT_PASSED and (suspects := len(decision.suite.suspects)):
        verb = "does" if suspects == 1 else "do"
        why = f"exit 0, but {count(suspects, 'suspect case')} passed in {label} and {verb} not pass now"
        print_styled([("worse", why)], COLOURS, err=err)
    elif why := decision.why(new_code, code):
        click.echo(f"exit {new_code}: {why} {label}", err=err)


def print_comparisons(
    suite: SuiteComparison,
    *,
    suspects_fail: bool,
    project: Project | None = None,
    explain: Explain = lambda _: {},
    err: bool = False,
) -> None:
    """Print comparisons, one below the other, and how to ask suspect cases again in a project.

    `explain` is that of `suite_lines`.
    """
    for lines in suite_lines(suite, suspects_fail=suspects_fail, explain=explain):
        print_styled(lines, COLOURS, err=err)
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
