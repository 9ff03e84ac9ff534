"""`Type:Name` entries, as `--metadata` takes them: `Type:Name`, `Type:Order_*`, or `Type` for all of it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from fnmatch import translate
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import NotFound, UsageError
from evalmeta.model.manifest import WILDCARD
from evalmeta.model.registry import TYPES, metadata_type, nearest_type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalmeta.model.component import Component
    from evalmeta.model.registry import MetadataType

__all__ = ["MemberPattern", "components_named", "match_names", "parse_members"]

_WILD: Final = re.compile(r"[*?]")
# Looking for the nearest name costs far more than looking for the name.
_HINTED: Final = 25


class MemberPattern(NamedTuple):
    """A type and a full name, in which `*` and `?` stand for any characters and for any one."""

    type: MetadataType
    name: str

    def __str__(self) -> str:
        """Gives the entry as it is written."""
        return f"{self.type.name}:{self.name}"

    @property
    def is_whole_type(self) -> bool:
        """Says whether every component of the type is meant."""
        return self.name == WILDCARD

    @property
    def is_wild(self) -> bool:
        """Says whether the name stands for any number of components."""
        return _WILD.search(self.name) is not None


def parse_members(entries: Iterable[str]) -> tuple[MemberPattern, ...]:
    """Reads entries, each once.

    Raises:
        UsageError: an entry has no type, or a colon and no name.
        NotFound: evalmeta does not handle a type; the nearest one is named.
    """
    return tuple(dict.fromkeys(_parse(entry) for entry in entries))


def match_names(patterns: Sequence[MemberPattern], names: Mapping[str, Sequence[str]], *, where: str) -> set[str]:
    """Gives the keys (`Type:Name`) that patterns select.

    Args:
        patterns: what is wanted.
        names: full names by type.
        where: who has the names, as messages call it: `the project`.

    Raises:
        NotFound: a pattern matches nothing; all such patterns are listed, with the nearest names.
    """
    selected: set[str] = set()
    missing: list[MemberPattern] = []
    for pattern in patterns:
        found = _matching(pattern, names.get(pattern.type.name, ()))
        selected.update(f"{pattern.type.name}:{name}" for name in found)
        if not found:
            missing.append(pattern)
    if missing:
        raise _not_found(missing, names, where)
    return selected


def components_named(
    components: Sequence[Component], patterns: Sequence[MemberPattern], *, where: str = "the project"
) -> tuple[Component, ...]:
    """Gives the components that patterns select, in the order they came; `where` is as for `match_names`.

    Raises:
        NotFound: as `match_names`.
    """
    names: dict[str, list[str]] = {}
    for component in components:
        names.setdefault(component.type.name, []).append(component.full_name)
    selected = match_names(patterns, names, where=where)
    return tuple(each for each in components if each.key in selected)


def _parse(entry: str) -> MemberPattern:
    type_name, colon, name = (part.strip() for part in entry.partition(":"))
    if not type_name or (colon and not name):
        raise UsageError(
            f"--metadata {entry!r} is neither Type nor Type:Name.", actions=(f"Write it as {TYPES[0].name}:Full_Name.",)
        )
    row = metadata_type(type_name)
    if row is None:
        near = nearest_type_name(type_name)
        hints = [f"Did you mean {near}?" if near else f"Known types: {', '.join(each.name for each in TYPES)}."]
        if not (near or colon):
            hints.insert(0, f"Name a component with its type: {TYPES[0].name}:{type_name}")
        raise NotFound(f"evalmeta does not handle the type {type_name!r}.", actions=hints)
    return MemberPattern(row, name or WILDCARD)


def _matching(pattern: MemberPattern, names: Sequence[str]) -> list[str]:
    if not pattern.is_wild:
        return [name for name in names if name == pattern.name]
    matches = re.compile(translate(pattern.name.replace("[", "[[]"))).match
    return [name for name in names if matches(name)]


def _not_found(missing: Sequence[MemberPattern], names: Mapping[str, Sequence[str]], where: str) -> NotFound:
    listed = ", ".join(str(pattern) for pattern in missing)
    hints = (_nearest(pattern, names.get(pattern.type.name, ())) for pattern in missing[:_HINTED])
    return NotFound(f"{where} has no {listed}.", actions=tuple(dict.fromkeys(filter(None, hints))))


def _nearest(pattern: MemberPattern, names: Sequence[str]) -> str:
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(pattern.name.casefold(), folded, n=1)
    return f"Did you mean {pattern.type.name}:{folded[near[0]]}?" if near else ""
