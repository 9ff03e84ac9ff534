"""The cases of an ADK eval set, as its files have them.

Sources: ADK-TS, "Testing Agents", Schema Reference; google-adk 2.13, eval_set.py and eval_case.py.

What is said and called in ADK's files: content with its parts, and function calls.

The keys of ADK's files, which come in camelCase (TypeScript) and in snake_case (Python).

ADK's rubrics: properties that a judge says yes or no to, of a criterion, of a case or of a turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.formats.diagnostics import did_you_mean
from evalmeta.formats.json_source import JsonRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.formats.diagnostics import Diagnostics
    from evalmeta.formats.json_source import JsonFile
    from evalmeta.model.json_value import JsonObject, JsonValue


_SET: Final = ("evalSetId", "name", "description", "evalCases", "creationTimestamp")
_CASE: Final = (
    *("evalId", "conversation", "conversationScenario", "sessionInput", "creationTimestamp", "rubrics"),
    "finalSessionState",
)
_INVOCATION: Final = (
    *("invocationId", "userContent", "finalResponse", "intermediateData", "creationTimestamp", "rubrics"),
    *("duration", "appDetails"),
)
_SESSION: Final = ("appName", "userId", "sessionId", "state")
_CONTENT: Final = 'Write {"role": "user", "parts": [{"text": "..."}]}.'


class Reply(NamedTuple):
    """What an agent is expected to say on its way to an answer; nothing is judged by it."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class AdkTurn:
    """One turn.

    Attributes:
        reference: the answer that is expected; None when the file has none.
        calls: the tool calls that are expected; None when the file has none, which is not an empty list.
    """

    utterance: str
    reference: str | None = None
    calls: tuple[Call, ...] | None = None
    replies: tuple[Reply, ...] = ()
    rubrics: tuple[Rubric, ...] = ()


def _no_state() -> JsonObject:
    return {}


@dataclass(frozen=True, slots=True)
class Session:
    """What a case's session begins with."""

    app_name: str = ""
    user_id: str = ""
    state: JsonObject = field(default_factory=_no_state)


@dataclass(frozen=True, slots=True)
class AdkCase:
    """One case; the session is None when the file has none."""

    eval_id: str
    turns: tuple[AdkTurn, ...]
    session: Session | None = None
    rubrics: tuple[Rubric, ...] = ()


def read_eval_set(file: JsonFile, diagnostics: Diagnostics, keys: Keys) -> tuple[list[AdkCase], list[int]]:
    """Reads an eval set; gives its cases, and the line of each."""
    root = JsonRecord(file, (), diagnostics, called="an eval set")
    keys.check(root, *_SET)
    root.required_text(*both("evalSetId"))
    for name in ("name", "description"):
        root.text(name)
    root.number(*both("creationTimestamp"))
    names = both("evalCases")
    if not root.has(*names):
        root.missing("evalCases")
    elif not root.items(*names) and isinstance(root.raw(*names), list):
        root.refuse("adk-empty", f"{root.key(*names)!r} is empty: nothing would be asked", *names)
    lines = file.lines_of((root.key(*names),))
    cases = [_case(record, keys) for record in root.records(*names, called="a case")]
    refuse_doubles(cases, diagnostics, lines)
    return cases, lines


def read_session(record: JsonRecord | None, keys: Keys) -> Session | None:
    """Reads what a session begins with; None when there is nothing."""
    if record is None:
        return None
    keys.check(record, *_SESSION)
    state = record.object("state") or {}
    return Session(record.text(*both("appName")) or "", record.text(*both("userId")) or "", state)


def refuse_doubles(cases: Sequence[AdkCase], diagnostics: Diagnostics, lines: Sequence[int]) -> None:
    """Notes a problem for every case whose id an earlier one has."""
    seen: dict[str, int] = {}
    for case, line in zip(cases, lines, strict=False):
        if case.eval_id and case.eval_id in seen:
            message = f"two cases have the id {case.eval_id!r}; the other one begins in line {seen[case.eval_id]}"
            diagnostics.error("adk-id", message, line=line, hint="Give each case an id of its own.")
        seen.setdefault(case.eval_id, line)


def _case(record: JsonRecord, keys: Keys) -> AdkCase:
    keys.check(record, *_CASE)
    eval_id = record.required_text(*both("evalId"))
    if record.has(*both("evalId")) and not eval_id.strip():
        record.refuse("adk-id", "the id of a case is empty", *both("evalId"))
    if record.raw(*both("finalSessionState")):
        message = f"{record.key(*both('finalSessionState'))!r} is passed over: nothing judges by it"
        record.note("adk-unused", message, *both("finalSessionState"))
    session = read_session(record.record(*both("sessionInput"), called="a session's input"), keys)
    if record.has(*both("conversationScenario")):
        message = f"case {eval_id!r} has a conversation scenario, and users are not simulated here"
        hint = "Write what the user says as 'conversation', turn by turn."
        record.refuse("adk-scenario", message, *both("conversationScenario"), hint=hint)
        return AdkCase(eval_id, (), session)
    return AdkCase(eval_id, tuple(_turns(record, eval_id, keys)), session, read_rubrics(record, keys))


def _turns(record: JsonRecord, eval_id: str, keys: Keys) -> Iterator[AdkTurn]:
    if record.is_object and not record.has("conversation"):
        record.missing("conversation")
    elif record.raw("conversation") == []:
        message = f"the conversation of case {eval_id!r} is empty: nothing would be asked"
        record.refuse("adk-empty", message, "conversation")
    for each in record.records("conversation", called="a turn"):
        keys.check(each, *_INVOCATION)
        utterance, reference, calls = _utterance(each, keys), _reference(each, keys), _calls(each, keys)
        yield AdkTurn(utterance, reference, calls, rubrics=read_rubrics(each, keys))


def _utterance(turn: JsonRecord, keys: Keys) -> str:
    names = both("userContent")
    record = turn.record(*names, called="what the user says")
    if record is None:
        if turn.is_object:
            turn.missing("userContent", hint=_CONTENT)
        return ""
    content = read_content(record, keys)
    if content.text:
        if content.others:
            turn.note("adk-media", f"what the user says has {_listed(content.others)} too, which is not asked", *names)
    elif record.is_object:
        what = f"has {_listed(content.others)} and no text; only texts are asked" if content.others else "has no text"
        turn.refuse("adk-media", f"what the user says {what}", *names, hint=_CONTENT)
    return content.text or ""


def _reference(turn: JsonRecord, keys: Keys) -> str | None:
    names = both("finalResponse")
    record = turn.record(*names, called="the final response")
    if record is None:
        return None
    content = read_content(record, keys)
    if content.text is None and record.is_object:
        what = f"has {_listed(content.others)} and no text" if content.others else "has no text"
        turn.note("adk-media", f"the final response {what}; no answer is compared with it", *names)
    return content.text


def _calls(turn: JsonRecord, keys: Keys) -> tuple[Call, ...] | None:
    record = turn.record(*both("intermediateData"), called="the intermediate data")
    return read_intermediate(record, keys) if record else None


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(dict.fromkeys(names))


_MEDIA: Final = (
    *("inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)


_HUMP: Final = re.compile("[A-Z]")


def snake(name: str) -> str:
    """Gives a name in camelCase as Python spells it: `evalSetId` is `eval_set_id`."""
    return _HUMP.sub(lambda found: f"_{found[0].lower()}", name)


@cache
def both(name: str) -> tuple[str, ...]:
    """Gives both spellings of a name in camelCase; one when they are the same."""
    other = snake(name)
    return (name,) if other == name else (name, other)


_MEDIA_KEYS: Final = frozenset(spelling for name in _MEDIA for spelling in both(name))
_PART: Final = ("text", "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", *_MEDIA)
_CALL: Final = ("id", "name", "args", "partialArgs", "willContinue")
_EVENT: Final = ("author", "content")
_INTERMEDIATE: Final = ("toolUses", "toolResponses", "intermediateResponses", "invocationEvents")


class Call(NamedTuple):
    """A tool call that is expected."""

    name: str
    args: JsonObject

    def as_json(self) -> JsonObject:
        """Gives the call as scorers are told it."""
        return {"name": self.name, "args": self.args}


class Content(NamedTuple):
    """What was said.

    Attributes:
        text: its parts with text, a line each; None when no part has a text.
        others: the kinds of its other parts, such as `inline_data`.
    """

    text: str | None
    others: tuple[str, ...]


def read_content(record: JsonRecord, keys: Keys) -> Content:
    """Reads a message: the text of its parts, without those that are thoughts."""
    keys.check(record, "role", "parts")
    texts: list[str] = []
    others: list[str] = []
    for part in record.records("parts", called="a part"):
        keys.check(part, *_PART)
        others += (key for key, value in part.values.items() if key in _MEDIA_KEYS and value is not None)
        text = part.text("text")
        if text is not None and not part.boolean("thought"):
            texts.append(text)
    return Content("\n".join(texts) if texts else None, tuple(others))


def read_intermediate(record: JsonRecord, keys: Keys) -> tuple[Call, ...] | None:
    """Reads the tool calls of a turn's intermediate data, in both forms; None when it has none of them."""
    keys.check(record, *_INTERMEDIATE)
    if record.has(*both("toolUses")) and record.has(*both("invocationEvents")):
        message = "the expected tool calls stand twice, in 'toolUses' and in 'invocationEvents'"
        record.refuse("adk-form", message, *both("invocationEvents"), hint="Keep one of them.")
    if record.has(*both("invocationEvents")):
        return tuple(_event_calls(record, keys))
    if not record.has(*both("toolUses")):
        return None
    return tuple(_call(each, keys) for each in record.records(*both("toolUses"), called="a tool use"))


def _event_calls(record: JsonRecord, keys: Keys) -> Iterator[Call]:
    for event in record.records(*both("invocationEvents"), called="an event"):
        keys.check(event, *_EVENT)
        content = event.record("content", called="an event's content")
        for part in content.records("parts", called="a part") if content else ():
            keys.check(part, *_PART)
            if call := part.record(*both("functionCall"), called="a function call"):
                yield _call(call, keys)


def _call(record: JsonRecord, keys: Keys) -> Call:
    keys.check(record, *_CALL)
    return Call(record.required_text("name"), record.object("args") or {})


@cache
def _spellings(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(spelling for name in names for spelling in both(name))


class Keys:
    """Warns of keys that a kind of object does not have, of each of them once in a file; refuses doubled ones."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def check(self, record: JsonRecord, *names: str) -> None:
        """Warns of every key that is none of `names` in either spelling; what is null counts as left out.

        A key that is there in both spellings is a problem: only one of them would be read.
        """
        known = _spellings(names)
        for name in names:
            if name != (other := snake(name)) and record.has(name) and record.has(other):
                message = f"{record.called} has {name!r} and {other!r}, which are one key"
                record.refuse("adk-key", message, other, hint="Keep one of them.")
        for key, value in record.values.items():
            place = (record.called, key)
            if key in known or value is None or place in self._told:
                continue
            self._told.add(place)
            nearest = did_you_mean(key, [snake(name) for name in names] if "_" in key else names)
            record.note("json-key", f"{record.called} has no key {key!r}; it is passed over", key, hint=nearest)


RUBRIC_TYPES: Final = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
}
"""The metrics that judge by rubrics, and the type of those that cases and turns have for them."""


class Rubric(NamedTuple):
    """One rubric; without a type it is for every metric."""

    id: str
    text: str
    type: str = ""


def read_rubrics(record: JsonRecord, keys: Keys) -> tuple[Rubric, ...]:
    """Reads the rubrics of an object; two with the same id are a problem."""
    found: dict[str, Rubric] = {}
    for each in record.records("rubrics", called="a rubric"):
        keys.check(each, "rubricId", "rubricContent", "description", "type")
        content = each.record(*both("rubricContent"), called="a rubric's content")
        if content is None and each.is_object:
            each.missing("rubricContent", hint='Write {"text_property": "..."}.')
        text = content.required_text(*both("textProperty")) if content else ""
        rubric = Rubric(each.required_text(*both("rubricId")), text, (each.text("type") or "").upper())
        if rubric.id in found:
            each.refuse("adk-id", f"two rubrics have the id {rubric.id!r}", *both("rubricId"))
        found[rubric.id] = rubric
    return tuple(found.values())


def rubric_terms(rubrics: Iterable[Rubric]) -> JsonValue:
    """Gives rubrics as scorers are told them."""
    return [{"id": each.id, "text": each.text} for each in rubrics]
