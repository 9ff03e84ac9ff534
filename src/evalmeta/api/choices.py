"""Which tests, and which of their cases, a run is about: by name, number, label, tag, by what failed before."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.comparisons import load_run
from evalmeta.api.metadata import shown
from evalmeta.errors import SettingsError, UsageError
from evalmeta.model.averages import counted_verdicts
from evalmeta.model.caselist import CaseList, parse_case_list
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.api.documents import FileTest
    from evalmeta.api.tests import AgentTest
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project

__all__ = ["Choice", "Failures", "by_tags", "failed_in", "in_files"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases are chosen; a case is chosen when every list that was given has it.

    Attributes:
        lists: alternatives, of which one must have the case; none choose every case.
        names: the definitions that are chosen, as `select_tests` takes them; empty for all.
    """

    names: tuple[str, ...] = ()
    lists: tuple[tuple[CaseList, ...], ...] = ()

    def numbers(self, test: AgentTest) -> tuple[int, ...] | None:
        """Gives the numbers of the chosen cases of a test, None for all of them."""
        chosen: frozenset[int] | None = None
        for alternatives in self.lists:
            one = _union(each.numbers for each in alternatives if each.name in {"", test.full_name, test.key})
            chosen = one if chosen is None else chosen if one is None else chosen & one
        return None if chosen is None else tuple(sorted(chosen))

    def narrowed(self, lists: Sequence[CaseList]) -> Choice:
        """Gives a choice that has only those cases that are in one of these lists, too; no lists change nothing.

        Where no definition was chosen yet, those are that the lists name.
        """
        if not lists:
            return self
        named = tuple(dict.fromkeys(each.name for each in lists))
        names = self.names or (() if "" in named else named)
        return Choice(names, (*self.lists, tuple(lists)))


class Failures(NamedTuple):
    """A run that is over, and the numbers of its cases of which an iteration failed or ended in an error."""

    run: Run
    numbers: frozenset[int]

    @property
    def cases(self) -> CaseList:
        """Gives the cases as a list."""
        kind = type_of_run(self.run.id)
        return CaseList(f"{kind.name}:{self.run.definition}" if kind else self.run.definition, self.numbers)


def by_tags(project: Project, tags: Iterable[str]) -> list[CaseList]:
    """Gives the cases that the project's settings have under tags.

    Raises:
        UsageError: there is no such tag.
        SettingsError: what stands under one is no list of cases.
    """
    lists: list[CaseList] = []
    for tag in tags:
        if tag not in project.settings.tags:
            near = get_close_matches(tag, project.settings.tags, n=1)
            hint = f"Did you mean {near[0]}?" if near else 'Tags are lists under [tags]: smoke = ["Order_Desk:1-3"]'
            raise UsageError(f"evalmeta.toml has no tag {tag!r}", actions=[hint])
        lists += [_tagged(tag, entry) for entry in project.settings.tags[tag]]
    return lists


def in_files(lists: Sequence[CaseList], files: Sequence[FileTest]) -> tuple[CaseList, ...]:
    """Gives lists with the numbers of cases that were named by their labels, and with the files' own names.

    Raises:
        UsageError: no case has the label; names the one that is most like it.
    """
    return tuple(found for each in lists for found in _in_files(each, files))


def failed_in(project: Project, run_ids: Iterable[str]) -> list[Failures]:
    """Gives for each run what failed or ended in an error in it.

    Raises:
        NotFound: no such run is known here.
        UsageError: it is not over.
        StoreError: the project's database cannot be used.
    """
    runs = [load_run(project, run_id) for run_id in run_ids]
    return [Failures(run, _failed(run)) for run in runs]


def _in_files(chosen: CaseList, files: Sequence[FileTest]) -> Iterator[CaseList]:
    if not chosen.label:
        named = [each.name for each in files if chosen.name and chosen.name in _names(each)]
        yield from (chosen._replace(name=name) for name in named or [chosen.name])
        return
    found = [CaseList(each.name, numbers) for each in files if (numbers := _labelled(chosen.label, each))]
    if not files:
        raise UsageError(f"{chosen.label!r} is no list of cases such as 3, 1,4-7 or Order_Desk:3")
    if not found:
        message = f"{chosen.label!r} is neither a list of cases such as 3, 1,4-7 or NAME:3 nor the label of a case"
        near = get_close_matches(chosen.label, {case.label for each in files for case in each.evaluation.cases}, n=1)
        raise UsageError(message, actions=[f"Did you mean {near[0]!r}?"] if near else [])
    yield from found


def _labelled(label: str, file: FileTest) -> frozenset[int]:
    wanted = {label} | {label.removeprefix(f"{name}:") for name in _names(file)}
    return frozenset(case.number for case in file.evaluation.cases if case.label in wanted)


def _names(file: FileTest) -> set[str]:
    """Gives what people call a file: its path in the project or from here, its name, and that without suffixes."""
    return {file.name, shown(file.path), file.path.name, file.path.name.split(".", 1)[0]}


def _tagged(tag: str, entry: str) -> CaseList:
    try:
        found = parse_case_list(entry, is_named=True)
    except ValueError as error:
        raise SettingsError(f"evalmeta.toml: tags.{tag}: {error}") from None
    if not found.name:
        raise SettingsError(f"evalmeta.toml: tags.{tag}: {entry!r} names no definition; write NAME:{entry}")
    return found


def _failed(run: Run) -> frozenset[int]:
    bad = {Verdict.FAILURE, Verdict.ERROR}
    return frozenset(number for number, verdict in counted_verdicts(run.cases, run.options) if verdict in bad)


def _union(sets: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    found: set[int] = set()
    for each in sets:
        if each is None:
            return None
        found |= each
    return frozenset(found)
