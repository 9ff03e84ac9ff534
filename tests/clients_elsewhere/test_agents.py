from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.node import run_script
from clients_elsewhere.workspace import asking, new_name

if TYPE_CHECKING:
    from types import SimpleNamespace

    from clients_elsewhere.orgs import Org

NAME, WAITING, CREATED = new_name("Agents"), new_name("Waiting"), new_name("Created")

SPEC = """\
name: Created
subjectType: AGENT
subjectName: Desk
testCases:
  - {utterance: Hi, expectedTopic: Orders, expectedActions: [], expectedOutcome: Your order is on its way.}
"""


@pytest.fixture(scope="module")
def said(org: Org, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What @salesforce/agents said of a run to the end, a canceled run, and a definition read as a spec."""
    org.have(**{NAME: asking(NAME, "Where's it?", "I return it"), WAITING: asking(WAITING, f"wait for {WAITING}")})
    folder = tmp_path_factory.mktemp("agents")
    (folder / "spec.yaml").write_text(SPEC)
    return run_script("agents.cjs", org, folder, NAME=NAME, WAITING=WAITING, CREATED=CREATED)


def test_the_runner_is_found_by_name(said: SimpleNamespace) -> None:
    assert said.runner == "testing-center"
    assert NAME in said.listed


def test_a_test_is_created(said: SimpleNamespace) -> None:
    assert said.created.status == "Succeeded"
    assert "<expectedValue>Orders</expectedValue>" in said.created.contents


def test_a_run_is_followed_to_its_end(said: SimpleNamespace) -> None:
    followed = said.followed
    assert followed.started.runId.startswith("4KB")
    assert (followed.polled.status, followed.status.status) == ("COMPLETED", "COMPLETED")
    assert [case.testResults[0].result for case in followed.results.testCases] == ["PASS", "FAILURE"]
    assert followed.results.testCases[0].inputs.utterance == "Where's it?"


def test_a_run_is_canceled(said: SimpleNamespace) -> None:
    assert said.canceled.canceled.success is True
    assert said.canceled.status in {"TERMINATED", "CANCELED"}


def test_a_missing_definition_is_reported(said: SimpleNamespace) -> None:
    assert "Invalid AiEvalDefinitionVersion identifier" in said.unknown


def test_a_definition_is_read_back_as_a_spec(said: SimpleNamespace) -> None:
    assert (said.spec.name, said.spec.subjectName) == (NAME, "Desk")
    assert [case.utterance for case in said.spec.testCases] == ["Where's it?", "I return it"]
