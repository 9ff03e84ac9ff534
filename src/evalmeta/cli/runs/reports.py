"""How the `test` commands report runs: on stdout, in files, and by the exit code."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from evalmeta import api, report
from evalmeta.cli.options import FILE, FOLDER, Command, Decorator, option_group
from evalmeta.cli.output import console, json_option, note, print_error, print_json, print_stream, warn
from evalmeta.cli.runs.baselines import show_decision
from evalmeta.cli.runs.observer import Printer
from evalmeta.cli.runs.report_files import URL, create_folder, trace_file
from evalmeta.cli.runs.rerun_commands import rerun_commands
from evalmeta.errors import (
    EXIT_EXPECTATION_FAILED,
    EXIT_FAILED,
    EXIT_PASSED,
    EXIT_WAIT_RAN_OUT,
    CollectorError,
    EvalmetaError,
    ProjectError,
    Suggestion,
    UsageError,
)
from evalmeta.model.registry import type_of_run
from evalmeta.package.files import put_pieces, shown
from evalmeta.package.folders import find_components
from evalmeta.report.json import run_document
from evalmeta.report.report import Report, why_incomplete
from evalmeta.report.text import JsonList, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from evalmeta.api.runs.comparisons import Comparator
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.api.runs.waiting import RunsOutcome
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project
    from evalmeta.report.human import Detail


class Output(NamedTuple):
    """How to report runs: the format on stdout, a folder for files, or JSON in the sf envelope.

    `detail` is what the human format shows; `files` are reports on all runs with their formats; `collectors` are the
    addresses to which all runs are sent as traces.
    """

    result_format: str
    output_dir: Path | None
    as_json: bool
    detail: Detail = "failures"
    files: tuple[tuple[Path, str], ...] = ()
    collectors: tuple[str, ...] = ()

    @property
    def is_human(self) -> bool:
        """Whether people read it, so that more can be printed beside the report."""
        return self.result_format == "human" and not self.as_json

    def printer(self) -> Printer:
        """Return what prints the progress of runs beside the report."""
        return Printer(self.detail, not self.is_human)

    @property
    def shows_statistics(self) -> bool:
        """Whether all results must be counted first; not for the verdict alone, nor for a line for each result."""
        is_plain = self.detail == "verdict" if self.is_human else self.result_format == "jsonl" and not self.as_json
        return not is_plain or self.output_dir is not None or bool(self.files or self.collectors)

    @property
    def shows_failures(self) -> bool:
        """Whether people read which cases failed."""
        return self.is_human and self.detail != "verdict"


def report_options(command: Command) -> Command:
    """Add --result-format, --output-dir, --report, --trace (checked before the command starts), --json, -v, -q."""
    output_dir = click.option(
        "-d", "--output-dir", type=FOLDER, help="Also write each run to a file test-result-ID in this folder."
    )
    verbose = click.option(
        "-v", "--verbose", is_flag=True, help="List all cases and why files are not tests; show all failures in full."
    )
    quiet = click.option("-q", "--quiet", is_flag=True, help="Print only the verdict.")
    files = click.option(
        "--report",
        "report_files",
        type=FILE,
        multiple=True,
        metavar="FILE",
        help="Also write all runs to this file, in the format of its extension: .xml, .html, .md, ...; repeatable.",
    )
    traces = click.option(
        "--trace",
        "traces",
        multiple=True,
        metavar="FILE|URL",
        help="Also export all runs as OpenTelemetry traces: to a file *.jsonl, or to a collector (OTLP/HTTP); "
        "repeatable.",
    )
    options: Sequence[Decorator] = (result_format_option, output_dir, files, traces, json_option, verbose, quiet)
    return option_group("output", _output, options)(command)


def _output(
    *,
    result_format: str,
    output_dir: Path | None,
    report_files: tuple[Path, ...],
    traces: tuple[str, ...],
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> Output:
    if verbose and quiet:
        raise UsageError("--verbose and --quiet exclude each other", actions=["Leave out one of them."])
    collectors = tuple(target for target in traces if URL.match(target))
    for url in collectors:
        api.traces.check_collector(url)
    files = [(path, report.format_of(path.name)) for path in report_files]
    files += [(trace_file(target), "otlp") for target in traces if target not in collectors]
    if twice := [f"{path}" for number, (path, _) in enumerate(files) if path in {other for other, _ in files[:number]}]:
        raise UsageError(f"{twice[0]} is named twice", actions=["Write each report and each trace to its own file."])
    for folder in [*filter(None, [output_dir]), *(path.parent for path, _ in files)]:
        create_folder(folder)
    detail: Detail = "all" if verbose else "verdict" if quiet else "failures"
    return Output(result_format, output_dir, as_json, detail, tuple(files), collectors)


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
    project: Project,
    finished: Sequence[FinishedRun],
    output: Output,
    *,
    comparator: Comparator | None = None,
    is_whole_call: bool = False,
) -> int:
    """Print runs, write their files, compare them with a baseline if there is one, and return the exit code.

    `is_whole_call` says that the current call started no other runs.
    """
    decision = None if comparator is None else api.runs.decision.Decision.of(comparator, finished)
    verdicts = decision.verdicts() if decision else [None] * len(finished)
    reports = [replace(_report(project, run, output), baseline=by) for run, by in zip(finished, verdicts, strict=True)]
    reports = _side_by_side(reports, finished)
    code = _exit_code(reports)
    closing = rerun_commands(project, reports, is_whole_call=is_whole_call) if output.shows_failures else []
    new_code = decision.code(code) if decision else code
    _print(reports, output, closing, status=new_code)
    if decision:
        show_decision(decision, code, err=not output.is_human)
    return new_code


def _side_by_side(reports: list[Report], finished: Sequence[FinishedRun]) -> list[Report]:
    """Return the reports of a matrix of agents, which name the agent of each run; other reports are unchanged."""
    matrix, labels = api.runs.matrix.matrix_of(finished)
    if matrix is None:
        return reports
    named = [
        replace(one, run=replace(one.run, definition=f"{one.run.definition} [{label}]"))
        for one, label in zip(reports, labels, strict=True)
    ]
    return [replace(named[0], matrix=matrix), *named[1:]]


def report_outcome(
    project: Project, outcome: RunsOutcome, output: Output, comparator: Comparator | None, *, is_whole_call: bool = True
) -> int:
    """Report the runs of a command that finished or were started, and what prevented others; return the exit code.

    `is_whole_call` is as for `report_runs`.
    """
    if outcome.finished:
        is_whole = is_whole_call and not (outcome.errors or outcome.started)
        code = report_runs(project, outcome.finished, output, comparator=comparator, is_whole_call=is_whole)
        for error in outcome.errors:
            print_error(error, as_json=False)
        return outcome.errors[0].exit_code if outcome.errors else code
    if outcome.errors:
        raise outcome.errors[0]
    if output.as_json:
        print_json(
            [
                {"id": started_run.id, "definition": started_run.definition, "status": "NEW"}
                for started_run in outcome.started
            ]
        )
    elif not outcome.started and not output.is_human:
        print_stream(report.stream(output.result_format, []))
    if not outcome.started:
        _write_files([], output)
    return 0


def _report(project: Project, finished: FinishedRun, output: Output) -> Report:
    finished = finished.counted() if output.shows_statistics else finished
    statistics = finished.statistics if output.shows_statistics else None
    found = Report(finished.run, finished.summary, statistics=statistics, counted=finished.tally)
    if finished.run.options.shard:
        found = replace(found, test=api.runs.shard_sources.test_of(project, finished.run))
    if place := api.agent_tests.place_of_run(project, finished.run.id):
        return replace(found, file=shown(place[0]), lines=place[1].lines, files=place[1].files)
    paths = []
    # Files of the same component do not matter to results that exist.
    with suppress(EvalmetaError):
        kind, name = type_of_run(finished.run.id), finished.run.definition
        paths = [
            component.path
            for component in find_components(project)
            if (component.type, component.full_name) == (kind, name)
        ]
    if paths:
        return replace(found, file=shown(paths[0]), lines=api.runs.case_lines.case_lines(paths[0]))
    return found


def _print(reports: Sequence[Report], output: Output, closing: Sequence[str], *, status: int) -> None:
    if output.as_json:
        print_json(JsonList(map(run_document, reports)), status=status)
    elif output.is_human:
        from evalmeta.report.terminal import print_human

        print_human(reports, console(err=False), detail=output.detail, closing=closing)
    else:
        print_stream(report.stream(output.result_format, reports))
    _write_files(reports, output)


def _write_files(reports: Sequence[Report], output: Output) -> None:
    """Write all files and send all traces; one that cannot be written does not keep the others from being written."""
    faults: list[EvalmetaError] = []
    for path, result_format, runs in _files(reports, output):
        try:
            put_pieces(path, (block.encode() for block in blocks(report.stream(result_format, runs))))
        except ProjectError as error:
            faults.append(error)
        else:
            _note_written(f"Wrote {path}", output)
    for url in output.collectors if reports else ():
        try:
            api.traces.send_runs(url, reports)
        except CollectorError as error:
            faults.append(error)
        else:
            _note_written(f"Sent the traces to {url}", output)
    if faults:
        raise _report_error(faults, [word for shown_report in reports for word in ("--job-id", shown_report.run.id)])


def _note_written(text: str, output: Output) -> None:
    if output.detail != "verdict":
        note(text)


def _report_error(faults: Sequence[EvalmetaError], ids: Sequence[str]) -> EvalmetaError:
    """Return what went wrong with all files and traces, and the command that writes or sends them again."""
    kind = type(faults[0])
    is_file = kind is ProjectError
    what = f"The results are stored. {'Write them to another FILE' if is_file else 'Send them again to the URL'}"
    again = ("--report", "FILE") if is_file else ("--trace", "URL")
    advice = [action for fault in faults for action in fault.actions]
    return kind(
        "; ".join(map(str, faults)),
        actions=[*advice, *([Suggestion(what, "test", "resume", *ids, *again)] * bool(ids))],
    )


def _files(reports: Sequence[Report], output: Output) -> Iterator[tuple[Path, str, Sequence[Report]]]:
    """Yield the path, the format and the runs of each file; without runs, the folder gets an empty report too."""
    for path, result_format in output.files:
        yield path, result_format, reports
    if output.output_dir:
        for run_id, runs in [(one.run.id, [one]) for one in reports] or [("none", [])]:
            yield output.output_dir / report.file_name(output.result_format, run_id), output.result_format, runs


def _exit_code(reports: Sequence[Report]) -> int:
    if not all(one.run.status.is_over for one in reports):
        return EXIT_WAIT_RAN_OUT
    if all(one.has_passed for one in reports):
        return EXIT_PASSED
    # A run that its cost limit has cut is not passed, but nothing is broken.
    has_errors = any(one.summary.errors or (why_incomplete(one.run) and not one.run.is_cut) for one in reports)
    return EXIT_FAILED if has_errors else EXIT_EXPECTATION_FAILED


def warn_if_incomplete(run: Run) -> None:
    """Warn of a run that did not complete, whose missing cases were not removed from the test."""
    if why := why_incomplete(run):
        warn(f"{run.id} is not complete, {why}")
