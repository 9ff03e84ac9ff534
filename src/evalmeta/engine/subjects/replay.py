"""Recorded answers instead of an agent: from a file of recordings, or from the evaluation's own file."""

from __future__ import annotations

import codecs
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import orjson

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.engine.interfaces import NothingToClose, SimpleSubject, Subject
from evalmeta.errors import MessageUnreadable, SettingsError, SubjectError
from evalmeta.model.agent_scorer import ACTION_STEP
from evalmeta.model.json_value import JsonObject, JsonValue, read_json
from evalmeta.model.redaction import path_in_words
from evalmeta.model.settings import SubjectSettings
from evalmeta.protocol.connect import read_run
from evalmeta.protocol.json_fields import list_of_objects, number, object_at, optional_text, read_object, text
from evalmeta.protocol.testing import read_testing_run

if TYPE_CHECKING:
    from typing import BinaryIO

    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.login import SignIn
    from evalmeta.model.run import Run


_RESULT_KEYS: Final = frozenset({"definition", "iteration", "number", "verdict", "results"})
_OTHER_KEYS: Final = frozenset({"label", "earlier", "traceback", "quarantine", "partly_judged", "metadata", "tags"})


class ReplaySubject(SubjectSettings):
    """Recorded answers in `file`: results of a run, or JSON Lines; the path is relative to the project's folder."""

    agent = "a file of recorded answers"

    adapter: Literal["replay"]
    file: Path

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject that looks up recorded answers by utterance; see `Recordings.take` and `read_recordings`."""
        recordings = read_recordings(root / self.file)
        return SimpleSubject(lambda case: _ReplaySession(recordings, self.file, case.number))

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the file."""
        return f"replay {path_in_words(str(self.file), root)}", [root / self.file]


class _ReplaySession(NothingToClose):
    """Ignore history and context: the recorded agent knew them."""

    is_recorded = True

    def __init__(self, recordings: Recordings, file: Path, number: int) -> None:
        self._recordings = recordings
        self._file = file
        self._number = number

    async def ask(self, utterance: str) -> GeneratedData:
        recording = self._recordings.take(utterance, number=self._number)
        if recording is None:
            raise SubjectError(f"no recorded answer to {utterance[:100]!r} in {self._file}")
        if recording.generated is None:
            reason = recording.error or "the recording has no reason"
            raise SubjectError(f"the recorded run has no answer to {utterance[:100]!r}: {reason}")
        return recording.generated


class RecordedSubject(SubjectSettings):
    """The answers that the file of the evaluation already contains: only of runs of such files, never in settings."""

    adapter: Literal["recorded"]

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return the subject."""
        return bind_recorded()

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return what answers."""
        return "recorded answers", []


def bind_recorded() -> Subject:
    """Return a subject that answers every turn with the answer recorded in the evaluation's own file."""
    return SimpleSubject(_RecordedSession)


class _RecordedSession(NothingToClose):
    """Answer the turns of a case in their order, whatever the utterance."""

    is_recorded = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self._turns = iter(case.turns)

    async def ask(self, utterance: str) -> GeneratedData:
        turn = next(self._turns, None)
        if turn is None or turn.recorded is None:
            raise SubjectError(f"case {self._case.number} has no recorded answer to {utterance[:100]!r}")
        if turn.recorded_error:
            raise SubjectError(turn.recorded_error)
        return turn.recorded


@dataclass(frozen=True, slots=True)
class Recording:
    """An agent's answer in one turn, or the reason why there is none, and the case's number in the recorded run."""

    generated: GeneratedData | None = None
    error: str | None = None
    number: int | None = None


_Entry: TypeAlias = tuple[str, Recording]


class Recordings:
    """Recordings by utterance; differences in white space do not matter."""

    def __init__(self) -> None:
        self._queues: defaultdict[tuple[str, int | None], deque[Recording]] = defaultdict(deque)

    def add(self, utterance: str, recording: Recording) -> None:
        """Append a recording to the others of its utterance."""
        for case_number in {None, recording.number}:
            self._queues[" ".join(utterance.split()), case_number].append(recording)

    def __iter__(self) -> Iterator[Recording]:
        """Yield all recordings that were not taken."""
        return (recording for (_, number), queue in self._queues.items() if number is None for recording in queue)

    def take(self, utterance: str, *, number: int) -> Recording | None:
        """Return the next recording of an utterance, and the last one again and again.

        Recordings of the case with this number come first, and only for this case. Other cases share all recordings.
        """
        key = " ".join(utterance.split())
        queue = self._queues.get((key, number)) or self._queues.get((key, None))
        if not queue:
            return None
        return queue.popleft() if len(queue) > 1 else queue[0]


def read_recordings(path: Path) -> Recordings:
    """Read a file of recorded answers; raise SettingsError, with the line, if the content is not in a known format.

    It is a results object of the Testing API or of Agentforce Studio, alone or in the CLI's envelope; a recorded
    session; a list of either; or JSONL. A line of JSONL is a session, a result of `--result-format jsonl`, an
    `utterance` with the return value of a Python agent, or an `utterance` with an `error`. Beside an `outcome` or an
    `error`, `number` is that of the case in the recorded run.
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
        recordings = Recordings()
        for utterance, recording in self._read_lines(first) if _is_entry(first) else self._read_document(first):
            recordings.add(utterance, recording)
        return recordings

    def _read_lines(self, line: bytes) -> Iterator[_Entry]:
        while line:
            try:
                yield from _entries(line)
            except (MessageUnreadable, SubjectError) as error:
                raise _unusable(f"{self._path}:{self._line}", str(error)) from None
            line = self._next_line()

    def _read_document(self, first: bytes) -> Iterator[_Entry]:
        start = self._line
        content = first + self._counted(self._file.read(self._left + 1))
        try:
            yield from _entries_of_document(read_json(content))
        except orjson.JSONDecodeError as error:
            line = f"{self._path}:{start + error.lineno - 1}"
            raise _unusable(line, f"it is not valid JSON: {error.msg}") from None
        except MessageUnreadable as error:
            raise _unusable(str(self._path), str(error)) from None

    def _next_line(self) -> bytes:
        """Return the next line that is not blank, empty bytes at the end."""
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


def _unusable(location: str, reason: str) -> SettingsError:
    return SettingsError(
        f"the recorded answers in {location} cannot be used: {reason}",
        actions=(
            "Correct the file, name another in evalmeta.toml, or record a run with --result-format json or jsonl.",
        ),
    )


def _is_entry(line: bytes) -> bool:
    """Return whether a line is a complete JSON object, but not the results of a run."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and not value.keys() & {"testCases", "result"}


def _entries(line: bytes) -> Iterator[_Entry]:
    """Yield the utterances and answers of a line; a result with several turns has several."""
    source = read_object(line)
    if _is_session(source):
        yield from _turns(source)
        return
    number = source.get("number")
    if not isinstance(number, int):
        yield _entry(dict(source), None)
        return
    if not source.keys() >= _RESULT_KEYS:
        # In a structured answer, which has neither of these keys, it is a value of the answer.
        is_of_case = bool(source.keys() & {"outcome", "error"})
        plain = {key: value for key, value in source.items() if key != "number" or not is_of_case}
        yield _entry(plain, number if is_of_case else None)
        return
    for turn in list_of_objects(source, "earlier"):
        yield _entry(dict(turn), number)
    yield _entry({key: source[key] for key in source if key not in _RESULT_KEYS | _OTHER_KEYS}, number)


def _entry(source: dict[str, JsonValue], number: int | None) -> _Entry:
    utterance, error = source.pop("utterance", None), source.pop("error", None)
    if not isinstance(utterance, str):
        raise MessageUnreadable("it has no utterance; expected text")
    if error is None:
        return utterance, Recording(generated_data(source), number=number)
    if not isinstance(error, str):
        raise MessageUnreadable("its error is not text")
    return utterance, Recording(error=error, number=number)


def _entries_of_document(document: JsonValue) -> Iterator[_Entry]:
    if isinstance(document, Mapping) and "testCases" not in document and "result" in document:
        document = document["result"]
    is_list = isinstance(document, list)
    parts = document if isinstance(document, list) else [document]
    sessions = [session for session in parts if isinstance(session, Mapping) and _is_session(session)]
    if not parts:
        raise MessageUnreadable("it is a list without any run")
    if len(sessions) == len(parts):
        for session in sessions:
            yield from _turns(session)
        return
    prefixes = [f"run {place} of the list: " if is_list else "" for place in range(1, len(parts) + 1)]
    # All are read before the first answer is used.
    for run in [_run(source, prefix=prefix) for source, prefix in zip(parts, prefixes, strict=True)]:
        for case in sorted(run.cases, key=lambda case: case.iteration):
            for turn in case.earlier:
                yield turn.utterance, Recording(turn.generated, None, case.number)
            yield case.utterance, Recording(case.generated, case.error, case.number)


def _run(source: JsonValue, *, prefix: str = "") -> Run:
    if not isinstance(source, Mapping):
        raise MessageUnreadable(f"{prefix}it is not a results object")
    try:
        is_from_studio = any("subjectResponse" in case for case in list_of_objects(source, "testCases"))
        return read_testing_run(source) if is_from_studio else read_run(source)
    except MessageUnreadable as error:
        raise MessageUnreadable(f"{prefix}{error}") from None


def _is_session(document: JsonObject) -> bool:
    """Return whether a document is a recorded session: it has a list of runs."""
    return isinstance(document.get("runs"), list)


def _turns(session: JsonObject) -> Iterator[_Entry]:
    """Yield the user's message of each turn with the agent's answer.

    Several messages of one speaker in a turn are lines of one text. Turns without a message of the user are left out.
    Raise MessageUnreadable, with the turn, if an answer is not valid.
    """
    session_id = optional_text(object_at(session, "sessionState"), "sessionId")
    for turn, run in enumerate(list_of_objects(session, "runs"), 1):
        utterance, outcome = (_said(run, role) for role in ("user", "agent"))
        if utterance is None:
            continue
        if outcome is None:
            yield utterance, Recording(error="the agent did not answer in the recorded session")
            continue
        answer = {
            "outcome": outcome,
            "topic": optional_text(run, "topicName"),
            "actions": _actions(run),
            "latency_ms": number(run, "durationMs", None),
            "session_id": session_id,
        }
        try:
            yield utterance, Recording(generated_data(answer))
        except SubjectError as error:
            raise MessageUnreadable(f"turn {turn} of the session: {error}") from None


def _said(run: JsonObject, role: str) -> str | None:
    messages = list_of_objects(run, "messages")
    said = [text(message, "message") for message in messages if text(message, "actorRole").casefold() == role]
    return "\n".join(said) if said else None


def _actions(run: JsonObject) -> list[JsonObject] | None:
    """Return the actions among the steps; None if the session has no list of steps."""
    loop = object_at(run, "agentLoop")
    if not isinstance(loop.get("steps"), list):
        return None
    steps = list_of_objects(loop, "steps")
    return [_action(step) for step in steps if text(step, "type").upper() == ACTION_STEP]


def _action(step: JsonObject) -> JsonObject:
    given, output = (_value(step.get(key)) for key in ("input", "output"))
    named = given if isinstance(given, dict) or given is None else {"input": given}
    latency_ms = number(step, "durationMs", None)
    return {"name": text(step, "name"), "input": named, "output": output, "latency_ms": latency_ms}


def _value(value: JsonValue) -> JsonValue:
    """Return the JSON that a text contains, or else the value itself; an empty text is None."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value) if value else None
    except orjson.JSONDecodeError:
        return value
