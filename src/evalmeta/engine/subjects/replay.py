"""Recorded answers, replayed by utterance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.subjects.recordings import read_recordings
from evalmeta.errors import SubjectError

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.engine.subjects.recordings import Recordings
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.settings import ReplaySubject

__all__ = ["bind_replay"]


def bind_replay(settings: ReplaySubject, *, root: Path) -> Subject:
    """Makes a subject that gives recorded answers; several of one utterance come in turn, the last one again and again.

    A case gets the recordings of the case with its number, iteration by iteration, when there are any.

    Raises:
        SettingsError: the file is not there or holds no recorded answers.
    """
    return _Replay(read_recordings(root / settings.file), settings.file)


class _Replay:
    """A subject whose sessions need no conversation: history and context are part of what was recorded."""

    def __init__(self, recordings: Recordings, file: Path) -> None:
        self._recordings = recordings
        self._file = file

    async def open(self, case: Case) -> Session:
        return _ReplaySession(self, case.number)

    async def close(self) -> None:
        """Has nothing to let go of."""

    def answer(self, utterance: str, number: int) -> GeneratedData:
        recording = self._recordings.take(utterance, number=number)
        if recording is None:
            raise SubjectError(f"no recorded answer to {utterance[:100]!r} in {self._file}")
        if recording.generated is None:
            reason = recording.error or "it says no reason"
            raise SubjectError(f"the recorded run has no answer to {utterance[:100]!r}: {reason}")
        return recording.generated


class _ReplaySession:
    def __init__(self, replay: _Replay, number: int) -> None:
        self._replay = replay
        self._number = number

    async def ask(self, utterance: str) -> GeneratedData:
        return self._replay.answer(utterance, self._number)

    async def close(self) -> None:
        """Has nothing to let go of."""
