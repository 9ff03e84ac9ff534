from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from evalmeta.errors import FormatError
from evalmeta.formats.testspec import read_testspec
from evalmeta.formats.testspec_writer import write_testspec
from evalmeta.model.expectations import METRICS, OPERATORS
from formats.specs import held_by_specs, kinds

if TYPE_CHECKING:
    from evalmeta.model.definition import Definition

SCHEMA = json.loads((resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)
CASE = {"utterance": "u"}
SPEC = {"name": "n", "subjectType": "AGENT", "subjectName": "s", "testCases": [CASE]}
STUDIO = {"inputs": [{"utterance": "u"}], "scorers": [{"name": "coherence"}]}


def test_the_schema_is_one_and_knows_the_words() -> None:
    Draft202012Validator.check_schema(SCHEMA)

    assert set(SCHEMA["$defs"]["metric"]["enum"]) == set(METRICS)
    assert set(SCHEMA["$defs"]["customEvaluation"]["properties"]["name"]["enum"]) == set(OPERATORS)


@given(kinds.flatmap(held_by_specs))
def test_what_is_written_fits_the_schema(definition: Definition) -> None:
    import yaml  # noqa: PLC0415 - the one test that needs it

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
