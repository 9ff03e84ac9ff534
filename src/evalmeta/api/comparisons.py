"""Comparing runs with each other and with baselines, and writing baselines: all from what is kept here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.engine.comparison import compare
from evalmeta.engine.statistics import collect
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.registry import EVALUATION_DEFINITION, type_of_run
from evalmeta.store.database import open_database
from evalmeta.store.history import complete_runs, open_remote_runs, read_baseline, write_baseline
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.model.statistics import CaseCounts, Comparison, RunStatistics
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project
    from evalmeta.store.history import CompleteRun


@dataclass(frozen=True, slots=True)
class Baseline:
    """What runs are compared with.

    Attributes:
        label: what it is called: a run's id, or a file's path as it was given.
        tests: the counts of each case, by the test's name.
        is_partial: whether it is a run that asked some of its cases only.
    """

    label: str
    tests: Mapping[str, tuple[CaseCounts, ...]]
    is_partial: bool = False


class Blessed(NamedTuple):
    """What a baseline file has now, and what changed.

    Attributes:
        state: what writing did to the file.
        tests: how many tests it has.
        cases: how many cases.
        failing: how many of them fail.
        errors: how many of them came to errors only.
        kept: by the name of each test that was written, how many of its cases stayed as they were.
    """

    state: FileState
    tests: int
    cases: int
    failing: int
    errors: int
    kept: Mapping[str, int]


def load_run(project: Project, run_id: str) -> Run:
    """Return a run that is over, with its cases: of the project's own org, or of others as it was kept; asks no org.

    Raises:
        NotFound: no such run is known here.
        UsageError: it goes on.
        StoreError: the project's database cannot be used.
    """
    run = _find(project, run_id)
    if not run.status.is_over:
        way_on = f"`evalmeta test resume --job-id {run.id}` waits for it."
        raise UsageError(f"run {run.id} is not over: it is {run.status}", actions=[way_on])
    return run


def latest_runs(project: Project) -> list[Run]:
    """Return the most recent complete run of each test, in whatever org, by the tests' names; raises StoreError."""
    found: dict[str, tuple[str, str]] = {}
    for past in _complete_runs(project):
        if past.definition:
            found[_name(past.id, past.definition)] = past.org_url, past.id
    return [_find(project, run_id, org_url=org_url) for _, (org_url, run_id) in sorted(found.items())]


def previous_run(project: Project, run: Run) -> Run:
    """Return the complete run of the same test before a run.

    Raises:
        NotFound: there is none.
        StoreError: the project's database cannot be used.
    """
    name = name_of(run)
    for past in reversed(_complete_runs(project)):
        if past.started < run.started and _name(past.id, past.definition) == name:
            return _find(project, past.id, org_url=past.org_url)
    raise NotFound(f"no complete run of {name} is known from before run {run.id}", actions=["Name two runs."])


def open_baseline(project: Project, path: Path) -> Baseline:
    """Open what to compare with: a baseline file, or a run by its id where there is no such file.

    Raises:
        NotFound: there is neither.
        UsageError: the file is no baseline, or the run goes on.
        StoreError: the project's database cannot be used.
    """
    if path.exists():
        return Baseline(str(path), read_baseline(path))
    if type_of_run(path.name) is not None and path.name == str(path):
        return baseline_of(load_run(project, path.name))
    actions = ["`evalmeta test baseline` writes one from the most recent runs."]
    raise NotFound(f"there is no baseline {str(path)!r}", actions=actions)


def baseline_of(run: Run) -> Baseline:
    """Return a run as what others are compared with."""
    return Baseline(run.id, {name_of(run): statistics_of(run).cases}, is_partial(run))


def compare_with(baseline: Baseline, run: Run) -> Comparison | None:
    """Compare a run with a baseline; None when its test is not in it."""
    before = baseline.tests.get(name_of(run))
    if before is None:
        return None
    return compare(
        before,
        statistics_of(run).cases,
        name=name_of(run),
        labels=(baseline.label, run.id),
        partial=(baseline.is_partial, is_partial(run)),
    )


def compare_runs(before: Run, after: Run) -> Comparison:
    """Compare two runs, of one test or of two."""
    names = [name_of(each) for each in (before, after)]
    sides = [statistics_of(each).cases for each in (before, after)]
    return compare(
        *sides,
        name=" and ".join(dict.fromkeys(names)),
        labels=(before.id, after.id),
        partial=(is_partial(before), is_partial(after)),
    )


def bless(path: Path, runs: Iterable[Run]) -> Blessed:
    """Write what runs came to as the baseline; of a file that is there, other tests stay as they are.

    A run that asked some cases only leaves the others as they are, too.

    Raises:
        UsageError: the file is no baseline, or cannot be written.
    """
    tests = read_baseline(path) if path.exists() else {}
    taken: dict[str, set[int]] = {}
    for run in runs:
        name, cases = name_of(run), statistics_of(run).cases
        tests[name] = _merged(tests.get(name, ()), cases) if is_partial(run) else cases
        taken.setdefault(name, set()).update(each.number for each in cases)
    state = write_baseline(path, tests)
    counted = [case for cases in tests.values() for case in cases]
    failing = sum(case.passes is False for case in counted)
    errors = sum(case.passes is None and case.errors > 0 for case in counted)
    kept = {name: sum(case.number not in numbers for case in tests[name]) for name, numbers in taken.items()}
    return Blessed(state, len(tests), len(counted), failing, errors, kept)


def statistics_of(run: Run) -> RunStatistics:
    """Return the numbers of a run, counted as its options say."""
    return collect(run.cases, run.options)


def name_of(run: Run) -> str:
    """Return a test's name in baselines: the API name, `Type:Name` for other types than AiEvaluationDefinition."""
    return _name(run.id, run.definition)


def _name(run_id: str, definition: str) -> str:
    kind = type_of_run(run_id)
    return definition if kind in {None, EVALUATION_DEFINITION} else f"{kind.name}:{definition}"


def _complete_runs(project: Project) -> list[CompleteRun]:
    with open_database(project.state_dir) as database:
        return complete_runs(database)


def is_partial(run: Run) -> bool:
    """Return whether a run asked some of its test's cases only."""
    return run.options.is_partial


def _merged(known: Iterable[CaseCounts], more: Iterable[CaseCounts]) -> tuple[CaseCounts, ...]:
    numbers = {each.number: each for each in known} | {each.number: each for each in more}
    return tuple(numbers[number] for number in sorted(numbers))


def _find(project: Project, run_id: str, *, org_url: str | None = None) -> Run:
    """Find a run in an org (its own has no address), or in any, its own first."""
    run = None if org_url else _own_run(project, run_id)
    run = run or _remote_run(project, run_id, org_url=org_url)
    if run is None:
        known = "`evalmeta test history` lists those that are."
        other = "`evalmeta test results` fetches one from another org."
        raise NotFound(f"no run {run_id!r} is known here", actions=[known, other])
    return run


def _own_run(project: Project, run_id: str) -> Run | None:
    with open_database(project.state_dir) as database:
        runs = Runs(database)
        run = runs.get(run_id)
        return run and replace(run, cases=runs.cases(run_id))


def _remote_run(project: Project, run_id: str, *, org_url: str | None = None) -> Run | None:
    with open_remote_runs(project.state_dir) as runs:
        found = runs.find(run_id, org_url=org_url)
    return found[0].run if found else None
