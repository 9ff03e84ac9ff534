"""Comparing saved runs with each other and with baselines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.agent_tests import file_of_run
from evalmeta.api.runs.archives import is_archive, open_archive
from evalmeta.api.runs.finding import is_run_name, run_id_of, runs_named
from evalmeta.engine.comparison import ComparedTest, changes_of, pair_cases
from evalmeta.engine.gate import compare, compare_all
from evalmeta.engine.statistics import collect, observations
from evalmeta.errors import NotFound, Suggestion, UsageError
from evalmeta.formats.baseline import baseline_name
from evalmeta.model.comparison import Comparison, KnownTest, KnownTests, SuiteComparison
from evalmeta.model.fingerprints import options_of
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import Run, RunStatus
from evalmeta.model.tally import detail
from evalmeta.store.database import open_database
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.run_lists import ListedRun, RunFilter, list_runs
from evalmeta.store.runs import Runs
from evalmeta.store.stored_cases import open_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from evalmeta.model.statistics import CaseCounts, RunStatistics
    from evalmeta.package.project import Project

# Reports have the time of a run in milliseconds; two runs of one test with the same id are of two stores.
_SAME_START: Final = 1.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """What runs are compared with.

    Attributes:
        label: a run's id, or a file's path as the user wrote it.
        tests: what is known of each test, by its name.
        is_partial: whether it is a run of only some of the test's cases.
        started: when the run began, in seconds since the epoch; None if it is a file.
        root: the project's folder.
        moving: returns the baseline of a run, None if there is none; set if each run has its own.
    """

    label: str
    tests: KnownTests
    is_partial: bool = False
    root: Path | None = None
    moving: Callable[[Run], Baseline | None] | None = None
    started: float | None = None

    def find(self, name: str) -> KnownTest | None:
        """Return what is known of a test; None if the test is not in the baseline."""
        known = same_test(name, self.tests, self.root)
        return None if known is None else self.tests[known]

    def tests_without(self, runs: Iterable[Run]) -> list[str]:
        """Return the names of the tests in the baseline of which no run is."""
        found = {same_test(name_of(run), self.tests, self.root) for run in runs}
        return [name for name in self.tests if name not in found]


class ComparedRun(NamedTuple):
    """A run that is compared, and what is known of its test before and now."""

    run: Run
    baseline: Baseline
    before: KnownTest
    now: KnownTest


def load_run(project: Project, run_id: str) -> Run:
    """Return a saved run that is over, with its cases, from the project's own org or another, without a request.

    `run_id` can also be a name, as for `run_id_of`.
    """
    return _over(find_run(project, run_id_of(project, run_id)))


def load_runs(project: Project, name: str) -> list[Run]:
    """Return the saved runs that a name means: those of a suite (`latest` or `previous`) or an archive, or one run."""
    if is_archive(name):
        archive = open_archive(project, name)
        return [find_run(archive.project, run_id) for run_id in archive.run_ids]
    if not is_run_name(name):
        return [load_run(project, name)]
    return [_over(find_run(project, run.id, org_url=run.org_url)) for run in runs_named(project, name)]


def _over(run: Run) -> Run:
    if not run.status.is_over:
        wait = Suggestion("Wait for it", "test", "resume", "--job-id", run.id)
        raise UsageError(f"run {run.id} is not over: its status is {run.status}", actions=[wait])
    return run


def latest_runs(project: Project) -> list[Run]:
    """Return the most recent complete run of each test in any org, in order of the tests' names; see `recent_runs`."""
    return [runs[0] for runs in recent_runs(project, limit=1).values()]


def recent_runs(project: Project, *, limit: int) -> dict[str, list[Run]]:
    """Return the most recent complete runs of each test in any org, the latest first, in order of the tests' names.

    Runs of some of the cases are left out, except the latest one if there is no run of all cases, and so are runs that
    only asked suspect cases again.
    """
    latest: dict[str, ListedRun] = {}
    found: dict[str, list[Run]] = {}
    for past in reversed([past for past in _complete_runs(project) if past.definition and not past.confirms]):
        name = _name(past.id, past.definition)
        if (other := latest.get(name)) and _is_other_file(project, other.file, past.file):
            raise UsageError(
                f"{past.file} (run {past.id}) and {other.file} (run {other.id}) have the same full name, {name!r}",
                actions=["Rename one of the files, or name the runs to save."],
            )
        runs = found.get(name, [])
        if len(runs) == limit and not is_partial(runs[0]):
            continue
        if runs and past.is_partial:
            continue
        run = find_run(project, past.id, org_url=past.org_url)
        whole = [other for other in runs if not is_partial(other)]
        latest[name], found[name] = latest[name] if whole else past, [*whole, run]
    return dict(sorted(found.items()))


def previous_run(project: Project, run: Run) -> Run:
    """Return the last complete run of the same test before a run; another file with the same name is another test.

    Runs of some of the cases are left out if there is an earlier run of all cases, and so are runs that only asked
    suspect cases again.
    """
    part: Run | None = None
    for earlier in earlier_runs(project, run):
        if not earlier.options.is_partial:
            return earlier
        part = part or earlier
    if part:
        return part
    raise NotFound(
        f"there is no earlier complete run of {name_of(run)} to compare run {run.id} with",
        actions=[Suggestion("Name two runs; list them", "test", "history")],
    )


def earlier_runs(project: Project, run: Run, history: Iterable[Run] = ()) -> Iterator[Run]:
    """Yield the complete runs of the same test before a run, the latest first.

    `history` has runs that are not in the project's database. Runs that only asked suspect cases again are left out.
    """
    stored = [*_runs_of(project, run)]
    others = {(other.id, other.started): other for other in history if name_of(other) == name_of(run)}
    unknown = [other for other in others.values() if not any(_is_run(past, other) for past in stored)]
    # Its own start may be later in `run`, whose time an org rounded to milliseconds.
    known: list[ListedRun | Run] = [past for past in stored if not past.confirms and not _is_run(past, run)]
    known += [past for past in unknown if not past.options.confirms]
    for past in sorted(known, key=lambda past: past.started, reverse=True):
        if past.started < run.started:
            yield find_run(project, past.id, org_url=past.org_url) if isinstance(past, ListedRun) else past


def _is_run(stored: ListedRun, other: Run) -> bool:
    """Return whether a report is of a stored run; runs of different stores may have the same id."""
    return stored.id == other.id and abs(stored.started - other.started) < _SAME_START


def new_answers(project: Project, run: Run) -> dict[int, CaseCounts]:
    """Return the answers of complete runs that asked the suspect cases of a run again, by case number."""
    counts: dict[int, CaseCounts] = {}
    for again in _complete_runs(project, confirms=run.id):
        # Runs of different stores may have the same id.
        if again.started < run.started or _name(again.id, again.definition) != name_of(run):
            continue
        for case in _counts(find_run(project, again.id, org_url=again.org_url)):
            counts[case.number] = case + counts[case.number] if case.number in counts else case
    return counts


def _runs_of(project: Project, run: Run) -> list[ListedRun]:
    """Return the complete runs of a run's test, the oldest first."""
    name, file, runs = name_of(run), file_of_run(project, run.id) or "", _complete_runs(project)
    known = same_test(name, {_name(past.id, past.definition) for past in runs if past.id != run.id}, project.root)
    return [
        past
        for past in runs
        if _name(past.id, past.definition) == known and not _is_other_file(project, past.file, file)
    ]


def baseline_of(run: Run) -> Baseline:
    """Return a run as a baseline for others."""
    return Baseline(run.id, {name_of(run): known_test(run)}, is_partial(run), started=run.started)


def baseline_of_suite(label: str, runs: Iterable[Run]) -> Baseline:
    """Return the runs of a suite as a baseline, in which each run is compared with that of its own test."""
    by_test = {name_of(run): baseline_of(run) for run in runs}
    return Baseline(
        label,
        {name: known.tests[name] for name, known in by_test.items()},
        moving=lambda run: by_test.get(name_of(run)),
    )


def compare_with(
    baseline: Baseline, runs: Sequence[Run], *, project: Project | None = None, history: Iterable[Run] = ()
) -> SuiteComparison:
    """Compare the runs of a command with a baseline, as `compare_again` does; a test that is not in it is left out."""
    return compare_again(runs_in(baseline, runs), project=project, history=history)


def runs_in(baseline: Baseline, runs: Iterable[Run]) -> list[ComparedRun]:
    """Return the runs whose tests are in a baseline; this reads their results."""
    found = [(run, known) for run in runs if (known := _known_before(baseline, run)) is not None]
    return [ComparedRun(run, *known, known_test(run)) for run, known in found]


def compare_again(
    runs: Sequence[ComparedRun], *, project: Project | None = None, history: Iterable[Run] = ()
) -> SuiteComparison:
    """Compare the runs of a command, whose results are not read again.

    `project` has the runs that asked suspect cases again, and earlier runs; without it, there are none. `history` has
    earlier runs that are not in its database.
    """
    suite = compare_all([_compared(run, project=project, history=history) for run in runs])
    return replace(suite, tests=tuple(map(_with_changes, suite.tests, runs)))


class Comparator(NamedTuple):
    """A baseline that was opened, and what fails a call that is compared with it.

    Attributes:
        suspects_fail: whether a suspect case fails the call.
        most_answers: how often a suspect case is asked again at most; 0 to ask none.
        must_confirm: whether the user asked for it, so that an org that cannot run single cases is refused.
        history: runs that are not in the project's database.
        project: the project whose later runs may have asked suspect cases again.
    """

    baseline: Baseline
    suspects_fail: bool
    project: Project | None = None
    most_answers: int = 0
    must_confirm: bool = False
    history: tuple[Run, ...] = ()

    def compare(self, runs: Sequence[Run]) -> SuiteComparison:
        """Compare the runs of a command."""
        return self.compare_again(runs_in(self.baseline, runs))

    def compare_again(self, runs: Sequence[ComparedRun]) -> SuiteComparison:
        """Compare runs whose results were read, with the new answers to their suspect cases."""
        return compare_again(runs, project=self.project, history=self.history)


def _check_other(baseline: Baseline, run: Run) -> None:
    # Runs of several stores, such as an archive and this one, can have the same id.
    if baseline.label == run.id and abs((baseline.started or run.started) - run.started) < _SAME_START:
        list_all = Suggestion("Name another run; list them", "test", "history")
        raise UsageError(f"run {run.id} would be compared with itself", actions=[list_all])


def _with_changes(test: Comparison, pair: ComparedRun) -> Comparison:
    return replace(test, changes=changes_of(test.cases, pair.before, pair.now))


def _known_before(baseline: Baseline, run: Run) -> tuple[Baseline, KnownTest] | None:
    if baseline.moving:
        found = baseline.moving(run)
        return None if found is None else _known_before(found, run)
    _check_other(baseline, run)
    before = baseline.find(name_of(run))
    return None if before is None else (baseline, before)


def _compared(pair: ComparedRun, *, project: Project | None, history: Iterable[Run] = ()) -> ComparedTest:
    run, baseline, before, now = pair
    return ComparedTest(
        name_of(run),
        (baseline.label, run.id),
        before.cases,
        now.cases,
        partial=(baseline.is_partial, is_partial(run) or len(run.cases) < run.total),
        again=new_answers(project, run) if project else {},
        failing_runs=_failing_runs(earlier_runs(project, run, history), before.cases, now.cases) if project else {},
        subject=run.subject_name,
    )


def compare_runs(before: Run, after: Run, *, project: Project | None = None) -> Comparison:
    """Compare two runs, of the same test or of two tests; `project` is that of `compare_with`."""
    baseline = baseline_of(before)
    if project:
        # Two journals can have the same id, and start at the same time.
        _check_other(baseline, after)
    pair = ComparedRun(after, baseline, baseline.tests[name_of(before)], known_test(after))
    names = dict.fromkeys([name_of(before), name_of(after)])
    compared = replace(_compared(pair, project=project), name=" and ".join(names))
    return _with_changes(compare(compared), pair)


def _failing_runs(earlier: Iterable[Run], before: Iterable[CaseCounts], after: Sequence[CaseCounts]) -> dict[int, int]:
    """Return in how many runs in a row, right before a run, its failing cases failed too.

    Only baselines of several runs need this: they know agents whose answers are alike within a run.
    """
    failing = [case for case in after if case.failed and not case.passed]
    if not failing or all(len(case.by_run) == 1 for case in before):
        return {}
    counts = {case.number: 0 for case in failing}
    for run in islice(earlier, limits.MAX_RUNS_IN_A_ROW):
        pairs = pair_cases(_counts(run), after)
        failed = {new.number for old, new in pairs if old and new and old.failed and not old.passed}
        failing = [case for case in failing if case.number in failed]
        if not failing:
            break
        for case in failing:
            counts[case.number] += 1
    return counts


def known_test(run: Run) -> KnownTest:
    """Return what a run says about its test."""
    return KnownTest(observed_cases(run), run.subject_name, options_of(run.options), run.options.setup)


def observed_cases(run: Run) -> tuple[CaseCounts, ...]:
    """Return the counts of a run's cases for comparisons; iterations with the same answer and rating count once.

    Suspect cases that were asked again were judged anew each time.
    """
    is_single = not run.options.is_repeated or bool(run.options.confirms)
    cases = run.cases if is_single else observations(run.cases)
    return tuple(detail(cases, run.options).cases())


def _counts(run: Run) -> tuple[CaseCounts, ...]:
    return tuple(detail(run.cases, run.options).cases())


def statistics_of(run: Run) -> RunStatistics:
    """Return the statistics of a run, according to its options."""
    return collect(run.cases, run.options)


def name_of(run: Run | ListedRun) -> str:
    """Return a test's name in baselines: the API name, `Type:Name` for other types than AiEvaluationDefinition."""
    return _name(run.id, run.definition)


def _name(run_id: str, definition: str) -> str:
    kind = type_of_run(run_id)
    return definition if kind is None else baseline_name(kind, definition)


def same_test(name: str, known: Collection[str], root: Path | None) -> str | None:
    """Return a test's name among others: itself, or else the only path to a file of that name that is not here.

    The paths of files begin at the project's folder, or at the current folder if there is no project. A file that is
    run from another folder, or was moved, is thus the same test; another file in the project never is.
    """
    if name in known:
        return name
    last = PurePosixPath(name).name
    others = [other for other in known if PurePosixPath(other).name == last and "/" in name + other]
    gone = [other for other in others if root is None or not (root / other).is_file()]
    return gone[0] if len(gone) == 1 else None


def _is_other_file(project: Project, first: str, second: str) -> bool:
    """Return whether two runs of files were of different ones, both of which exist."""
    if first == second or not (first and second):
        return False
    paths = [project.root / first, project.root / second]
    return all(path.is_file() for path in paths) and not paths[0].samefile(paths[1])


def _complete_runs(project: Project, *, confirms: str = "") -> list[ListedRun]:
    """Return the complete runs of all orgs, the oldest first; their cases are not read."""
    wanted = RunFilter(status=RunStatus.COMPLETED.value, confirms=confirms)
    with open_database(project.store) as database:
        return list_runs(database, wanted)


def is_partial(run: Run) -> bool:
    """Return whether only some of a test's cases were run."""
    return run.options.is_partial


def find_run(project: Project, run_id: str, *, org_url: str | None = None) -> Run:
    """Return a run with its cases from an org (the project's own has an empty address), or from any, its own first."""
    with open_database(project.store) as database:
        runs, run = Runs(database), None
        if not org_url and (own := runs.get(run_id)):
            run = replace(own, cases=open_cases(database, own.id))
        elif found := RemoteRuns(database).find(run_id, org_url=org_url):
            run = found[0].run
    if run is None:
        known = Suggestion("List the known runs", "test", "history")
        other = Suggestion("Or fetch one from another org", "test", "results")
        raise NotFound(f"no run {run_id!r} is known here", actions=[known, other])
    return run
