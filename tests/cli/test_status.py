from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.team import Team
    from conftest import Outcome

    Program = Callable[..., Outcome]


def states(evalmeta: Program) -> dict[str, str]:
    done = evalmeta("status", "--json")
    assert done.code == 0
    return {each["fullName"]: each["state"] for each in json.loads(done.out)["result"]["components"]}


@pytest.fixture
def deployed(team: Team, evalmeta: Program) -> Team:
    """A team of which both have A to D as the org has them."""
    for name in "ABCD":
        team.write(name)
    evalmeta("deploy")
    team.go("theirs")
    evalmeta("retrieve")
    team.go("mine")
    return team


def test_after_a_deploy_and_after_a_retrieve_both_sides_are_the_same(deployed: Team, evalmeta: Program) -> None:
    assert evalmeta("status").out == "Project and org are the same (4 components).\n"
    deployed.go("theirs")
    assert evalmeta("status").out == "Project and org are the same (4 components).\n"


def test_every_kind_of_difference_is_listed(deployed: Team, evalmeta: Program) -> None:
    deployed.go("theirs")
    deployed.write("B", "theirs")
    deployed.write("C", "theirs")
    deployed.write("E", "theirs")
    evalmeta("deploy")
    deployed.go("mine")
    deployed.write("A", "mine")
    deployed.write("C", "mine")
    deployed.path("D").unlink()
    deployed.write("F")

    assert states(evalmeta) == {
        "A": "changed locally",
        "B": "changed in the org",
        "C": "conflict",
        "D": "deleted locally",
        "E": "only in the org",
        "F": "only local",
    }


def test_deletions_in_the_org_are_listed(deployed: Team, evalmeta: Program) -> None:
    deployed.delete_in_org("A")
    deployed.delete_in_org("B")
    deployed.write("B", "mine")

    assert states(evalmeta) == {"A": "deleted in the org", "B": "conflict"}


def test_what_was_deleted_on_both_sides_is_forgotten(deployed: Team, evalmeta: Program) -> None:
    deployed.delete_in_org("A")
    deployed.path("A").unlink()
    assert states(evalmeta) == {}
    deployed.write("A")

    assert states(evalmeta) == {"A": "only local"}


def test_the_same_change_on_both_sides_is_not_a_difference(deployed: Team, evalmeta: Program) -> None:
    for copy in ("theirs", "mine"):
        deployed.go(copy)
        deployed.write("A", "ours")
        if copy == "theirs":
            evalmeta("deploy")

    assert states(evalmeta) == {}


def test_what_was_never_synced_from_here_and_differs_is_a_conflict(team: Team, evalmeta: Program) -> None:
    team.write("A", "theirs")
    evalmeta("deploy")
    team.go("theirs")
    team.write("A", "mine")

    assert states(evalmeta) == {"A": "conflict"}


def test_contents_are_fetched_only_of_what_has_another_date(deployed: Team, evalmeta: Program) -> None:
    before = deployed.jobs("retrieve")
    deployed.write("A", "mine")
    evalmeta("status")
    assert deployed.jobs("retrieve") == before

    deployed.go("theirs")
    deployed.write("B", "theirs")
    evalmeta("deploy")
    deployed.go("mine")
    evalmeta("status")

    assert deployed.jobs("retrieve") == before + 1


def test_a_newer_date_of_the_same_content_is_asked_about_once(deployed: Team, evalmeta: Program) -> None:
    deployed.go("theirs")
    for utterance in ("other", "Hi"):
        deployed.write("A", utterance)
        evalmeta("deploy")
    deployed.go("mine")
    before = deployed.jobs("retrieve")

    assert [states(evalmeta), states(evalmeta)] == [{}, {}]
    assert deployed.jobs("retrieve") == before + 1


def test_the_list_is_readable(deployed: Team, evalmeta: Program) -> None:
    deployed.write("A", "mine")

    done = evalmeta("status")

    assert done.out == (
        "State            Name  File\nchanged locally  A     aiEvaluationDefinitions/A.aiEvaluationDefinition\n"
    )
    assert "1 of 4 components differ. See how: evalmeta diff" in done.err
