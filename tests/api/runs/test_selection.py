from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.api.agent_tests import AgentTest
from evalmeta.api.runs.selection import CaseChoice, by_tags
from evalmeta.errors import SettingsError, UsageError
from evalmeta.model.evaluation import CaseList
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from org.parts import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

ORDERS, VISITS = AgentTest(EVALUATION_DEFINITION, "Orders"), AgentTest(EVALUATION_DEFINITION, "Visits")
TAGS = """
[tags]
smoke = ["Orders:1-2", "Visits"]
unnamed = ["3"]
broken = ["Orders:first"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project", settings=TAGS)


def cases(name: str, *numbers: int) -> CaseList:
    return CaseList(name, frozenset(numbers) or None)


def test_without_lists_every_case_is_chosen() -> None:
    assert CaseChoice().narrowed([]).numbers(ORDERS) is None


def test_one_of_several_lists_is_enough() -> None:
    choice = CaseChoice().narrowed([cases("Orders", 1), cases("", 3), cases("Visits", 9)])
    assert (choice.names, choice.numbers(ORDERS), choice.numbers(VISITS)) == ((), (1, 3), (3, 9))


def test_a_choice_that_is_narrowed_twice_has_the_cases_of_both() -> None:
    choice = CaseChoice().narrowed([cases("Orders", 1, 2, 3), cases("Visits")]).narrowed([cases("", 2, 3, 4)])
    assert (choice.names, choice.numbers(ORDERS), choice.numbers(VISITS)) == (("Orders", "Visits"), (2, 3), (2, 3, 4))
    assert choice.narrowed([cases("Visits")]).numbers(VISITS) == (2, 3, 4)


def test_tests_that_were_chosen_by_name_stay_chosen() -> None:
    choice = CaseChoice(("Orders",)).narrowed([cases("Visits", 1)])
    assert (choice.names, choice.numbers(ORDERS)) == (("Orders",), ())


def test_a_name_can_say_of_which_type_it_is() -> None:
    choice = CaseChoice().narrowed([cases("AiEvaluationDefinition:Orders", 1)])
    assert choice.numbers(ORDERS) == (1,)
    assert choice.numbers(AgentTest(TESTING_DEFINITION, "Orders")) == ()


def test_a_tag_stands_for_its_lists(project: Project) -> None:
    assert by_tags(project, ["smoke"]) == [cases("Orders", 1, 2), cases("Visits")]


@pytest.mark.parametrize(
    ("tag", "kind", "told"),
    [
        ("smok", UsageError, "no tag 'smok'"),
        ("other", UsageError, "no tag 'other'"),
        ("unnamed", SettingsError, "'3' does not name a definition; write NAME:3"),
        ("broken", SettingsError, "tags.broken: 'Orders:first' is not a valid list of cases"),
    ],
)
def test_an_invalid_tag_is_reported(project: Project, tag: str, kind: type[UsageError], told: str) -> None:
    with pytest.raises(kind, match=told):
        by_tags(project, [tag])


def test_a_tag_that_does_not_exist_has_a_hint(project: Project) -> None:
    for tag, hint in (("smok", "Did you mean smoke?"), ("other", "Add it to a test case")):
        with pytest.raises(UsageError) as caught:
            by_tags(project, [tag])
        assert hint in caught.value.actions[0]
