"""`evalmeta run --watch`: run tests again when their files or the agent's have changed."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta import api
from evalmeta.cli.output import note
from evalmeta.errors import EXIT_INTERRUPTED, EXIT_PASSED, EvalmetaError
from evalmeta.package.files import shown
from evalmeta.package.folders import files_below

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    _Versions: TypeAlias = Mapping[Path, tuple[int, int]]

_POLL_SECONDS: Final = 0.3
_WATCHED: Final = (".py", ".csv", ".json", ".jsonl", ".yaml", ".yml", ".xml", ".toml", "Definition")
# Runs write such files too: reports, and what agents remember.
_WRITTEN: Final = (".csv", ".json", ".jsonl", ".xml")


def watch_tests(root: Path, paths: Sequence[Path], words: Sequence[str]) -> int:
    """Run the tests in files, and again what changed, until Ctrl-C; return the exit code.

    Each run is a process of its own, so that it imports the agent's modules again. A change of a test runs that test.
    All other changes run all tests. Changes of other data files during a run are its own and are ignored.

    Args:
        root: the project's folder, whose files are watched beside `paths`.
        paths: the files and folders to run.
        words: the options of `evalmeta run`, without paths and without --watch.
    """
    is_running, chosen = True, list(paths)
    try:
        while True:
            before = versions(root, paths)
            is_running = True
            _run(chosen, words)
            before = after_run(before, versions(root, paths), paths)
            is_running = False
            note(f"\nWatching {shown(root)} for changes. Press Ctrl-C to stop.")
            changed = _wait_for_changes(root, paths, before)
            chosen = affected(changed, paths)
            note(f"\nChanged: {', '.join(str(shown(path)) for path in sorted(changed))}\n")
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED if is_running else EXIT_PASSED


def versions(root: Path, paths: Sequence[Path]) -> _Versions:
    """Return the times and sizes of the files that can change results."""
    found = {}
    folders = [root, *(each for each in paths if each.is_dir() and not each.resolve().is_relative_to(root))]
    named = [each for each in paths if not each.is_dir()]
    for path in (*named, *(each for folder in folders for each in files_below(folder))):
        if path.name.endswith(_WATCHED):
            try:
                state = path.stat()
            except OSError:
                # It was deleted since it was listed.
                continue
            found[path.resolve()] = state.st_mtime_ns, state.st_size
    return found


def after_run(before: _Versions, now: _Versions, paths: Sequence[Path]) -> _Versions:
    """Return the versions before a run, but those of now for files that the run may have written."""
    written = {path for path in now if path.name.endswith(_WRITTEN)} - _tests(paths).keys()
    return {**before, **{path: now[path] for path in written}}


def affected(changed: set[Path], paths: Sequence[Path]) -> list[Path]:
    """Return the tests to run after changes: the changed ones, or all if another file has changed."""
    tests = _tests(paths)
    return [tests[path] for path in sorted(changed)] if changed <= tests.keys() else list(paths)


def _tests(paths: Sequence[Path]) -> dict[Path, Path]:
    """Return the tests in files and folders by their full paths; none if there is an error, which the run prints."""
    try:
        return {path.resolve(): path for path in api.discovery.find_tests(paths).paths}
    except EvalmetaError:
        return {}


def _wait_for_changes(root: Path, paths: Sequence[Path], before: _Versions) -> set[Path]:
    """Return what changed; editors may write several files, so wait until nothing changes any more."""
    now = versions(root, paths)
    while now == before:
        time.sleep(_POLL_SECONDS)
        now = versions(root, paths)
    while True:
        time.sleep(_POLL_SECONDS)
        last, now = now, versions(root, paths)
        if now == last:
            return {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}


def _run(paths: Sequence[Path], words: Sequence[str]) -> None:
    with subprocess.Popen([sys.executable, "-m", "evalmeta", "run", *words, "--", *map(str, paths)]) as running:
        try:
            running.wait()
        except KeyboardInterrupt:
            # Ctrl-C reaches the run too, which saves its finished results.
            running.wait()
            raise
