"""`evalmeta test compare|history`: compare runs, and list them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.completions import complete_runs, complete_tests
from evalmeta.cli.groups import run_hint
from evalmeta.cli.options import FILE, IntRange
from evalmeta.cli.output import json_option, note, print_json, print_table
from evalmeta.cli.runs.baselines import print_comparisons, suspect_option
from evalmeta.cli.runs.reports import warn_if_incomplete
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_PASSED, NotFound
from evalmeta.model.comparison import SuiteComparison
from evalmeta.package.project import Project, find_project
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.comparison import comparison_json
from evalmeta.report.json import counts_json
from evalmeta.report.report import VERDICT_WORDS
from evalmeta.report.text import and_more, count, one_line, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.runs.comparisons import Baseline
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import Run
    from evalmeta.store.run_lists import ListedRun


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN [RUN]]", shell_complete=complete_runs)
@click.option("--baseline", type=FILE, metavar="FILE|RUN", help="Compare with a baseline file instead.")
@suspect_option
@json_option
def compare(runs: tuple[str, ...], *, baseline: Path | None, suspect: str, as_json: bool) -> int:
    """Compare the cases of a run with those of an earlier run.

    RUN is a run's id, latest:TEST or previous:TEST, latest or previous for all runs of a
    command, or the folder or the address of an archive. Two are compared in this order, test
    by test. One is compared with the previous complete run of the same test. With --baseline,
    it or the most recent run of each test is compared with the baseline.

    \b
    evalmeta test compare 4KB000000000001GAA 4KB000000000002GAA
    evalmeta test compare previous latest
    evalmeta test compare archives/2026-11-25 latest
    evalmeta test compare 4KB000000000002GAA
    evalmeta test compare --baseline previous
    evalmeta test compare --baseline evalmeta-baseline.json

    The exit code is 100 if the tests became significantly worse, as a whole or in one case,
    or if a case that passed now ends in errors. A case that passed and now fails is suspect.
    This command asks no case again, so suspect cases count only with --suspect fail.
    """
    most = 1 if baseline else 2
    if len(runs) > most or not (runs or baseline):
        raise click.UsageError(
            "Give one or two runs, or --baseline and at most one run. To compare all tests with their runs before: "
            "evalmeta test compare --baseline previous"
        )
    for run_id in runs:
        if not api.runs.archives.is_archive(run_id):
            api.runs.reruns.check_run_id(run_id)
    project = find_project(Path.cwd())
    found, before, after = _with_baseline(project, runs, baseline) if baseline else _with_earlier(project, runs)
    fails = suspect == "fail"
    is_worse = found.is_significantly == "worse" or any(test.is_regression(suspects_fail=fails) for test in found.tests)
    code = EXIT_EXPECTATION_FAILED if is_worse else EXIT_PASSED
    if as_json:
        print_json([comparison_json(test, suspects_fail=fails) for test in found.tests], status=code)
    else:
        explain = api.runs.result_pairs.explain_with(before, after)
        print_comparisons(found, suspects_fail=fails, project=project, explain=explain)
    return code


def _with_earlier(project: Project, runs: Sequence[str]) -> tuple[SuiteComparison, list[Run], list[Run]]:
    """Compare the last of the named runs, or of the named suites, with the first, or with the runs before it.

    Return the runs before and after too.
    """
    comparisons, after, where = api.runs.comparisons, _loaded(project, runs[-1]), _project_with(project, runs[-1])
    if len(runs) == 1:
        if len(after) > 1:
            found = _compared(where, after, api.runs.baselines.open_baseline(project, Path("previous")))
            return found, [*_before(project, found)], after
        before = [comparisons.previous_run(project, run) for run in after]
    else:
        before = _loaded(project, runs[0])
    if len(before) == len(after) == 1:
        return SuiteComparison((comparisons.compare_runs(before[0], after[0], project=where),)), before, after
    baseline = comparisons.baseline_of_suite(runs[0], before)
    if others := baseline.tests_without(after):
        note(f"{count(len(others), 'test')} of {runs[0]} did not run in {runs[-1]}: {and_more(others, _SHOWN_TESTS)}")
    return _compared(where, after, baseline), before, after


def _with_baseline(project: Project, runs: Sequence[str], path: Path) -> tuple[SuiteComparison, list[Run], list[Run]]:
    baseline = api.runs.baselines.open_baseline(project, path)
    chosen = [run for name in runs for run in _loaded(project, name)] or api.runs.comparisons.latest_runs(project)
    found = _compared(_project_with(project, *runs), chosen, baseline, way_out="; `evalmeta test baseline` adds it")
    return found, [*_before(project, found)], chosen


def _before(project: Project, found: SuiteComparison) -> Iterator[Run]:
    """Yield the runs before that are in the project's store; those of an archive or a file are not known."""
    for test in found.tests:
        with suppress(NotFound):
            yield api.runs.comparisons.find_run(project, test.before)


def _compared(project: Project, chosen: Sequence[Run], baseline: Baseline, *, way_out: str = "") -> SuiteComparison:
    found = api.runs.comparisons.compare_with(baseline, chosen, project=project)
    known = {test.after for test in found.tests}
    for run in chosen:
        if run.id not in known:
            note(f"{api.runs.comparisons.name_of(run)} is not in {baseline.label}{way_out}")
    if not found.tests:
        raise NotFound(f"there is no run of a test that is in {baseline.label}", actions=[run_hint(project)])
    return found


def _project_with(project: Project, name: str = "") -> Project:
    """Return the project whose store has the runs of a name, and the new answers to their suspect cases."""
    archives = api.runs.archives
    return archives.open_archive(project, name).project if archives.is_archive(name) else project


def _loaded(project: Project, name: str) -> list[Run]:
    """Return a run, or the runs of a suite."""
    runs = api.runs.comparisons.load_runs(project, name)
    for run in runs:
        warn_if_incomplete(run)
    return runs


_SHOWN_TESTS: Final = 3
_RUNS: Final = 20
_HEADERS: Final = (
    *("Run", "Test", "Started (UTC)", "Status", "Verdict", "Kind", "Org"),
    *("Passed", "Partly", "Failed", "Errors", "Undecided", "Pass rate", "Trend"),
)


@click.command()
@click.argument("archive", required=False, metavar="[ARCHIVE]")
@click.option("-n", "--api-name", "name", shell_complete=complete_tests, help="List only runs of this test.")
@click.option("--limit", type=IntRange(1), default=_RUNS, show_default=True, help="Number of runs to list.")
@json_option
def history(*, archive: str | None, name: str | None, limit: int, as_json: bool) -> None:
    """List past runs, here and in other orgs, newest last.

    The trend is the change in the pass rate, in percentage points, since the previous run
    of the same test. The verdict is "ok" if the run has passed. "Partly" is the number of
    partly judged cases. Runs that did not complete, runs of some of the cases ("part") and
    runs that scored earlier answers again ("rescored") have no trend. No process works on a
    run that is "stopped": `evalmeta test resume` continues it. ARCHIVE is the folder or the
    address of runs that `evalmeta test archive` wrote, which are listed instead.

    \b
    evalmeta test history
    evalmeta test history --api-name Order_Desk --limit 5
    """
    project = find_project(Path.cwd(), or_folder=archive is not None)
    if archive is not None:
        project = api.runs.archives.open_archive(project, archive).project
    runs = api.runs.saved.history(project, definition=name, limit=limit)
    if as_json:
        print_json([_run_json(run) for run in runs])
        return
    if not runs:
        click.echo(f"There are no runs of {name} here." if name else "There are no runs here.")
    print_table(_HEADERS, _rows(runs))


def _rows(runs: Sequence[ListedRun]) -> list[list[str]]:
    rows, rates = [], dict[str, float]()
    for listed in runs:
        found = listed.summary
        numbers = (found.passed, found.partly_judged, found.failed, found.errors, found.undecided)
        rate, counts = found.pass_rate, [f"{number:,}" for number in numbers]
        trend = _trend(rates.get(listed.definition.casefold()), rate) if listed.is_whole else ""
        started = to_timestamp(listed.started)[:19].replace("T", " ")
        kinds = {"part": listed.is_partial, "rescored": listed.answers_of is not None, "stopped": listed.is_stopped}
        kind = ", ".join(word for word, fits in kinds.items() if fits)
        run, test, org = (one_line(text) for text in (listed.id, listed.definition, listed.org_name))
        shown = "" if rate is None else percent(rate)
        verdict = "" if listed.verdict is None else VERDICT_WORDS[listed.verdict]
        rows.append([run, test, started, listed.status.value, verdict, kind, org, *counts, shown, trend])
        if rate is not None and listed.is_whole:
            rates[listed.definition.casefold()] = rate
    return rows


def _trend(before: float | None, rate: float | None) -> str:
    if before is None or rate is None:
        return ""
    points = round((rate - before) * 100, 1)
    return f"{'up' if points > 0 else 'down'} {abs(points):g}" if points else "same"


def _run_json(run: ListedRun) -> JsonObject:
    return {
        "runId": run.id,
        "definition": run.definition,
        "orgUrl": run.org_url or None,
        "orgName": run.org_name or None,
        "status": run.status.value,
        "startTime": to_timestamp(run.started),
        "endTime": None if run.ended is None else to_timestamp(run.ended),
        "total": run.total,
        "verdict": None if run.verdict is None else run.verdict.value,
        **counts_json(run.summary),
        "passRate": run.summary.pass_rate,
        "partial": run.is_partial,
        "answersOf": run.answers_of,
        "stopped": run.is_stopped,
    }
