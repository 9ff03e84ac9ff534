"""Which tests, and which of their cases, a run is about: by name, by number, by tag, by what failed before."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from evalmeta.api.comparisons import load_run
from evalmeta.errors import SettingsError, UsageError
from evalmeta.model.caselist import CaseList, parse_case_list
from evalmeta.model.counting import counted_verdict
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.model.run import Run
    from evalmeta.package.project import Project

__all__ = ["Choice", "by_tags", "failed_in"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases are chosen; a case is chosen when every list that was given has it.

    Attributes:
        lists: alternatives, of which one must have the case; none choose every case.
        names: full names of the definitions that are chosen; empty for all.
    """

    names: tuple[str, ...] = ()
    lists: tuple[tuple[CaseList, ...], ...] = ()

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Gives the numbers of the chosen cases of a definition, None for all of them."""
        chosen: frozenset[int] | None = None
        for alternatives in self.lists:
            one = _union(each.numbers for each in alternatives if each.name in {"", name})
            chosen = one if chosen is None else chosen if one is None else chosen & one
        return None if chosen is None else tuple(sorted(chosen))

    def narrowed(self, lists: Sequence[CaseList]) -> Choice:
        """Gives a choice that a case must be in one of these lists for, too; of definitions that are named in it."""
        if not lists:
            return self
        named = tuple(dict.fromkeys(each.name for each in lists if each.name))
        names = self.names
        if all(each.name for each in lists):
            names = tuple(name for name in named if name in names) if names else named
        return Choice(names, (*self.lists, tuple(lists)))


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


def failed_in(project: Project, run_ids: Iterable[str]) -> tuple[list[CaseList], list[str]]:
    """Gives the cases of runs of which an iteration failed or ended in an error; and the ids of runs without any.

    Raises:
        NotFound: no such run is known here.
        UsageError: it is not over.
        StoreError: the project's database cannot be used.
    """
    lists: list[CaseList] = []
    passed: list[str] = []
    for run_id in run_ids:
        run = load_run(project, run_id)
        numbers = _failed(run)
        if numbers:
            lists.append(CaseList(run.definition, numbers))
        else:
            passed.append(run.id)
    return lists, passed


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
    return frozenset(case.number for case in run.cases if counted_verdict(case, run.options) in bad)


def _union(sets: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    found: set[int] = set()
    for each in sets:
        if each is None:
            return None
        found |= each
    return frozenset(found)
