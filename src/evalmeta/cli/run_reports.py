"""How the `test` commands report runs and compare them: on stdout, in files, and by the exit code."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api, report
from evalmeta.cli.options import FILE, FOLDER, option_group
from evalmeta.cli.output import console, json_option, note, print_json, print_styled, warn
from evalmeta.errors import (
    EXIT_EXPECTATION_FAILED,
    EXIT_FAILED,
    EXIT_PASSED,
    EXIT_WAIT_RAN_OUT,
    EvalmetaError,
    UsageError,
)
from evalmeta.model.registry import type_of_run
from evalmeta.model.statistics import Standing
from evalmeta.package.files import put_file, shown
from evalmeta.package.resolver import find_components
from evalmeta.report.comparison import comparison_lines
from evalmeta.report.json import run_json
from evalmeta.report.report import Report, has_passed, why_incomplete
from evalmeta.report.tables import print_human
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from click.shell_completion import CompletionItem

    from evalmeta.api.comparisons import Baseline
    from evalmeta.api.finished_runs import FinishedRun
    from evalmeta.cli.options import Command, Decorator
    from evalmeta.model.run import Run
    from evalmeta.model.statistics import Comparison, FailOn
    from evalmeta.package.project import Project


class Output(NamedTuple):
    """How to report runs: the format on stdout, a folder for files, or JSON in the sf envelope."""

    result_format: str
    output_dir: Path | None
    as_json: bool

    @property
    def is_human(self) -> bool:
        """Whether people read it, so that more can be printed beside the report."""
        return self.result_format == "human" and not self.as_json


def report_options(command: Command) -> Command:
    """Add --result-format, --output-dir (created before the command starts) and --json, as the parameter `output`."""
    output_dir = click.option(
        "-d", "--output-dir", type=FOLDER, help="Also write each run to a file test-result-ID in this folder."
    )
    options: Sequence[Decorator] = (result_format_option, output_dir, json_option)
    return option_group("output", _output, options)(command)


def _output(*, result_format: str, output_dir: Path | None, as_json: bool) -> Output:
    if output_dir is not None:
        try:
            output_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the folder {str(output_dir)!r} cannot be created: {error.strerror}",
                actions=["Choose another folder."],
            ) from None
    return Output(result_format, output_dir, as_json)


class _ResultFormat(click.ParamType):  # type: ignore[explicit-any, type-arg]
    """The name of a format; installed packages are searched only if the name is not built in."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = report.FORMATS if value in report.FORMATS else report.format_names()
        return click.Choice(list(known)).convert(value, param, ctx)

    def shell_complete(  # type: ignore[explicit-any]
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return click.Choice(report.format_names()).shell_complete(ctx, param, incomplete)


def result_format_option(command: Command) -> Command:
    """Add `--result-format`."""
    return click.option(
        "--result-format",
        type=_ResultFormat(),
        metavar=f"[{'|'.join(report.FORMATS)}]",
        default="human",
        show_default=True,
        help="Output format; installed packages can add formats.",
    )(command)


def report_runs(
    project: Project, finished: Sequence[FinishedRun], output: Output, *, comparator: Comparator | None = None
) -> int:
    """Print runs, write their files, compare them with a baseline if there is one, and return the exit code."""
    reports = [_report(project, each) for each in finished]
    code = _exit_code(reports)
    _print(reports, output, status=code_by_baseline(comparator, finished, code=code))
    return judge_by_baseline(comparator, finished, code=code, err=not output.is_human)


def _report(project: Project, finished: FinishedRun) -> Report:
    paths = []
    # Files of the same component do not matter to results that exist.
    with suppress(EvalmetaError):
        kind, name = type_of_run(finished.run.id), finished.run.definition
        paths = [each.path for each in find_components(project) if (each.type, each.full_name) == (kind, name)]
    found = Report(finished.run, finished.summary, statistics=api.comparisons.statistics_of(finished.run))
    if paths:
        return replace(found, file=shown(paths[0]), lines=api.files.case_lines(paths[0]))
    place = api.agent_tests.place_of_run(project, finished.run.definition)
    return replace(found, file=shown(place[0]), lines=place[1]) if place else found


def _print(reports: Sequence[Report], output: Output, *, status: int) -> None:
    if output.as_json:
        print_json([run_json(each) for each in reports], status=status)
    elif output.is_human:
        print_human(reports, console(err=False))
    else:
        click.echo(report.render(output.result_format, reports), nl=False)
    for each in reports if output.output_dir else ():
        path = Path(output.output_dir or ".") / report.file_name(output.result_format, each.run.id)
        put_file(path, report.render(output.result_format, [each]).encode())
        note(f"Wrote {path}")


def _exit_code(reports: Sequence[Report]) -> int:
    if not all(each.run.status.is_over for each in reports):
        return EXIT_WAIT_RAN_OUT
    if all(has_passed(each) for each in reports):
        return EXIT_PASSED
    has_errors = any(each.summary.errors or why_incomplete(each.run) for each in reports)
    return EXIT_FAILED if has_errors else EXIT_EXPECTATION_FAILED


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
        """Open the file or the run; raise the same errors as `open_baseline`."""
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
        type=FILE,
        metavar="FILE|RUN",
        help="Compare with this baseline; failures that it has already do not count.",
    )

    def build(*, baseline: Path | None, fail_on: FailOn) -> BaselineOption | None:
        return None if baseline is None else BaselineOption(baseline, fail_on)

    return option_group("baseline", build, (option, fail_on_option))(command)


def judge_by_baseline(comparator: Comparator | None, finished: Sequence[FinishedRun], *, code: int, err: bool) -> int:
    """Print how runs compare with a baseline, and return the exit code that replaces the runs' own.

    Failures that the baseline has are ignored, even if a run misses its pass rate because of them. Broken cases
    fail, and so do new cases that fail, unless --fail-on is "significant". A test that is not in the baseline, or
    without decided cases, is judged on its own. Errors and time-outs are never ignored.
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


def warn_if_incomplete(run: Run) -> None:
    """Warn of a run that did not complete, whose missing cases were not removed from the test."""
    if why := why_incomplete(run):
        warn(f"{run.id} is not complete, {why}")


def _why_failed(comparisons: Sequence[Comparison], fail_on: FailOn) -> str:
    """Return why a comparison fails runs that passed; the label of the baseline follows."""
    if fail_on == "significant":
        return "significantly worse than"
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
    for finished, comparison in pairs:
        if comparison is None or finished.summary.pass_rate is None:
            fails = not finished.summary.succeeded
        else:
            new_failure = fail_on == "broken" and any(each.is_new_failure for each in comparison.cases)
            fails = new_failure or comparison.is_regression(fail_on)
        if fails:
            return EXIT_EXPECTATION_FAILED
    return EXIT_PASSED
