from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION, ApiVersion
from evalmeta.validation import validator
from evalmeta.validation.rules import RulePolicy
from evalmeta.validation.validator import check_component, clean_key, is_clean, remember_clean, validate_component
from org.parts import definition

if TYPE_CHECKING:
    import pytest

KIND = EVALUATION_DEFINITION
GOOD = definition("A")


def key(content: bytes = GOOD, *, full_name: str = "A", api_version: ApiVersion = NEWEST_API_VERSION) -> bytes:
    return clean_key(KIND, content, full_name=full_name, api_version=api_version)


def test_a_file_without_problems_is_remembered_as_these_bytes_of_this_component(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validator, "_CLEAN", set())
    assert validate_component(KIND, GOOD, label="a", full_name="A") == []
    assert is_clean(key())
    others = [key(GOOD + b"\n"), key(full_name="B"), key(api_version=ApiVersion(63))]
    assert not any(map(is_clean, others))


def test_a_file_with_a_warning_is_not_remembered() -> None:
    labelled = GOOD.replace(b"<name>A<", b"<name>My label<")
    policy = RulePolicy(profile="orgs")
    for _ in range(2):
        assert validate_component(KIND, labelled, label="a", full_name="A", policy=policy) != []


def test_a_file_that_a_rule_was_not_applied_to_is_not_remembered() -> None:
    off = RulePolicy(rules={"name-invalid": "off"})
    checked = check_component(KIND, GOOD, label="a", full_name="A", policy=off, api_version=NEWEST_API_VERSION)
    assert (checked.problems, checked.clean) == ((), None)


def test_no_more_is_remembered_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validator, "_CLEAN", set())
    monkeypatch.setattr(limits, "MAX_VERDICTS", 2)
    for number in range(4):
        remember_clean([bytes([number])])
    assert not is_clean(b"\x00")
    assert is_clean(b"\x03")
