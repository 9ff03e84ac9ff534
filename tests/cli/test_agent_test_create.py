from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from formats.specs import SPEC, STUDIO_SPEC

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

GOOD = (
    SPEC.replace("Desk Test", "Desk_Test")
    .replace(", index: 4", "")
    .replace("    expectedOutcome:\n", "")
    .replace("v2", "v1")
)
FOLDER = "force-app/main/default/aiEvaluationDefinitions"
FILE = f"{FOLDER}/Desk_Tests.aiEvaluationDefinition-meta.xml"
CREATE = ("test", "create", "--spec", "spec.yaml", "--api-name", "Desk_Tests")


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Path:
    found = copy_samples("dx-project")
    (found / "spec.yaml").write_text(GOOD)
    return found


def test_a_spec_becomes_a_definition_of_the_project_and_of_the_org(evalmeta: Program, project: Path) -> None:
    done = evalmeta(*CREATE)

    assert (done.code, "Deployed 1 component" in done.out) == (0, True), done
    assert (project / FILE).is_file()
    assert f"Created {FILE}\n" in done.err
    assert "Desk_Tests" in evalmeta("test", "list").out


def test_a_default_package_directory_that_does_not_exist_is_created(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "force-app", "default": true}]}')
    (tmp_path / "spec.yaml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)

    assert evalmeta(*CREATE, "--preview").code == 0
    assert not (tmp_path / "force-app").exists()
    assert evalmeta(*CREATE).code == 0
    assert (tmp_path / FILE).is_file()


def test_the_deployment_is_printed_as_json(evalmeta: Program, project: Path) -> None:
    assert json.loads(evalmeta(*CREATE, "--json").out)["result"]["status"] == "Succeeded"
    assert (project / FILE).is_file()


def test_a_preview_writes_and_sends_nothing(evalmeta: Program, project: Path) -> None:
    printed = evalmeta(*CREATE, "--preview")
    as_json = json.loads(evalmeta(*CREATE, "--preview", "--json").out)["result"]

    assert (printed.code, printed.out.startswith("<?xml")) == (0, True)
    assert as_json["contents"] == printed.out
    assert [each["code"] for each in as_json["problems"]] == ["actions-unchecked"]
    assert not (project / FILE).exists()


def test_a_preview_prints_the_problems(evalmeta: Program, project: Path) -> None:
    (project / "spec.yaml").write_text(GOOD.replace("role: agent", "role: user"))

    done = evalmeta(*CREATE, "--preview")

    assert (done.code, "history-order" in done.err) == (1, True), done


def test_a_definition_with_errors_is_not_written(evalmeta: Program, project: Path) -> None:
    (project / "spec.yaml").write_text(GOOD.replace("role: agent", "role: user"))

    done = evalmeta(*CREATE)

    assert (done.code, "nothing was written" in done.err, (project / FILE).exists()) == (1, True, False)


def test_other_content_is_overwritten_only_by_force(evalmeta: Program, project: Path) -> None:
    evalmeta(*CREATE)
    (project / "spec.yaml").write_text(GOOD.replace("Refund me", "Return it"))

    refused = evalmeta(*CREATE)
    assert (refused.code, "has different content" in refused.err) == (2, True)

    assert evalmeta(*CREATE, "--force").code == 0
    assert "Return it" in (project / FILE).read_text()


def test_a_definition_that_the_project_has_keeps_its_place(evalmeta: Program, project: Path) -> None:
    evalmeta(*CREATE)
    moved = project / "force-app/desk/Desk_Tests.aiEvaluationDefinition-meta.xml"
    moved.parent.mkdir()
    (project / FILE).rename(moved)

    assert evalmeta(*CREATE).code == 0
    assert not (project / FILE).exists()


def test_a_table_is_created_too(evalmeta: Program, project: Path) -> None:
    (project / "t.csv").write_text("Utterance,Expected Topic\nWhere is it?,Orders\n")

    done = evalmeta("test", "create", "--spec", "t.csv", "--api-name", "Table", "--subject-name", "Desk", "--preview")

    assert (done.code, "<name>t</name>" in done.out) == (0, True), done


def test_a_test_of_agentforce_studio_is_called_by_its_api_name(evalmeta: Program, project: Path) -> None:
    (project / "spec.yaml").write_text(STUDIO_SPEC)

    assert "<name>Desk_Tests</name>" in evalmeta(*CREATE, "--preview").out


def test_a_definition_that_forceignore_matches_is_not_written(evalmeta: Program, project: Path) -> None:
    (project / ".forceignore").write_text("**/Desk_*\n")

    done = evalmeta(*CREATE)

    assert (done.code, "is ignored by '**/Desk_*' (.forceignore:1)" in done.err) == (2, True)
    assert not list(project.rglob("Desk_*"))


def test_an_invalid_api_name_is_refused(evalmeta: Program, project: Path) -> None:
    done = evalmeta("test", "create", "--spec", "spec.yaml", "--api-name", "../Desk")

    assert (done.code, "'../Desk' is not a valid API name" in done.err) == (2, True)
    assert project.is_dir()
