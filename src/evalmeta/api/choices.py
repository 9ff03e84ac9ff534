"""Which tests, and which of their cases, a run is about: by name, by number, by tag, by what failed before."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.comparisons import load_run
from evalmeta.errors import SettingsError, UsageError
from evalmeta.model.averages import counted_verdicts
from evalmeta.model.caselist import CaseList, parse_case_list
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.api.tests import AgentTest
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project

__all__ = ["Choice", "Failures", "by_tags", "failed_in"]


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


def failed_in(project: Project, run_ids: Iterable[str]) -> list[Failures]:
    """Gives for each run what failed or ended in an error in it.

    Raises:
        NotFound: no such run is known here.
        UsageError: it is not over.
        StoreError: the project's database cannot be used.
    """
    runs = [load_run(project, run_id) for run_id in run_ids]
    return [Failures(run, _failed(run)) for run in runs]


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
