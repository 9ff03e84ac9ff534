"""Agent tests as Agentforce Studio runs them: the type AiTestingDefinition behind `einstein/ai-testing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.api.agent_tests import AgentTest, select_tests
from evalmeta.api.deployments import deploy
from evalmeta.api.retrievals import retrieve
from evalmeta.api.runs.org import finish_run
from evalmeta.api.selections import resolve
from evalmeta.client.runs import start_run
from evalmeta.errors import AmbiguousTestDefinition, NotFound, OrgFault, SubjectNotBound
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.model.run import Verdict
from evalmeta.package.project import Project, find_project
from org.parts import definition, embedded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.client.connection import Connection
    from evalmeta.model.json_value import JsonObject

VISITS = AgentTest(TESTING_DEFINITION, "Museum_Visits")
RUNS = "/einstein/ai-testing/runs"


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Project:
    return find_project(copy_samples("studio"))


def deployed(project: Project, do: Callable[[Connection], Awaitable[object]]) -> object:
    async def deploy_first(connection: Connection) -> object:
        await deploy(connection, project, resolve(project))
        return await do(connection)

    return embedded(project, deploy_first)


def run_of(project: Project, test: AgentTest) -> FinishedRun:
    async def run(connection: Connection) -> FinishedRun:
        return await finish_run(connection, await start_run(connection, test.full_name, kind=test.type))

    return deployed(project, run)


def test_a_run_has_an_id_of_its_type_and_is_judged_by_the_same_scorers(project: Project) -> None:
    run = run_of(project, VISITS).run
    assert run.id == "3A2000000000001CAA"
    assert [case.verdict for case in run.cases] == [Verdict.PASS] * 4
    assert [result.name for result in run.cases[3].results] == ["agent_handoff_match", "Polite_Tone"]


def test_what_only_a_language_model_can_judge_is_undecided(project: Project) -> None:
    summary = run_of(project, VISITS).summary
    assert [name for name, _ in summary.undecided_results] == ["Polite_Tone", "conciseness", "task_resolution"]
    assert summary.succeeded


def test_one_action_may_stand_without_a_list(project: Project) -> None:
    [_, actions, *_] = run_of(project, VISITS).run.cases[0].results
    assert (actions.verdict, actions.expected, actions.actual) == (Verdict.PASS, "['GetPrice']", "['GetPrice']")


def test_a_prompt_template_that_is_bound_is_filled_in(project: Project) -> None:
    [case] = run_of(project, AgentTest(TESTING_DEFINITION, "Exhibit_Labels")).run.cases
    assert case.verdict is Verdict.PASS
    assert case.utterance == "Input:Title: Harbour in the Morning\nInput:Year: 1887"


def test_a_prompt_template_that_is_not_bound_cannot_be_asked(project: Project) -> None:
    settings = project.root / "evalmeta.toml"
    settings.write_text(settings.read_text().replace("Exhibit_Label]", "Another]"))
    with pytest.raises(SubjectNotBound, match="no adapter is bound to the prompt template 'Exhibit_Label'"):
        run_of(find_project(project.root), AgentTest(TESTING_DEFINITION, "Exhibit_Labels"))


def test_the_api_has_salesforces_words(project: Project) -> None:
    async def talk(connection: Connection) -> list[JsonObject]:
        started = await connection.post(RUNS, {"testDefinitionName": "Museum_Visits"})
        await finish_run(connection, str(started["runId"]))
        status = await connection.get(f"{RUNS}/{started['runId']}")
        return [started, status, await connection.get(f"{RUNS}/{started['runId']}/results")]

    started, status, results = deployed(project, talk)
    assert (started["status"], status["status"], results["status"]) == ("CREATED", "SUCCESS", "SUCCESS")
    assert "subjectName" not in results


@pytest.mark.parametrize("path", ["ai-evaluations/runs/3A2000000000001CAA", "ai-nothing/runs/3A2000000000001CAA"])
def test_a_run_is_found_where_its_type_is_run_and_nowhere_else(project: Project, path: str) -> None:
    async def ask(connection: Connection) -> object:
        await start_run(connection, "Museum_Visits", kind=TESTING_DEFINITION)
        return await connection.get(f"/einstein/{path}")

    with pytest.raises(NotFound):
        deployed(project, ask)


def test_a_test_of_another_type_is_not_found(project: Project) -> None:
    with pytest.raises(NotFound, match="Museum_Visits not found"):
        deployed(project, lambda connection: start_run(connection, "Museum_Visits"))


def test_a_name_that_two_types_have_must_say_which(project: Project) -> None:
    folder = project.root / EVALUATION_DEFINITION.directory
    folder.mkdir()
    (folder / "Museum_Visits.aiEvaluationDefinition").write_bytes(definition("Museum_Visits", subject="Museum_Desk"))
    with pytest.raises(AmbiguousTestDefinition) as raised:
        deployed(project, lambda connection: select_tests(connection, ["Museum_Visits"]))
    keys = [f"{row.name}:Museum_Visits" for row in (EVALUATION_DEFINITION, TESTING_DEFINITION)]
    assert raised.value.actions == tuple(f"Say which: --api-name {key}" for key in keys)
    chosen = embedded(project, lambda connection: select_tests(connection, [keys[1]]))
    assert [test._replace(modified="") for test in chosen] == [VISITS]


def test_a_retrieve_returns_the_deployed_components(project: Project) -> None:
    files = sorted((project.root / TESTING_DEFINITION.directory).iterdir())
    before = [path.read_bytes() for path in files]

    async def retrieve_anew(connection: Connection) -> object:
        for path in files:
            path.unlink()
        return await retrieve(connection, project)

    retrieved = deployed(project, retrieve_anew)
    assert [component.state for component in retrieved.components] == ["Unchanged", "Created", "Created"]
    assert [path.read_bytes() for path in files] == before


def test_an_older_api_version_does_not_know_the_type(project: Project) -> None:
    async def ask(connection: Connection) -> object:
        connection.api_version = connection.api_version._replace(major=65)
        return await start_run(connection, "Museum_Visits", kind=TESTING_DEFINITION)

    with pytest.raises((NotFound, OrgFault), match="does not exist"):
        deployed(project, ask)
