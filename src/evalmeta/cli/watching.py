"""`evalmeta run --watch`: run tests again when their files or the agent's have changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from watchfiles import watch

from evalmeta import api
from evalmeta.cli.output import note
from evalmeta.errors import EXIT_INTERRUPTED, EXIT_PASSED, EvalmetaError
from evalmeta.package.files import shown
from evalmeta.package.folders import files_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    _Events: TypeAlias = Iterator[set[Path]]

# Editors write several files: changes are reported when nothing has changed for this time.
_QUIET_MS: Final = 300
_MOST_MS: Final = 5_000
_WATCHED: Final = (".py", ".csv", ".json", ".jsonl", ".yaml", ".yml", ".xml", ".toml", "Definition")
# Runs write such files too: reports, and what agents remember.
_WRITTEN: Final = (".csv", ".json", ".jsonl", ".xml")


def watch_tests(root: Path, paths: Sequence[Path], words: Sequence[str]) -> int:
    """Run the tests in files, and again what changed, until Ctrl-C; return the exit code.

    Each run is a process of its own, so that it imports the agent's modules again. A change of a test runs that test.
    All other changes run all tests. Changes of other data files during a run are its own and are ignored. The files of
    the project in `root` are watched beside `paths`; `words` are the options of `evalmeta run` without --watch.
    """
    is_running, chosen = True, list(paths)
    try:
        while True:
            is_running = True
            # A new watch for each run: editors replace files, and the watch of a named file ends with the file.
            before, events = watched_files(root, paths), file_events(root, paths)
            changed = not_written(_run(chosen, words, events) & (before | watched_files(root, paths)), paths)
            is_running = False
            note(f"\nWatching {shown(root)} for changes. Press Ctrl-C to stop.")
            while not changed:
                changed = next(events) & (before | watched_files(root, paths))
            chosen = affected(changed, paths)
            note(f"\nChanged: {', '.join(str(shown(path)) for path in sorted(changed))}\n")
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED if is_running else EXIT_PASSED


def watched_files(root: Path, paths: Iterable[Path]) -> set[Path]:
    """Return the files that can change results."""
    files = (file for path in _places(root, paths) for file in (files_below(path) if path.is_dir() else [path]))
    return {file.resolve() for file in files if file.name.endswith(_WATCHED)}


def not_written(changed: Iterable[Path], paths: Sequence[Path]) -> set[Path]:
    """Return what changed during a run, without the files that the run may have written."""
    tests = _tests(paths)
    return {path for path in changed if path in tests or not path.name.endswith(_WRITTEN) or not path.exists()}


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


def _places(root: Path, paths: Iterable[Path]) -> list[Path]:
    return [root, *(path for path in paths if path.exists() and not path.resolve().is_relative_to(root))]


def file_events(root: Path, paths: Sequence[Path]) -> _Events:
    """Yield the paths that change, an empty set if none does for a moment; the first call begins to watch."""
    places = [place.resolve() for place in _places(root, paths)]
    try:
        yield from _batches(places)
    except OSError:
        # The system limits the number of watched folders, and a project may have more.
        yield from _batches(places, force_polling=True)


def _batches(places: Iterable[Path], *, force_polling: bool | None = None) -> _Events:
    changes = watch(
        *places,
        watch_filter=None,
        debounce=_MOST_MS,
        step=_QUIET_MS,
        rust_timeout=_QUIET_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
        force_polling=force_polling,
    )
    for batch in changes:
        yield {Path(path) for _, path in batch}


def _run(paths: Sequence[Path], words: Sequence[str], events: _Events) -> set[Path]:
    """Run tests, and return which files have changed meanwhile."""
    # -P: a file of the project must not replace a module of the standard library with the same name.
    with subprocess.Popen([sys.executable, "-P", "-m", "evalmeta", "run", *words, "--", *map(str, paths)]) as running:
        try:
            changed = next(events)
            running.wait()
        except KeyboardInterrupt:
            # Ctrl-C reaches the run too, which saves its finished results.
            running.wait()
            raise
    return changed | next(events)
