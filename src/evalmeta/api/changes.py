"""Differences between a project and an org, and between two files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.sync import ComparedComponent, compare_components, fetch, hash_to_send, tracking_of
from evalmeta.errors import InvalidMetadata, NotFound
from evalmeta.model.bundle_content import split_files
from evalmeta.model.difference import Change, ChangeKind, Difference, compare, compare_texts
from evalmeta.model.registry import SCORER_DEFINITION, Component, MetadataType, SyncState, types_at
from evalmeta.package.components import content_of
from evalmeta.package.files import bytes_of, shown
from evalmeta.package.folders import find_components
from evalmeta.xmlio.agent_scorers import check_agent_scorer, texts_by_path
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import Document, read_xml
from evalmeta.xmlio.structure import definition_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import AgentTest
    from evalmeta.client.connection import Connection
    from evalmeta.model.problem import Problem
    from evalmeta.package.project import Project
    from evalmeta.package.replacements import Replacements
    from evalmeta.store.components import Synced


_ORG: Final = "the org"


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """The state of a component; `file` is empty if the project does not have it."""

    state: SyncState
    type: str
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Status:
    """The components that differ, and the number of components that the project or the org has."""

    components: tuple[ComponentStatus, ...]
    total: int


class Undeployed(NamedTuple):
    """The tests whose changed file differs from the org's, and why others cannot be compared."""

    names: tuple[str, ...]
    problems: tuple[Problem, ...]


async def status(connection: Connection, project: Project) -> Status:
    """Return what changed in the project, in the org, or in both since the last deploy or retrieve."""
    compared = await _compare_all(connection, project)
    differing = [component for component in compared if component.state is not SyncState.SAME]
    rows = (
        ComponentStatus(
            component.state,
            component.type.name,
            component.full_name,
            shown(component.local.path) if component.local else "",
        )
        for component in differing
    )
    return Status(tuple(rows), len(compared))


async def find_undeployed(connection: Connection, project: Project, tests: Iterable[AgentTest]) -> Undeployed:
    """Find the tests whose changed file differs from the org's; without changed files, the org is not asked."""
    wanted = {test.key.casefold() for test in tests}
    found = [component for component in find_components(project) if component.key.casefold() in wanted]
    problems = {component.key: project.replacements.problem_of(component.path) for component in found}
    ours = [component for component in found if problems[component.key] is None]
    compared: list[ComparedComponent] = []
    with tracking_of(project, connection) as tracking:
        for kind in dict.fromkeys(component.type for component in ours):
            base = tracking.load(kind.name)
            changed = [
                component for component in ours if component.type == kind and _is_changed(project, component, base)
            ]
            if changed:
                only = [component.full_name for component in changed]
                compared += await compare_components(connection, project, tracking, kind, changed, only=only)
    differing = (component for component in compared if component.listed and component.state is not SyncState.SAME)
    names = tuple(component.full_name for component in differing)
    return Undeployed(names, tuple(problem for problem in problems.values() if problem))


async def diff(connection: Connection, project: Project, names: Sequence[str] = ()) -> list[Difference]:
    """Compare the project's definitions (after) with the org's (before): those with these names, or all that differ."""
    compared = await _compare_all(connection, project)
    wanted = {name.casefold() for name in names}
    _check_names(names, [component.full_name for component in compared])
    chosen = [component for component in compared if not wanted or component.full_name.casefold() in wanted]
    differing = [component for component in chosen if component.state is not SyncState.SAME]
    contents: dict[tuple[MetadataType, str], bytes] = {}
    for kind in dict.fromkeys(component.type for component in differing):
        there = [
            component.full_name
            for component in differing
            if component.type == kind and component.local and component.listed
        ]
        contents |= {(kind, fetched.full_name): fetched.content for fetched in await fetch(connection, kind, there)}
    return [
        _difference(component, contents.get((component.type, component.full_name)), project.replacements)
        for component in differing
    ]


def diff_files(before: Path, after: Path) -> Difference | None:
    """Compare two definition files; return None if they have the same bytes."""
    return compare_contents((shown(before), bytes_of(before)), (shown(after), bytes_of(after)))


def compare_contents(before: tuple[str, bytes], after: tuple[str, bytes]) -> Difference | None:
    """Compare two versions of a definition, each with its label; return None if they have the same bytes."""
    return None if before[1] == after[1] else _compared("", before, after)


async def _compare_all(connection: Connection, project: Project) -> list[ComparedComponent]:
    components = find_components(project)
    compared: list[ComparedComponent] = []
    with tracking_of(project, connection) as tracking:
        for kind in types_at(connection.api_version):
            ours = [component for component in components if component.type == kind]
            compared += await compare_components(connection, project, tracking, kind, ours)
    return compared


def _is_changed(project: Project, component: Component, base: Mapping[str, Synced]) -> bool:
    known = base.get(component.full_name.casefold())
    return known is None or known.sha256 != hash_to_send(project, component)


def _check_names(names: Iterable[str], known: Sequence[str]) -> None:
    folded = {name.casefold(): name for name in known}
    for name in names:
        if name.casefold() not in folded:
            near = get_close_matches(name.casefold(), folded, n=1)
            actions = [f"Did you mean {folded[near[0]]}?"] if near else []
            raise NotFound(f"neither the project nor the org has a component {name!r}", actions=actions)


def _difference(compared: ComparedComponent, content: bytes | None, replacements: Replacements) -> Difference:
    name, local = compared.full_name, compared.local
    if local is None:
        return Difference(name, _ORG, None)
    file = shown(local.path)
    if content is None:
        return Difference(name, None, file)
    ours = content_of(local, read=replacements.content_to_send)
    if local.type.is_bundle:
        difference = Difference(name, _ORG, file, tuple(_bundle_changes(content, ours)))
    else:
        difference = _compared(name, (_ORG, content), (file, ours))
    return _without_values(difference, replacements)


def _without_values(difference: Difference, replacements: Replacements) -> Difference:
    def hidden(text: str | None) -> str | None:
        return None if text is None else replacements.hide_values(text)

    changes = (
        replace(change, before=hidden(change.before), after=hidden(change.after)) for change in difference.changes
    )
    problems = (replace(problem, message=replacements.hide_values(problem.message)) for problem in difference.problems)
    return replace(difference, changes=tuple(changes), problems=tuple(problems))


def _bundle_changes(before: bytes, after: bytes) -> Iterator[Change]:
    """Yield the lines that differ in the files of a bundle, each with its file and its number in the newer file."""
    old, new = (
        {name: data.decode("utf-8", "replace").splitlines() for name, data in split_files(content).items()}
        for content in (before, after)
    )
    for name in sorted({*old, *new}):
        if name in old and name in new:
            yield from _line_changes(name, old[name], new[name])
        else:
            yield Change(ChangeKind.ADDED if name in new else ChangeKind.REMOVED, None, (name,), None, None)


def _line_changes(file: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    for tag, first_old, end_old, first_new, end_new in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            continue
        for offset, lines in enumerate(zip_longest(old[first_old:end_old], new[first_new:end_new])):
            before, after = lines
            kind = ChangeKind.ADDED if before is None else ChangeKind.REMOVED if after is None else ChangeKind.CHANGED
            yield Change(kind, None, (file, f"line {first_new + offset + 1}"), before, after)


def _compared(name: str, before: tuple[str, bytes], after: tuple[str, bytes]) -> Difference:
    try:
        old, new = (read_xml(data, label=label) for label, data in (before, after))
        is_scorer = {definition_type(old), definition_type(new)} == {SCORER_DEFINITION}
        changes = _compare_scorers(old, new) if is_scorer else compare(read_definition(old), read_definition(new))
    except InvalidMetadata as error:
        return Difference(name, before[0], after[0], problems=error.problems)
    return Difference(name, before[0], after[0], changes)


def _compare_scorers(*versions: Document) -> tuple[Change, ...]:
    for version in versions:
        check_agent_scorer(version)
    before, after = map(texts_by_path, versions)
    return compare_texts(before, after)
