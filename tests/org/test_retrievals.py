from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.client.metadata import deploy, describe, list_components, retrieve
from evalmeta.errors import OrgFault
from evalmeta.model.registry import TYPES, Manifest, ManifestTypes
from evalmeta.package.archive import read_zip
from evalmeta.protocol.json_fields import from_timestamp
from evalmeta.protocol.metadata_api import MetadataObject
from evalmeta.xmlio.definitions import write_manifest
from org.parts import KIND, ask, definition, everything, package, xml_of

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization
    from evalmeta.protocol.metadata_api import RetrieveResult


@pytest.fixture
def files(org: Organization) -> dict[str, bytes]:
    """Two definitions, deployed."""
    made = {name: definition(name) for name in ("B", "A")}
    ask(org, lambda connection: deploy(connection, package(made)))
    return made


def fetch(org: Organization, manifest: Manifest) -> RetrieveResult:
    return ask(org, lambda connection: retrieve(connection, manifest))


def test_a_wildcard_fetches_everything_below_unpackaged(org: Organization, files: dict[str, bytes]) -> None:
    result = fetch(org, everything())
    manifest = write_manifest(everything("A", "B"))
    expected = {f"unpackaged/{xml_of(name)}": content for name, content in files.items()}
    assert read_zip(result.zip_file) == {"unpackaged/package.xml": manifest, **expected}
    assert (result.status, result.success, result.messages) == ("Succeeded", True, ())


def test_a_member_fetches_that_component_only(org: Organization, files: dict[str, bytes]) -> None:
    entries = read_zip(fetch(org, everything("B")).zip_file)
    assert entries[f"unpackaged/{xml_of('B')}"] == files["B"]
    assert len(entries) == 2


@pytest.mark.usefixtures("files")
def test_a_retrieve_too_large_for_one_zip_fails_with_advice(org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ZIP_ENTRIES", 2)
    with pytest.raises(OrgFault, match=r"more than 2 .*list fewer members") as raised:
        fetch(org, everything())
    assert raised.value.code == "LIMIT_EXCEEDED"


@pytest.mark.usefixtures("files")
def test_every_file_of_the_zip_has_its_properties(org: Organization) -> None:
    result = fetch(org, everything())
    assert {member.file_name for member in result.file_properties} == set(read_zip(result.zip_file))
    assert [member.full_name for member in result.file_properties] == ["A", "B", "unpackaged/package.xml"]


@pytest.mark.usefixtures("files")
def test_a_member_that_does_not_exist_becomes_a_message(org: Organization) -> None:
    result = fetch(org, everything("A", "Gone"))
    [message] = result.messages
    assert message.problem == f"Entity of type '{KIND.name}' named 'Gone' cannot be found"
    assert len(result.file_properties) == 2


def test_a_type_that_is_not_known_becomes_a_message(org: Organization) -> None:
    others = (ManifestTypes("ApexClass", ("*", "Orders")), ManifestTypes("AiAgentScorerDefinitions", ("*",)))
    result = fetch(org, Manifest(others, "64.0"))
    assert [message.problem for message in result.messages] == [
        "Entity of type 'ApexClass' named 'Orders' cannot be found",
        "Unknown type name 'AiAgentScorerDefinitions' specified in package.xml; did you mean AiAgentScorerDefinition?",
    ]


@pytest.mark.usefixtures("files")
def test_members_named_twice_are_fetched_once(org: Organization) -> None:
    manifest = Manifest((*everything("A").types, *everything("A", "*").types), "64.0")
    assert len(fetch(org, manifest).file_properties) == 3


def test_an_empty_org_returns_a_zip_with_a_manifest(org: Organization) -> None:
    assert list(read_zip(fetch(org, everything()).zip_file)) == ["unpackaged/package.xml"]


@pytest.mark.usefixtures("files")
def test_components_are_listed_by_name_with_their_ids_and_dates(org: Organization) -> None:
    listed = ask(org, lambda connection: list_components(connection, KIND.name))
    assert [(properties.full_name, properties.file_name) for properties in listed] == [
        ("A", xml_of("A")),
        ("B", xml_of("B")),
    ]
    assert {properties.id[:3] for properties in listed} == {KIND.id_prefix}
    assert all(from_timestamp(properties.created_date) for properties in listed)


def test_an_empty_org_lists_nothing(org: Organization) -> None:
    assert ask(org, lambda connection: list_components(connection, KIND.name)) == []


def test_the_org_describes_the_types_it_has(org: Organization) -> None:
    described = ask(org, describe)
    suffixes = {row.name: None if row.is_bundle else row.suffix for row in TYPES}
    assert described.metadata_objects == tuple(
        MetadataObject(row.directory, row.name, suffixes[row.name]) for row in TYPES
    )


@pytest.mark.usefixtures("files")
def test_a_member_is_found_in_any_case_of_its_name(org: Organization) -> None:
    result = fetch(org, everything("a", "A"))
    assert [member.full_name for member in result.file_properties] == ["A", "unpackaged/package.xml"]
    assert result.messages == ()


@pytest.mark.usefixtures("files")
def test_a_component_says_who_made_it_and_who_changed_it(org: Organization) -> None:
    user = org.users.add("ci", "Robot", now=1)
    token = org.new_token(user, now=1, expires=9e9)
    ask(org, lambda connection: deploy(connection, package({"A": definition("A", cases=2)})), token=token)
    found = ask(org, lambda connection: list_components(connection, KIND.name))
    names = [
        (properties.full_name, properties.created_by_name, properties.last_modified_by_name) for properties in found
    ]
    assert names == [("A", "Local Admin", "Robot"), ("B", "Local Admin", "Local Admin")]
