"""Rules about the definitions of a project together: what no single file can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.problem import Location

__all__ = ["NamedFile", "find_names_twice"]


class NamedFile(NamedTuple):
    """A definition's file as the others see it: its component, its `<name>`, and where that stands."""

    component: str
    name: str
    location: Location


def find_names_twice(files: Sequence[NamedFile]) -> Iterator[tuple[NamedFile, str, str]]:
    """`name` is unique in the project, as it must be in an org.

    Definitions of different types may have the same.
    """
    first: dict[tuple[str, str], NamedFile] = {}
    for file in files:
        other = first.setdefault((file.component.partition(":")[0], file.name), file)
        if other.component.casefold() != file.component.casefold():
            message = f"the name {file.name!r} is taken by {other.location.path}"
            yield file, message, "Give the test a name of its own."
