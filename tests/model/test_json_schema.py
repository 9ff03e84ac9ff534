"""Tests for evalmeta.model.json_schema."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.json_schema import SchemaFault, check_schema, fault_of

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue

ELSEWHERE = "is not in the schema, and no other one is loaded"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], "a schema is a mapping"),
        ({}, "accepts every JSON value"),
        ({"type": "objekt"}, r"^\$\.type: "),
        ({"$ref": "https://example.com/a.json"}, ELSEWHERE),
        ({"$ref": "other.json"}, ELSEWHERE),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, ELSEWHERE),
        ({"$ref": "#"}, "leads to itself"),
        ({"properties": {"a": {"$dynamicRef": "https://example.com/a"}}}, ELSEWHERE),
        ({"$dynamicRef": "https://example.com/a"}, ELSEWHERE),
        ({"type": "object", "requird": ["id"]}, "'requird' is not a keyword of JSON Schema; did you mean 'required'"),
        ({"properties": {"a": {"typ": "string"}}}, "'typ' is not a keyword of JSON Schema; did you mean 'type'"),
        ({"$schema": "http://x/y", "type": "object"}, "is not a draft that is known"),
        ({"requierd": ["a"]}, "it has no keyword of JSON Schema, so it checks nothing"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "the pattern '\\(\\?=a\\)' is not a valid one"),
        ({"patternProperties": {"a": {"type": "string"}}}, "patternProperties is not supported"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why_and_nothing_opens_a_socket(
    schema: JsonValue, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "socket")
    with pytest.raises(SchemaFault, match=why):
        check_schema(schema)


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_a_reference_into_the_schema_is_followed(draft: str) -> None:
    schema: JsonValue = {
        "$schema": draft,
        "definitions": {"id": {"type": "integer"}},
        "$comment": "",
        "properties": {"id": {"$ref": "#/definitions/id"}},
    }
    assert fault_of(schema, {"id": 1}) == ""
    assert fault_of(schema, {"id": "x"}, path="$.order") == '$.order.id: expected type "integer", got "x"'


def test_other_keys_and_further_faults_are_named() -> None:
    schema: JsonValue = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert fault_of(schema, {"b": 1}).startswith(
        "$: expected no other keys (Additional properties are not allowed ('b'"
    )
    assert fault_of(schema, {"a": 1, "b": 1}).endswith("; 1 more")


def test_a_pattern_takes_linear_time_and_a_long_value_is_cut() -> None:
    text = f"{'a' * 100_000}b"
    fault = fault_of({"pattern": "^(a+)+$"}, text)
    assert fault.startswith('$: expected pattern "^(a+)+$", got "aaa')
    assert len(fault) < 200


@pytest.mark.parametrize(("value", "fits"), [(1.13, True), (0.3, True), (1.135, False), ("a", True), (True, True)])
def test_multiples_are_those_of_decimal_numbers(value: JsonValue, *, fits: bool) -> None:
    assert (fault_of({"multipleOf": 0.01}, value) == "") is fits


def test_other_keywords_are_notes_of_the_author() -> None:
    check_schema({"type": "object", "x-owner": "shop", "title": "An order", "properties": {"typ": {"type": "string"}}})
