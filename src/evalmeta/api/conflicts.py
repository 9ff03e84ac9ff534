"""Conflicts: a deploy or retrieve that would overwrite somebody's change is refused before anything happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.metadata import shown
from evalmeta.api.sides import find_newer_in_org
from evalmeta.errors import Conflict
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import TYPES
from evalmeta.model.sync import SyncState, hash_of
from evalmeta.package.files import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from evalmeta.api.sides import Fetched, Sides
    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component
    from evalmeta.model.registry import MetadataType
    from evalmeta.store.tracking import Tracking
    from evalmeta.wire.messages import FileProperties

__all__ = ["refuse_changed_files", "refuse_newer_in_org"]

_LAST = "since the last deploy or retrieve"


async def refuse_newer_in_org(connection: Connection, tracking: Tracking, components: Iterable[Component]) -> None:
    """Lets a deployment pass unless it would overwrite what was changed in the org.

    Raises:
        Conflict: with one problem for each such component.
        OrgError: the org cannot be reached or refuses a call.
    """
    newer = await find_newer_in_org(connection, tracking, components)
    problems = [_newer(each, each.local.path) for each in newer if each.local]
    if problems:
        changed_here = any(each.state is SyncState.CONFLICT for each in newer)
        raise Conflict(
            f"{_count(problems)} changed in the org {_LAST}; nothing was sent",
            problems=problems,
            actions=[
                "See what differs: evalmeta diff",
                f"Take the org's: evalmeta retrieve{_forced(is_conflict=changed_here)}",
                "Overwrite the org's: evalmeta deploy --ignore-conflicts",
            ],
        )


def refuse_changed_files(tracking: Tracking, incoming: Iterable[tuple[Fetched, Path]]) -> None:
    """Lets a retrieve pass unless it would overwrite what was changed in the project.

    Args:
        tracking: what the project remembers of the org.
        incoming: the components that would change a file, each with that file.

    Raises:
        Conflict: with one problem for each such file.
    """
    changed = list(_changed(tracking, incoming))
    if changed:
        problems = [problem for problem, _ in changed]
        changed_there = any(is_conflict for _, is_conflict in changed)
        raise Conflict(
            f"{_count(problems)} changed here and not deployed; nothing was written",
            problems=problems,
            actions=[
                "See what differs: evalmeta diff",
                f"Keep yours: evalmeta deploy{_forced(is_conflict=changed_there)}",
                "Take the org's: evalmeta retrieve --ignore-conflicts",
            ],
        )


def _changed(tracking: Tracking, incoming: Iterable[tuple[Fetched, Path]]) -> Iterator[tuple[Problem, bool]]:
    """Yields what is wrong with each file, and whether the org's component was changed, too."""
    known = {row.name: tracking.load(row.name) for row in TYPES}
    for fetched, path in incoming:
        base = known[fetched.type.name].get(fetched.full_name.casefold())
        if base is None:
            what = "was never deployed or retrieved from here"
        elif hash_of(read_file(path)) != base.sha256:
            what = f"was changed here {_LAST}"
        else:
            continue
        is_conflict = base is not None and hash_of(fetched.content) != base.sha256
        yield _problem(fetched.type, fetched.full_name, path, f"{what}, and the org's is another"), is_conflict


def _forced(*, is_conflict: bool) -> str:
    # Changed on both sides, the other command would refuse as well.
    return " --ignore-conflicts" if is_conflict else ""


def _newer(sides: Sides, path: Path) -> Problem:
    where = "here and in the org" if sides.state is SyncState.CONFLICT else "in the org"
    return _problem(sides.type, sides.full_name, path, f"was changed {where} {_LAST}{_by_whom(sides.listed)}")


def _by_whom(listed: FileProperties | None) -> str:
    if listed is None:
        return ""
    when = listed.last_modified_date[:19].replace("T", " ")
    who = listed.last_modified_by_name
    return f" ({when} UTC{', by ' if who else ''}{who})"


def _problem(kind: MetadataType, full_name: str, path: Path, what: str) -> Problem:
    component = f"{kind.name}:{full_name}"
    return Problem("conflict", Severity.ERROR, Location(shown(path)), f"{full_name} {what}", component=component)


def _count(problems: Sequence[Problem]) -> str:
    return "1 component was" if len(problems) == 1 else f"{len(problems):,} components were"
