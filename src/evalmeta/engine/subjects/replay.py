"""Recorded answers, replayed by utterance.

Answers that the evaluation's own file has already: nobody is asked.

Files of recorded answers: results of runs in every variant, and JSONL.
"""

from __future__ import annotations

import codecs
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.errors import MessageUnreadable, SettingsError, SubjectError
from evalmeta.protocol.connect import read_run
from evalmeta.protocol.json_fields import list_of_objects, read_object
from evalmeta.protocol.testing import read_testing_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import Run
    from evalmeta.model.settings import ReplaySubject


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


def bind_recorded() -> Subject:
    """Makes a subject that answers every turn with what its file has recorded for it."""
    return _Recorded()


class _Recorded:
    async def open(self, case: Case) -> Session:
        return _RecordedSession(case)

    async def close(self) -> None:
        """Has nothing to let go of."""


class _RecordedSession:
    """Goes through the turns of its case; what is asked does not matter."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._turns = iter(case.turns)

    async def ask(self, utterance: str) -> GeneratedData:
        turn = next(self._turns, None)
        if turn is None or turn.recorded is None:
            raise SubjectError(f"case {self._case.number} has no recorded answer to {utterance[:100]!r}")
        return turn.recorded

    async def close(self) -> None:
        """Has nothing to let go of."""


_RESULT_KEYS: Final = frozenset({"definition", "iteration", "number", "verdict", "results"})
_NO_ANSWER_KEYS: Final = _RESULT_KEYS | {"label", "earlier"}


@dataclass(frozen=True, slots=True)
class Recording:
    """What an agent did in one turn, or why it did nothing; `number` is the case's in the run it comes from."""

    generated: GeneratedData | None = None
    error: str | None = None
    number: int | None = None


class Recordings:
    """Recordings by utterance, in which blanks and line breaks count as one blank."""

    def __init__(self) -> None:
        self._waiting: defaultdict[tuple[str, int | None], deque[Recording]] = defaultdict(deque)

    def add(self, utterance: str, recording: Recording) -> None:
        """Puts a recording behind the others of its utterance."""
        for number in {None, recording.number}:
            self._waiting[_key(utterance), number].append(recording)

    def take(self, utterance: str, *, number: int) -> Recording | None:
        """Gives the next recording of an utterance, and the last one again and again.

        Those of the case with this number are for it alone; a case that has none gets all in turn.
        """
        key = _key(utterance)
        waiting = self._waiting.get((key, number)) or self._waiting.get((key, None))
        if not waiting:
            return None
        return waiting.popleft() if len(waiting) > 1 else waiting[0]


def read_recordings(path: Path) -> Recordings:
    """Reads a file that holds, by what is in it, one of these.

    A results object of the Testing API or of Agentforce Studio, bare or in the CLI's
    envelope; a list of them; or JSONL, in which every line is a result of `--result-format
    jsonl`, or what a Python agent may return, with the `utterance` that it answers, or
    with `error` instead.

    Raises:
        SettingsError: the file is not there, too large, or holds something else; says in which line.
    """
    try:
        with path.open("rb") as file:
            return _Reader(file, path).read()
    except OSError as error:
        raise _unusable(str(path), error.strerror or str(error)) from error


class _Reader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._left = limits.MAX_RECORDING_BYTES
        self._line = 0

    def read(self) -> Recordings:
        first = self._next_line().removeprefix(codecs.BOM_UTF8)
        if not first:
            raise _unusable(str(self._path), "it is empty")
        return self._read_lines(first) if _is_entry(first) else self._read_document(first)

    def _read_lines(self, line: bytes) -> Recordings:
        recordings = Recordings()
        while line:
            try:
                for utterance, recording in _entries(line):
                    recordings.add(utterance, recording)
            except (MessageUnreadable, SubjectError) as error:
                raise _unusable(f"{self._path}:{self._line}", str(error)) from None
            line = self._next_line()
        return recordings

    def _read_document(self, first: bytes) -> Recordings:
        start = self._line
        content = first + self._counted(self._file.read(self._left + 1))
        try:
            return _recordings(orjson.loads(content))
        except orjson.JSONDecodeError as error:
            place = f"{self._path}:{start + error.lineno - 1}"
            raise _unusable(place, f"it is no JSON: {error.msg}") from None
        except MessageUnreadable as error:
            raise _unusable(str(self._path), str(error)) from None

    def _next_line(self) -> bytes:
        """Gives the next line that is not blank; nothing at the end."""
        line = b"\n"
        while line and not line.strip():
            line = self._counted(self._file.readline(self._left + 1))
            self._line += 1
        return line

    def _counted(self, content: bytes) -> bytes:
        self._left -= len(content)
        if self._left < 0:
            raise _unusable(str(self._path), f"it is larger than {limits.MAX_RECORDING_BYTES} bytes")
        return content


def _is_entry(line: bytes) -> bool:
    """Tells whether a line is an object of its own, and none that holds results."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and not value.keys() & {"testCases", "result"}


def _entries(line: bytes) -> Iterator[tuple[str, Recording]]:
    """Gives the answers on a line: of a result with several turns all of them, in their order."""
    told = read_object(line)
    source, number = _told(told)
    for turn in list_of_objects(told, "earlier") if number is not None else ():
        yield _entry(dict(turn), number)
    yield _entry(source, number)


def _entry(source: dict[str, JsonValue], number: int | None) -> tuple[str, Recording]:
    utterance, error = source.pop("utterance", None), source.pop("error", None)
    if not isinstance(utterance, str):
        raise MessageUnreadable("it has no utterance; expected text")
    if error is None:
        return utterance, Recording(generated_data(source), number=number)
    if not isinstance(error, str):
        raise MessageUnreadable("its error is no text")
    return utterance, Recording(error=error, number=number)


def _told(line: JsonObject) -> tuple[dict[str, JsonValue], int | None]:
    """Gives what an agent told, and which case it was if the line is a result of `--result-format jsonl`."""
    number = line.get("number")
    if not (line.keys() >= _RESULT_KEYS and isinstance(number, int)):
        return dict(line), None
    return {key: value for key, value in line.items() if key not in _NO_ANSWER_KEYS}, number


def _recordings(document: JsonValue) -> Recordings:
    recordings = Recordings()
    for run in _runs(document):
        for case in sorted(run.cases, key=lambda case: case.iteration):
            for turn in case.earlier:
                recordings.add(turn.utterance, Recording(turn.generated, None, case.number))
            recordings.add(case.utterance, Recording(case.generated, case.error, case.number))
    return recordings


def _runs(document: JsonValue) -> list[Run]:
    if isinstance(document, Mapping) and "testCases" not in document and "result" in document:
        document = document["result"]
    if not isinstance(document, list):
        return [_run(document)]
    if not document:
        raise MessageUnreadable("it is a list without any run in it")
    return [_run(each, place=f"run {number} of the list: ") for number, each in enumerate(document, 1)]


def _run(source: JsonValue, *, place: str = "") -> Run:
    if not isinstance(source, Mapping):
        raise MessageUnreadable(f"{place}it is no results object")
    try:
        return read_testing_run(source) if _is_studios(source) else read_run(source)
    except MessageUnreadable as error:
        raise MessageUnreadable(f"{place}{error}") from None


def _is_studios(run: JsonObject) -> bool:
    return any("subjectResponse" in case for case in list_of_objects(run, "testCases"))


def _key(utterance: str) -> str:
    return " ".join(utterance.split())


def _unusable(place: str, reason: str) -> SettingsError:
    return SettingsError(
        f"the recorded answers in {place} cannot be used: {reason}",
        actions=(
            "Correct the file, name another in evalmeta.toml, or record a run with --result-format json or jsonl.",
        ),
    )
