from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.node import run_script
from clients_elsewhere.workspace import new_name
from org.parts import KIND, definition, package

if TYPE_CHECKING:
    from types import SimpleNamespace

    from clients_elsewhere.orgs import Org

NAME = new_name("Js")


@pytest.fixture(scope="module")
def said(org: Org, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What jsforce said of a deployment, of what was there then, and of a retrieve."""
    folder = tmp_path_factory.mktemp("jsforce")
    (folder / "deploy.zip").write_bytes(package({NAME: definition(NAME, cases=2)}))
    return run_script("jsforce.cjs", org, folder, NAME=NAME)


def test_jsforce_learns_who_it_is(said: SimpleNamespace) -> None:
    assert said.asked.identity.username == "admin@evalmeta.local"
    [organization] = said.asked.organization.records
    assert organization.OrganizationType == "Developer Edition"


def test_jsforce_sees_the_types_and_components(said: SimpleNamespace) -> None:
    assert {KIND.name, "AiTestingDefinition"} <= set(said.asked.types)
    assert NAME in said.asked.listed
    assert said.asked.unknownType == "sf:INVALID_TYPE"


def test_jsforce_reads_a_component(said: SimpleNamespace) -> None:
    read, missing = said.read.found, said.read.missing
    assert (read.fullName, read.subjectName) == (NAME, "Desk")
    assert [case.inputs.utterance for case in read.testCase] == [f"{NAME} 1", f"{NAME} 2"]
    assert vars(missing) == {}


def test_jsforce_saves_renames_and_deletes_single_components(said: SimpleNamespace) -> None:
    saved = said.saved
    assert (saved.created.success, saved.updated.success, saved.renamed.success) == (True, True, True)
    assert (saved.again.success, saved.again.errors[0].statusCode) == (False, "DUPLICATE_DEVELOPER_NAME")
    assert [(each.success, each.created) for each in saved.upserted] == [(True, False)]
    assert (saved.read.fullName, saved.read.subjectName) == (f"{NAME}_saved_2", "Desk")
    assert [each.success for each in saved.deleted] == [True, False]


def test_jsforce_validates_deploys_quickly_and_over_rest(said: SimpleNamespace) -> None:
    deployed = said.deployed
    assert (deployed.validation.checkOnly, deployed.validation.status) == (True, "Succeeded")
    assert [each.status for each in (deployed.quick, deployed.rest)] == ["Succeeded", "Succeeded"]
    assert deployed.quick.checkOnly is False


def test_jsforce_gets_errors_for_jobs_that_cannot_be_canceled_or_found(said: SimpleNamespace) -> None:
    assert said.deployed.cancelOver == "sf:INVALID_ID_FIELD"
    assert said.deployed.unknownJob == "sf:INVALID_CROSS_REFERENCE_KEY"


def test_jsforce_retrieves_existing_components(said: SimpleNamespace) -> None:
    retrieved = said.retrieved
    assert (retrieved.success, retrieved.status, retrieved.zipFile) == (True, "Succeeded", True)
    assert "Never_There" in retrieved.messages[0].problem


def test_jsforce_is_refused_with_an_unknown_token(said: SimpleNamespace) -> None:
    assert (said.refused, said.refusedRest) == ("sf:INVALID_SESSION_ID", "INVALID_SESSION_ID")
