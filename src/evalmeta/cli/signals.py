"""Signals that end a command: the first lets it clean up, a second one ends it at once.

A closed terminal (SIGHUP) and SIGTERM are like Ctrl-C. A signal that was ignored when the program started, as with
nohup, stays ignored.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_NUMBERS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_EXIT_INTERRUPTED: Final = 130
# Before agents are refused to end the process.
_exit: Final = os._exit
# How long cleaning up may take: waiting for a deployment takes up to 10 seconds.
_CLEAN_UP_SECONDS: Final = 15.0
_SHOW_CURSOR: Final = b"\x1b[?25h"


class _State:
    """How many signals were received, how to cancel the current work, and what ends the program if that takes long."""

    received = 0
    cancel: Callable[[], object] | None = None
    clean_up: threading.Timer | None = None


def catch_signals() -> None:
    """Handle signals from now on; call it once, in the main thread."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)


@contextmanager
def cancelled_by_signals(cancel: Callable[[], object]) -> Iterator[None]:
    """Call `cancel` when the first signal is received in the block, instead of raising KeyboardInterrupt.

    If the block then ends as usual, what follows it may take any time. Without `catch_signals` it does nothing.
    """
    _State.cancel = cancel
    try:
        yield
        if _State.clean_up is not None:
            _State.clean_up.cancel()
    finally:
        _State.cancel = None


def ignore_signals() -> None:
    """Ignore further signals, because the program ends."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _on_signal(number: int, _: FrameType | None) -> None:
    _State.received += 1
    if _State.received > 1:
        _end_now()
    if number != signal.SIGINT:
        _leave_terminal()
    _State.clean_up = threading.Timer(_CLEAN_UP_SECONDS, _end_now)
    _State.clean_up.daemon = True
    _State.clean_up.start()
    if _State.cancel is None:
        raise KeyboardInterrupt
    _State.cancel()


def _leave_terminal() -> None:
    """Write nothing more to a terminal that no longer exists: it would be an error."""
    for descriptor in (1, 2):
        with suppress(OSError):
            is_terminal = stat.S_ISCHR(os.fstat(descriptor).st_mode)
            if is_terminal and not os.isatty(descriptor):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, descriptor)
                os.close(nothing)


def _end_now() -> None:
    """End the program and the programs that it started, without cleaning up; what was kept stays."""
    # Loaded only if an agent is a program.
    programs = sys.modules.get("evalmeta.engine.subjects.command")
    if programs is not None:
        programs.kill_programs()
    with suppress(OSError):
        cursor = _SHOW_CURSOR if os.isatty(2) else b""
        os.write(2, cursor + b"\nError (Interrupted): interrupted\n")
    _exit(_EXIT_INTERRUPTED)
