"""Archives of runs: written from a project's store, and opened as stores of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.runs.finding import RunHandle, SuiteHandle, is_run_id, is_run_name, runs_named
from evalmeta.errors import ArchiveError, NotFound, Suggestion, UsageError
from evalmeta.org.lease import is_free, new_worker, working
from evalmeta.report.text import and_more
from evalmeta.store.archive_folders import ArchiveFolder, archive_folder, is_address
from evalmeta.store.archives import (
    FILES,
    MANIFEST,
    Manifest,
    RunKey,
    describe,
    fetch_results,
    load_archive,
    read_manifest,
    read_results,
    rows_of,
    write_archive,
)
from evalmeta.store.database import Database, open_database
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.retention import OldRun, delete_runs
from evalmeta.store.run_lists import ListedRun, RunFilter, find_listed, list_runs
from evalmeta.store.runs import Lease, Runs
from evalmeta.store.suites import Suites

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.package.project import Project

_SHOWN: Final = 3
_PREFIX: Final = "evalmeta-archive-"
_WORKER: Final = "worker"


class Archived(NamedTuple):
    """What archiving did.

    Attributes:
        folder: the archive, as messages name it.
        runs: the runs that were named.
        results: the number of results in the archive.
        bytes: the size of the file that has them.
        is_new: False if the folder had exactly this already.
        deleted: the runs that were then deleted from the store; `kept` are those that something needs, which says what.
    """

    folder: str
    runs: tuple[ListedRun, ...]
    results: int
    bytes: int
    is_new: bool
    deleted: tuple[OldRun, ...] = ()
    kept: tuple[OldRun, ...] = ()


def archive_runs(project: Project, names: Sequence[str], place: str, *, delete: bool = False) -> Archived:
    """Write runs that are over into an archive, read it back, and with `delete` delete them from the store.

    The names are ids or names of runs, the place is a folder or an address. What belongs to the runs goes with them:
    their tests, suites, people's judgements, and the runs that asked their suspect cases again. Raise UsageError if a
    run is not over, or if the folder has anything else than the same archive or one that was not completed.
    """
    _require_parquet()
    folder = archive_folder(place)
    with open_database(project.store) as database:
        named = _keys_of(project, database, names)
        runs = tuple(_finished(database, key) for key in named)
        again = dict.fromkeys(run for key in named for run in _that_confirm(database, key))
        others = [key for key in again if key not in named]
        for key in others:
            _finished(database, key)
        before = _existing(folder)
        with database.snapshot():
            is_new = before is None or not _has_all(folder, before, describe(database, named, others))
            manifest = before if before and not is_new else write_archive(database, folder, named, others)
        if is_new:
            _verify(folder, manifest)
        archived = Archived(folder.name, runs, manifest.results.rows, manifest.results.bytes, is_new)
        return _without(database, archived, manifest, [*named, *others]) if delete else archived


def _require_parquet() -> None:
    try:
        import pyarrow.parquet  # noqa: F401 - whether it can be imported
    except ImportError:
        raise UsageError(
            "archives require pyarrow, which is not installed", actions=["Run: pip install 'evalmeta[archive]'"]
        ) from None


def _keys_of(project: Project, database: Database, names: Sequence[str]) -> list[RunKey]:
    keys = dict[RunKey, None]()
    for name in names:
        if is_run_name(name):
            keys |= dict.fromkeys(RunKey(run.org_url, run.id) for run in runs_named(project, name))
        elif Runs(database).get(name):
            keys[RunKey("", name)] = None
        elif found := RemoteRuns(database).find(name):
            keys[RunKey(found[0].org_url, found[0].run.id)] = None
        else:
            raise NotFound(f"no run {name!r} is known here", actions=[Suggestion("List all runs", "test", "history")])
    if not keys:
        raise NotFound("no test of these suites has started")
    return [*keys]


def _finished(database: Database, key: RunKey) -> ListedRun:
    """Return a run, whose counts are then stored; raise UsageError if it is not over."""
    run = find_listed(database, key.id, org_url=key.org_url)
    if run is None:
        raise NotFound(f"run {key.id} was deleted")
    if not run.status.is_over:
        raise UsageError(
            f"run {run.id} is not over: its status is {run.status}",
            actions=[Suggestion("Wait for it", "test", "resume", "--job-id", run.id)],
        )
    return run


def _that_confirm(database: Database, key: RunKey) -> list[RunKey]:
    wanted = RunFilter(confirms=key.id, org_url=key.org_url)
    return [RunKey(run.org_url, run.id) for run in list_runs(database, wanted)]


def _existing(folder: ArchiveFolder) -> Manifest | None:
    """Return the manifest of the archive that a folder has; None if it is empty or has one that was not completed."""
    names = folder.names()
    if MANIFEST in names:
        return read_manifest(folder)
    # Files that are being written have the names of ours after a point.
    if others := sorted(name for name in names if name not in FILES and not name.startswith(tuple(_UNFINISHED))):
        raise UsageError(
            f"{folder.name} has files that are not of an archive: {and_more(others, _SHOWN)}",
            actions=["Choose an empty or new folder."],
        )
    return None


_UNFINISHED: Final = [f".{name}." for name in FILES]


def _has_all(folder: ArchiveFolder, before: Manifest, wanted: Manifest) -> bool:
    """Return whether an archive is what is wanted and whole; raise UsageError if it is another."""
    if not before.is_same(wanted):
        raise UsageError(
            f"{folder.name} has another archive, of {and_more(before.runs, _SHOWN)}; nothing was changed",
            actions=["Choose another folder, or delete that one."],
        )
    try:
        _verify(folder, before)
    except (ArchiveError, NotFound):
        return False
    return True


def _verify(folder: ArchiveFolder, manifest: Manifest) -> None:
    """Read an archive back; raise ArchiveError or NotFound if it does not have what its manifest says."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as scratch:
        copy = Path(scratch) / "results"
        fetch_results(folder, manifest, copy)
        for _ in read_results(folder, manifest, copy):
            pass
    if not read_manifest(folder).is_same(manifest):
        raise ArchiveError(f"{folder.name} was changed by another program", actions=["Archive the runs again."])


def _without(database: Database, archived: Archived, manifest: Manifest, keys: Sequence[RunKey]) -> Archived:
    """Delete archived runs from the store, unless something needs them or they have changed meanwhile."""
    if rows_of(database, keys) != manifest.rows:
        raise UsageError(
            f"the runs have changed since they were archived into {archived.folder}; none was deleted",
            actions=["Archive them again into another folder."],
        )
    # A run that judged the answers of another again goes first: the other is not needed then.
    runs = sorted(archived.runs, key=lambda run: run.started, reverse=True)
    old = [OldRun(run.org_url, run.id, run.definition, run.started, run.total, "") for run in runs]
    known = delete_runs(database, old)
    database.shrink()
    deleted, kept = (tuple(run for run in known if bool(run.use) is is_used) for is_used in (False, True))
    return archived._replace(deleted=deleted, kept=kept)


class OpenArchive(NamedTuple):
    """An archive that was loaded: a project whose store has nothing else, and the runs that were named."""

    project: Project
    run_ids: tuple[str, ...]

    def suite(self) -> SuiteHandle:
        """Return the runs as a suite; the saved one is known if it has no other runs."""
        with open_database(self.project.store) as database:
            handles = tuple(_handle(self.project, database, run_id) for run_id in self.run_ids)
            stored = [handle.remote.run if handle.remote else Runs(database).get(handle.id) for handle in handles]
            origins = [run.options.origin for run in stored if run]
            saved = Suites(database).get(origins[0].suite) if len({origin.suite for origin in origins}) == 1 else None
        is_whole = saved is not None and {test.place for test in saved.of("started")} == {one.place for one in origins}
        return SuiteHandle(self.project, handles, saved if is_whole else None)


def _handle(project: Project, database: Database, run_id: str) -> RunHandle:
    if own := Runs(database).get(run_id):
        return RunHandle(project, run_id, definition=own.definition)
    remote = RemoteRuns(database).find(run_id)[0]
    return RunHandle(project, run_id, remote.org_url, None, remote, remote.run.definition)


def is_archive(text: str) -> bool:
    """Return whether a text names an archive instead of a run: an address, or the path of a folder."""
    if not text or is_run_name(text) or is_run_id(text):
        return False
    return is_address(text) or "/" in text or os.sep in text or Path(text).is_dir()


_OPENED: Final[list[tuple[Manifest, OpenArchive]]] = []


def open_archive(project: Project, text: str, *, on_progress: Callable[[int], None] = lambda _: None) -> OpenArchive:
    """Load an archive into a store of its own, once in a process; it is deleted when the process ends.

    `on_progress` is called with the number of results so far.
    """
    _require_parquet()
    folder = archive_folder(text)
    manifest = read_manifest(folder)
    for known, opened in _OPENED:
        is_there = opened.project.root == project.root and opened.project.state_dir.is_dir()
        if known == manifest and is_there:
            return opened
    state = _new_state_folder(project)
    try:
        load_archive(folder, manifest, state, on_progress=on_progress)
    except BaseException:
        shutil.rmtree(state, ignore_errors=True)
        raise
    opened = OpenArchive(replace(project, home=state, store_url="", is_archive=True), manifest.runs)
    _OPENED.append((manifest, opened))
    return opened


_AT_EXIT: Final = ExitStack()
atexit.register(_AT_EXIT.close)


def _new_state_folder(project: Project) -> Path:
    """Return a new folder that is deleted when the process ends; one of a process that was killed is deleted now."""
    parent = project.state_dir if project.state_dir.is_dir() else Path(tempfile.gettempdir())
    for old in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # Whether processes of other machines are alive is not known, so that theirs stay.
            if is_free(Lease((old / _WORKER).read_text(encoding="utf-8"), time.time() + 1)):
                shutil.rmtree(old)
    state, worker = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)), new_worker()
    (state / _WORKER).write_text(worker, encoding="utf-8")
    _AT_EXIT.enter_context(working(worker))
    _AT_EXIT.callback(shutil.rmtree, state, ignore_errors=True)
    return state
