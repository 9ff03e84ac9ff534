"""Selecting the cases of a run by name, number, label, tag or earlier failure, and planning a run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.agent_tests import AgentTest
from evalmeta.api.org_targets import Target, address_of
from evalmeta.api.runs.comparisons import find_run, load_runs
from evalmeta.api.runs.finding import is_elsewhere
from evalmeta.api.sync import fetch
from evalmeta.errors import SettingsError, Suggestion, UsageError
from evalmeta.model.aggregation import is_failing
from evalmeta.model.evaluation import (
    Case,
    CaseList,
    Evaluation,
    evaluation_of,
    iterations_of,
    parse_case_list,
    select_cases,
    workload,
)
from evalmeta.model.registry import MetadataType, type_of_run
from evalmeta.model.run import Run, RunStatus
from evalmeta.model.tally import summarise
from evalmeta.org.subjects import rater_settings
from evalmeta.package.files import shown
from evalmeta.report.details import all_utterances
from evalmeta.report.text import count, number_ranges
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import RunFilter, newest_runs
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.runs.observer import Observer
    from evalmeta.client.connection import Connection
    from evalmeta.model.run_options import RunOptions
    from evalmeta.package.project import Project

_NUMBERS: Final = re.compile(r"\d+(?:-\d+)?")


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """The selected cases: those that are in every group of lists; a case is in a group if one of its lists has it.

    Attributes:
        names: the selected definitions, as for `select_tests`; empty for all.
        lists: the groups of lists; empty for all cases.
        last_failed: whether only the cases are selected whose latest result failed, which only the org's tests show.
        tags: the tags whose cases are among the lists; runs record them.
    """

    names: tuple[str, ...] = ()
    lists: tuple[tuple[CaseList, ...], ...] = ()
    last_failed: bool = False
    tags: tuple[str, ...] = ()

    def numbers(self, test: AgentTest) -> tuple[int, ...] | None:
        """Return the numbers of the selected cases of a test, None for all of them."""
        chosen: frozenset[int] | None = None
        for alternatives in self.lists:
            one = _union(
                alternative.numbers
                for alternative in alternatives
                if alternative.name in {"", test.full_name, test.key}
            )
            chosen = one if chosen is None else chosen if one is None else chosen & one
        return None if chosen is None else tuple(sorted(chosen))

    def has_cases_of(self, files: Iterable[FileTest]) -> bool:
        """Return whether a case of these tests is selected."""
        for file in files:
            numbers = self.numbers(AgentTest(file.type, file.name, file))
            if any(numbers is None or case.number in numbers for case in file.evaluation.cases):
                return True
        return False

    def narrowed(self, lists: Sequence[CaseList]) -> CaseChoice:
        """Return a choice with only the cases that are also in one of these lists; no lists change nothing.

        If no definition was selected, the definitions in the lists are.
        """
        if not lists:
            return self
        named = tuple(dict.fromkeys(items.name for items in lists))
        names = self.names or (() if "" in named else named)
        return replace(self, names=names, lists=(*self.lists, tuple(lists)))


class CaseSelection(NamedTuple):
    """The options of a call that select cases."""

    cases: tuple[CaseList, ...] = ()
    tags: tuple[str, ...] = ()
    failed_from: tuple[str, ...] = ()
    last_failed: bool = False
    shard: tuple[int, int] | None = None
    seed: int | None = None
    changed_since: str | None = None

    @property
    def may_be_empty(self) -> bool:
        """Whether it is not a mistake if no case is left to run."""
        return bool(self.shard or self.failed_from or self.last_failed or self.changed_since)

    def choose(
        self, project: Project, names: tuple[str, ...], files: Sequence[FileTest], observer: Observer
    ) -> CaseChoice | None:
        """Return the chosen cases; None if nothing failed in the runs of --failed-from, as the observer then learns."""
        choice = CaseChoice(names, last_failed=self.last_failed, tags=self.tags)
        choice = choice.narrowed(by_tags(project, self.tags, files))
        runs = _failed_in(project, self.failed_from)
        for run, numbers in ((failures.run, failures.numbers) for failures in runs):
            if not numbers:
                observer.note(f"Nothing failed in run {run.id}.")
            if (missing := run.total - len(run.cases)) > 0:
                observer.warn(
                    f"run {run.id} is {run.status}; {missing:,} of its {run.total:,} case results are missing"
                )
        failed = [failures.cases for failures in runs if failures.numbers]
        if runs and not failed:
            return None
        return choice.narrowed(failed).narrowed(in_files(self.cases, files))


def split_cases(paths: Sequence[Path], selection: CaseSelection) -> tuple[tuple[Path, ...], CaseSelection]:
    """Return paths without the cases that they name, as in `FILE:CASE,CASE`, and the selection of these cases."""
    files = tuple(_without_cases(path) for path in paths)
    named = [(file, f"{path}"[len(f"{file}") + 1 :]) for path, file in zip(paths, files, strict=True) if path != file]
    if not named:
        return files, selection
    if len(named) < len(files):
        others = [f"{path}" for path, file in zip(paths, files, strict=True) if path == file]
        way_out = "Run them with another command, or name their cases too."
        raise UsageError(f"{named[0][0]} is named with cases, and {others[0]} without", actions=[way_out])
    labels = [(file, label.strip()) for file, text in named for label in text.split(",") if label.strip()]
    lists = tuple(CaseList("", None, f"{shown(file)}:{label}") for file, label in labels)
    return files, selection._replace(cases=(*selection.cases, *lists))


def _without_cases(path: Path) -> Path:
    """Return the path of the file in `FILE:CASE,CASE`; the whole path if a file has that name."""
    name, colon, _ = path.name.partition(":")
    file = path.with_name(name) if colon and name and not path.exists() else path
    return file if file.is_file() else path


class Failures(NamedTuple):
    """A run that is over, and the numbers of its cases that fail it in any iteration, as in `failing_cases`."""

    run: Run
    numbers: frozenset[int]

    @property
    def cases(self) -> CaseList:
        """Return the cases as a list."""
        kind = type_of_run(self.run.id)
        return CaseList(f"{kind.name}:{self.run.definition}" if kind else self.run.definition, self.numbers)


def by_tags(project: Project, tags: Iterable[str], files: Sequence[FileTest] = ()) -> list[CaseList]:
    """Return the cases with these tags in the project's settings or in files."""
    lists: list[CaseList] = []
    for tag in tags:
        found = [CaseList(file.name, numbers) for file in files if (numbers := _with_tag(tag, file))]
        if not found and tag not in project.settings.tags:
            raise _unknown_tag(
                tag,
                {
                    *project.settings.tags,
                    *(own for file in files for case in file.evaluation.cases for own in case.all_tags),
                },
            )
        entries = [_tagged(tag, entry) for entry in project.settings.tags.get(tag, ())]
        lists += [*in_files(entries, files), *found]
    return lists


def in_files(lists: Sequence[CaseList], files: Sequence[FileTest]) -> tuple[CaseList, ...]:
    """Return lists with the numbers of cases instead of labels, and with the names of the files."""
    return tuple(file for items in lists for file in _in_files(items, files))


def _failed_in(project: Project, run_ids: Iterable[str]) -> list[Failures]:
    """Return for each run its cases that failed or ended in an error, or that fail it because they are undecided."""
    runs = [run for run_id in run_ids for run in load_runs(project, run_id)]
    return [Failures(run, failing_cases(run)) for run in runs]


def failing_cases(run: Run) -> frozenset[int]:
    """Return the numbers of the cases that can be a reason why a run does not pass, in any iteration."""
    summary = summarise(run.cases, run.options)
    return frozenset(case.number for case in run.cases if is_failing(summary, case, run.options))


def _in_files(chosen: CaseList, files: Sequence[FileTest]) -> Iterator[CaseList]:
    if not chosen.label:
        named = [file.name for file in files if chosen.name and chosen.name in _names(file)]
        yield from (chosen._replace(name=name) for name in named or [chosen.name])
        return
    found = [CaseList(file.name, numbers) for file in files if (numbers := _labelled(chosen.label, file))]
    if not files:
        raise UsageError(f"{chosen.label!r} is not a valid list of cases, such as 3, 1,4-7 or Order_Desk:3")
    if not found:
        raise _unknown_label(chosen.label, files)
    yield from found


def _unknown_label(label: str, files: Sequence[FileTest]) -> UsageError:
    named = {name: file for file in files for name in _names(file)}
    name = max((name for name in named if label.startswith(f"{name}:")), key=len, default="")
    wanted = label.removeprefix(f"{name}:") if name else label
    known = {case.label for file in files for case in file.evaluation.cases}
    actions = [f"Did you mean {near[0]!r}?"] if (near := get_close_matches(wanted, known, n=1)) else []
    if not name:
        message = f"{label!r} is neither a list of cases, such as 3, 1,4-7 or NAME:3, nor the label of a case"
        return UsageError(message, actions=actions)
    if _NUMBERS.fullmatch(wanted):
        actions = [f"Choose cases by their number, not by their line: --case {wanted}"]
    return UsageError(f"no case of {name} has the label {wanted!r}", actions=actions)


def _labelled(label: str, file: FileTest) -> frozenset[int]:
    wanted = {label} | {label.removeprefix(f"{name}:") for name in _names(file)}
    return frozenset(case.number for case in file.evaluation.cases if case.label in wanted)


def _with_tag(tag: str, file: FileTest) -> frozenset[int]:
    return frozenset(case.number for case in file.evaluation.cases if tag in case.all_tags)


def _unknown_tag(tag: str, known: Collection[str]) -> UsageError:
    if near := get_close_matches(tag, known, n=1):
        return UsageError(f"there is no tag {tag!r}", actions=[f"Did you mean {near[0]}?"])
    actions = [
        f"Add it to a test case of a test spec: tags: [{tag}]",
        f'Or list the cases under [tags] in evalmeta.toml: {tag} = ["Order_Desk:1-3"]',
    ]
    return UsageError(f"there is no tag {tag!r}", actions=actions)


def _names(file: FileTest) -> set[str]:
    """Return the names of a file: its test's, its paths in the project and from here, its name and stem."""
    return {file.name, file.file, shown(file.path), file.path.name, file.path.name.split(".", 1)[0]}


def _tagged(tag: str, entry: str) -> CaseList:
    try:
        found = parse_case_list(entry, is_named=True)
    except ValueError as error:
        raise SettingsError(f"evalmeta.toml: tags.{tag}: {error}") from None
    if not found.name:
        raise SettingsError(f"evalmeta.toml: tags.{tag}: {entry!r} does not name a definition; write NAME:{entry}")
    return found


def _union(sets: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    found: set[int] = set()
    for group in sets:
        if group is None:
            return None
        found |= group
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What a run would do.

    Attributes:
        cases: the cases of each iteration.
        left_out: the number of other cases in the definition.
        expectations: the number of expectations in one iteration, by name.
    """

    definition: str
    type: str
    subject_name: str
    cases: tuple[Case, ...]
    left_out: int
    options: RunOptions
    expectations: Mapping[str, int]

    @property
    def results(self) -> int:
        """Return the number of case results for which the agent is asked."""
        return sum(iterations_of(case, self.options) for case in self.cases if not case.not_run)

    @property
    def utterances(self) -> int:
        """Return the number of utterances, without retries."""
        return sum(len(case.turns) * iterations_of(case, self.options) for case in self.cases if not case.not_run)


async def plan_runs(
    connection: Connection, tests: Sequence[AgentTest], choice: CaseChoice, options: RunOptions
) -> list[PlannedRun]:
    """Return what a run of each test would do, according to the definitions in the org."""
    deployed = await _evaluations_of(connection, tests)
    # The runs of a test in a matrix have the same key, and each has its own agent.
    evaluations = [test.file.evaluation if test.file else deployed.get(test.key) for test in tests]
    return [
        _planned(test, evaluation, replace(test.options(options), cases=choice.numbers(test)))
        for test, evaluation in zip(tests, evaluations, strict=True)
        if evaluation
    ]


async def _evaluations_of(connection: Connection, tests: Sequence[AgentTest]) -> dict[str, Evaluation]:
    """Return what tests evaluate, by their keys: those in files, and those that are deployed in the org."""
    deployed = [test for test in tests if test.file is None]
    kinds = dict.fromkeys(test.type for test in deployed)
    contents = {kind: await _contents(connection, kind, deployed) for kind in kinds}
    evaluations = {test.key: test.file.evaluation for test in tests if test.file}
    for test in deployed:
        if content := contents[test.type].get(test.full_name):
            definition = read_leniently(read_xml(content, label=test.full_name))
            evaluations[test.key] = evaluation_of(definition, name=test.full_name)
    return evaluations


def check_rater(project: Project, options: RunOptions) -> None:
    """Check that the rater of a run in the embedded org is configured."""
    rater_settings(project.settings.raters, options.scoring.rater, root=project.root)


async def _contents(connection: Connection, kind: MetadataType, tests: Sequence[AgentTest]) -> dict[str, bytes]:
    names = [test.full_name for test in tests if test.type == kind]
    return {fetched.full_name: fetched.content for fetched in await fetch(connection, kind, names)}


def _planned(test: AgentTest, evaluation: Evaluation, options: RunOptions) -> PlannedRun:
    cases = tuple(select_cases(evaluation, options))
    options = replace(options, most_iterations=workload(evaluation, options).most_iterations)
    judged = Counter(expectation.name for case in cases for turn in case.turns for expectation in turn.expectations)
    left_out = sum(1 for _ in evaluation.cases) - len(cases)
    return PlannedRun(
        test.full_name, test.type.name, evaluation.subject_name, cases, left_out, options, dict(sorted(judged.items()))
    )


class LastFailed(NamedTuple):
    """Which cases to run again.

    Attributes:
        tests: the tests with cases that failed or were never asked.
        lists: the cases of each of these tests.
        notes: what users must know about the choice, in sentences.
    """

    tests: tuple[AgentTest, ...]
    lists: tuple[CaseList, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _LastResults:
    """The utterances of the cases of a test when they were last run, by number; and its runs that are not over."""

    asked: dict[int, str]
    failed: set[int]
    unfinished: list[str]


async def last_failed(
    connection: Connection, project: Project, tests: Sequence[AgentTest], *, target: Target | None
) -> LastFailed:
    """Return the cases of tests whose latest result in an org fails their run, and those that have no result.

    The latest results are those of the latest run that is over; for cases that it left out, those of earlier runs, back
    to the latest complete run of all cases.
    """
    org_url = address_of(target) if is_elsewhere(project, target) else ""
    results = {test.key: _last_results(project, test, org_url) for test in tests}
    new = [test for test in tests if not results[test.key].asked]
    known = [test for test in tests if results[test.key].asked]
    evaluations = await _evaluations_of(connection, known)
    lists, notes = [CaseList(test.key, None) for test in new], [*_unfinished(tests, results, is_own=not org_url)]
    passed = 0
    for test in known:
        numbers, changes = _present(test, results[test.key], evaluations[test.key].cases)
        lists.append(CaseList(test.key, numbers))
        notes += changes
        passed += not numbers and not results[test.key].failed
    chosen = {items.name for items in lists if items.numbers is None or items.numbers}
    left = tuple(test for test in tests if test.key in chosen)
    return LastFailed(left, tuple(lists), (*_summary(passed, new), *notes))


def _last_results(project: Project, test: AgentTest, org_url: str) -> _LastResults:
    results = _LastResults({}, set(), [])
    with open_database(project.store) as database:
        runs = [*newest_runs(database, RunFilter(test=test.full_name, org_url=org_url))]
    for listed in (listed for listed in runs if type_of_run(listed.id) == test.type):
        if not listed.status.is_over:
            results.unfinished.append(listed.id)
            continue
        run = find_run(project, listed.id, org_url=org_url)
        asked = {case.number: all_utterances(case) for case in run.cases if case.number not in results.asked}
        results.failed |= failing_cases(run) & asked.keys()
        results.asked |= asked
        if run.status is RunStatus.COMPLETED and not run.options.is_partial:
            break
    return results


def _unfinished(tests: Sequence[AgentTest], results: Mapping[str, _LastResults], *, is_own: bool) -> Iterator[str]:
    """Yield which runs are not over, and how to wait for them or continue them."""
    runs = [(run_id, test) for test in tests for run_id in results[test.key].unfinished]
    for run_id, test in runs:
        yield f"Run {run_id} of {test.full_name} is not finished; its results do not count."
    if runs:
        selection = ("--unfinished",) if is_own else ("--job-id", runs[0][0])
        yield Suggestion(
            "To finish it instead" if len(runs) == 1 else "To finish them instead", "test", "resume", *selection
        )


def _present(test: AgentTest, last: _LastResults, cases: Iterable[Case]) -> tuple[frozenset[int], list[str]]:
    """Return the numbers that failed cases have now and those never asked, and what changed since the last results.

    Cases are known by their utterances.
    """
    now = {case.number: " / ".join(turn.utterance for turn in case.turns) for case in cases}
    failed = {number: last.asked[number] for number in sorted(last.failed)}
    moved = {number for number, text in failed.items() if not _has_begun_with(now.get(number), text)}
    places = {text: number for number, text in now.items() if text in {failed[before] for before in moved}}
    found = {number: places.get(text, number) if number in moved else number for number, text in failed.items()}
    removed = sorted(number for number, place in found.items() if place not in now)
    changed = sorted(number for number in moved if failed[number] not in places and number in now)
    again = frozenset(found.values()) & now.keys()
    texts = {*last.asked.values()}
    never = sorted(
        number
        for number, text in now.items()
        if number not in again and text not in texts and not _has_begun_with(text, last.asked.get(number))
    )
    return again | {*never}, [*_changes(test, removed, changed), *_never_asked(test, never)]


def _never_asked(test: AgentTest, numbers: Sequence[int]) -> Iterator[str]:
    if numbers:
        verb = "was" if len(numbers) == 1 else "were"
        yield f"{count(len(numbers), 'case')} of {test.full_name} {verb} never asked: {number_ranges(numbers)}."


def _has_begun_with(utterances: str | None, asked: str | None) -> bool:
    """Return whether a case asked this; one that ended in an error did not send its last turns."""
    return utterances is not None and asked is not None and f"{utterances} / ".startswith(f"{asked} / ")


def _changes(test: AgentTest, removed: Sequence[int], changed: Sequence[int]) -> Iterator[str]:
    for numbers, what in ((removed, "removed"), (changed, "changed")):
        if numbers:
            verb = "was" if len(numbers) == 1 else "were"
            cases = "Case" if len(numbers) == 1 else "Cases"
            yield f"{cases} {number_ranges(numbers)} of {test.full_name} {verb} {what} since the last run."


def _summary(passed: int, new: Sequence[AgentTest]) -> Iterator[str]:
    if passed:
        yield f"Not run again, because nothing failed in their last runs: {count(passed, 'test')}."
    if new:
        yield f"Not run before, so all cases run: {', '.join(test.full_name for test in new)}."
