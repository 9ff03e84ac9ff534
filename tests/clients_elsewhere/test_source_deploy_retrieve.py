from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.node import run_script
from clients_elsewhere.workspace import Workspace, new_name
from org.parts import definition

if TYPE_CHECKING:
    from types import SimpleNamespace

    from clients_elsewhere.node import Sf

GOOD, BAD = new_name("Good"), new_name("Worse")


@pytest.fixture(scope="module")
def said(sf: Sf, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What source-deploy-retrieve said of a project with a good and a bad definition."""
    workspace = Workspace(tmp_path_factory.mktemp("sdr") / "workspace", sf)
    workspace.path(GOOD).write_bytes(definition(GOOD))
    workspace.path(BAD).write_bytes(definition(BAD, extra="<bogusElement>1</bogusElement>"))
    return run_script("sdr.cjs", sf.org, workspace.folder, NAME=GOOD)


def test_a_failed_deployment_names_line_and_column(said: SimpleNamespace) -> None:
    [failure] = [file for file in said.failed.files if file.state == "Failed"]
    assert said.failed.status == "Failed"
    assert (failure.fullName, failure.lineNumber, failure.columnNumber) == (BAD, 7, 3)


def test_errors_can_be_ignored(said: SimpleNamespace) -> None:
    assert said.partial.status == "SucceededPartial"
    assert {file.fullName: file.state for file in said.partial.files} == {GOOD: "Created", BAD: "Failed"}


def test_a_component_is_deployed_over_rest(said: SimpleNamespace) -> None:
    assert said.rest.status == "Succeeded"
    assert [(file.fullName, file.state) for file in said.rest.files] == [(GOOD, "Unchanged")]


def test_a_component_is_retrieved(said: SimpleNamespace) -> None:
    assert said.retrieved.status == "Succeeded"
    assert [(file.fullName, file.state) for file in said.retrieved.files] == [(GOOD, "Created")]


def test_an_unknown_component_is_reported(said: SimpleNamespace) -> None:
    assert "Never_There" in said.missing.files[0].error


def test_a_component_is_deleted(said: SimpleNamespace) -> None:
    assert said.deleted.status == "Succeeded"
    assert [(file.fullName, file.state) for file in said.deleted.files] == [(GOOD, "Deleted")]
