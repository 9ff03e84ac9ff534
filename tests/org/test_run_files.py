from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.client.runs import start_run
from evalmeta.errors import OrgFault, SettingsError
from evalmeta.model.run import RunContent, RunStatus
from evalmeta.org.run_files import read_run_file, record_file, run_file_of
from org.parts import ask, asked, embedded, follow_up, make_project, numbers, opened_of

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.package.project import Project

SPEC = "name: Orders\nsubjectType: AGENT\nsubjectName: Desk\ntestCases:\n  - utterance: Where is it?\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path)


def write(folder: Path) -> Path:
    path = folder / "orders.yaml"
    path.write_text(SPEC)
    return path


def test_what_is_kept_of_a_file_comes_back(file: Path) -> None:
    kept = record_file(
        file.parent, file.name, subject_name="desk", subject={"adapter": "python", "target": "desk:answer"}
    )
    assert run_file_of(kept.content()) == kept
    [case] = read_run_file(file.parent, kept, "orders.yaml").cases
    assert case.turns[0].utterance == "Where is it?"


def test_a_definition_is_not_a_run_file() -> None:
    assert run_file_of(RunContent(b"<AiEvaluationDefinition/>")) is None


def test_a_run_of_a_changed_file_is_not_resumed(file: Path) -> None:
    kept = record_file(file.parent, file.name, subject_name="desk", subject=None)
    file.write_text(SPEC + "  - utterance: And now?\n")
    with pytest.raises(SettingsError, match=r"orders\.yaml has changed since the run started"):
        read_run_file(file.parent, kept, "orders.yaml")


def test_a_run_of_a_missing_file_is_not_resumed(file: Path) -> None:
    kept = record_file(file.parent, file.name, subject_name="desk", subject=None)
    file.unlink()
    with pytest.raises(SettingsError, match=r"orders\.yaml cannot be found"):
        read_run_file(file.parent, kept, "orders.yaml")


def test_a_run_with_changed_criteria_is_not_resumed(tmp_path: Path) -> None:
    turn = {"user_content": {"parts": [{"text": "hi"}]}, "final_response": {"parts": [{"text": "Hello."}]}}
    cases = {"eval_set_id": "greetings", "eval_cases": [{"eval_id": "greet", "conversation": [turn]}]}
    (tmp_path / "greetings.json").write_text(json.dumps(cases))
    criteria = tmp_path / "test_config.json"
    criteria.write_text('{"criteria": {"response_match_score": 0.5}}')
    kept = record_file(tmp_path, "greetings.json", subject_name="desk", subject=None)
    criteria.write_text('{"criteria": {"response_match_score": 0.9}}')
    with pytest.raises(SettingsError, match=r"greetings\.json has changed"):
        read_run_file(tmp_path, kept, "greetings.json")


def test_settings_that_are_wrong_are_refused(file: Path) -> None:
    with pytest.raises(OrgFault, match="the subject's settings are not valid"):
        record_file(file.parent, file.name, subject_name="desk", subject={"adapter": "python"})


ORDER = {"path": "orders.yaml", "subjectName": "Desk"}


def begin(connection: Connection) -> Awaitable[str]:
    return start_run(connection, "orders.yaml", file=ORDER)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path / "project")
    write(made.root)
    return made


def test_only_the_embedded_org_reads_files(project: Project) -> None:
    assert embedded(project, begin).startswith("4KB")
    with opened_of(project) as org, pytest.raises(OrgFault, match="this org runs only deployed definitions, not files"):
        ask(org, begin)


def test_a_detached_run_of_a_file_has_its_own_process(project: Project) -> None:

    run_id = embedded(project, begin, detached=True)
    run = embedded(project, lambda connection: follow_up(connection, run_id))
    assert (run.status, run.definition, numbers(run)) == (RunStatus.COMPLETED, "orders.yaml", [(1, 1)])
    assert asked(project) == ["Where is it?"]
