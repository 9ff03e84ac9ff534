"""Recorded answers, replayed by utterance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.subjects.recordings import read_recordings, utterance_key
from evalmeta.errors import SubjectError

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.run import CaseResult
    from evalmeta.model.settings import ReplaySubject

__all__ = ["bind_replay"]


def bind_replay(settings: ReplaySubject, *, root: Path) -> Subject:
    """Makes a subject that gives recorded answers; several of one utterance come in turn, the last one again and again.

    Raises:
        SettingsError: the file is not there or holds no results.
    """
    return _Replay(read_recordings(root / settings.file), settings.file)


class _Replay:
    """A subject and its only session: recorded answers need no conversation."""

    def __init__(self, recordings: dict[str, list[CaseResult]], file: Path) -> None:
        self._recordings = recordings
        self._file = file

    async def open(self, case: Case) -> Session:  # noqa: ARG002 - history and context are part of what was recorded
        return self

    async def ask(self, utterance: str) -> GeneratedData:
        recorded = self._recordings.get(utterance_key(utterance))
        if not recorded:
            raise SubjectError(f"no recorded answer to {utterance[:100]!r} in {self._file}")
        case = recorded.pop(0) if len(recorded) > 1 else recorded[0]
        if case.generated is None:
            reason = case.error or "it says no reason"
            raise SubjectError(f"the recorded run has no answer to {utterance[:100]!r}: {reason}")
        return case.generated

    async def close(self) -> None:
        """Has nothing to let go of."""
