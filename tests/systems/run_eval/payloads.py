"""Payloads of run-eval made for a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalmeta.systems.run_eval.payloads import read_payload

if TYPE_CHECKING:
    from evalmeta.formats.document import Document
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonObject

__all__ = ["SESSION", "STATE", "evaluator", "message", "payload", "read", "read_expectation"]

SESSION: JsonObject = {"type": "agent.create_session", "id": "cs"}
STATE: JsonObject = {"type": "agent.get_state", "id": "gs", "session_id": "{cs.session_id}"}


def message(text: str, name: str = "sm") -> JsonObject:
    """Return a step that sends a message."""
    return {"type": "agent.send_message", "id": name, "session_id": "{cs.session_id}", "utterance": text}


def evaluator(kind: str, **keys: object) -> JsonObject:
    """Return a step that judges the answer with `equals`, unless the keys say something else."""
    return {"type": f"evaluator.{kind}", "id": "check", "actual": "{sm.response}", "operator": "equals", **keys}  # type: ignore[dict-item]


def payload(*steps: JsonObject) -> bytes:
    """Return a payload with one test of these steps."""
    return json.dumps({"tests": [{"id": "t", "steps": steps}]}).encode()


def read(*steps: JsonObject, is_raw: bool = False) -> Document:
    """Read a payload with one test of these steps."""
    return read_payload(payload(*steps), label="p.json", name="p", is_raw=is_raw).document


def read_expectation(kind: str, **keys: object) -> Expectation:
    """Return the expectation of an evaluator after a message and its state."""
    [case] = read(SESSION, message("Hi"), STATE, evaluator(kind, **keys)).evaluation.cases
    [expectation] = case.turns[0].expectations
    return expectation
