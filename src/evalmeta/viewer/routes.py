"""The pages and actions by name, with their paths below `/view`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.viewer.tests import tests_page

if TYPE_CHECKING:
    from evalmeta.viewer.pages import Action, MakePage


class PageRow(NamedTuple):
    """A page: its path, how it is made, and the section of the navigation to which it belongs."""

    path: str
    make: MakePage
    section: str


class ActionRow(NamedTuple):
    """Something that a form does: the path that it is sent to, and the function."""

    path: str
    do: Action


PAGES: Final[dict[str, PageRow]] = {"tests": PageRow("/", tests_page, "tests")}
ACTIONS: Final[dict[str, ActionRow]] = {}
SECTION_OF: Final = {name: row.section for name, row in PAGES.items()}
