"""Pages as values: what a page is made from, what it shows, and its address on a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.model.login import ADMIN, User

if TYPE_CHECKING:
    from evalmeta.package.project import Project
    from evalmeta.store.database import Database


ROOT: Final = "/view"
_MAX_DIGITS: Final = 15
_PARAMETER: Final = re.compile(r"\{(\w+)\}")

Query: TypeAlias = Mapping[str, str]
"""The parameters of a page: those of its path and those after the question mark."""


@dataclass(frozen=True, slots=True)
class Source:
    """What pages show.

    Attributes:
        project: the project whose store is shown.
        database: its store; open only while one page is made.
        user: the user who looks at the page, whose rights count.
        can_change: whether pages offer buttons that change something; those of files and of archives do not.
        rows: the number of runs on a page of them.
    """

    project: Project
    database: Database
    user: User = ADMIN
    can_change: bool = True
    rows: int = field(default_factory=lambda: limits.VIEW_ROWS)


@dataclass(frozen=True, slots=True)
class Page:
    """A page before it is rendered.

    Attributes:
        template: the file in `templates`.
        title: the text in the browser's tab.
        values: the variables of the template.
        command: the command that shows the same in a terminal; may be empty.
        command_title: what the command does.
        live: whether the page is loaded again when runs change.
    """

    template: str
    title: str
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    command: str = ""
    command_title: str = "The same in a terminal"
    live: bool = False


class Target(NamedTuple):
    """A page to show next, with its parameters."""

    page: str
    parameters: Mapping[str, object]


MakePage: TypeAlias = Callable[[Source, Query], Page]


Action: TypeAlias = Callable[[Source, Query], Target]
"""Changes something, and returns the page to show next."""


def text_of(query: Query, name: str) -> str:
    """Return a parameter without spaces around it; empty if it is missing. Long texts are cut."""
    return query.get(name, "").strip()[: limits.MAX_SEARCH_CHARS]


def number_of(query: Query, name: str, *, otherwise: int | None = None) -> int:
    """Return a parameter that is a whole number of at most 15 digits; NotFound if it is not and has no default."""
    text = query.get(name, "")
    if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    if otherwise is None:
        raise NotFound(f"{text or 'nothing'!r} is not a valid number")
    return otherwise


class Links(Protocol):
    """Make the addresses that a page contains."""

    def __call__(self, page: str, **parameters: object) -> str:
        """Return the address of a page; empty if it cannot be reached from here."""
        ...

    def static(self, name: str) -> str:
        """Return the address of a static file."""
        ...


class ServedLinks:
    """Addresses on a server; `paths` are the patterns of the pages' paths by name."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def __call__(self, page: str, **parameters: object) -> str:
        """Return `/view/PATH?PARAMETERS`; parameters that are empty or None are left out."""
        values = given(parameters)
        if page not in self._paths:
            return ""
        path = _PARAMETER.sub(lambda match: quote(values.pop(match[1]), safe=""), self._paths[page])
        return ROOT + path + (f"?{urlencode(values)}" if values else "")

    def static(self, name: str) -> str:
        """Return `/view/static/NAME`."""
        return f"{ROOT}/static/{name}"


def given(parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters that have a value, as texts."""
    return {name: str(value) for name, value in parameters.items() if value is not None and value != ""}
