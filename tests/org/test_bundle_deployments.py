"""Bundles in an org: what a deployment saves and refuses, and what a retrieve returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundles import BROKEN, METADATA, SCRIPT, bundle_package, bundle_parts
from evalmeta.client.metadata import deploy, list_components, retrieve
from evalmeta.model.registry import AUTHORING_BUNDLE, Manifest, ManifestTypes
from evalmeta.package.archive import build_zip, read_zip
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.xmlio.definitions import write_manifest
from org.parts import ask, definition, opened, xml_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.org.organization import Organization
    from evalmeta.protocol.metadata_api import DeployMessage, DeployResult, RetrieveResult

KIND = AUTHORING_BUNDLE.name


@pytest.fixture
def org(tmp_path: Path) -> Iterator[Organization]:
    with opened(tmp_path) as org:
        yield org


def files_of(name: str, script: bytes = SCRIPT, metadata: bytes = METADATA) -> dict[str, bytes]:
    return {f"{name}/{file}": content for file, content in bundle_parts(name, script, metadata).items()}


def send(org: Organization, zip_file: bytes, **options: bool) -> DeployResult:
    return ask(org, lambda connection: deploy(connection, zip_file, options=DeployOptions(**options)))


def fetch(org: Organization, *members: str) -> RetrieveResult:
    manifest = Manifest((ManifestTypes(KIND, members or ("*",)),), "66.0")
    return ask(org, lambda connection: retrieve(connection, manifest))


def bundles_in(result: RetrieveResult) -> dict[str, bytes]:
    prefix = f"unpackaged/{AUTHORING_BUNDLE.directory}/"
    return {
        name.removeprefix(prefix): content
        for name, content in read_zip(result.zip_file).items()
        if name.startswith(prefix)
    }


def told(messages: tuple[DeployMessage, ...]) -> list[tuple[str, str, str]]:
    return [(message.component_type, message.full_name, message.file_name) for message in messages]


def test_a_deployed_bundle_is_one_component_with_the_name_of_its_folder(org: Organization) -> None:
    result = send(org, bundle_package(files_of("Desk")))
    [_, success] = result.details.component_successes
    assert (result.status, result.number_components_deployed) == ("Succeeded", 1)
    assert (success.file_name, success.created, success.problem) == ("aiAuthoringBundles/Desk", True, None)
    [listed] = ask(org, lambda connection: list_components(connection, KIND))
    assert (listed.full_name, listed.file_name) == ("Desk", "aiAuthoringBundles/Desk")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    comment=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
    line_end=st.sampled_from([b"\n", b"\r\n"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_a_bundle_keeps_its_bytes_through_an_org(org: Organization, comment: str, line_end: bytes, mark: bytes) -> None:
    script = mark + SCRIPT.replace(b"\n", line_end) + f"# {comment}".encode()
    metadata = METADATA.replace(b"\n", line_end)
    files = files_of("Desk", script, metadata)
    result = send(org, bundle_package(files))
    assert result.status == "Succeeded", result.details.component_failures
    assert bundles_in(fetch(org)) == files


def test_an_unchanged_bundle_is_unchanged_and_one_other_byte_is_a_change(org: Organization) -> None:
    send(org, bundle_package(files_of("Desk")))
    for files, changed in ((files_of("Desk"), False), (files_of("Desk", metadata=METADATA + b"\n"), True)):
        [_, success] = send(org, bundle_package(files)).details.component_successes
        assert (success.created, success.changed) == (False, changed)


def test_a_script_with_errors_is_refused_with_line_and_column_and_nothing_is_saved(org: Organization) -> None:
    result = send(org, bundle_package(files_of("Desk", BROKEN) | files_of("Gym")))
    [failure] = result.details.component_failures
    assert (result.status, failure.full_name, failure.file_name) == (
        "Failed",
        "Desk",
        "aiAuthoringBundles/Desk/Desk.agent",
    )
    assert (failure.line_number, failure.column_number) == (6, 29)
    assert "[script-reference]" in (failure.problem or "")
    assert ask(org, lambda connection: list_components(connection, KIND)) == []


def test_a_metadata_file_with_errors_is_refused_with_its_name(org: Organization) -> None:
    metadata = METADATA.replace(b"<bundleType>AGENT</bundleType>", b"")
    [failure] = send(org, bundle_package(files_of("Desk", metadata=metadata))).details.component_failures
    assert failure.file_name == "aiAuthoringBundles/Desk/Desk.bundle-meta.xml"
    assert "bundleType" in (failure.problem or "")


@pytest.mark.parametrize("missing", ["Desk.agent", "Desk.bundle-meta.xml"])
def test_half_a_bundle_is_refused(org: Organization, missing: str) -> None:
    files = files_of("Desk")
    del files[f"Desk/{missing}"]
    [failure] = send(org, bundle_package(files)).details.component_failures
    assert missing in (failure.problem or "")
    assert "[bundle-file-missing]" in (failure.problem or "")


def test_another_file_is_kept_with_a_warning(org: Organization) -> None:
    files = files_of("Desk") | {"Desk/notes/a.txt": b"Hi"}
    [_, success] = send(org, bundle_package(files)).details.component_successes
    assert "notes/a.txt is neither the script nor the metadata file" in (success.problem or "")
    assert bundles_in(fetch(org)) == files


def test_a_bundle_that_the_manifest_names_must_be_in_the_zip(org: Organization) -> None:
    result = send(org, bundle_package(files_of("Desk"), "Desk", "Gym"))
    [failure] = result.details.component_failures
    assert (failure.full_name, "was not found in zipped directory" in (failure.problem or "")) == ("Gym", True)
    assert send(org, bundle_package(files_of("Desk"), "Desk", "Gym"), allow_missing_files=True).success


def test_a_bundle_that_the_manifest_does_not_name_is_refused_file_by_file(org: Organization) -> None:
    result = send(org, bundle_package(files_of("Desk") | files_of("Gym"), "Desk"))
    assert told(result.details.component_failures) == [
        (KIND, "Gym", f"aiAuthoringBundles/Gym/{name}") for name in bundle_parts("Gym")
    ]
    assert result.number_component_errors == 1


def test_a_script_beside_the_folders_of_bundles_is_refused(org: Organization) -> None:
    result = send(org, bundle_package({"Desk.agent": SCRIPT}))
    assert told(result.details.component_failures) == [
        ("", "aiAuthoringBundles/Desk.agent", "aiAuthoringBundles/Desk.agent")
    ]


def test_two_packages_of_one_zip_cannot_have_the_same_bundle(org: Organization) -> None:
    manifest = write_manifest(Manifest((ManifestTypes(KIND, ("*",)),), "66.0"))
    entries = [(f"{folder}/package.xml", manifest) for folder in ("a", "b")]
    for folder, name in (("a", "Desk"), ("b", "desk")):
        entries += [(f"{folder}/aiAuthoringBundles/{path}", content) for path, content in files_of(name).items()]
    result = send(org, build_zip(entries), single_package=False)
    [failure] = result.details.component_failures
    assert (failure.full_name, "more than once" in (failure.problem or "")) == ("desk", True)


def test_bundles_are_deleted_by_destructive_changes(org: Organization) -> None:
    send(org, bundle_package(files_of("Desk")))
    changes = write_manifest(Manifest((ManifestTypes(KIND, ("Desk", "Absent")),)))
    empty = write_manifest(Manifest((), "66.0"))
    result = send(org, build_zip([("package.xml", empty), ("destructiveChanges.xml", changes)]))
    deleted = [success.full_name for success in result.details.component_successes if success.deleted]
    assert (result.status, deleted) == ("Succeeded", ["Desk"])
    assert bundles_in(fetch(org)) == {}


def test_a_retrieve_returns_the_bundles_that_it_names_in_any_case(org: Organization) -> None:
    send(org, bundle_package(files_of("Desk") | files_of("Gym")))
    result = fetch(org, "desk", "Absent")
    assert bundles_in(result) == files_of("Desk")
    assert [message.problem for message in result.messages] == [
        f"Entity of type '{KIND}' named 'Absent' cannot be found"
    ]
    assert result.file_properties[0].file_name == "unpackaged/aiAuthoringBundles/Desk"


def test_definitions_and_bundles_travel_in_one_zip(org: Organization) -> None:
    manifest = write_manifest(
        Manifest((ManifestTypes(KIND, ("*",)), ManifestTypes("AiEvaluationDefinition", ("*",))), "66.0")
    )
    entries = {f"aiAuthoringBundles/{path}": content for path, content in files_of("Desk").items()}
    zip_file = build_zip([("package.xml", manifest), (xml_of("A"), definition("A")), *entries.items()])
    assert send(org, zip_file).number_components_deployed == 2


def test_a_manifest_of_an_older_version_cannot_name_bundles(org: Organization) -> None:
    [failure] = send(org, bundle_package(files_of("Desk"), version="64.0")).details.component_failures
    assert "AiAuthoringBundle requires API version 65.0 or later" in (failure.problem or "")
