"""Writing baselines: which runs of each test they take, and what they say about its cases."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.comparisons import (
    Baseline,
    baseline_of,
    earlier_runs,
    is_partial,
    known_test,
    load_run,
    name_of,
    previous_run,
    recent_runs,
    same_test,
)
from evalmeta.api.runs.finding import is_run_name
from evalmeta.api.runs.finished import FinishedRun
from evalmeta.engine.comparison import pair_cases
from evalmeta.errors import MessageUnreadable, NotFound, Suggestion, UsageError
from evalmeta.formats.baseline import read_baseline, write_baseline
from evalmeta.formats.sources import read_json
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import Run, RunStatus
from evalmeta.model.statistics import CaseCounts, RunCounts
from evalmeta.package.files import FileState, read_file
from evalmeta.protocol.connect import read_run
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import distinct_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.model.comparison import KnownTest
    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project

RUNS: Final = 10
"""The number of runs of each test that a baseline takes."""
# The number of runs to read, because some of them may be left out.
_LOOKED_AT: Final = 3 * RUNS
_NOT_RUN: Final = RunCounts()
_AS_JSON: Final = "Name a report that `--result-format json` wrote."


class TakenTest(NamedTuple):
    """What a baseline takes of a test.

    Attributes:
        known: what the baseline says about the test now; None if all runs were left out, so that nothing changed.
        runs: the runs that were taken, the latest last.
        left_out: the number of runs that were not, by reason.
        other_checks: the number of cases of these runs that expected something else, and were left out.
        kept: the number of cases of the baseline that no run had.
    """

    name: str
    known: KnownTest | None
    runs: tuple[Run, ...]
    left_out: Mapping[str, int]
    other_checks: int = 0
    kept: int = 0

    @property
    def failing(self) -> tuple[CaseCounts, ...]:
        """Return the cases that never passed: their failures are known."""
        return tuple(case for case in self._cases if case.failed and not case.passed)

    @property
    def flaky(self) -> tuple[CaseCounts, ...]:
        """Return the cases that passed in some answers and failed in others."""
        return tuple(case for case in self._cases if case.is_flaky)

    @property
    def _cases(self) -> tuple[CaseCounts, ...]:
        return self.known.cases if self.known else ()


class SavedBaseline(NamedTuple):
    """What a baseline file contains now, and what was taken.

    Attributes:
        state: what writing did to the file.
        tests: the number of tests in it.
        cases: the number of cases.
        failing: the number of cases that never passed.
        errors: the number of cases with only errors.
        taken: what was taken of each test, in order of their names.
    """

    state: FileState
    tests: int
    cases: int
    failing: int
    errors: int
    taken: tuple[TakenTest, ...]


class _Column(NamedTuple):
    """A run, or the runs of several shards, as one run of a baseline."""

    runs: tuple[Run, ...]
    known: KnownTest

    @property
    def is_partial(self) -> bool:
        return any(map(is_partial, self.runs))


def open_baseline(project: Project, path: Path) -> Baseline:
    """Open a baseline file; or else a run by its id or name, or the last runs on a branch.

    `latest` and `previous` are the last complete run of the same test before each run that is compared. On a branch,
    the last runs before it are taken as `save_baseline` does.
    """
    name = str(path)
    if path.exists():
        return Baseline(name, read_baseline(path), root=project.root)
    if name in {"latest", "previous"}:
        return Baseline("the previous runs", {}, moving=partial(_previous, project))
    if (type_of_run(path.name) is not None or is_run_name(path.name)) and path.name == name:
        return baseline_of(load_run(project, path.name))
    with open_database(project.store) as database:
        branches = distinct_values(database, "branch")
    if name in branches:
        return Baseline(f"the last runs on {name}", {}, moving=partial(_on_branch, project, name))
    create = Suggestion("Create one from the most recent runs", "test", "baseline", "-o", name)
    raise NotFound(f"the baseline {name!r} cannot be found", actions=[create])


def _previous(project: Project, run: Run) -> Baseline | None:
    try:
        return baseline_of(previous_run(project, run))
    except NotFound:
        return None


def _on_branch(project: Project, branch: str, run: Run) -> Baseline | None:
    earlier = (past for past in earlier_runs(project, run) if past.options.origin.branch == branch)
    runs = sorted(islice(earlier, _LOOKED_AT), key=lambda past: past.started)
    known = _take(name_of(run), runs, None, frozenset(), accept=False).known if runs else None
    return Baseline(f"the last runs on {branch}", {name_of(run): known}) if known else None


def runs_to_take(project: Project) -> list[Run]:
    """Return the runs of each test from which a baseline is made, the latest first."""
    return [run for runs in recent_runs(project, limit=_LOOKED_AT).values() for run in runs]


def read_results(path: Path) -> list[Run]:
    """Return the runs of a report with the format `json`."""
    return [run_of(path, document) for document in read_documents(path)]


def read_documents(path: Path) -> list[JsonObject]:
    """Return the results objects of a report with the format `json`, or of what `--json` prints."""
    document = read_json(read_file(path, max_bytes=limits.MAX_JSON_BYTES), label=str(path)).value
    if isinstance(document, dict) and isinstance(document.get("result"), list):
        document = document["result"]
    parts = document if isinstance(document, list) else [document]
    return [part if isinstance(part, dict) else {} for part in parts]


def run_of(path: Path, source: JsonObject) -> Run:
    """Return the run of a results object in a report; raise UsageError if it is not one."""
    try:
        run = read_run(source)
    except MessageUnreadable as error:
        raise UsageError(f"{path}: {error}", actions=[_AS_JSON]) from None
    if not run.definition:
        raise UsageError(f"{path}: it does not say which test its results are of", actions=[_AS_JSON])
    return run


def save_baseline(
    path: Path,
    runs: Iterable[Run],
    *,
    named: frozenset[str] = frozenset(),
    accept: bool = False,
    root: Path | None = None,
) -> SavedBaseline:
    """Write the results of runs to a baseline file; its other tests, and cases that were not run, do not change.

    The last `RUNS` runs of each test are taken, if its options, rater and prompt are those of the latest one, and they
    are complete and not red: see `_is_red`. The runs with the ids `named` are taken although they are not; with
    `accept`, all red ones are. `root` is the project's folder.
    """
    tests = read_baseline(path) if path.exists() else {}
    taken = []
    for name, candidates in _by_test(runs).items():
        if (known := same_test(name, tests, root)) not in {None, name}:
            tests[name] = tests.pop(known)
        found = _take(name, candidates, tests.get(name), named, accept=accept)
        taken.append(found)
        if found.known is not None:
            tests[name] = found.known
    state: FileState = write_baseline(path, tests) if any(test.known for test in taken) else "Unchanged"
    counted = [case for test in tests.values() for case in test.cases]
    failing = sum(case.failed > 0 and not case.passed for case in counted)
    errors = sum(case.passes is None and case.errors > 0 for case in counted)
    return SavedBaseline(state, len(tests), len(counted), failing, errors, tuple(taken))


def _by_test(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return runs by the names of their tests, the latest last."""
    found: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.started):
        found.setdefault(name_of(run), []).append(run)
    return dict(sorted(found.items()))


def _take(name: str, runs: Sequence[Run], entry: KnownTest | None, named: frozenset[str], *, accept: bool) -> TakenTest:
    usable = [run for run in runs if run.status is RunStatus.COMPLETED or run.id in named]
    left_out = {"incomplete": len(runs) - len(usable)} if len(usable) < len(runs) else {}
    if not usable:
        return TakenTest(name, None, (), left_out)
    columns = [*_columns(usable)]
    latest, rescored = columns[-1], {run.answers_of for run in usable}
    mapped: list[tuple[_Column, dict[int, CaseCounts]]] = []
    for column in columns:
        if reason := _why_left_out(column, latest, rescored):
            left_out[reason] = left_out.get(reason, 0) + len(column.runs)
        else:
            mapped.append((column, _by_number(column.known.cases, latest)))
    known_before = _by_number(entry.cases if entry else (), latest)
    kept = []
    for place, (column, cases) in enumerate(mapped):
        is_accepted = accept or all(run.id in named for run in column.runs)
        if not is_accepted and _is_red(column, place, [known_before, *(other for _, other in mapped)]):
            left_out["red"] = left_out.get("red", 0) + len(column.runs)
        else:
            kept.append((column, cases))
    return _taken(name, latest, kept[-RUNS:], entry, left_out)


def _columns(runs: Iterable[Run]) -> Iterator[_Column]:
    """Yield runs of all cases, and runs of some cases joined as far as they have different ones, the latest last."""
    shards: list[_Column] = []
    numbers: set[int] = set()
    for run in runs:
        column = _Column((run,), known_test(run))
        own = {case.number for case in column.known.cases}
        if shards and not (column.is_partial and numbers.isdisjoint(own)):
            yield _joined(shards)
            shards, numbers = [], set()
        if column.is_partial:
            shards.append(column)
            numbers |= own
        else:
            yield column
    if shards:
        yield _joined(shards)


def _joined(shards: Sequence[_Column]) -> _Column:
    cases = sorted((case for shard in shards for case in shard.known.cases), key=lambda case: case.number)
    runs = tuple(run for shard in shards for run in shard.runs)
    return _Column(runs, replace(shards[-1].known, cases=tuple(cases)))


def _why_left_out(column: _Column, latest: _Column, rescored: Collection[str | None]) -> str:
    """Return why a run is not comparable with the latest one; empty if it is."""
    if any(run.id in rescored for run in column.runs):
        return "judged again by a later run"
    ours, theirs = column.known, latest.known
    if ours.setup.rater != theirs.setup.rater:
        return "with another rater" if ours.setup.rater else "without a recorded rater"
    if ours.setup.prompt != theirs.setup.prompt:
        return "with another prompt of the judge"
    return "" if ours.options == theirs.options else "with other options of judging"


def _by_number(cases: Iterable[CaseCounts], latest: _Column) -> dict[int, CaseCounts]:
    """Return cases by the numbers that they have in the latest run."""
    pairs = pair_cases(cases, latest.known.cases)
    return {new.number: old for old, new in pairs if old and new}


def _is_red(column: _Column, place: int, sides: Sequence[Mapping[int, CaseCounts]]) -> bool:
    """Return whether a run did not pass because a case broke.

    It failed in all answers, passed in an earlier run or in the baseline (the first of `sides`), and in no later run.
    """
    if all(FinishedRun.of(run).summary.succeeded for run in column.runs):
        return False
    earlier, (now, *later) = sides[: place + 1], sides[place + 1 :]
    return any(
        case.failed and not case.passed and _passed(number, earlier) and not _passed(number, later)
        for number, case in now.items()
    )


def _passed(number: int, sides: Iterable[Mapping[int, CaseCounts]]) -> bool:
    return any(side[number].passed for side in sides if number in side)


def _taken(
    name: str,
    latest: _Column,
    columns: Sequence[tuple[_Column, Mapping[int, CaseCounts]]],
    entry: KnownTest | None,
    left_out: Mapping[str, int],
) -> TakenTest:
    if not columns:
        return TakenTest(name, None, (), left_out)
    cases, other_checks = [], 0
    for case in latest.known.cases:
        found = [side.get(case.number) for _, side in columns]
        others = [side is not None and side.checks != case.checks for side in found]
        other_checks += sum(others)
        usable = [None if other else side for side, other in zip(found, others, strict=True)]
        cases.append(_over_runs(case, [side.by_run[0] if side else _NOT_RUN for side in usable]))
    numbers = {case.number for case in cases}
    kept = [case for case in entry.cases if case.number not in numbers] if entry and latest.is_partial else []
    known = replace(columns[-1][0].known, cases=_aligned([*cases, *kept]))
    runs = tuple(run for column, _ in columns for run in column.runs)
    return TakenTest(name, known, runs, left_out, other_checks, len(kept))


def _aligned(cases: Sequence[CaseCounts]) -> tuple[CaseCounts, ...]:
    """Return cases in order of number, with as many runs each: those that were not asked at first get empty ones."""
    number = max((len(case.by_run) for case in cases), default=0)
    return tuple(
        _over_runs(case, [*[_NOT_RUN] * (number - len(case.by_run)), *case.by_run])
        for case in sorted(cases, key=lambda case: case.number)
    )


def _over_runs(case: CaseCounts, runs: Sequence[RunCounts]) -> CaseCounts:
    return CaseCounts.of_runs(case.number, case.utterance, tuple(runs), checks=case.checks, asked=case.asked)
