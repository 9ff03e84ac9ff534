"""What agents print: it goes to stderr in whole lines, so that it cannot mix with a report or with other cases."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, cast

from evalmeta.report.text import escape_commands

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO


class _Lines:
    """A stream that keeps what one thread or task writes until its line ends; all else is as on stderr."""

    def __init__(self) -> None:
        self._unfinished: dict[tuple[int, int], str] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr, name)

    def write(self, text: str) -> int:
        """Write the lines that end in the text, and keep the rest."""
        writer = threading.get_ident(), _current_task()
        lines, newline, rest = (self._unfinished.pop(writer, "") + text).rpartition("\n")
        if rest:
            self._unfinished[writer] = rest
        if newline:
            sys.stderr.write(escape_commands(f"{lines}\n"))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write texts."""
        self.write("".join(texts))

    def flush(self) -> None:
        """Do nothing: the end of a line is what writes it."""

    def finish(self) -> None:
        """Write what has no end of line."""
        for rest in self._unfinished.values():
            sys.stderr.write(escape_commands(f"{rest}\n"))


def _current_task() -> int:
    with suppress(RuntimeError):
        return id(asyncio.current_task())
    return 0


@contextmanager
def agent_output() -> Iterator[None]:
    """Write what is printed meanwhile to stderr, in whole lines that are not commands to a CI system."""
    lines = _Lines()
    try:
        with redirect_stdout(cast("TextIO", lines)):
            yield
    finally:
        lines.finish()
