"""What the check `state` expects of the state of an agent's session: a value at a path.

A path is a JSONPath. Without `$`, it is names and indexes: `order.items[0].id` is `$['order']['items'][0]['id']`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.model.definition import Expectation
from evalmeta.model.expected_values import text_of

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue

_NAME: Final = re.compile(r"(?:^|\.)([^.\[\]*]+)")
_PLAIN_NAME: Final = re.compile(r"[^\s.\[\]*$'\"\\][^.\[\]*'\"\\]*(?<!\s)")


STATE: Final = "state"
"""The name of the check."""


def expected_state(path: str, value: JsonValue, *, literal: bool = False) -> Expectation:
    """Return the expectation of a value at a path; in a literal value, no mapping is a matcher."""
    path = path.strip()
    terms: JsonObject = {"path": path, "expected": value, **({"literal": True} if literal else {})}
    return Expectation(STATE, label=f"{STATE} {path} {text_of(value)}", terms=terms)


def state_reference(path: str) -> str:
    """Return the JSONPath that a path into a state stands for."""
    path = path.strip()
    if path.startswith("$"):
        return path
    dot = "." if path.startswith("*") else ""
    return f"${dot}{_NAME.sub(lambda step: _quoted(step[1]), path)}"


def state_path(name: str) -> str:
    """Return the path to a value of a state by its name, which can have any characters."""
    return name if _PLAIN_NAME.fullmatch(name) else f"${_quoted(name)}"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"
