from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.expectations import (
    NUMERIC_OPERATORS,
    OPERATORS,
    STRING_OPERATORS,
    canonical_name,
    expectation_kind,
    known_names,
    scorer_kind,
    scorer_names,
    unquote,
)


@pytest.mark.parametrize(
    ("later", "name"),
    [
        ("topic_assertion", "topic_sequence_match"),
        ("actions_assertion", "action_sequence_match"),
        ("output_validation", "bot_response_rating"),
        ("instruction_adherence", "instruction_following"),
    ],
)
def test_a_later_name_is_the_same_thing(later: str, name: str) -> None:
    assert canonical_name(later) == canonical_name(name) == name
    assert expectation_kind(later) is expectation_kind(name)


def test_an_unknown_name_stays_what_it_is() -> None:
    assert (canonical_name("tone"), expectation_kind("tone"), expectation_kind("")) == ("tone", None, None)


@pytest.mark.parametrize("name", known_names())
def test_every_known_name_has_a_kind_with_a_label(name: str) -> None:
    kind = expectation_kind(name)
    assert kind
    assert name in {kind.name, *kind.aliases}
    assert kind.label
    assert canonical_name(name) == kind.name


def test_the_names_of_the_reference_come_before_the_later_ones() -> None:
    names = known_names()
    assert len(names) == len(set(names)) == 15
    assert [canonical_name(name) == name for name in names] == [True] * 11 + [False] * 4


def test_a_name_of_one_type_only_is_unknown_in_the_other() -> None:
    scorers = {*scorer_names("AGENT"), *scorer_names("PROMPT")}
    assert scorers - {*known_names()} == {"agent_handoff_match", "response_match", "task_resolution"}
    assert [scorer_kind(name) for name in ("topic_assertion", "instruction_following", "string_comparison")] == [
        None
    ] * 3


def test_a_prompt_template_is_judged_by_its_response_alone() -> None:
    assert scorer_names("PROMPT") == ("coherence", "completeness", "conciseness", "factuality", "response_match")
    assert {*scorer_names("PROMPT")} < {*scorer_names("AGENT")}


def test_custom_criteria_are_what_has_operators() -> None:
    kinds = filter(None, map(expectation_kind, known_names()))
    assert {kind.name for kind in kinds if kind.needs == "parameters"} == OPERATORS.keys()
    assert {*STRING_OPERATORS} & {*NUMERIC_OPERATORS} == {"equals"}


@given(st.text())
def test_json_text_is_read_as_json_reads_it(text: str) -> None:
    assert unquote(json.dumps(text)) == text
    assert unquote(json.dumps(text, ensure_ascii=False)) == text


@given(st.text())
def test_python_text_is_read_as_python_reads_it(text: str) -> None:
    assert unquote(repr(text)) == text
    assert unquote(ascii(text)) == text


@pytest.mark.parametrize(("source", "text"), [(r"'a\'b'", "a'b"), (r"'\q\u12'", "qu12"), (r"'\\n'", r"\n"), ("''", "")])
def test_a_backslash_before_another_character_is_removed(source: str, text: str) -> None:
    assert unquote(source) == text
