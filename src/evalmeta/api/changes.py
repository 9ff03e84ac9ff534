"""Changes: what differs between a project and an org, or between two files."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from evalmeta.api.files import bytes_of, shown
from evalmeta.api.sync import fetch, look, tracking_of
from evalmeta.errors import InvalidMetadata, NotFound
from evalmeta.model.difference import Difference, compare
from evalmeta.model.registry import types_at
from evalmeta.model.sync import SyncState, hash_of
from evalmeta.package.files import read_file
from evalmeta.package.resolver import find_components
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.runs import AgentTest
    from evalmeta.api.sync import Sides
    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project
    from evalmeta.store.tracking import Synced


_ORG: Final = "the org"


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """Where a component stands; `file` is empty when the project has none."""

    state: SyncState
    type: str
    full_name: str
    file: str


@dataclass(frozen=True, slots=True)
class Status:
    """The components that differ, and how many there are on either side."""

    components: tuple[ComponentStatus, ...]
    total: int


async def status(connection: Connection, project: Project) -> Status:
    """Tells what changed in the project, in the org, or in both since the last deploy or retrieve.

    Raises:
        OrgError: the org cannot be reached or refuses a call.
        InvalidMetadata: two files have the same full name.
        ProjectError: a file cannot be read.
    """
    sides = await _look(connection, project)
    return Status(tuple(_component_status(each) for each in sides if each.state is not SyncState.SAME), len(sides))


async def find_undeployed(connection: Connection, project: Project, tests: Iterable[AgentTest]) -> list[str]:
    """Lists those of the tests in the org whose file was changed here and differs from the org's.

    The org is asked only when a file is not what both sides had last; raises like `status`.
    """
    wanted = {each.key.casefold() for each in tests}
    ours = [each for each in find_components(project) if each.key.casefold() in wanted]
    sides: list[Sides] = []
    with tracking_of(project, connection) as tracking:
        for kind in dict.fromkeys(each.type for each in ours):
            base = tracking.load(kind.name)
            changed = [each for each in ours if each.type == kind and _is_changed(each, base)]
            if changed:
                only = [each.full_name for each in changed]
                sides += await look(connection, tracking, kind, changed, only=only)
    return [each.full_name for each in sides if each.listed and each.state is not SyncState.SAME]


async def diff(connection: Connection, project: Project, names: Sequence[str] = ()) -> list[Difference]:
    """Compares the project's definitions (after) with the org's (before); those with the same bytes are left out.

    Args:
        connection: the org.
        project: whose definitions are compared.
        names: full names of those to compare; all without any.

    Raises:
        NotFound: neither side has a definition of that name.
        OrgError: the org cannot be reached or refuses a call.
        InvalidMetadata: two files have the same full name.
        ProjectError: a file cannot be read.
    """
    sides = await _look(connection, project)
    wanted = {name.casefold() for name in names}
    _check_names(names, [each.full_name for each in sides])
    chosen = [each for each in sides if not wanted or each.full_name.casefold() in wanted]
    differing = [each for each in chosen if each.state is not SyncState.SAME]
    contents: dict[tuple[MetadataType, str], bytes] = {}
    for kind in dict.fromkeys(each.type for each in differing):
        there = [each.full_name for each in differing if each.type == kind and each.local and each.listed]
        contents |= {(kind, each.full_name): each.content for each in await fetch(connection, kind, there)}
    return [_difference(each, contents.get((each.type, each.full_name))) for each in differing]


def diff_files(before: Path, after: Path) -> Difference | None:
    """Compares two definition files; None when they have the same bytes.

    Raises:
        NotFound: a file does not exist.
    """
    return compare_contents((shown(before), bytes_of(before)), (shown(after), bytes_of(after)))


def compare_contents(before: tuple[str, bytes], after: tuple[str, bytes]) -> Difference | None:
    """Compares two versions of a definition, each with what it is called; None when they have the same bytes."""
    return None if before[1] == after[1] else _compared("", before, after)


async def _look(connection: Connection, project: Project) -> list[Sides]:
    components = find_components(project)
    sides: list[Sides] = []
    with tracking_of(project, connection) as tracking:
        for kind in types_at(connection.api_version):
            ours = [each for each in components if each.type == kind]
            sides += await look(connection, tracking, kind, ours)
    return sides


def _is_changed(component: Component, base: Mapping[str, Synced]) -> bool:
    known = base.get(component.full_name.casefold())
    return known is None or known.sha256 != hash_of(read_file(component.path))


def _component_status(sides: Sides) -> ComponentStatus:
    file = shown(sides.local.path) if sides.local else ""
    return ComponentStatus(sides.state, sides.type.name, sides.full_name, file)


def _check_names(names: Iterable[str], known: Sequence[str]) -> None:
    folded = {name.casefold(): name for name in known}
    for name in names:
        if name.casefold() not in folded:
            near = get_close_matches(name.casefold(), folded, n=1)
            actions = [f"Did you mean {folded[near[0]]}?"] if near else []
            raise NotFound(f"neither the project nor the org has a definition {name!r}", actions=actions)


def _difference(sides: Sides, content: bytes | None) -> Difference:
    if sides.local is None:
        return Difference(sides.full_name, _ORG, None)
    file = shown(sides.local.path)
    if content is None:
        return Difference(sides.full_name, None, file)
    return _compared(sides.full_name, (_ORG, content), (file, read_file(sides.local.path)))


def _compared(name: str, before: tuple[str, bytes], after: tuple[str, bytes]) -> Difference:
    try:
        old, new = (read_definition(read_xml(data, label=label)) for label, data in (before, after))
    except InvalidMetadata as error:
        return Difference(name, before[0], after[0], problems=error.problems)
    return Difference(name, before[0], after[0], compare(old, new))
