"""References of evaluators to the outputs of earlier steps, as references into what the agent returned."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


LATENCY: Final = "latency"
OUTCOME: Final = "$.generatedData.outcome"
TOPIC: Final = "$.generatedData.topic"
ACTIONS: Final = "$.generatedData.invokedActions"
_SESSION: Final = "$.generatedData.sessionId"
_LAST: Final = r"(?:response\.)?(?:planner_response\.lastExecution|planner_state)\."
_REFERENCE: Final = re.compile(
    r"""\$\.outputs\[(?:(?P<place>\d{1,4})|\?\(@\.id\s*==\s*['"](?P<id>[^'"]+)['"]\))\]\.(?P<path>.+)""", re.DOTALL
)
_SHORT: Final = re.compile(r"\{(?P<id>[^{}.]+)\.(?P<path>[^{}]+)\}")
_PATHS: Final = (
    (re.compile(rf"{_LAST}topic"), TOPIC),
    (re.compile(rf"{_LAST}(?:invokedActions|actionsSequence)(?P<rest>[.\[].*)?", re.DOTALL), ACTIONS),
    (re.compile(rf"{_LAST}latency"), LATENCY),
    (re.compile(rf"{_LAST}message(?:\.message)?"), OUTCOME),
)
_OWN: Final = "$.generatedData"


class StepOutput(NamedTuple):
    """A step with an output: its id, its type, and the number of messages that were sent by then."""

    id: str
    type: str
    sent: int


class Reading(NamedTuple):
    """What an evaluator reads.

    Attributes:
        turn: the turn whose answer it reads, from 1; 0 for the last one.
        text: a reference into what the agent returned, `LATENCY`, or a literal.
        is_reference: whether it is not a literal.
        fault: why it can never be read; empty if it can.
        reason: why evalmeta cannot read it, although an org may; empty if it can.
    """

    turn: int = 0
    text: str = ""
    is_reference: bool = True
    fault: str = ""
    reason: str = ""


def read_operand(text: str, outputs: Sequence[StepOutput], *, is_raw: bool) -> Reading:
    """Return what the `actual` of an evaluator reads; with `is_raw`, the short form `{step.path}` is a literal."""
    text = text.strip()
    if text.startswith((f"{_OWN}.", f"{_OWN}[")):
        return Reading(text=text)
    found = _REFERENCE.fullmatch(text) or (None if is_raw else _SHORT.fullmatch(text))
    if found is None:
        if "$.outputs" in text or (not is_raw and _SHORT.search(text)):
            return Reading(reason=f"it reads only a whole reference, not {text!r:.80}")
        return Reading(text=text, is_reference=False)
    named = found.groupdict()
    keys = (str(at) if named.get("place") else output.id for at, output in enumerate(outputs))
    step = next((output for key, output in zip(keys, outputs, strict=True) if key == _key(named)), None)
    return Reading(fault=_missing(named, outputs)) if step is None else _read_output(step, named["path"], text)


def _key(named: Mapping[str, str]) -> str:
    return named.get("place") or named["id"]


def _missing(named: Mapping[str, str], outputs: Sequence[StepOutput]) -> str:
    if place := named.get("place"):
        return f"it reads output {place}; the outputs of the test have the numbers 0 to {len(outputs) - 1}"
    known = ", ".join(output.id for output in outputs)
    return f"it reads the step {named['id']!r:.80}, which does not exist; known: {known}"


def _read_output(step: StepOutput, path: str, text: str) -> Reading:
    if step.type == "agent.create_session" and path == "session_id":
        return Reading(1, _SESSION)
    if not step.sent:
        return Reading(reason=f"{text!r:.100} reads what was before the first message")
    if step.type == "agent.send_message" and (path == "response" or path.startswith("response.messages")):
        return Reading(step.sent, OUTCOME)
    for pattern, reference in _PATHS:
        if found := pattern.fullmatch(path):
            return Reading(step.sent, reference + (found.groupdict().get("rest") or ""))
    return Reading(step.sent, reason=f"its agents do not report {path!r:.80}")
