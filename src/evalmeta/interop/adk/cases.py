"""The cases of an ADK eval set, as its files have them.

Sources: ADK-TS, "Testing Agents", Schema Reference; google-adk 2.13, eval_set.py and eval_case.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.interop.adk.content import read_content, read_intermediate
from evalmeta.interop.adk.keys import Keys, both
from evalmeta.interop.adk.rubrics import read_rubrics
from evalmeta.interop.jsonrecords import JsonRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.interop.adk.content import Call
    from evalmeta.interop.adk.rubrics import Rubric
    from evalmeta.interop.findings import Findings
    from evalmeta.interop.jsonreader import JsonFile
    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["AdkCase", "AdkTurn", "Reply", "Session", "read_eval_set", "read_session", "refuse_doubles"]

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


def read_eval_set(file: JsonFile, findings: Findings, keys: Keys) -> tuple[list[AdkCase], list[int]]:
    """Reads an eval set; gives its cases, and the line of each."""
    root = JsonRecord(file, (), findings, called="an eval set")
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
    refuse_doubles(cases, findings, lines)
    return cases, lines


def read_session(record: JsonRecord | None, keys: Keys) -> Session | None:
    """Reads what a session begins with; None when there is nothing."""
    if record is None:
        return None
    keys.check(record, *_SESSION)
    state = record.object("state") or {}
    return Session(record.text(*both("appName")) or "", record.text(*both("userId")) or "", state)


def refuse_doubles(cases: Sequence[AdkCase], findings: Findings, lines: Sequence[int]) -> None:
    """Notes a problem for every case whose id an earlier one has."""
    seen: dict[str, int] = {}
    for case, line in zip(cases, lines, strict=False):
        if case.eval_id and case.eval_id in seen:
            message = f"two cases have the id {case.eval_id!r}; the other one begins in line {seen[case.eval_id]}"
            findings.add("adk-id", message, line=line, hint="Give each case an id of its own.")
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
