"""The pages as files in a folder, which open from disk and which CI can publish."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.store.database import open_database
from evalmeta.viewer.export_folder import export_folder
from evalmeta.viewer.pages import Page, Source, file_name, given
from evalmeta.viewer.routes import PAGES, SECTION_OF, render, static_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from evalmeta.package.project import Project

# How many of each kind are written, by the parameter that names them; pages that are not here have no limit.
_LIMITS: Final = {
    "run": ("run", limits.MAX_EXPORTED_RUNS),
    "suite": ("suite", limits.MAX_EXPORTED_RUNS),
    "compare": ("after", limits.MAX_EXPORTED_COMPARISONS),
    "case": ("", limits.MAX_EXPORTED_CASES),
}
# A case is one file, whatever list leads to it.
_CASE: Final = ("run", "org", "number", "iteration")
# The page that leads to a change of a file.
_CHANGING: Final = "acceptance"
_MAX_PAGES: Final = 10_000


class Exported(NamedTuple):
    """What was written: the number of pages, and of the runs and cases that have none because of the limits."""

    pages: int
    left_out_runs: int
    left_out_cases: int


class _Queue:
    """The addresses of pages as names of files; every address that a page contains is written later."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[str, dict[str, str]]] = deque()
        self._names: dict[str, str] = {}
        self._things: dict[str, set[str]] = {}
        self._left_out: dict[str, set[str]] = {}

    def __call__(self, page: str, **parameters: object) -> str:
        if page not in PAGES or page == _CHANGING:
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

    def left_out(self, page: str) -> int:
        """Return the number of things of a kind that have no page."""
        return len(self._left_out.get(page, ()))

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


def export(project: Project, folder: Path, *, on_progress: Callable[[int], None] = lambda _: None) -> Exported:
    """Write all pages that can be reached from the first one into a folder; return what was written.

    The pages replace those that an earlier export wrote there when all of them have been written. A page that cannot be
    made says why. `on_progress` is called with the number of pages so far. A folder with other files is a UsageError.
    """
    links, written = _Queue(), 0
    with export_folder(folder) as files, open_database(project.state_dir) as database:
        for name, path in static_files().items():
            files.write(f"static/{name}", path.read_bytes())
        source = Source(project, database, can_change=False)
        links("tests")
        while links.waiting:
            name, query = links.waiting.popleft()
            try:
                page = PAGES[name].make(source, query)
            except UsageError as error:
                page = Page("error.html.j2", "Not shown", {"message": str(error), "actions": map(str, error.actions)})
            html = render(page, links, source, section=SECTION_OF[name], served=False)
            files.write(file_name(name, query), html.encode())
            written += 1
            on_progress(written)
    return Exported(written, links.left_out("run"), links.left_out("case"))
