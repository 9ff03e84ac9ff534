"""The cases of ADK's eval sets, read from their files.

Sources: ADK-TS, "Testing Agents", Schema Reference; google-adk 2.13, eval_set.py and eval_case.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.errors import did_you_mean
from evalmeta.formats.diagnostics import Diagnostics, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.formats.sources import JsonFile
    from evalmeta.model.json_value import JsonObject


Dialect = Literal["python", "typescript"]
ADK_CONFIG: Final = "test_config.json"
"""The file beside ADK's files that has their criteria."""
RUBRIC_TYPES: Final = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}
"""The metrics that judge by rubrics, and the type of the rubrics of cases and turns that are meant for them."""

_CONTENT_HINT: Final = 'Write {"role": "user", "parts": [{"text": "..."}]}.'
_SET: Final = ("evalSetId", "name", "description", "evalCases", "creationTimestamp")
_CASE: Final = (
    *("evalId", "conversation", "conversationScenario", "sessionInput", "creationTimestamp", "rubrics"),
    *("finalSessionState", "name", "description"),
)
_SESSION: Final = ("appName", "userId", "sessionId", "state")
_RUBRIC: Final = ("rubricId", "rubricContent", "description", "type")
_TURN: Final = (
    *("invocationId", "userContent", "finalResponse", "intermediateData", "creationTimestamp", "rubrics"),
    *("duration", "modelDuration", "toolDuration", "appDetails"),
)
_EVENT: Final = ("author", "content", "groundingMetadata", "usageMetadata", "modelVersion")
_INTERMEDIATE: Final = ("toolUses", "toolResponses", "intermediateResponses", "invocationEvents")
_MEDIA: Final = (
    *("inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)
_PART: Final = ("text", "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", *_MEDIA)
_CALL: Final = ("id", "name", "args", "partialArgs", "willContinue")
KEYS: Final = (
    *(*_SET, *_CASE, *_SESSION, *_RUBRIC, *_TURN, *_INTERMEDIATE, *_EVENT, *_PART, *_CALL),
    *("textProperty", "mimeType", "fileUri", "displayName", "startOffset", "endOffset"),
)
"""The keys of an eval set in camelCase."""

_COMMENTS: Final = ("_", "$", "//")
"""The beginnings of keys that people use for comments."""

_MEANT: Final = {
    "expected_tool_use": 'Write "intermediate_data": {"tool_uses": [{"name": "...", "args": {}}]}.',
    "expectedToolUse": 'Write "intermediateData": {"toolUses": [{"name": "...", "args": {}}]}.',
    "reference": 'Write "final_response": {"role": "model", "parts": [{"text": "..."}]}.',
}
"""What to write instead of keys of other formats."""

_HUMP: Final = re.compile("[A-Z]")


class Call(NamedTuple):
    """An expected tool call."""

    name: str
    args: JsonObject

    def as_json(self) -> JsonObject:
        """Return the call as scorers receive it."""
        return {"name": self.name, "args": self.args}


class Reply(NamedTuple):
    """An expected message of an agent before its answer; it is not judged."""

    author: str
    text: str


class Rubric(NamedTuple):
    """A property that a judge confirms or denies; one without a type is for every metric."""

    id: str
    text: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class AdkTurn:
    """One turn."""

    utterance: str
    reference: str | None = None  # the expected answer; None when the file has none
    calls: tuple[Call, ...] | None = None  # empty if no calls are expected, None if the file does not say
    replies: tuple[Reply, ...] = ()
    rubrics: tuple[Rubric, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """The start of a case's session."""

    app_name: str = ""
    user_id: str = ""
    state: JsonObject = field(default_factory=dict)
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class AdkCase:
    """One case."""

    eval_id: str
    turns: tuple[AdkTurn, ...]
    session: Session | None = None  # the start of its session; None when the file has none
    rubrics: tuple[Rubric, ...] = ()
    final_state: JsonObject = field(default_factory=dict)  # what the state of the session must have at the end
    not_run: str = ""  # why the case cannot be run; empty if it can


def snake(name: str) -> str:
    """Return a name in camelCase as Python spells it: `evalSetId` is `eval_set_id`."""
    return _HUMP.sub(lambda hump: f"_{hump[0].lower()}", name)


@cache
def both(name: str) -> tuple[str, ...]:
    """Return both spellings of a name in camelCase; one when they are the same."""
    return tuple(dict.fromkeys((name, snake(name))))


@cache
def _spellings(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(spelling for name in names for spelling in both(name))


class AdkRecord(Record):
    """An object of ADK's files, whose keys are in camelCase (TypeScript) or in snake_case (Python)."""

    def spellings(self, names: tuple[str, ...]) -> Sequence[str]:
        """Return every name in both spellings."""
        return _spellings(names)

    def check_keys(self, *names: str) -> None:
        """Warn of other keys, of each once in a file, and report keys that the object has in both spellings."""
        for name in names:
            spelt = [text for text in both(name) if self.values.get(text) is not None]
            if len(spelt) > 1:
                message = f"{self.called} has {spelt[0]!r} and {spelt[1]!r}, which are one key"
                self.error("adk-key", message, spelt[1], hint="Keep one of them.")
        known = frozenset(_spellings(names))
        for key, value in self.values.items():
            if key in known or key.startswith(_COMMENTS) or value is None:
                continue
            if self.diagnostics.is_first(self.called, key):
                nearest = _MEANT.get(key) or did_you_mean(key, [snake(name) for name in names] if "_" in key else names)
                self.warn("json-key", f"{self.called} has no key {key!r}; it is ignored", key, hint=nearest)


def read_eval_set(file: JsonFile, diagnostics: Diagnostics) -> tuple[list[AdkCase], list[int]]:
    """Read an eval set; return its cases, and the line of each."""
    root = AdkRecord(file, (), file.value, diagnostics, called="an eval set")
    root.check_keys(*_SET)
    root.required_text("evalSetId")
    for name in ("name", "description"):
        root.text(name)
    root.number("creationTimestamp")
    if root.require("evalCases") and root.raw("evalCases") == []:
        root.error("adk-empty", f"{root.key('evalCases')!r} is empty: add at least one case", "evalCases")
    cases = [_case(record) for record in root.records("evalCases", called="a case")]
    # Without a list there are no lines.
    lines = [*islice(chain(file.lines_of((root.key("evalCases"),)), repeat(0)), len(cases))]
    report_repeated_ids(cases, diagnostics, lines)
    return cases, lines


def report_repeated_ids(cases: Sequence[AdkCase], diagnostics: Diagnostics, lines: Sequence[int]) -> None:
    """Report every case that has the id of an earlier one."""
    first: dict[str, int] = {}
    for case, line in zip(cases, lines, strict=False):
        if case.eval_id and case.eval_id in first:
            message = f"two cases have the id {case.eval_id!r}; the other one begins in line {first[case.eval_id]}"
            diagnostics.error("adk-id", message, line=line, hint="Give each case a unique id.")
        first.setdefault(case.eval_id, line)


def read_session(record: AdkRecord | None) -> Session | None:
    """Read the start of a session; None when there is none."""
    if record is None:
        return None
    record.check_keys(*_SESSION)
    app_name, user_id, session_id = (record.text(name) or "" for name in ("appName", "userId", "sessionId"))
    return Session(app_name, user_id, record.object("state"), session_id)


def read_rubrics(record: AdkRecord) -> tuple[Rubric, ...]:
    """Read the rubrics of an object; two with the same id are a problem."""
    by_id: dict[str, Rubric] = {}
    for rubric_record in record.records("rubrics", called="a rubric"):
        rubric_record.check_keys(*_RUBRIC)
        rubric_record.require("rubricContent", hint='Write {"text_property": "..."}.')
        content = rubric_record.record("rubricContent", called="a rubric's content")
        text = content.required_text("textProperty") if content else ""
        rubric = Rubric(rubric_record.required_text("rubricId"), text, (rubric_record.text("type") or "").upper())
        if rubric.id in by_id:
            rubric_record.error("adk-id", f"two rubrics have the id {rubric.id!r}", "rubricId")
        by_id[rubric.id] = rubric
    return tuple(by_id.values())


def _case(record: AdkRecord) -> AdkCase:
    record.check_keys(*_CASE)
    eval_id = record.required_text("evalId")
    if record.has("evalId") and not eval_id.strip():
        record.error("adk-id", "the id of a case is empty", "evalId")
    session = read_session(record.record("sessionInput", called="a session's input"))
    if record.has("conversationScenario"):
        return AdkCase(eval_id, (_first_turn(record, eval_id),), session, not_run=_NO_USER)
    if record.require("conversation") and record.raw("conversation") == []:
        message = f"the conversation of case {eval_id!r} is empty: add at least one turn"
        record.error("adk-empty", message, "conversation")
    turns = tuple(map(_turn, record.records("conversation", called="a turn")))
    return AdkCase(eval_id, turns, session, read_rubrics(record), record.object("finalSessionState"))


_NO_USER: Final = "it has a conversation scenario, and evalmeta does not simulate users"


def _first_turn(record: AdkRecord, eval_id: str) -> AdkTurn:
    """Return what the user of a scenario says first, and warn that the case is not run."""
    message = f"case {eval_id!r} is not run, and counts as an error: {_NO_USER}"
    hint = "Write what the user says as 'conversation', turn by turn."
    record.warn("adk-scenario", message, "conversationScenario", hint=hint)
    scenario = record.record("conversationScenario", called="a conversation scenario")
    return AdkTurn((scenario.text("startingPrompt") if scenario else None) or "")


def _turn(record: AdkRecord) -> AdkTurn:
    record.check_keys(*_TURN)
    data = record.record("intermediateData", called="the intermediate data")
    calls = _intermediate_calls(data) if data else None
    return AdkTurn(_utterance(record), _reference(record), calls, rubrics=read_rubrics(record))


def _utterance(turn: AdkRecord) -> str:
    turn.require("userContent", hint=_CONTENT_HINT)
    content = turn.record("userContent", called="the user's message")
    if content is None:
        return ""
    text, media = _content(content)
    if text and media:
        turn.warn("adk-media", f"the user's message also has {media}, which is not sent", "userContent")
    elif not text and content.is_object:
        what = f"has {media} and no text; only text is sent" if media else "has no text"
        turn.error("adk-media", f"the user's message {what}", "userContent", hint=_CONTENT_HINT)
    return text or ""


def _reference(turn: AdkRecord) -> str | None:
    content = turn.record("finalResponse", called="the final response")
    if content is None:
        return None
    text, media = _content(content)
    if text is None:
        what = f"has {media} and no text" if media else "has no text"
        turn.warn("adk-media", f"the final response {what}; no answer is compared with it", "finalResponse")
    return text


def _content(record: AdkRecord) -> tuple[str | None, str]:
    """Read a message: the lines of its parts that are texts and not thoughts, and the kinds of its other parts."""
    record.check_keys("role", "parts")
    texts: list[str] = []
    media: dict[str, None] = {}
    for part in record.records("parts", called="a part"):
        part.check_keys(*_PART)
        media |= dict.fromkeys(part.key(name) for name in _MEDIA if part.has(name))
        text = part.text("text")
        if text is not None and not part.boolean("thought"):
            texts.append(text)
    return "\n".join(texts) if texts else None, " and ".join(media)


def _intermediate_calls(record: AdkRecord) -> tuple[Call, ...]:
    """Read the tool calls of intermediate data, in both forms.

    Intermediate data without calls expects none: adk-python leaves empty lists out when it writes a file.
    """
    record.check_keys(*_INTERMEDIATE)
    if record.has("invocationEvents"):
        if record.has("toolUses"):
            message = "the expected tool calls are given twice, in 'toolUses' and in 'invocationEvents'"
            record.error("adk-form", message, "invocationEvents", hint="Keep one of them.")
        return tuple(_event_calls(record))
    return tuple(map(_call, record.records("toolUses", called="a tool use")))


def _event_calls(record: AdkRecord) -> Iterator[Call]:
    for event in record.records("invocationEvents", called="an event"):
        event.check_keys(*_EVENT)
        content = event.record("content", called="an event's content")
        for part in content.records("parts", called="a part") if content else ():
            part.check_keys(*_PART)
            if call := part.record("functionCall", called="a function call"):
                yield _call(call)


def _call(record: AdkRecord) -> Call:
    record.check_keys(*_CALL)
    return Call(record.required_text("name"), record.object("args"))
