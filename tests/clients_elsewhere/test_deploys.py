from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from org.parts import KIND, definition, package, xml_of

if TYPE_CHECKING:
    from clients_elsewhere.orgs import Org
    from clients_elsewhere.workspace import Workspace

NOBODYS = "00D000000000001!no.bodys_token"
REST = {"SF_ORG_METADATA_REST_DEPLOY": "true"}
APIS = pytest.mark.parametrize(("env", "api"), [({}, "SOAP"), (REST, "REST")], ids=["soap", "rest"])
DEPLOY = "project deploy start"


def bad(name: str) -> bytes:
    return definition(name, extra="<bogusElement>1</bogusElement>")


@APIS
def test_a_deployment_reports_created_components(workspace: Workspace, env: dict[str, str], api: str) -> None:
    name = workspace.write("Sent")

    done = workspace.sf(DEPLOY, "--manifest", workspace.manifest("*"), env=env)

    assert done.code == 0, done
    assert f"v66.0 metadata to admin@evalmeta.local using the v68.0 {api} API" in done.out
    assert "Status: Succeeded" in done.out
    assert f"Created  {name}  AiEvaluationDefinition" in done.out


@APIS
def test_a_failed_deployment_reports_line_and_column(workspace: Workspace, env: dict[str, str], api: str) -> None:
    name = workspace.write("Bad")
    workspace.path(name).write_bytes(bad(name))

    done = workspace.sf(DEPLOY, "-m", f"{KIND.name}:{name}", env=env)

    [row] = [line for line in done.out.splitlines() if line.startswith(f" {KIND.name}  {name}")]
    assert (done.code, row.split()[-1]) == (1, "7:3"), api
    assert "Status: Failed" in done.out
    assert "Component Failures [1]" in done.out


@APIS
def test_components_of_other_types_are_refused_one_by_one(workspace: Workspace, env: dict[str, str], api: str) -> None:
    name = workspace.write("Beside")
    classes = workspace.path(name).parents[1] / "classes"
    classes.mkdir()
    (classes / "Shop.cls").write_text("public class Shop {}")
    (classes / "Shop.cls-meta.xml").write_text('<ApexClass xmlns="http://soap.sforce.com/2006/04/metadata"/>')

    done = workspace.sf(DEPLOY, "--source-dir", "force-app", env=env)

    [row] = [line for line in done.out.splitlines() if line.startswith(" ApexClass  Shop")]
    assert (done.code, "This org does not support the type ApexClass" in row) == (1, True), api
    assert "Component Failures [1]" in done.out


@APIS
def test_a_dry_run_changes_nothing(workspace: Workspace, env: dict[str, str], api: str) -> None:
    name = workspace.write("Tried")

    done = workspace.sf(DEPLOY, "--dry-run", "-m", f"{KIND.name}:{name}", env=env)

    assert done.code == 0, (api, done)
    assert "Validated Source" in done.out
    assert "Dry-run complete." in done.out
    again = workspace.sf(DEPLOY, "--dry-run", "--json", "-m", f"{KIND.name}:{name}", env=env)
    assert [file.state for file in again.reply.result.files] == ["Created"]


def test_what_is_in_the_org_already_is_unchanged(workspace: Workspace) -> None:
    name, content = workspace.deployed("Twice")
    workspace.path(name).write_bytes(content)

    done = workspace.sf(DEPLOY, "--json", "-m", f"{KIND.name}:{name}")

    assert [(file.fullName, file.state) for file in done.reply.result.files] == [(name, "Unchanged")]


@APIS
def test_errors_can_be_ignored(workspace: Workspace, env: dict[str, str], api: str) -> None:
    name, other = workspace.write("Kept"), workspace.write("Refused", bad("Refused"))

    done = workspace.sf(DEPLOY, "--ignore-errors", "--json", "--manifest", workspace.manifest("*"), env=env)

    assert done.code == 68, (api, done)
    assert done.reply.result.status == "SucceededPartial"
    states = {file.fullName: file.state for file in done.reply.result.files}
    assert states == {name: "Created", other: "Failed"}


def test_a_member_that_is_not_in_the_zip_is_reported(workspace: Workspace) -> None:
    name = workspace.write("There")

    done = workspace.sf(DEPLOY, "--json", "--manifest", workspace.manifest(name, "Not_There"))

    [failure] = done.reply.result.details.componentFailures
    assert (done.code, failure.fullName) == (1, "Not_There")
    assert "was not found in zipped directory" in failure.problem


def test_a_folder_in_metadata_format_is_deployed(workspace: Workspace) -> None:
    name = workspace.write("In_Folder")
    folder = workspace.folder / "metadata"
    (folder / KIND.directory).mkdir(parents=True)
    workspace.path(name).rename(folder / xml_of(name))
    workspace.manifest(name, file="metadata/package.xml")

    done = workspace.sf(DEPLOY, "--json", "--metadata-dir", "metadata")

    assert done.code == 0, done
    [_, success] = done.reply.result.details.componentSuccesses
    assert (success.fullName, success.created) == (name, True)


@pytest.mark.parametrize("single", [(), ("--single-package",)], ids=["", "single"])
def test_a_zip_in_metadata_format_is_deployed(workspace: Workspace, single: tuple[str, ...]) -> None:
    name = workspace.write("In_Zip")
    (workspace.folder / "all.zip").write_bytes(package({name: workspace.path(name).read_bytes()}))

    done = workspace.sf(DEPLOY, "--json", "--metadata-dir", "all.zip", *single)

    assert done.code == 0, done
    assert name in [success.fullName for success in done.reply.result.details.componentSuccesses]


def test_an_invalid_zip_is_refused(workspace: Workspace) -> None:
    (workspace.folder / "all.zip").write_text("no zip")

    done = workspace.sf(DEPLOY, "--json", "--metadata-dir", "all.zip")

    assert (done.code, done.reply.result.errorStatusCode) == (1, "INVALID_ZIP_FILE")


def test_an_expired_session_is_reported(workspace: Workspace, org: Org) -> None:
    name = workspace.write("Late")

    done = workspace.sf(DEPLOY, "--json", "-m", f"{KIND.name}:{name}", org=replace(org, token=NOBODYS))

    assert (done.code, "INVALID_SESSION_ID" in done.out) == (1, True), done


@pytest.mark.parametrize("command", ["project deploy preview --json --manifest", "project retrieve preview"])
def test_nothing_is_previewed_where_changes_are_not_tracked(workspace: Workspace, command: str) -> None:
    workspace.write("Previewed")
    manifest = workspace.manifest("*")

    done = workspace.sf(command, *([manifest] if command.endswith("--manifest") else []))

    assert done.code == 1, done
    assert "NonSourceTrackedOrgError" in done.out + done.err
