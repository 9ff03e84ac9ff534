from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.registry import (
    AUTHORING_BUNDLE,
    NEWEST_API_VERSION,
    OLDEST_API_VERSION,
    TEST_TYPES,
    TYPES,
    ApiVersion,
    MetadataType,
    metadata_type,
    nearest_type_name,
    parse_api_version,
    type_at_path,
    type_of_run,
    types_at,
)


@pytest.mark.parametrize("name", ["AiEvaluationDefinition", "aievaluationdefinition", "AIEVALUATIONDEFINITION"])
def test_a_type_is_found_in_any_case(name: str) -> None:
    assert metadata_type(name) == TYPES[0]


@pytest.mark.parametrize("name", ["", "Flow", "AiEvaluationDefinitions", " AiEvaluationDefinition"])
def test_no_other_name_is_a_type(name: str) -> None:
    assert metadata_type(name) is None


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("AiEvalutionDefinition", "AiEvaluationDefinition"),
        ("aievaluationdefinitions", "AiEvaluationDefinition"),
        ("Flow", None),
    ],
)
def test_the_nearest_type_is_named_when_one_is_near(name: str, near: str | None) -> None:
    assert nearest_type_name(name) == near


def test_names_folders_suffixes_and_prefixes_are_unique() -> None:
    for column in ("name", "directory", "suffix", "xsd", "id_prefix"):
        assert len({getattr(row, column) for row in TYPES}) == len(TYPES)
    for column in ("expectation", "run_prefix", "run_path", "run_key"):
        assert len({getattr(row, column) for row in TEST_TYPES}) == len(TEST_TYPES)


@pytest.mark.parametrize("kind", TEST_TYPES, ids=lambda kind: kind.name)
def test_a_run_tells_its_type_by_id_and_by_place(kind: MetadataType) -> None:
    assert type_of_run(f"{kind.run_prefix}000000000001CAA") == type_at_path(kind.run_path) == kind


@pytest.mark.parametrize("other", ["", "0Af000000000001CAA", "ai-nothing"])
def test_nothing_else_is_a_run(other: str) -> None:
    assert (type_of_run(other), type_at_path(other)) == (None, None)


@pytest.mark.parametrize(
    ("version", "types"),
    [(62, ()), (63, TYPES[:1]), (64, TYPES[:1]), (65, (TYPES[0], AUTHORING_BUNDLE)), (66, TYPES), (67, TYPES)],
)
def test_a_version_knows_the_types_that_came_with_it_or_before(version: int, types: tuple[MetadataType, ...]) -> None:
    assert types_at(ApiVersion(version)) == types


@pytest.mark.parametrize(
    ("text", "version"), [("64.0", 64), ("64", 64), (" 64.0\n", 64), ("7.0", 7), ("064.0", 64), ("100.0", 100)]
)
def test_versions_are_read(text: str, version: int) -> None:
    assert parse_api_version(text) == ApiVersion(version)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "64.",
        "64.1",
        "64.00",
        "v64.0",
        "-64.0",
        "6_4.0",
        "64.0.0",
        "\uff16\uff14",
        "\u00b2",
        "6" * 5000,
        "64 .0",
    ],
)
def test_nothing_else_is_a_version(text: str) -> None:
    assert parse_api_version(text) is None


@given(st.text(st.sampled_from("0123456789. v+-\u0664"), max_size=8))
def test_any_text_is_a_version_or_none(text: str) -> None:
    version = parse_api_version(text)
    assert version is None or parse_api_version(str(version)) == version


def test_versions_compare_by_number() -> None:
    assert ApiVersion(9) < OLDEST_API_VERSION < NEWEST_API_VERSION < ApiVersion(100)
    assert str(ApiVersion(64)) == "64.0"
