"""Reporting runs, as the `test` commands share it: on stdout, in files, by the exit code."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from evalmeta.cli.comparisons import code_by_baseline, judge_by_baseline
from evalmeta.cli.output import console, note, print_json
from evalmeta.errors import (
    EXIT_EXPECTATION_FAILED,
    EXIT_FAILED,
    EXIT_PASSED,
    EXIT_WAIT_RAN_OUT,
    EvalmetaError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.api.runs import FinishedRun
    from evalmeta.cli.comparisons import Standard
    from evalmeta.package.project import Project
    from evalmeta.report.report import Report


def prepare_folder(output_dir: Path | None) -> None:
    """Makes the folder for result files before anything is asked of an agent.

    Raises:
        UsageError: it cannot be made.
    """
    if output_dir is None:
        return
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {str(output_dir)!r} cannot be made: {error.strerror}", actions=["Choose another."]
        ) from None


class Output(NamedTuple):
    """How runs are reported: the format on stdout, a folder for files, or JSON in the sf envelope."""

    result_format: str
    output_dir: Path | None
    as_json: bool

    @property
    def is_for_people(self) -> bool:
        """Tells whether more can be printed beside the report."""
        return self.result_format == "human" and not self.as_json


def report_runs(
    project: Project, finished: Sequence[FinishedRun], output: Output, *, standard: Standard | None = None
) -> int:
    """Prints runs, writes their files, compares them with a baseline if there is one, and gives the exit code."""
    reports = [_report(project, each) for each in finished]
    code = _exit_code(reports)
    _show(reports, output, status=code_by_baseline(standard, finished, code=code))
    return judge_by_baseline(standard, finished, code=code, err=not output.is_for_people)


def _show(reports: Sequence[Report], output: Output, *, status: int) -> None:
    from evalmeta import report  # noqa: PLC0415 - not needed for --help

    if output.as_json:
        from evalmeta.report.json import run_json  # noqa: PLC0415 - not needed for --help

        print_json([run_json(each) for each in reports], status=status)
    elif output.is_for_people:
        from evalmeta.report.tables import print_human  # noqa: PLC0415 - likewise

        print_human(reports, console(err=False))
    else:
        click.echo(report.render(output.result_format, reports), nl=False)
    if output.output_dir is not None:
        _write_files(reports, output.result_format, output.output_dir)


def _report(project: Project, finished: FinishedRun) -> Report:
    from evalmeta.api.agent_tests import place_of_run  # noqa: PLC0415 - likewise
    from evalmeta.api.comparisons import statistics_of  # noqa: PLC0415 - not needed for --help
    from evalmeta.api.files import case_lines, shown  # noqa: PLC0415 - likewise
    from evalmeta.model.registry import type_of_run  # noqa: PLC0415 - likewise
    from evalmeta.package.resolver import find_components  # noqa: PLC0415 - likewise
    from evalmeta.report.report import Report  # noqa: PLC0415 - likewise

    paths = []
    # Files that stand in each other's way do not matter to results that are already there.
    with suppress(EvalmetaError):
        kind, name = type_of_run(finished.run.id), finished.run.definition
        paths = [each.path for each in find_components(project) if (each.type, each.full_name) == (kind, name)]
    report = Report(finished.run, finished.summary, statistics=statistics_of(finished.run))
    if paths:
        return replace(report, file=shown(paths[0]), lines=case_lines(paths[0]))
    place = place_of_run(project, finished.run.definition)
    return replace(report, file=shown(place[0]), lines=place[1]) if place else report


def _write_files(reports: Sequence[Report], result_format: str, output_dir: Path) -> None:
    from evalmeta import report  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.files import put_file  # noqa: PLC0415 - likewise

    for each in reports:
        path = output_dir / report.file_name(result_format, each.run.id)
        put_file(path, report.render(result_format, [each]).encode())
        note(f"Wrote {path}")


def _exit_code(reports: Sequence[Report]) -> int:
    from evalmeta.report.report import has_passed, why_incomplete  # noqa: PLC0415 - not needed for --help

    if not all(each.run.status.is_over for each in reports):
        return EXIT_WAIT_RAN_OUT
    if all(has_passed(each) for each in reports):
        return EXIT_PASSED
    broken = any(each.summary.errors or why_incomplete(each.run) for each in reports)
    return EXIT_FAILED if broken else EXIT_EXPECTATION_FAILED
