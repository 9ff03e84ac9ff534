from __future__ import annotations

import json
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from cli.remote import SUCCEEDED, calls_of, remote
from evalmeta import limits
from evalmeta.package.archive import read_zip
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.protocol.soap import read_deploy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.team import Team
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


def test_a_custom_scorer_is_deployed_compared_and_retrieved_but_is_not_a_test(
    evalmeta: Program, copy_samples: Callable[..., Path]
) -> None:
    project = copy_samples("studio")
    scorer = project / "aiAgentScorerDefinitions/Polite_Tone.aiAgentScorerDefinition"
    assert "Created  Polite_Tone" in evalmeta("deploy", "--manifest", "package.xml").out
    deployed = scorer.read_bytes()

    scorer.write_bytes(deployed.replace(b"Archived", b"Draft"))
    assert "scorerVersion 1, status\n    - Archived\n    + Draft" in evalmeta("diff").out
    scorer.unlink()
    evalmeta("retrieve", "--metadata", "AiAgentScorerDefinition")

    assert scorer.read_bytes() == deployed
    assert "Polite_Tone" not in evalmeta("test", "list").out
    refused = evalmeta("run", str(scorer.relative_to(project)))
    assert (refused.code, "AiAgentScorerDefinition is not the type of a test" in refused.err) == (1, True)


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

    assert {file["state"] for file in files} == {"Unchanged"}


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
            "requires API version 63.0 or later",
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
    assert "\nother.xml\n  " in done.err
    assert said in done.err


def test_a_missing_manifest_is_a_usage_error(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
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
    assert "is not a valid database" in done.err
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
    assert "locked by another program" in done.err
    assert evalmeta("deploy").code == 0


def test_only_what_is_selected_is_deployed(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples("dx-project")
    [file] = project.rglob("Tariff_Criteria*")

    assert "Deployed 1 component " in evalmeta("deploy", "-d", str(file)).out
    assert "Deployed 1 component " in evalmeta("deploy", "-m", "AiEvaluationDefinition:Outage_*").out
    assert [line.split()[0] for line in evalmeta("test", "list").out.splitlines()[1:]] == [
        "Outage_Desk",
        "Tariff_Criteria",
    ]


@pytest.mark.parametrize("command", ["deploy", "retrieve", "validate"])
def test_ways_to_select_exclude_each_other(evalmeta: Program, copy_samples: Callable[..., Path], command: str) -> None:
    copy_samples()

    done = evalmeta(command, "-x", "package.xml", "-m", "AiEvaluationDefinition")

    assert done.code == 2
    assert "--source-dir, --manifest and --metadata cannot be combined." in done.err


def test_an_unknown_name_is_refused_with_the_closest_name(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    done = evalmeta("deploy", "-m", "AiEvaluationDefinition:my_test_n2")

    assert done.code == 2
    assert "Did you mean AiEvaluationDefinition:my_test_n1?" in done.err


def test_files_in_forceignore_are_not_deployed(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples("dx-project")
    [draft] = project.rglob("Tariff_Criteria*")
    (draft.parent / "drafts").mkdir()
    draft.rename(draft.parent / "drafts" / draft.name)

    done = evalmeta("deploy")

    assert "Deployed 2 components" in done.out
    assert "Tariff_Criteria" not in done.out


def test_a_partial_deployment_exits_68_with_both_tables(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    folder = _in_metadata_format(copy_samples(), broken="my_test_n1")

    done = evalmeta("deploy", "--metadata-dir", str(folder), "--ignore-errors")

    assert done.code == 68
    assert "Deployed 6 of 7 components" in done.out
    assert "Created  World_Accounts" in done.out
    assert "Refused" in done.out
    assert "my_test_n1.aiEvaluationDefinition" in done.out


def test_without_ignore_errors_all_or_nothing_is_deployed(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    folder = _in_metadata_format(copy_samples(), broken="my_test_n1")

    done = evalmeta("deploy", "--metadata-dir", str(folder))

    assert (done.code, "the org was not changed" in done.err) == (1, True)
    assert evalmeta("test", "list").out.startswith("No agent tests")


def test_a_partial_deployment_as_json_has_its_status(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    folder = _in_metadata_format(copy_samples(), broken="my_test_n1")

    said = json.loads(evalmeta("deploy", "--metadata-dir", str(folder), "-r", "--json").out)

    assert (said["status"], said["result"]["status"]) == (68, "SucceededPartial")
    assert len(said["result"]["files"]) == 6
    assert {each["component"] for each in said["result"]["failures"]} == {"AiEvaluationDefinition:my_test_n1"}


@pytest.mark.parametrize("words", [[], ["--single-package"]])
def test_a_folder_in_metadata_format_is_deployed_as_it_is(
    evalmeta: Program, copy_samples: Callable[..., Path], words: list[str]
) -> None:
    folder = _in_metadata_format(copy_samples())

    assert "Deployed 7 components" in evalmeta("deploy", "--metadata-dir", str(folder), *words).out


def test_a_zip_that_was_built_is_deployed_as_it_is(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    evalmeta("package", "build")

    assert "Deployed 7 components" in evalmeta("deploy", "--metadata-dir", "package.zip", "--single-package").out


@pytest.mark.parametrize("name", ["absent", "empty", "no.zip"])
def test_a_folder_that_is_not_a_package_is_not_sent(
    evalmeta: Program, copy_samples: Callable[..., Path], name: str
) -> None:
    project = copy_samples()
    (project / "empty").mkdir()
    (project / "no.zip").write_text("no zip")

    assert evalmeta("deploy", "--metadata-dir", name).code in {1, 2}


def test_a_dry_run_changes_nothing(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    done = evalmeta("deploy", "--dry-run")

    assert (done.code, "Validated 7 components; the org was not changed" in done.out) == (0, True)
    assert evalmeta("test", "list").out.startswith("No agent tests")


@pytest.mark.parametrize("when", ["pre", "post"])
def test_destructive_changes_are_sent_when_they_are_named(
    evalmeta: Program, copy_samples: Callable[..., Path], when: str
) -> None:
    project = copy_samples()
    evalmeta("deploy")
    kept = PACKAGE.format(member="World_Accounts", type="AiEvaluationDefinition", version=VERSION)
    gone = PACKAGE.format(member="my_test_n1", type="AiEvaluationDefinition", version=VERSION)
    (project / "kept.xml").write_text(kept)
    (project / "gone.xml").write_text(gone)

    done = evalmeta("deploy", "-x", "kept.xml", f"--{when}-destructive-changes", "gone.xml")

    assert "Deployed 1 component, deleted 1" in done.out
    [deleted] = [line.split() for line in done.out.splitlines() if line.startswith("Deleted ")]
    assert deleted == ["Deleted", "my_test_n1", "gone.xml"]
    assert "my_test_n1" not in evalmeta("test", "list").out


def test_deleting_a_missing_component_is_reported(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    (project / "old").mkdir()
    for file, member in (("old/gone.xml", "Nobody"), ("first.xml", "Nothing")):
        (project / file).write_text(PACKAGE.format(member=member, type="AiEvaluationDefinition", version=VERSION))
    other = (project / "first.xml").read_text().replace("</types>", "</types><types><name>Flow</name></types>", 1)
    (project / "first.xml").write_text(other.replace("<name>Flow", "<members>My_Flow</members><name>Flow"))

    words = ("--post-destructive-changes", "old/gone.xml", "--pre-destructive-changes", "first.xml")
    done = evalmeta("deploy", "-x", "package.xml", *words)

    assert done.code == 0
    assert "Warning: old/gone.xml: No AiEvaluationDefinition named: Nobody found" in done.err
    assert "Warning: first.xml: No AiEvaluationDefinition named: Nothing found" in done.err
    assert "destructiveChanges" not in done.err


def test_destructive_changes_beside_the_manifest_are_not_sent_but_reported(
    evalmeta: Program, copy_samples: Callable[..., Path]
) -> None:
    project = copy_samples()
    gone = PACKAGE.format(member="my_test_n1", type="AiEvaluationDefinition", version=VERSION)
    (project / "destructiveChangesPost.xml").write_text(gone)

    done = evalmeta("deploy", "-x", "package.xml")

    assert "--post-destructive-changes destructiveChangesPost.xml" in done.err
    assert "my_test_n1" in evalmeta("test", "list").out


@pytest.mark.parametrize(
    "words",
    [
        ["--metadata-dir", ".", "-x", "package.xml"],
        ["--single-package"],
        ["--post-destructive-changes", "package.xml"],
        ["--async", "--wait", "3"],
        ["--tests", "Some"],
        ["--test-level", "RunSpecifiedTests"],
        ["--wait", "0"],
        ["--wait", "soon"],
        ["--wait", "nan"],
        ["--wait", "inf"],
        ["--api-version", "20.0"],
        ["--dry-run", "report"],
    ],
)
def test_options_that_cannot_be_combined_are_a_usage_error(
    evalmeta: Program, copy_samples: Callable[..., Path], words: list[str]
) -> None:
    copy_samples()

    assert evalmeta("deploy", *words).code == 2


def test_every_option_reaches_the_org(
    evalmeta: Program, copy_samples: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_samples()
    words = ["--purge-on-delete", "-g", "-r", "--dry-run", "-l", "RunSpecifiedTests", "-t", "A", "-t", "B"]
    with remote(monkeypatch, SUCCEEDED) as server:
        evalmeta("deploy", *words, "--api-version", "65.0", "--wait")
    [call] = [call for call in calls_of(server) if call.name == "deploy"]

    zip_file, options = read_deploy(call)
    assert b"<version>65.0</version>" in read_zip(zip_file)["package.xml"]
    assert b"/services/Soap/m/65.0" in server.requests[1]
    assert options == DeployOptions(
        check_only=True,
        ignore_warnings=True,
        purge_on_delete=True,
        rollback_on_error=False,
        run_tests=("A", "B"),
        test_level="RunSpecifiedTests",
    )


def test_start_is_another_name_of_deploy(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    assert "Deployed 7 components" in evalmeta("deploy", "start").out


def _in_metadata_format(project: Path, *, broken: str = "") -> Path:
    folder = project / "package"
    (folder / "aiEvaluationDefinitions").mkdir(parents=True)
    shutil.copy(project / "package.xml", folder)
    for file in (project / "aiEvaluationDefinitions").iterdir():
        text = file.read_text()
        text = text.replace("<subjectType>AGENT", "<subjectType>BOT") if file.name.startswith(f"{broken}.") else text
        (folder / "aiEvaluationDefinitions" / file.name).write_text(text)
    return folder


def test_a_dry_run_says_what_it_would_do_and_names_come_in_any_case(evalmeta: Program, team: Team) -> None:
    for name in ("b", "A", "C"):
        team.write(name)
    lines = evalmeta("deploy", "--dry-run").out.splitlines()[2:]
    assert [line.split()[:3] for line in lines] == [["Would", "create", name] for name in ("A", "b", "C")]


def test_a_name_that_forceignore_hides_is_explained(evalmeta: Program, copy_samples: Callable[[str], Path]) -> None:
    (copy_samples("dx-project") / ".forceignore").write_text("**/Outage_*\n")

    done = evalmeta("deploy", "-m", "AiEvaluationDefinition:Outage_Desk")

    assert (done.code, "Outage_Desk.aiEvaluationDefinition-meta.xml is ignored by" in done.err) == (2, True)
