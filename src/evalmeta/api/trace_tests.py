"""Tests proposed from traces: what agents were asked and did, as cases of a test spec that a person must review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import orjson

from evalmeta.api.judging.accepted_calls import new_call
from evalmeta.api.specs import write_converted
from evalmeta.errors import FormatError, NotFound, UsageError
from evalmeta.formats.spec_cases import case_of
from evalmeta.formats.testspec import read_spec
from evalmeta.formats.yaml_source import write_yaml
from evalmeta.model.redaction import HIDDEN
from evalmeta.package.files import shown, state_of
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.traces.turns import TracedTurn


_Fields: TypeAlias = "dict[str, JsonValue]"

_ENDINGS: Final = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """Which turns are chosen: those that meet all conditions. An empty condition is met by every turn."""

    trace_ids: frozenset[str] = frozenset()
    numbers: frozenset[int] | None = None  # as they are shown, from 1
    text: str = ""  # a part of the utterance, in upper or lower case
    last: int | None = None  # at most so many of the others, the last ones

    def choose(self, turns: Sequence[TracedTurn]) -> dict[int, TracedTurn]:
        """Return the chosen turns by number; raise NotFound if there are none, or for an unknown trace or number."""
        self._check_known(turns)
        chosen = [
            (number, turn)
            for number, turn in enumerate(turns, 1)
            if (not self.trace_ids or turn.trace_id in self.trace_ids)
            and (self.numbers is None or number in self.numbers)
            and self.text.casefold() in (turn.utterance or "").casefold()
        ]
        if not chosen:
            raise NotFound(f"none of the {len(turns):,} turns is chosen", actions=["Show all of them without options."])
        return dict(chosen if self.last is None else chosen[-self.last :])

    def _check_known(self, turns: Sequence[TracedTurn]) -> None:
        if unknown := sorted(self.trace_ids - {turn.trace_id for turn in turns}):
            raise NotFound(f"no turn has the trace {', '.join(unknown)}")
        if high := sorted(number for number in self.numbers or () if not 1 <= number <= len(turns)):
            raise NotFound(f"there is no turn {high[0]}: the files have {count(len(turns), 'turn')}")


class LeftOut(NamedTuple):
    """A turn that is not in a proposed test."""

    trace_id: str
    why: str


@dataclass(frozen=True, slots=True)
class ProposedTests:
    """Proposed cases as a test spec, and what a person should know of them.

    Attributes:
        repeated: the number of conversations that are the same as an earlier one, and so are in no case of their own.
        noted: the numbers of the cases that lack something, such as a secret; their metadata say what.
    """

    content: bytes
    cases: int
    turns: int
    repeated: int
    noted: tuple[int, ...]
    left_out: tuple[LeftOut, ...]


def check_target(path: Path, *, overwrite: bool) -> None:
    """Raise UsageError if proposed tests cannot be written to a path."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{shown(path)} is not a name of a test spec", actions=["Write --to tests/traces.yaml"])
    if not overwrite and path.exists() and state_of(path, b"") == "Changed":
        raise UsageError(f"{shown(path)} exists, and nothing was written.", actions=["Overwrite it with --force."])


def propose_tests(
    turns: Sequence[TracedTurn], chosen: Mapping[int, TracedTurn], *, subject: str | None = None
) -> ProposedTests:
    """Propose a case for each conversation with a chosen turn, marked for review.

    The case has the turns up to the last chosen one, because an answer depends on what was said before. It expects
    the topics and actions of the agent. What is unknown is not expected. Texts are not expected: whether
    an answer was good is for a person to say.

    Raises:
        FormatError: no turn can become a test.
    """
    cases: dict[bytes, _Fields] = {}
    times: dict[bytes, int] = {}
    left_out: list[LeftOut] = []
    for conversation in _conversations(turns, chosen):
        usable = _usable(conversation, left_out)
        if not usable:
            continue
        case = _case(usable)
        why = "neither its topic nor its actions are known" if case is None else _why_not_valid(case)
        if case is None or why:
            left_out += [LeftOut(turn.trace_id, why) for turn in usable]
            continue
        key = orjson.dumps({name: value for name, value in case.items() if name != "metadata"})
        cases.setdefault(key, case)
        times[key] = times.get(key, 0) + 1
    if not cases:
        reasons = "; ".join(dict.fromkeys(turn.why for turn in left_out))
        raise FormatError(f"no trace can become a test: {reasons}")
    for key, case in cases.items():
        if times[key] > 1 and isinstance(known := case["metadata"], dict):
            case["metadata"] = {**known, "times": times[key]}
    listed = list(cases.values())
    head: JsonObject = {} if subject is None else {"subject": subject}
    content = write_yaml({**head, "testCases": [{**case, "review": True} for case in listed]})
    read_spec(content, label="the proposed tests")
    return ProposedTests(
        content,
        len(listed),
        sum(len(_turns_of(case)) for case in listed),
        sum(times.values()) - len(listed),
        tuple(number for number, case in enumerate(listed, 1) if "note" in _metadata_of(case)),
        tuple(left_out),
    )


def write_tests(path: Path, proposed: ProposedTests, *, overwrite: bool) -> None:
    """Write proposed tests; raise UsageError if another file is there."""
    write_converted(path, proposed.content, overwrite=overwrite)


def _conversations(turns: Sequence[TracedTurn], chosen: Container[int]) -> Iterator[list[TracedTurn]]:
    """Yield the turns of each conversation up to the last chosen one; a trace without one is a conversation."""
    found: dict[tuple[object, ...], list[int]] = {}
    for number, turn in enumerate(turns, 1):
        key = (turn.run, turn.case) if turn.run else (turn.session,) if turn.session else (turn.trace_id, turn.case)
        found.setdefault(key, []).append(number)
    for numbers in found.values():
        numbers.sort(key=lambda number: turns[number - 1].started_ns)
        while numbers and numbers[-1] not in chosen:
            numbers.pop()
        if numbers:
            yield [turns[number - 1] for number in numbers]


def _usable(conversation: Sequence[TracedTurn], left_out: list[LeftOut]) -> list[TracedTurn]:
    """Return the turns until the first that no test can ask; the later ones are answers to it too."""
    for place, turn in enumerate(conversation):
        if why := _why_not_asked(turn):
            left_out.append(LeftOut(turn.trace_id, why))
            later = conversation[place + 1 :]
            left_out += [LeftOut(other.trace_id, "an earlier turn of its conversation is left out") for other in later]
            return list(conversation[:place])
    return list(conversation)


def _why_not_asked(turn: TracedTurn) -> str:
    if turn.utterance is None or not turn.utterance.strip():
        return "its utterance is unknown"
    if not turn.is_whole:
        return "its trace is incomplete"
    if turn.error is not None:
        return f"it ended in an error: {' '.join(turn.error.split()):.200}"
    return "its answer is unknown" if turn.answer is None else ""


def _case(turns: Sequence[TracedTurn]) -> _Fields | None:
    """Return the case of a conversation; None if nothing of it is known that a test could check."""
    notes: list[str] = []
    asked = [_turn(turn, f"turn {number}: " if len(turns) > 1 else "", notes) for number, turn in enumerate(turns, 1)]
    if all(len(turn) == 1 for turn in asked):
        return None
    metadata: _Fields = {"trace": turns[0].trace_id}
    if notes:
        metadata["note"] = "; ".join(notes)
    body: _Fields = asked[0] if len(asked) == 1 else {"turns": list(asked)}
    return {**body, "metadata": metadata}


def _turn(turn: TracedTurn, where: str, notes: list[str]) -> _Fields:
    utterance = turn.utterance or ""
    if HIDDEN in utterance:
        notes.append(f"{where}the input has a hidden secret")
    asked: _Fields = {"input": utterance}
    if turn.topic and turn.topic.strip():
        asked["topic"] = turn.topic
    if turn.actions is not None:
        asked["actions"] = [_call(action, where, notes) for action in turn.actions]
    return asked


def _call(action: Action, where: str, notes: list[str]) -> JsonValue:
    left_out: list[str] = []
    call = new_call(action, left_out)
    notes += [f"{where}{text}" for text in left_out]
    return call


def _why_not_valid(case: JsonObject) -> str:
    try:
        case_of(case, 1)
    except FormatError as error:
        return f"a test spec cannot hold it: {error}"
    return ""


def _turns_of(case: JsonObject) -> Sequence[object]:
    turns = case.get("turns")
    return turns if isinstance(turns, list) else [case]


def _metadata_of(case: JsonObject) -> JsonObject:
    metadata = case.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
