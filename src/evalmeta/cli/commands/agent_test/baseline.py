"""`evalmeta test baseline`: save the results of runs as a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.completions import complete_runs
from evalmeta.cli.groups import run_hint
from evalmeta.cli.options import FILE
from evalmeta.cli.output import json_option, note, print_json, print_table
from evalmeta.cli.runs.reports import warn_if_incomplete
from evalmeta.engine.gate import detectable_fall
from evalmeta.errors import NotFound, UsageError
from evalmeta.package.project import Project, find_project
from evalmeta.report.text import and_more, count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.runs.baselines import SavedBaseline, TakenTest
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import Run
    from evalmeta.model.statistics import CaseCounts


_SHOWN: Final = 10
_ADJECTIVES: Final = ("incomplete", "red")
_ACCEPT: Final = "Take red runs too: what broke in them becomes a known failure."


@click.command()
@click.argument("sources", nargs=-1, metavar="[RUN|FILE]...", shell_complete=complete_runs)
@click.option("-o", "--output-file", type=FILE, required=True, help="The file to write.")
@click.option("--accept", is_flag=True, help=_ACCEPT)
@json_option
def baseline(sources: tuple[str, ...], *, output_file: Path, accept: bool, as_json: bool) -> None:
    """Save the results of runs as a baseline to commit and compare with.

    By default, the last 10 complete runs of each test are saved. Runs with another rater,
    prompt or options of judging than the latest one are left out, and so are red runs: a
    case failed that passed before and has not passed since. Runs that you name are saved
    even if they are red. FILE is a report that `--result-format json` wrote. In an existing
    file, other tests are kept, and so are cases that a run did not include. Name the runs
    of all shards to join them.

    \b
    evalmeta test baseline -o evalmeta-baseline.json
    evalmeta test baseline -o evalmeta-baseline.json results/*.json
    evalmeta test baseline -o evalmeta-baseline.json 4KB000000000001GAA 4KB000000000002GAA
    evalmeta test run --wait --baseline evalmeta-baseline.json
    """
    project = find_project(Path.cwd())
    named, runs = _chosen(project, sources)
    if not runs:
        raise NotFound("there is no complete run here", actions=[run_hint(project)])
    done = api.runs.baselines.save_baseline(output_file, runs, named=named, accept=accept, root=project.root)
    if not any(test.known for test in done.taken):
        raise _nothing_taken(output_file, done)
    api.runs.saved.note_runs_of(project, output_file, done.taken)
    for test in done.taken:
        _note_parts(test, output_file, is_named=bool(sources))
    if as_json:
        print_json(_as_json(output_file, done))
        return
    contents = f"{count(done.tests, 'test')}, {count(done.cases, 'case')}, {done.failing:,} of them failing"
    errors = f", {done.errors:,} with errors only" if done.errors else ""
    click.echo(f"{done.state} {output_file}: {contents}{errors}")
    rows = [
        (test.name, str(len(test.runs)), test.runs[-1].id, test.runs[-1].subject_name)
        for test in done.taken
        if test.known is not None
    ]
    print_table(["Test", "Runs", "Latest run", "Subject"], rows)
    for test in done.taken:
        for line in _lines(test):
            click.echo(line)


def _chosen(project: Project, sources: Sequence[str]) -> tuple[frozenset[str], list[Run]]:
    """Return the ids of the runs that were named, and all runs from which to choose."""
    if not sources:
        return frozenset(), api.runs.baselines.runs_to_take(project)
    files = [source for source in sources if Path(source).is_file()]
    for source in sources:
        if source not in files:
            if Path(source).suffix == ".json":
                raise NotFound(f"the file {source!r} cannot be found")
            if not api.runs.archives.is_archive(source):
                api.runs.reruns.check_run_id(source)
    named = [
        run for source in sources if source not in files for run in api.runs.comparisons.load_runs(project, source)
    ]
    for run in named:
        warn_if_incomplete(run)
    read = [run for file in files for run in api.runs.baselines.read_results(Path(file))]
    # Runs of different stores may have the same id; two copies of a report have one run.
    distinct = {(run.id, round(run.started, 3)): run for run in [*read, *named]}
    return frozenset(run.id for run in named), [*distinct.values()]


def _nothing_taken(output_file: Path, done: SavedBaseline) -> UsageError:
    reasons = "; ".join(f"{test.name}: {_left_out(test)}" for test in done.taken)
    accept = f"To take red runs too, so that what broke in them becomes a known failure, add --accept ({output_file})."
    return UsageError(f"no run was taken: {reasons}", actions=[accept])


def _note_parts(test: TakenTest, output_file: Path, *, is_named: bool) -> None:
    """Say what happened to the cases that runs of some cases did not have."""
    way = "" if is_named else f"; to join shards, name their runs: evalmeta test baseline -o {output_file} RUN1 RUN2"
    others = f"{output_file} has no other cases"
    if test.kept:
        others = f"{count(test.kept, 'other case')} of {output_file} are unchanged"
    for run in test.runs:
        if api.runs.comparisons.is_partial(run):
            note(f"{run.id} ran only part of {run.definition}: {others}{way}")


def _lines(test: TakenTest) -> Iterator[str]:
    """Yield what was left out, what is known to fail, what is flaky, and what a comparison can find."""
    found = []
    if test.left_out:
        found.append(f"left out {_left_out(test)}")
    if test.other_checks:
        found.append(f"left out {count(test.other_checks, 'result')} of cases that had other expectations")
    if test.known is None:
        found.append("nothing was taken; its results in the file did not change")
    if test.failing:
        found.append(f"known failures: {_numbers(test.failing)}")
    if test.flaky:
        found.append(f"flaky: {_numbers(test.flaky)}")
    if test.known is not None:
        found.append(f"a comparison finds {_detectable(test)}")
    yield from (f"{one_line(test.name)}: {line}" for line in found)


def _left_out(test: TakenTest) -> str:
    parts = [
        count(number, f"{reason} run") if reason in _ADJECTIVES else f"{count(number, 'run')} {reason}"
        for reason, number in test.left_out.items()
    ]
    accept = " (--accept takes red runs too)" if "red" in test.left_out else ""
    return f"{', '.join(parts)}{accept}"


def _numbers(cases: Sequence[CaseCounts]) -> str:
    shown = [f"case {case.number} ({case.passed} of {case.decided})" for case in cases]
    return and_more(shown, _SHOWN)


def _detectable(test: TakenTest) -> str:
    fall, iterations = _fall(test), count(_iterations(test), "iteration")
    if fall is None:
        return f"a broken case, but no fall of the pass rate with {iterations}"
    return f"a broken case, and a fall of the pass rate by {count(fall, 'point')} or more with {iterations}"


def _iterations(test: TakenTest) -> int:
    """Return the iterations of the latest run, which the next one probably has too."""
    return test.runs[-1].options.iterations if test.runs else 1


def _fall(test: TakenTest) -> int | None:
    return detectable_fall(test.known.cases, iterations=_iterations(test)) if test.known else None


def _as_json(output_file: Path, done: SavedBaseline) -> JsonObject:
    counts = {"tests": done.tests, "cases": done.cases, "failing": done.failing, "errors": done.errors}
    return {"file": str(output_file), "state": done.state, **counts, "runs": [_test_json(test) for test in done.taken]}


def _test_json(test: TakenTest) -> JsonObject:
    latest = test.runs[-1] if test.runs else None
    return {
        "name": test.name,
        "runId": latest.id if latest else None,
        "subjectName": latest.subject_name if latest else None,
        "runIds": [run.id for run in test.runs],
        "leftOut": dict(test.left_out),
        "otherExpectations": test.other_checks,
        "knownFailures": [case.number for case in test.failing],
        "flaky": [case.number for case in test.flaky],
        "iterations": _iterations(test),
        "detectableFall": _fall(test),
    }
