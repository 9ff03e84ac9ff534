"""The pages as files in a folder, which open from disk and which CI can publish."""

from __future__ import annotations

import shutil
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import NotFound, UsageError
from evalmeta.store.database import open_database
from evalmeta.viewer.links import file_name, given
from evalmeta.viewer.pages import Source
from evalmeta.viewer.rendering import render, static_files
from evalmeta.viewer.routes import PAGES, SECTION_OF

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

_MARKER: Final = ".evalmeta-view"
# How many pages of each kind are written; pages that are not here are written without a limit.
_LIMITS: Final = {"run": limits.MAX_EXPORTED_RUNS, "suite": limits.MAX_EXPORTED_RUNS, "case": limits.MAX_EXPORTED_CASES}
_MAX_PAGES: Final = 10_000


class Exported(NamedTuple):
    """What was written: the number of pages, and of links to pages that were left out, by kind of page."""

    pages: int
    left_out: Counter[str]


class _Queue:
    """The addresses of pages as names of files; every address that a page contains is written later."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.waiting: deque[tuple[str, dict[str, str]]] = deque()
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def __call__(self, page: str, **parameters: object) -> str:
        if page not in PAGES:
            return ""
        values = given(parameters)
        name = file_name(page, values)
        if name in self._names:
            return self._names[name]
        full = self._counts[page] >= _LIMITS.get(page, _MAX_PAGES) or self._counts.total() >= _MAX_PAGES
        self._names[name] = "" if full else name
        if full:
            self.left_out[page] += 1
            return ""
        self._counts[page] += 1
        self.waiting.append((page, values))
        return name

    def static(self, name: str) -> str:
        return f"static/{name}"


def export(project: Project, folder: Path) -> Exported:
    """Write all pages that can be reached from the first one into a folder; return what was written.

    Pages that an earlier export wrote there are deleted first. A page that cannot be made is left out.

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
            row = PAGES[name]
            try:
                page = row.make(source, query)
            except NotFound:
                continue
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
