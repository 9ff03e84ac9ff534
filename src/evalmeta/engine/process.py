"""What evalmeta changes in its process while agents run: `os._exit` is an error, and garbage is collected rarely."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ProcessExit(BaseException):
    """Code called `os._exit`; as with SystemExit, `except Exception` does not catch it."""


class _Change:
    """A change of the process that lasts until the last of its blocks ends, which may overlap.

    `make` is called when the first block begins, and the function that it returns when the last one ends.
    """

    def __init__(self, make: Callable[[], Callable[[], None]]) -> None:
        self._make = make
        self._undo: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._depth = 0

    def begin(self) -> None:
        """Make the change until the process ends."""
        with self._lock:
            if not self._depth:
                self._undo = self._make()
            self._depth += 1

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if not self._depth:
                    self._undo()


def _refuse_exits() -> Callable[[], None]:
    process, before = os.getpid(), os._exit
    others = frozenset(threading.enumerate()) - {threading.current_thread()}

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process or threading.current_thread() in others:
            before(status)
        raise ProcessExit(f"os._exit({status}) was called, which would end evalmeta without a report")

    def undo() -> None:
        os._exit = before

    os._exit = refuse
    return undo


exits_refused: Final = _Change(_refuse_exits)
"""Let `os._exit` raise ProcessExit in this thread, and in threads that start in the block.

It still ends processes that are forked in the block. Threads that were there before, such as that of a time limit, can
still end the process.
"""

# New objects before a collection; Python's default is 700, with which collecting takes a third of the time of reading
# definitions, and a tenth of the time of running cases: results of cases are many objects without reference cycles.
_OBJECTS: Final = 50_000


def _collect_rarely() -> Callable[[], None]:
    before = gc.get_threshold()
    if 0 < before[0] < _OBJECTS:
        gc.set_threshold(_OBJECTS, *before[1:])

    def undo() -> None:
        if gc.get_threshold()[0] == _OBJECTS:
            gc.set_threshold(*before)

    return undo


rare_collections: Final = _Change(_collect_rarely)
"""Collect garbage rarely in this block; a program that does so more rarely, or never, keeps its own thresholds."""
