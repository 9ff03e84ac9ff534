from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import NotFound, UsageError
from evalmeta.package.folders import find_components
from evalmeta.package.selection import components_named, match_names, parse_members

if TYPE_CHECKING:
    from evalmeta.package.project import Project

TYPE = "AiEvaluationDefinition"


def names(project: Project, *entries: str) -> list[str]:
    return [each.full_name for each in components_named(find_components(project), parse_members(entries))]


@pytest.mark.parametrize(
    ("entries", "selected"),
    [
        ([f"{TYPE}:Orders"], ["Orders"]),
        ([f"{TYPE}:Returns", f"{TYPE}:Billing", f"{TYPE}:Billing"], ["Billing", "Returns"]),
        ([f"{TYPE}:*r*s"], ["Orders", "Returns"]),
        ([f"{TYPE}:Order?"], ["Orders"]),
        ([TYPE], ["Billing", "Orders", "Returns"]),
        ([f"{TYPE}:*"], ["Billing", "Orders", "Returns"]),
        ([f" {TYPE.lower()} : Orders "], ["Orders"]),
    ],
)
def test_an_entry_selects_by_type_and_name(dx_project: Project, entries: list[str], selected: list[str]) -> None:
    assert names(dx_project, *entries) == selected


def test_names_are_case_sensitive(dx_project: Project) -> None:
    with pytest.raises(NotFound):
        names(dx_project, f"{TYPE}:orders")


def test_brackets_are_not_wildcards() -> None:
    assert match_names(parse_members([f"{TYPE}:[a]*"]), {TYPE: ["a", "[a]b"]}, where="x") == {f"{TYPE}:[a]b"}


def test_patterns_that_match_nothing_are_listed_with_the_nearest_names(dx_project: Project) -> None:
    with pytest.raises(NotFound, match=rf"the project has no {TYPE}:Ordrs, {TYPE}:Zzz\*") as caught:
        names(dx_project, f"{TYPE}:Ordrs", f"{TYPE}:Orders", f"{TYPE}:Zzz*")
    assert caught.value.actions == (f"Did you mean {TYPE}:Orders?",)


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("AiEvaluationDefinitions", f"Did you mean {TYPE}?"),
        ("Flow:X", f"Known types: {TYPE}, AiTestingDefinition, AiAgentScorerDefinition, AiAuthoringBundle."),
    ],
)
def test_an_unknown_type_is_reported_with_the_nearest_one(entry: str, hint: str) -> None:
    with pytest.raises(NotFound, match="does not handle the type") as caught:
        parse_members([entry])
    assert caught.value.actions == (hint,)


@pytest.mark.parametrize("entry", ["", ":X", f"{TYPE}:", " : "])
def test_an_entry_without_type_or_name_is_wrong_usage(entry: str) -> None:
    with pytest.raises(UsageError, match="is not a valid Type or Type:Name"):
        parse_members([entry])


def test_a_name_without_its_type_is_reported_with_one() -> None:
    with pytest.raises(NotFound) as raised:
        parse_members(["my_test_1"])
    assert f"{TYPE}:my_test_1" in raised.value.actions[0]
