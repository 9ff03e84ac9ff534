from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.registry import NEWEST_API_VERSION, Manifest, ManifestTypes
from evalmeta.package.selection import resolve
from evalmeta.xmlio.definitions import read_manifest
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from evalmeta.package.project import Project

EXAMPLE = (Path(__file__).parents[2] / "package.xml.example").read_bytes()
TYPE = "AiEvaluationDefinition"


def manifest(data: bytes) -> Manifest:
    return read_manifest(read_xml(data, label="package.xml.example"))


@pytest.mark.parametrize("shape", ["dx_project", "plain_project"])
def test_the_example_selects_every_component_of_either_project(request: pytest.FixtureRequest, shape: str) -> None:
    project: Project = request.getfixturevalue(shape)
    assert resolve(project, manifest=manifest(EXAMPLE)) == resolve(project)


def test_the_example_names_the_newest_api_version() -> None:
    assert manifest(EXAMPLE).version == str(NEWEST_API_VERSION)


def test_the_members_in_the_examples_comment_are_a_manifest_too() -> None:
    wildcard, explicit = EXAMPLE.split(b"    <types>")[1:]
    types = explicit.partition(b"-->")[0]
    members = ("My_Agent_Tests", "My_Agent_Regression_Tests")
    assert b"<members>*</members>" in wildcard
    data = b'<Package xmlns="http://soap.sforce.com/2006/04/metadata"><types>' + types + b"</Package>"
    assert manifest(data) == Manifest((ManifestTypes(TYPE, members),))
