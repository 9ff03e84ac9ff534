from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundles import METADATA, SCRIPT, write_bundle
from evalmeta.errors import ProjectError
from evalmeta.limits import MAX_XML_BYTES
from evalmeta.model.registry import AUTHORING_BUNDLE, EVALUATION_DEFINITION
from evalmeta.package.archive import build_zip, package_entries, read_zip
from evalmeta.package.components import EntryName, content_of, contents_in, entries_in, parse_entry
from evalmeta.package.folders import find_components, target_path
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("entry", "parsed"),
    [
        ("aiAuthoringBundles/Desk/Desk.agent", EntryName(AUTHORING_BUNDLE, "Desk", "Desk.agent")),
        ("unpackaged/aiAuthoringBundles/Desk/a/b.txt", EntryName(AUTHORING_BUNDLE, "Desk", "a/b.txt")),
        ("x/Orders.aiEvaluationDefinition", EntryName(EVALUATION_DEFINITION, "Orders")),
        ("aiAuthoringBundles/Desk.agent", None),
        ("aiAuthoringBundles/.Desk/Desk.agent", None),
        ("Desk.bundle-meta.xml", None),
        ("package.xml", None),
    ],
)
def test_an_entry_belongs_to_the_folder_of_a_bundle_or_is_a_component(entry: str, parsed: EntryName | None) -> None:
    assert parse_entry(entry) == parsed


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_bundle_keeps_its_bytes_through_a_zip(script: bytes, metadata: bytes) -> None:
    files = {"aiAuthoringBundles/Desk/Desk.agent": script, "aiAuthoringBundles/Desk/Desk.bundle-meta.xml": metadata}
    [(key, content)] = contents_in(read_zip(build_zip(files.items()))).items()
    assert dict(entries_in(*key, content)) == files


def test_a_package_has_the_files_of_a_bundle_as_the_metadata_format_has_them(dx: Path) -> None:
    folder = write_bundle(dx / "force-app/main/default", "Desk")
    entries = dict(package_entries(resolve(find_project(dx))))
    assert entries.keys() == {
        "package.xml",
        "aiAuthoringBundles/Desk/Desk.agent",
        "aiAuthoringBundles/Desk/Desk.bundle-meta.xml",
    }
    assert entries["aiAuthoringBundles/Desk/Desk.agent"] == folder / "Desk.agent"
    assert b"<members>Desk</members>\n        <name>AiAuthoringBundle</name>" in bytes(entries["package.xml"])


def test_a_content_has_all_files_of_a_bundle(dx: Path) -> None:
    write_bundle(dx / "force-app", "Desk")
    [component] = find_components(find_project(dx))
    assert [content for _, content in entries_in(component.type, "Desk", content_of(component))] == [SCRIPT, METADATA]


def test_a_file_of_a_bundle_that_is_too_large_is_an_error_with_its_name(dx: Path) -> None:
    folder = write_bundle(dx / "force-app", "Desk")
    (folder / "Desk.agent").write_bytes(b" " * (MAX_XML_BYTES + 1))
    [component] = find_components(find_project(dx))
    with pytest.raises(ProjectError, match=r"Desk\.agent: is larger than"):
        content_of(component)


def test_a_new_bundle_is_a_folder(dx: Path) -> None:
    project = find_project(dx)
    assert target_path(project, AUTHORING_BUNDLE, "Desk") == dx / "force-app/main/default/aiAuthoringBundles/Desk"
