"""The pages as files in a folder, which open from disk and which CI can publish."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import shutil
import time
import zlib
from collections import Counter, deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlencode

from evalmeta import limits
from evalmeta.errors import ProjectError, UsageError
from evalmeta.org.lease import is_free, new_worker, working
from evalmeta.package.files import shown
from evalmeta.report.html import source_hash, time_text
from evalmeta.report.report import STATE_WORDS
from evalmeta.report.text import SHOWN_CHARS, count, one_line
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import RunFilter, count_runs, run_page
from evalmeta.store.runs import Lease
from evalmeta.viewer.changes import again_command
from evalmeta.viewer.exported_cases import export_cases
from evalmeta.viewer.pages import Page, Source, given
from evalmeta.viewer.routes import PAGES, SECTION_OF, TEMPLATES, Inline, render, static_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project
    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.exported_cases import CasePlace, ExportedCases


# In the folder: the names of the files that evalmeta wrote.
_MARKER: Final = ".evalmeta-view"
# In a folder that is not in its place yet: the process that writes it.
_WRITER: Final = ".evalmeta-writer"
_OLD_FOLDER: Final = "static"
_OURS: Final = re.compile(r"(?:static/)?[A-Za-z][\w.-]*")


class ExportFolder:
    """The files of an export while they are written."""

    def __init__(self, place: Path, beside: Path) -> None:
        self._place = place
        self._beside = beside
        self._names: list[str] = []

    def write(self, name: str, content: bytes) -> None:
        """Write a file; raise ProjectError with the name that it would have."""
        path = self._beside / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
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
        self._place.mkdir(parents=True, exist_ok=True)
        both.replace(self._place / _MARKER)
        for name in (*names, _MARKER):
            (self._place / name).parent.mkdir(exist_ok=True)
            (self._beside / name).replace(self._place / name)
        for name in before.difference(names):
            (self._place / name).unlink(missing_ok=True)
        with suppress(OSError):
            # Exports of earlier versions had this folder; it stays if others have files there.
            (self._place / _OLD_FOLDER).rmdir()


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
    ours = {place / name for name in (_MARKER, _WRITER, _OLD_FOLDER, *names)}
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


# The pages that the server's templates draw, with the parameters that an export keeps of their addresses.
_DRAWN: Final[Mapping[str, tuple[str, ...]]] = {
    "changes": (),
    "tests": (),
    "runs": (),
    "run": ("run", "org"),
    "suite": ("suite",),
    "matrix": ("suite",),
    "compare": ("after", "org", "before", "before_org"),
    "trends": ("test",),
    "coverage": (),
    "org": (),
    "job": ("job",),
}
_CASE: Final = ("run", "org", "number", "iteration")
_FIRST: Final = "changes"
_PART: Final = Inline()


class Exported(NamedTuple):
    """What was written: the number of pages, and of the runs and case results that were left out."""

    pages: int
    left_out_runs: int
    left_out_cases: int


class _Links:
    """The addresses of pages in an export, which follow `#/`; a page that an address leads to is drawn later."""

    def __init__(self, runs: Sequence[ListedRun], cases: Collection[CasePlace]) -> None:
        self.waiting: deque[tuple[str, str, dict[str, str]]] = deque()
        self._runs = {(run.org_url, run.id) for run in runs}
        self._suites = {run.suite for run in runs}
        self._compared = _compared(runs)
        self._cases = cases
        self._addresses: set[str] = set()
        self._counts: Counter[str] = Counter()

    def __call__(self, page: str, **parameters: object) -> str:
        values = given(parameters)
        if page == "case":
            return _address(page, values, _CASE) if self._has_case(values) else ""
        if "after" in values and page != "compare":
            # A list has all its rows.
            return ""
        if page == "runs" and "test" in values:
            return _address(page, {"text": values["test"]}, ("text",))
        if page not in _DRAWN or not self._has(page, values):
            return ""
        address = _address(page, values, _DRAWN[page])
        if address not in self._addresses:
            most = limits.MAX_EXPORTED_COMPARISONS if page == "compare" else limits.MAX_EXPORTED_RUNS
            if self._counts[page] == most:
                return ""
            self._counts[page] += 1
            self._addresses.add(address)
            self.waiting.append((address, page, values))
        return address

    def static(self, name: str) -> str:
        """Return a static file as an address that contains it."""
        return f"data:image/svg+xml,{quote(static_text(name))}"

    def _has(self, page: str, values: Mapping[str, str]) -> bool:
        if page == "run":
            return (values.get("org", ""), values["run"]) in self._runs
        if page == "compare":
            return "after" not in values or values["after"] in self._compared
        return page not in {"suite", "matrix"} or values.get("suite") in self._suites

    def _has_case(self, values: Mapping[str, str]) -> bool:
        place = values.get("org", ""), values["run"], int(values["number"]), int(values.get("iteration", 1))
        return place in self._cases


def _compared(runs: Iterable[ListedRun]) -> set[str]:
    """Return the newest run of each test that has an older one, but not those that asked suspect cases again."""
    of_test: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        if not run.confirms:
            of_test.setdefault((run.org_url, run.definition), []).append(run.id)
    return {newest for newest, *older in of_test.values() if older}


def _address(page: str, values: Mapping[str, str], names: Iterable[str]) -> str:
    query = urlencode({name: values[name] for name in names if name in values})
    return f"#/{page}{'?' if query else ''}{query}"


def export(project: Project, folder: Path) -> Exported:
    """Write `index.html`, which shows what changed, and `data.js`, from which its script shows the other pages.

    They replace what an earlier export wrote there when both have been written. Beyond `limits.MAX_EXPORTED_RUNS` and
    the other limits, runs and case results are left out, and the page says so. A page that cannot be made says why.
    A folder with other files is a UsageError.
    """
    with export_folder(folder) as files, open_database(project.store) as database:
        source = Source(project, database, can_change=False, rows=limits.MAX_EXPORTED_RUNS)
        runs = run_page(database, RunFilter(), limit=limits.MAX_EXPORTED_RUNS).runs
        cases = export_cases(source, runs)
        links = _Links(runs, cases.places)
        left_out_runs = count_runs(database) - len(runs)
        # A run in progress may have got results since it was read.
        written = Exported(0, left_out_runs, max(0, sum(run.done for run in runs) - len(cases.places)))
        note = _note(len(runs), len(cases.places), written)
        index = _make(_FIRST, source, {})
        pages = dict(_draw_all(source, links, index))
        data = _data(pages, runs, cases)
        files.write("data.js", data)
        files.write("index.html", _index(index, links, source, data, note).encode())
    return written._replace(pages=1 + len(pages) + len(cases.places))


def _draw_all(source: Source, links: _Links, index: Page) -> Iterator[tuple[str, JsonObject]]:
    """Yield the pages that can be reached from the first one by their addresses."""
    links(_FIRST)
    render(index, links, source, inline=_PART)
    for section in dict.fromkeys(SECTION_OF.values()):
        links(section)
    while links.waiting:
        address, name, query = links.waiting.popleft()
        if name == _FIRST:
            continue
        page = _make(name, source, query)
        yield (
            address,
            {
                "title": page.title,
                "section": SECTION_OF[name],
                "command": page.command,
                "commandTitle": page.command_title,
                "html": render(page, links, source, section=SECTION_OF[name], inline=_PART),
            },
        )


def _make(name: str, source: Source, query: Mapping[str, str]) -> Page:
    try:
        return PAGES[name].make(source, query)
    except UsageError as error:
        return Page("error.html.j2", "Not shown", {"message": str(error), "actions": map(str, error.actions)})


def _data(pages: Mapping[str, JsonObject], runs: Sequence[ListedRun], cases: ExportedCases) -> bytes:
    """Return the script with the data of all pages: JSON, deflated, as base64."""
    listed = [
        {
            "id": run.id,
            "org": run.org_url,
            "test": one_line(run.definition),
            "agent": one_line(run.subject),
            "address": _address("run", given({"run": run.id, "org": run.org_url}), _DRAWN["run"]),
            "started": run.started,
            "done": run.done,
            "isAgain": bool(run.confirms),
            "again": one_line(again_command(run.definition), chars=SHOWN_CHARS),
        }
        for run in runs
    ]
    known = json.dumps({"words": STATE_WORDS, "pages": pages, "runs": listed})
    # The texts of cases are JSON already.
    text = f'{known[:-1]},"cases":{cases.json}}}'
    return b'const DATA = "%b";\n' % base64.b64encode(zlib.compress(text.encode()))


def _index(page: Page, links: _Links, source: Source, data: bytes, note: str) -> str:
    style = "".join(map(static_text, ("parts.css", "view.css")))
    script = static_text("view.js") + (TEMPLATES / "export.js").read_text(encoding="utf-8")
    # Browsers check hashes of scripts from elsewhere only over HTTP. Nobody knows this one before the data is complete.
    nonce = hashlib.sha256(data).hexdigest()
    policy = (
        f"default-src 'none'; script-src '{source_hash(script)}' 'nonce-{nonce}'; style-src '{source_hash(style)}'; "
        "img-src data:; form-action 'none'; base-uri 'none'"
    )
    inline = Inline(style, script, policy, nonce, note)
    return render(page, links, source, section=SECTION_OF[_FIRST], inline=inline)


def _note(runs: int, cases: int, written: Exported) -> str:
    """Return what an export contains and what it lacks."""
    left_out = [
        count(number, noun)
        for number, noun in ((written.left_out_runs, "older run"), (written.left_out_cases, "case result"))
        if number
    ]
    lacks = f"Left out to keep it small: {', '.join(left_out)}. " if left_out else ""
    return (
        f"Exported {time_text(time.time())}: {count(runs, 'run')} and {count(cases, 'case result')}. {lacks}"
        f"Texts of more than {SHOWN_CHARS:,} characters are cut."
    )
