"""Turn `os._exit` in agents and custom functions into an error, because it would end the process without a report."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ProcessExit(BaseException):
    """Code called `os._exit`; as with SystemExit, `except Exception` does not catch it."""


class _State:
    """How many blocks are open, and what was there when the first of them was opened."""

    depth = 0
    process = 0
    others: frozenset[threading.Thread] = frozenset()
    exit: Callable[[int], NoReturn] = os._exit


_lock: Final = threading.Lock()


@contextmanager
def exits_refused() -> Iterator[None]:
    """Let `os._exit` raise ProcessExit in this thread, and in threads that start in the block.

    It still ends processes that are forked in the block. Threads that were there before, such as that of a time limit,
    can still end the process.
    """
    refuse_exits()
    try:
        yield
    finally:
        with _lock:
            _State.depth -= 1
            if not _State.depth:
                os._exit = _State.exit  # type: ignore[assignment] # what it was before


def refuse_exits() -> None:
    """Do what `exits_refused` does, until the process ends."""
    with _lock:
        if not _State.depth:
            _State.process, _State.exit = os.getpid(), os._exit
            _State.others = frozenset(threading.enumerate()) - {threading.current_thread()}
            os._exit = _refuse
        _State.depth += 1


def _refuse(status: int) -> NoReturn:
    if os.getpid() != _State.process or threading.current_thread() in _State.others:
        _State.exit(status)
    raise ProcessExit(f"os._exit({status}) was called, which would end evalmeta without a report")
