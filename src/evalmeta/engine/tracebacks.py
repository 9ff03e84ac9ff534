"""The traceback of an agent's exception as text: short, without secrets and without evalmeta's own frames."""

from __future__ import annotations

import sys
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.redaction import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN: Final = Path(__file__).resolve().parents[1]
# How many frames are shown at each end of a traceback: of files outside the project, and in all.
_OUTER_FRAMES: Final = 3
_HALF_OF_FRAMES: Final = 10
_GAP: Final = "\n[...]\n"


def traceback_text(error: BaseException, root: Path | None = None) -> str:
    """Return the traceback of an exception and of its causes, in at most `MAX_TRACEBACK_CHARS` characters.

    All frames of files in `root` are shown, and of other files the first and the last ones; in a long traceback, both
    ends. Files are named relative to `root` or to the folder from which Python imports them. Empty if no frame is
    left.
    """
    try:
        traceback = TracebackException.from_exception(error, lookup_lines=False)
    except Exception:  # noqa: BLE001 - an exception that cannot be shown must not stop a run
        return ""
    folder = None if root is None else root.resolve()
    parts = list(_with_causes(traceback))
    for part in parts:
        part.stack = _Frames(_without_own(part.stack), folder)
    if not any(part.stack for part in parts):
        return ""
    text = "".join(traceback.format()).rstrip("\n").encode(errors="replace").decode()
    return _shortened(hide_secrets(text))


def _with_causes(traceback: TracebackException) -> Iterator[TracebackException]:
    left = [traceback]
    while left:
        part = left.pop()
        yield part
        left += filter(None, (part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())))


def _without_own(frames: StackSummary) -> list[FrameSummary]:
    return [frame for frame in frames if not Path(frame.filename).is_relative_to(_OWN)]


class _Frames(StackSummary):
    """Frames that are formatted in part, with short paths."""

    def __init__(self, frames: list[FrameSummary], root: Path | None) -> None:
        super().__init__(frames)
        self._root = root

    def format(self, **_: object) -> list[str]:
        """Return the text of the shown frames, with the number of the others between them."""
        shown = self._shown()
        lines, following = [], 0
        for place in [*shown, len(self)]:
            if left_out := place - following:
                lines.append(f"  [{left_out} more {'frame' if left_out == 1 else 'frames'}]\n")
            following = place + 1
            if place < len(self):
                lines += StackSummary.from_list([self._short(self[place])]).format()
        return lines

    def _shown(self) -> list[int]:
        """Return the places of the frames to show."""
        last = len(self) - _OUTER_FRAMES
        shown = [
            place
            for place, frame in enumerate(self)
            if place < _OUTER_FRAMES or place >= last or is_in_project(Path(frame.filename), self._root)
        ]
        if len(shown) <= 2 * _HALF_OF_FRAMES:
            return shown
        return shown[:_HALF_OF_FRAMES] + shown[-_HALF_OF_FRAMES:]

    def _short(self, frame: FrameSummary) -> FrameSummary:
        name = _relative(frame.filename, self._root)
        return FrameSummary(name, frame.lineno, frame.name, lookup_line=False, line=frame.line)


def is_in_project(path: Path, root: Path | None) -> bool:
    """Return whether a file belongs to the project in `root`, and not to an installed package."""
    return root is not None and path.is_relative_to(root) and "site-packages" not in path.parts


def _relative(name: str, root: Path | None) -> str:
    path = Path(name)
    if root is not None and is_in_project(path, root):
        return str(path.relative_to(root))
    folders = sorted((text for text in sys.path if text and path.is_relative_to(text)), key=len)
    return str(path.relative_to(folders[-1])) if folders else name


def _shortened(text: str) -> str:
    """Return both ends of a long text: the frames of the caller, and the exception."""
    if len(text) <= limits.MAX_TRACEBACK_CHARS:
        return text
    half = (limits.MAX_TRACEBACK_CHARS - len(_GAP)) // 2
    return f"{text[:half]}{_GAP}{text[-half:]}"
