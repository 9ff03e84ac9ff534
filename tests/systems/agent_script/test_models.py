"""What models of agent scripts may return, and the types of their tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.systems.agent_script.models import json_type

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("number", {"type": "number"}),
        ("boolean", {"type": "boolean"}),
        ("date", {"type": "string"}),
        ("list", {"type": "array", "items": {}}),
        ("list[number]", {"type": "array", "items": {"type": "number"}}),
        ("list[list[object]]", {"type": "array", "items": {"type": "array", "items": {"type": "object"}}}),
    ],
)
def test_a_type_of_the_language_has_its_json_schema(kind: str, schema: JsonObject) -> None:
    assert json_type(kind) == schema
