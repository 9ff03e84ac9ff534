"""The sf CLI with bundles of agents in Agent Script: their files are those of the org, byte by byte."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bundles import BROKEN, SCRIPT, bundle_parts, write_bundle
from clients_elsewhere.workspace import new_name
from evalmeta.model.registry import AUTHORING_BUNDLE, Manifest, ManifestTypes
from evalmeta.xmlio.definitions import write_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from clients_elsewhere.workspace import Workspace

KIND = AUTHORING_BUNDLE.name
DEPLOY, RETRIEVE = "project deploy start", "project retrieve start"


def write(workspace: Workspace, word: str, script: bytes = SCRIPT) -> tuple[str, Path]:
    name = new_name(word)
    return name, write_bundle(workspace.folder / "force-app/main/default", name, script)


def manifest(workspace: Workspace, *members: str) -> str:
    (workspace.folder / "package.xml").write_bytes(write_manifest(Manifest((ManifestTypes(KIND, members),), "66.0")))
    return "package.xml"


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_bundle_is_deployed_and_retrieved(workspace: Workspace) -> None:
    script = SCRIPT.replace(b"\n", b"\r\n") + b"# \xc3\xa9"
    name, folder = write(workspace, "Desk", script)
    done = workspace.sf(DEPLOY, "--json", "--manifest", manifest(workspace, name))
    assert done.code == 0, done
    assert {(file.fullName, file.state, file.type) for file in done.reply.result.files} == {(name, "Created", KIND)}
    shutil.rmtree(folder)
    done = workspace.sf(RETRIEVE, "--json", "-m", f"{KIND}:{name}")
    assert done.code == 0, done
    assert files_in(folder) == bundle_parts(name, script)


def test_all_bundles_are_retrieved_by_a_wildcard(workspace: Workspace) -> None:
    name, folder = write(workspace, "Desk")
    assert workspace.sf(DEPLOY, "--source-dir", str(folder / f"{name}.agent")).code == 0
    shutil.rmtree(folder)
    done = workspace.sf(RETRIEVE, "--json", "--manifest", manifest(workspace, "*"))
    assert done.code == 0, done
    assert files_in(folder) == bundle_parts(name)


def test_a_script_with_errors_is_refused_with_line_and_column(workspace: Workspace) -> None:
    name, folder = write(workspace, "Bad", BROKEN)
    done = workspace.sf(DEPLOY, "--json", "--source-dir", str(folder))
    [failure] = done.reply.result.details.componentFailures
    assert (done.code, failure.fullName, failure.lineNumber, failure.columnNumber) == (1, name, 6, 29)
    [failed] = [file for file in done.reply.result.files if file.state == "Failed"]
    assert (failed.fullName, failed.lineNumber) == (name, 6)
    assert "there is no variable 'plan'" in failed.error
    table = workspace.sf(DEPLOY, "--source-dir", str(folder))
    assert [line.split()[-1] for line in table.out.splitlines() if line.startswith(f" {KIND}  {name}")] == ["6:29"]


def test_a_bundle_without_its_metadata_file_is_refused(workspace: Workspace) -> None:
    name, folder = write(workspace, "Half")
    (folder / f"{name}.bundle-meta.xml").unlink()
    done = workspace.sf(DEPLOY, "--json", "--source-dir", str(folder))
    assert (done.code, f"{name}.bundle-meta.xml" in done.out) == (1, True), done


def test_a_bundle_is_listed_and_deleted(workspace: Workspace) -> None:
    name, folder = write(workspace, "Gone")
    assert workspace.sf(DEPLOY, "--source-dir", str(folder)).code == 0
    listed = workspace.sf("org list metadata", "--json", "--metadata-type", KIND)
    assert name in [component.fullName for component in listed.reply.result]
    done = workspace.sf("project delete source", "--json", "--no-prompt", "--metadata", f"{KIND}:{name}")
    assert done.code == 0, done
    listed = workspace.sf("org list metadata", "--json", "--metadata-type", KIND)
    assert name not in [component.fullName for component in listed.reply.result]
    assert not folder.exists()


def test_the_type_is_described(workspace: Workspace) -> None:
    done = workspace.sf("org list metadata-types", "--json")
    [described] = [row for row in done.reply.result.metadataObjects if row.xmlName == KIND]
    assert described.directoryName == "aiAuthoringBundles"


def test_both_formats_are_those_of_sf(workspace: Workspace) -> None:
    name, _ = write(workspace, "Packed")
    done = workspace.sf("project convert source", "--output-dir", "mdapi")
    assert done.code == 0, done
    assert files_in(workspace.folder / "mdapi/aiAuthoringBundles" / name) == bundle_parts(name)
    assert workspace.sf(DEPLOY, "--metadata-dir", "mdapi").code == 0
