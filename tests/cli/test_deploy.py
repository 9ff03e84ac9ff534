from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

PACKAGE = (
    '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><types><members>{member}</members>'
    "<name>{type}</name></types>{version}</Package>"
)
VERSION = "<version>64.0</version>"


def test_the_sample_is_deployed_to_the_embedded_org(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()

    done = evalmeta("deploy", "--manifest", "package.xml")

    assert done.code == 0
    assert f"Target: the embedded org of {project.name} (.evalmeta)" in done.err
    assert "Deployed 7 components" in done.out
    assert "Created  my_test_n1" in done.out


def test_a_dx_project_is_deployed_from_any_folder_inside(
    evalmeta: Program, copy_samples: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copy_samples("dx-project")
    monkeypatch.chdir(project / "force-app/main")

    done = evalmeta("deploy", "--manifest", "../../manifest/package.xml")

    assert done.code == 0
    assert "Deployed 3 components" in done.out


def test_a_second_deployment_changes_nothing(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    evalmeta("deploy")

    files = json.loads(evalmeta("deploy", "--json").out)["result"]["files"]

    assert {each["state"] for each in files} == {"Unchanged"}


def test_a_bad_definition_is_not_sent(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    bad = project / "aiEvaluationDefinitions/my_test_n1.aiEvaluationDefinition"
    bad.write_text(bad.read_text().replace("<subjectType>AGENT", "<subjectType>BOT"))

    done = evalmeta("deploy")

    assert done.code == 1
    assert "nothing was sent" in done.err
    assert "Write AGENT, the only supported type." in done.err
    assert evalmeta("test", "list").out.startswith("No agent tests")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("no XML", "not well-formed XML"),
        (PACKAGE.format(member="*", type="AiEvaluationDefinitio", version=VERSION), "Did you mean AiEvaluationDef"),
        (
            PACKAGE.format(member="my_test_n2", type="AiEvaluationDefinition", version=VERSION),
            "Did you mean my_test_n1",
        ),
        (PACKAGE.format(member="*", type="AiEvaluationDefinition", version=""), "has no <version>"),
        (
            PACKAGE.format(member="*", type="AiEvaluationDefinition", version="<version>62.0</version>"),
            "needs API version 63.0 or later",
        ),
    ],
)
def test_a_bad_manifest_is_refused_with_its_place(
    evalmeta: Program, copy_samples: Callable[..., Path], manifest: str, said: str
) -> None:
    project = copy_samples()
    (project / "other.xml").write_text(manifest)

    done = evalmeta("deploy", "-x", "other.xml")

    assert done.code == 1
    assert "other.xml:1:" in done.err
    assert said in done.err


def test_a_manifest_that_is_not_there_is_wrong_usage(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    done = evalmeta("deploy", "--manifest", "absent.xml")

    assert done.code == 2
    assert "absent.xml" in done.err


def test_an_error_as_json_has_name_message_and_actions(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    error = json.loads(evalmeta("deploy", "--json", "-x", "absent.xml").out)

    assert (error["name"], error["exitCode"], error["status"]) == ("NotFound", 2, 2)


def test_a_corrupt_org_says_how_to_begin_again(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    (project / ".evalmeta").mkdir()
    (project / ".evalmeta/org.sqlite3").write_bytes(b"not a database, not at all" * 100)

    done = evalmeta("deploy")

    assert done.code == 4
    assert "is no usable database" in done.err
    assert "deploy again" in done.err


def test_a_locked_org_is_reported_and_left_alone(
    evalmeta: Program, copy_samples: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copy_samples()
    evalmeta("test", "list")
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(project / ".evalmeta/org.sqlite3", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    done = evalmeta("deploy")

    holder.close()
    assert done.code == 4
    assert "held by another program" in done.err
    assert evalmeta("deploy").code == 0


def test_only_what_is_selected_is_deployed(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples("dx-project")
    [file] = project.rglob("Tariff_Criteria*")

    assert "Deployed 1 component " in evalmeta("deploy", "-d", str(file)).out
    assert "Deployed 1 component " in evalmeta("deploy", "-m", "AiEvaluationDefinition:Outage_*").out
    assert [each.split()[0] for each in evalmeta("test", "list").out.splitlines()[1:]] == [
        "Outage_Desk",
        "Tariff_Criteria",
    ]


@pytest.mark.parametrize("command", ["deploy", "retrieve", "validate"])
def test_ways_to_select_exclude_each_other(evalmeta: Program, copy_samples: Callable[..., Path], command: str) -> None:
    copy_samples()

    done = evalmeta(command, "-x", "package.xml", "-m", "AiEvaluationDefinition")

    assert done.code == 2
    assert "--source-dir, --manifest and --metadata exclude each other." in done.err


def test_a_name_that_nothing_has_is_answered_with_the_nearest(
    evalmeta: Program, copy_samples: Callable[..., Path]
) -> None:
    copy_samples()

    done = evalmeta("deploy", "-m", "AiEvaluationDefinition:my_test_n2")

    assert done.code == 2
    assert "Did you mean AiEvaluationDefinition:my_test_n1?" in done.err


def test_what_forceignore_names_stays_at_home(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples("dx-project")
    [draft] = project.rglob("Tariff_Criteria*")
    (draft.parent / "drafts").mkdir()
    draft.rename(draft.parent / "drafts" / draft.name)

    done = evalmeta("deploy")

    assert "Deployed 2 components" in done.out
    assert "Tariff_Criteria" not in done.out
