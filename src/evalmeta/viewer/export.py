"""The pages as files in a folder, which open from disk and which CI can publish."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import ProjectError, UsageError
from evalmeta.org.lease import is_free, new_worker, working
from evalmeta.package.files import shown
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease
from evalmeta.viewer.pages import Page, Source, file_name, given
from evalmeta.viewer.routes import PAGES, SECTION_OF, render, static_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from evalmeta.package.project import Project


# In the folder: the names of the files that evalmeta wrote.
_MARKER: Final = ".evalmeta-view"
# In a folder that is not in its place yet: the process that writes it.
_WRITER: Final = ".evalmeta-writer"
_OURS: Final = re.compile(r"(?:static/)?[A-Za-z][\w.-]*")


class ExportFolder:
    """The files of an export while they are written."""

    def __init__(self, place: Path, beside: Path) -> None:
        self._place = place
        self._beside = beside
        self._names: list[str] = []

    def write(self, name: str, content: bytes) -> None:
        """Write a file; raise ProjectError with the name that it would have."""
        try:
            (self._beside / name).write_bytes(content)
        except OSError as error:
            raise _unwritable(self._place / name, error, place=self._place) from None
        self._names.append(name)

    def finish(self) -> None:
        """Put the files into their place: the folder as a whole, or each file if files of others are there too."""
        before = _names_in(self._place)
        names = tuple(self._names)
        self.write(_MARKER, "\n".join(names).encode())
        if not (_may_be_replaced(self._place, before) and _replace_folder(self._place, self._beside)):
            self._replace_files(before, names)

    def _replace_files(self, before: set[str], names: tuple[str, ...]) -> None:
        """Move the files one by one; nothing is written any more, so that a full disk is no danger."""
        # The next export then knows the files of both, should this one be killed meanwhile.
        both = self._beside / "both"
        both.write_text("\n".join(before.union(names)), encoding="utf-8")
        (self._place / "static").mkdir(parents=True, exist_ok=True)
        both.replace(self._place / _MARKER)
        for name in (*names, _MARKER):
            (self._beside / name).replace(self._place / name)
        for name in before.difference(names):
            (self._place / name).unlink(missing_ok=True)


@contextmanager
def export_folder(folder: Path) -> Iterator[ExportFolder]:
    """Yield a new folder whose files replace those of an earlier export at the end of the block.

    If the block raises, the earlier ones stay as they are. Raise UsageError if the folder has files, but none of an
    export, and ProjectError if a file cannot be written.
    """
    place = Path(os.path.realpath(folder))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        if place.exists() and not (place / _MARKER).exists() and any(place.iterdir()):
            actions = ["Choose an empty or new folder."]
            raise UsageError(f"{folder} has files that evalmeta did not write", actions=actions)
        # A folder that is mounted there cannot be moved, and the one above it may belong to another user.
        is_fixed = place.exists() and (os.path.ismount(place) or not os.access(place.parent, os.W_OK))
        beside = (place if is_fixed else place.parent) / f"{_prefix(place)}{secrets.token_hex(4)}"
        worker = new_worker()
        with working(worker):
            try:
                beside.mkdir()
                (beside / _WRITER).write_text(worker, encoding="utf-8")
                (beside / "static").mkdir()
                written = ExportFolder(place, beside)
                yield written
                written.finish()
            finally:
                shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise _unwritable(Path(error.filename or place), error, place=place) from None


def _prefix(place: Path) -> str:
    return f".{place.name}.evalmeta-"


def _may_be_replaced(place: Path, names: set[str]) -> bool:
    """Return whether a folder has only files of an export, and is no mount and not the current one."""
    if not place.exists():
        return True
    if os.path.ismount(place) or Path.cwd().is_relative_to(place):
        return False
    ours = {place / name for name in (_MARKER, _WRITER, "static", *names)}
    return all(path in ours for path in (*place.iterdir(), *place.glob("static/*")))


def _replace_folder(place: Path, beside: Path) -> bool:
    """Move a folder to its place; return False, and change nothing, if that is not possible."""
    old = place.parent / f"{_prefix(place)}old-{secrets.token_hex(4)}"
    try:
        if place.exists():
            beside.chmod(place.stat().st_mode & 0o777)
            place.rename(old)
        beside.rename(place)
    except OSError:
        return False
    finally:
        # Also if a signal came between the two.
        if old.exists() and not place.exists():
            old.rename(place)
    (place / _WRITER).unlink()
    shutil.rmtree(old, ignore_errors=True)
    return True


def _sweep(place: Path) -> None:
    """Delete what exports that were killed left behind; put a whole one into its place if none is there."""
    folders = [path for parent in (place.parent, place) if parent.is_dir() for path in parent.iterdir()]
    for folder in folders:
        if not folder.name.startswith(_prefix(place)) or folder.is_symlink():
            continue
        with suppress(OSError):
            if _is_abandoned(folder) and (folder / _MARKER).exists() and not place.exists():
                folder.rename(place)
                (place / _WRITER).unlink(missing_ok=True)
            elif _is_abandoned(folder):
                shutil.rmtree(folder)


def _is_abandoned(folder: Path) -> bool:
    """Return whether the process that wrote a folder has ended; an earlier export that was moved away has no writer."""
    try:
        worker = (folder / _WRITER).read_text(encoding="utf-8")
    except FileNotFoundError:
        return (folder / _MARKER).exists()
    # On another machine, a process counts as alive while it writes.
    until = folder.stat().st_mtime + limits.RUN_LEASE_SECONDS
    return worker.count(":") > 1 and is_free(Lease(worker, until))


def _names_in(place: Path) -> set[str]:
    """Return the names of the files that an earlier export wrote."""
    try:
        names = (place / _MARKER).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return set()
    return {name for name in names if _OURS.fullmatch(name)}


def _unwritable(path: Path, error: OSError, *, place: Path) -> ProjectError:
    end = f"; {shown(place)} is as it was before" if place.exists() else ""
    return ProjectError(
        f"{shown(path)}: cannot be written: {error.strerror}{end}",
        actions=["Make room, or choose another folder, and export again."],
    )


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
    with export_folder(folder) as files, open_database(project.store) as database:
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
