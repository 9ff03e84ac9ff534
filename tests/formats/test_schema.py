from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from evalmeta.errors import FormatError
from evalmeta.formats.short_forms import published_schema, with_checks
from evalmeta.formats.testspec import read_testspec
from evalmeta.formats.testspec_writer import write_testspec
from evalmeta.model.checks import CHECKS, Check
from evalmeta.model.expectations import METRICS, OPERATORS
from formats.specs import held_by_specs, kinds

if TYPE_CHECKING:
    from evalmeta.model.definition import Definition

SCHEMA = json.loads((resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)
CASE = {"utterance": "u"}
OWN = {"input": "u", "contains": "x"}
SPEC = {"name": "n", "subjectType": "AGENT", "subjectName": "s", "testCases": [CASE]}
STUDIO = {"inputs": [{"utterance": "u"}], "scorers": [{"name": "coherence"}]}


def test_the_schema_is_one_and_knows_the_words() -> None:
    Draft202012Validator.check_schema(SCHEMA)

    assert SCHEMA["$defs"]["metric"]["enum"] == list(METRICS)
    with_another = json.loads(with_checks(published_schema(), CHECKS.values(), metrics=["politeness"]))
    assert with_another["$defs"]["metric"]["enum"] == ["politeness"]
    assert set(SCHEMA["$defs"]["customEvaluation"]["properties"]["name"]["enum"]) == set(OPERATORS)


def test_the_properties_of_checks_derive_from_their_declarations() -> None:
    assert with_checks(published_schema(), CHECKS.values()) == published_schema()


def test_a_new_check_is_a_property_of_the_schema() -> None:
    new = Check("mentions", "texts", "Words.", "it has the word", "Paris")
    schema = json.loads(with_checks(published_schema(), [*CHECKS.values(), new]))
    changed = schema["$defs"]["checks"]["properties"].pop("mentions")
    assert changed == {"$ref": "#/$defs/oneOrMore", "description": "Words."}
    assert schema == SCHEMA


@pytest.mark.slow
@given(kinds.flatmap(held_by_specs))
def test_what_is_written_fits_the_schema(definition: Definition) -> None:
    import yaml

    VALIDATOR.validate(yaml.safe_load(write_testspec(definition).content))


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"testCases": []}, True),
        ({"testCases": [STUDIO], "subjectType": "PROMPT"}, True),
        ({"testCases": [CASE], "subjectType": "PROMPT"}, False),
        ({"testCases": [STUDIO, CASE]}, False),
        ({"testCases": [{**STUDIO, "inputs": []}]}, False),
        ({"testCases": [{**STUDIO, "inputs": [{}]}]}, False),
        ({"testCases": [{**STUDIO, "inputs": [{"promptInput": [{"referenceName": "a", "value": "b"}]}]}]}, True),
        ({"testCases": [{**STUDIO, "scorers": None}]}, True),
        ({"testCases": {}}, False),
        ({"name": None}, False),
        ({"x": 1}, False),
        ({"testCases": [{}]}, False),
        ({"testCases": [{**CASE, "expectedTopic": ["a"]}]}, False),
        ({"testCases": [{**CASE, "expectedTopic": None}]}, True),
        ({"testCases": [{**CASE, "expectedActions": [None]}]}, False),
        ({"testCases": [{**CASE, "metrics": ["coherense"]}]}, False),
        ({"testCases": [{**CASE, "contextVariables": [{"name": "a"}]}]}, False),
        ({"testCases": [{**CASE, "conversationHistory": [{"role": "user", "message": "m", "index": "1"}]}]}, False),
        ({"testCases": [{**CASE, "customEvaluations": [{"name": "string_comparison"}]}]}, True),
        ({"testCases": [{**CASE, "customEvaluations": [{"name": "other"}]}]}, False),
        ({"testCases": [{**CASE, "customEvaluations": [{"name": "string_comparison", "operator": "x"}]}]}, False),
    ],
)
def test_schema_and_reader_are_of_one_mind(changes: dict[str, object], *, fits: bool) -> None:
    spec = {**SPEC, **changes}
    try:
        read_testspec(json.dumps(spec).encode(), label="t.json")
        is_read = True
    except FormatError:
        is_read = False

    assert (is_read, VALIDATOR.is_valid(spec)) == (fits, fits)


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"testCases": [OWN]}, True),
        ({"cases": [OWN]}, True),
        ({"subject": "a:b", "testCases": [OWN]}, True),
        ({"subjectName": "A", "testCases": [OWN]}, True),
        ({"subjectName": "A", "testCases": [CASE]}, False),
        ({"subject": "a:b", "subjectName": "A", "testCases": [OWN]}, False),
        ({"testCases": [CASE]}, True),
        ({"testCases": [STUDIO]}, False),
        ({"subject": "a", "subjectType": "AGENT", "name": "n", "testCases": [STUDIO]}, False),
        ({"iterations": 3, "min_pass_rate": 0.8, "testCases": [OWN]}, True),
        ({"iterations": 0, "testCases": [OWN]}, False),
        ({"iterations": 1001, "testCases": [OWN]}, False),
        ({"iterations": 1.5, "testCases": [OWN]}, False),
        ({"min_pass_rate": 1.5, "testCases": [OWN]}, False),
        ({"min_pass_rate": "high", "testCases": [OWN]}, False),
        ({"name": "n"}, False),
        ({"cases": 7}, False),
        ({"cases": "questions.xlsx"}, False),
        ({"defaults": {"latency_ms": 5, "tags": "a"}, "testCases": [OWN]}, True),
        ({"defaults": {"contains": "a"}, "testCases": [{**OWN, "contains": None}]}, True),
        ({"defaults": {"input": "u"}, "testCases": [OWN]}, False),
        ({"defaults": None, "testCases": [OWN]}, True),
        ({"defaults": [], "testCases": [OWN]}, False),
        ({"subjectType": "PROMPT", "testCases": [OWN]}, False),
        ({"subjectType": None, "testCases": [OWN]}, True),
        *(
            ({"testCases": [{**OWN, **changes}]}, fits)
            for changes, fits in [
                ({"iterations": 5}, True),
                ({"iterations": 0}, False),
                ({"iterations": 1001}, False),
                ({"iterations": "5"}, False),
                ({"iterations": True}, False),
                ({"contains": ["a", 7]}, True),
                ({"contains": []}, False),
                ({"contains": " "}, False),
                ({"contains": {"a": 1}}, False),
                ({"equals": ""}, True),
                ({"equals": ["a"]}, True),
                ({"utterance": "u"}, False),
                ({"utterance": None}, True),
                ({"input": None}, False),
                ({"topic": "T", "expectedTopic": "T"}, False),
                ({"actions": "A", "expectedActions": ["A"]}, False),
                ({"actions": "A"}, True),
                ({"actions": []}, True),
                ({"latency_ms": 1.5}, False),
                ({"latency_ms": 0}, False),
                ({"tokens": "5"}, False),
                ({"function": "checks:polite"}, True),
                ({"function": ["a.b:c"]}, True),
                ({"function": "checks.polite"}, False),
                ({"json": {"path": "$.a", "equals": {"b": [1, None]}}}, True),
                ({"json": [{"path": "$.a"}, {"path": "$.b", "at_least": 1.5}]}, True),
                ({"json": {"path": "a"}}, False),
                ({"json": {"equals": 1}}, False),
                ({"json": {"path": "$.a", "equals": 1, "at_most": 2}}, False),
                ({"json": {"path": "$.a", "at_least": "x"}}, False),
                ({"json": "$.a"}, False),
                ({"json": {"schema": {"type": "object"}}}, True),
                ({"json": {"path": "$.a", "schema": {"type": "object"}, "fenced": True}}, True),
                ({"json": {"schema": {"type": "object"}, "equals": 1}}, False),
                ({"json": {"fenced": True}}, False),
                ({"json": {"schema": 7}}, False),
                ({"name": "n", "tags": ["a"]}, True),
                ({"quarantine": {"reason": "flaky", "until": "2026-01-31"}}, True),
                ({"quarantine": None}, True),
                ({"quarantine": {"reason": "flaky"}}, False),
                ({"quarantine": {"until": "2026-01-31"}}, False),
                ({"quarantine": {"reason": "flaky", "until": "soon"}}, False),
                ({"quarantine": {"reason": "flaky", "until": "2026-01-31", "by": "me"}}, False),
                ({"quarantine": "flaky"}, False),
                ({"context": {"a": 7, "b": "c"}}, True),
                ({"context": {"a": None}}, False),
                ({"context": [{"name": "a", "value": "b"}]}, False),
                ({"context": {}, "contextVariables": []}, False),
                ({"contian": "x"}, False),
            ]
        ),
        ({"testCases": [{"turns": [OWN, {"utterance": "u", "topic": "T"}], "name": "n"}]}, True),
        ({"testCases": [{"turns": []}]}, False),
        ({"testCases": [{"turns": [OWN], "contains": "x"}]}, False),
        ({"testCases": [{"turns": [OWN], "input": "x"}]}, False),
        ({"testCases": [{"turns": [{"contains": "x"}]}]}, False),
        ({"testCases": [{"turns": [{**OWN, "tags": "x"}]}]}, False),
    ],
)
def test_schema_and_reader_are_of_one_mind_about_short_forms(spec: dict[str, object], *, fits: bool) -> None:
    try:
        read_testspec(json.dumps(spec).encode(), label="t.json")
        is_read = True
    except FormatError:
        is_read = False

    assert (is_read, VALIDATOR.is_valid(spec)) == (fits, fits)
