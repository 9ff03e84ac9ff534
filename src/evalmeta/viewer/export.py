"""The pages as files in a folder, which open from disk and which CI can publish."""

from __future__ import annotations

import shutil
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.store.database import open_database
from evalmeta.viewer.links import file_name, given
from evalmeta.viewer.pages import Page, Source
from evalmeta.viewer.rendering import render, static_files
from evalmeta.viewer.routes import PAGES, SECTION_OF

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.package.project import Project

_MARKER: Final = ".evalmeta-view"
# How many of each kind are written, by the parameter that names them; pages that are not here have no limit.
_LIMITS: Final = {
    "run": ("run", limits.MAX_EXPORTED_RUNS),
    "suite": ("suite", limits.MAX_EXPORTED_RUNS),
    "case": ("", limits.MAX_EXPORTED_CASES),
}
# A case is one file, whatever list leads to it.
_CASE: Final = ("run", "org", "number", "iteration")
_MAX_PAGES: Final = 10_000


class Exported(NamedTuple):
    """What was written: the number of pages, and of links to pages that were left out, by kind of page."""

    pages: int
    left_out: Counter[str]


class _Queue:
    """The addresses of pages as names of files; every address that a page contains is written later."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[str, dict[str, str]]] = deque()
        self._names: dict[str, str] = {}
        self._things: dict[str, set[str]] = {}
        self._left_out: dict[str, set[str]] = {}

    def __call__(self, page: str, **parameters: object) -> str:
        if page not in PAGES:
            return ""
        values = given(parameters)
        if page == "case":
            values = {name: value for name, value in values.items() if name in _CASE}
        name = file_name(page, values)
        if name in self._names:
            return self._names[name]
        self._names[name] = name if self._has_room(page, values, name) else ""
        if self._names[name]:
            self.waiting.append((page, values))
        return self._names[name]

    @property
    def left_out(self) -> Counter[str]:
        """Return the number of runs, suites and cases without a page."""
        return Counter({page: len(things) for page, things in self._left_out.items()})

    def _has_room(self, page: str, values: Mapping[str, str], name: str) -> bool:
        parameter, most = _LIMITS.get(page, ("", _MAX_PAGES))
        thing, known = values.get(parameter, name), self._things.setdefault(page, set())
        if (len(known) < most or thing in known) and len(self._names) < _MAX_PAGES:
            known.add(thing)
            return True
        self._left_out.setdefault(page, set()).add(thing)
        return False

    def static(self, name: str) -> str:
        return f"static/{name}"


def export(project: Project, folder: Path) -> Exported:
    """Write all pages that can be reached from the first one into a folder; return what was written.

    Pages that an earlier export wrote there are deleted first. A page that cannot be made says why.

    Raises:
        UsageError: the folder has other files.
        StoreError: the store cannot be used.
        OSError: a file cannot be written.
    """
    _clear(folder)
    links, written = _Queue(), 0
    with open_database(project.state_dir) as database:
        source = Source(project, database, can_change=False)
        links("tests")
        while links.waiting:
            name, query = links.waiting.popleft()
            try:
                page = PAGES[name].make(source, query)
            except UsageError as error:
                page = Page("error.html.j2", "Not shown", {"message": str(error), "actions": map(str, error.actions)})
            html = render(page, links, source, section=SECTION_OF[name], served=False)
            (folder / file_name(name, query)).write_text(html, encoding="utf-8")
            written += 1
    return Exported(written, links.left_out)


def _clear(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARKER).exists():
        raise UsageError(f"{folder} has files that evalmeta did not write", actions=["Choose an empty or new folder."])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARKER).write_text("Written by `evalmeta view --export`, which deletes this folder first.\n")
    (folder / "static").mkdir()
    for name, path in static_files().items():
        shutil.copyfile(path, folder / "static" / name)
