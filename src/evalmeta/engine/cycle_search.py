"""Let Python look for reference cycles less often, because results of cases are many objects without cycles."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# New objects before a search; Python's default is 700, with which the search takes a third of the time of reading
# definitions, and a tenth of the time of running cases.
_OBJECTS: Final = 50_000


class _State:
    """How many blocks are open, and the thresholds before the first of them."""

    depth = 0
    before: tuple[int, int, int] = (0, 0, 0)


_lock: Final = threading.Lock()


@contextmanager
def rare_searches() -> Iterator[None]:
    """Search rarely in this block; a program that searches more rarely, or never, keeps its own thresholds."""
    search_rarely()
    try:
        yield
    finally:
        with _lock:
            _State.depth -= 1
            if not _State.depth and gc.get_threshold()[0] == _OBJECTS:
                gc.set_threshold(*_State.before)


def search_rarely() -> None:
    """Do what `rare_searches` does, until the process ends."""
    with _lock:
        if not _State.depth:
            _State.before = gc.get_threshold()
            if 0 < _State.before[0] < _OBJECTS:
                gc.set_threshold(_OBJECTS, *_State.before[1:])
        _State.depth += 1
