"""Doubles that are proposed for actions: a row that answers every call, with examples of the outputs' types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.formats.yaml_source import write_yaml
from evalmeta.systems.agent_script.tools import output_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.agent_script.nodes import ActionDefinition, Parameter
    from evalmeta.formats.yaml_source import Yaml

_REVIEW: Final = """\
# Proposed from the types of the outputs. Replace the values with what the action returns, and add rows with `inputs`
# for other calls. Then remove `review`: until then, cases that use the row are judged by topics and actions only.
"""
_DATE: Final = "2026-01-15"
_EXAMPLES: Final[dict[str, Yaml]] = {
    "number": 1,
    "boolean": True,
    "object": {},
    "lightning__dateType": _DATE,
    "lightning__dateTimeStringType": f"{_DATE}T09:00:00Z",
    "lightning__urlType": "https://example.com",
}
# Scripts read such an output as a failure, whatever its text is.
_FAILURE: Final = re.compile(r"error|fail|exception", re.IGNORECASE)


def proposed_rows(actions: Sequence[ActionDefinition]) -> bytes:
    """Return the content of a file of rows for the actions with one name: one row, which answers all calls of them.

    It has an example of each output that all of them declare, and `review: true` if any of them declares one.
    """
    row: dict[str, Yaml] = {"outputs": example_outputs(actions)}
    if not needs_review(actions):
        return write_yaml([row])
    return _REVIEW.encode() + write_yaml([{**row, "review": True}])


def needs_review(actions: Sequence[ActionDefinition]) -> bool:
    """Return whether an action with one name returns something, which examples only guess."""
    return any(action.outputs for action in actions)


def example_outputs(actions: Sequence[ActionDefinition]) -> dict[str, Yaml]:
    """Return an example of each output that all actions with one name declare."""
    shared = set.intersection(*({output.name for output in action.outputs} for action in actions))
    return {output.name: _example(output) for output in actions[0].outputs if output.name in shared}


def _example(output: Parameter) -> Yaml:
    kind = output_type(output)
    if _FAILURE.search(output.name):
        return False if kind == "boolean" else 0 if kind == "number" else None
    if kind.startswith("list"):
        return [_EXAMPLES.get(kind[len("list[") : -1], _text(output))] if "[" in kind else []
    return _EXAMPLES.get(kind, _text(output))


def _text(output: Parameter) -> str:
    words = output.name.rpartition(":")[2].replace("_", " ")
    return f"example {words}"
