from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import OrgFault
from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import ManifestTypes
from evalmeta.org.deployments import run_deployment
from evalmeta.org.jobs import cancel_deployment, check_deployment, quick_deploy, run_jobs, submit_deployment
from evalmeta.package.archive import build_zip
from evalmeta.protocol.metadata_api import DeployOptions, DeployResult
from evalmeta.protocol.soap import read_results
from evalmeta.xmlio.definitions import write_manifest
from org.parts import KIND, definition, deploy, everything, package, snapshot, xml_of

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization

ANN = User("005000000000002AAA", "Ann", "ann@example.com")
BOB = User("005000000000003AAA", "Bob", "bob@example.com")
CHECK = DeployOptions(check_only=True)
A, B = package({"A": definition("A")}), package({"B": definition("B")})


def outcome(org: Organization, job_id: str, *, user: User = ADMIN, details: bool = True) -> DeployResult:
    [result] = read_results(DeployResult, check_deployment(org, user, job_id, details=details))
    return result


def validated(org: Organization, *, user: User = ADMIN) -> str:
    job_id = submit_deployment(org, user, A, CHECK)
    run_jobs(org)
    return job_id


def refusal(org: Organization, validation: str, *, user: User = ADMIN) -> str:
    with pytest.raises(OrgFault) as raised:
        quick_deploy(org, user, validation)
    assert raised.value.code == "INVALID_ID_FIELD"
    return str(raised.value)


@pytest.mark.parametrize("level", ["RunEverything", "", "norun"])
def test_an_unknown_test_level_is_refused(waiting: Organization, level: str) -> None:
    with pytest.raises(OrgFault) as raised:
        submit_deployment(waiting, ADMIN, A, DeployOptions(test_level=level))
    assert (raised.value.code, str(raised.value)) == (
        "INVALID_INPUT", f"'{level}' is not a valid value for the enum 'TestLevel'",
    )  # fmt: skip
    assert submit_deployment(waiting, ADMIN, A, DeployOptions(test_level="RunRelevantTests"))


def test_a_deployment_waits_until_it_is_its_turn(waiting: Organization) -> None:
    first, second = (submit_deployment(waiting, ADMIN, zip_file, DeployOptions()) for zip_file in (A, B))
    assert [outcome(waiting, job_id).status for job_id in (first, second)] == ["Pending", "Pending"]
    run_jobs(waiting)
    assert [job.id for job in waiting.jobs.history()] == [first, second]
    assert outcome(waiting, second).status == "Succeeded"


def test_a_deployment_that_has_not_ended_says_so(waiting: Organization) -> None:
    result = outcome(waiting, submit_deployment(waiting, ANN, A, CHECK))
    assert (result.done, result.success, result.completed_date, result.start_date) == (False, False, None, None)
    assert (result.check_only, result.created_by, result.created_by_name) == (True, ANN.id, "Ann")


def test_details_are_omitted_on_request(waiting: Organization) -> None:
    result = outcome(waiting, deploy(waiting, A), details=False)
    assert result.number_components_deployed == 1
    assert result.details.component_successes == ()


def test_a_job_of_another_user_is_not_found(waiting: Organization) -> None:
    job_id = submit_deployment(waiting, ANN, A, DeployOptions())
    for do in (check_deployment, cancel_deployment):
        with pytest.raises(OrgFault, match="invalid cross reference id"):
            do(waiting, BOB, job_id)
    assert outcome(waiting, job_id, user=ANN).id == outcome(waiting, job_id, user=ADMIN).id


def test_a_canceled_deployment_changes_nothing_and_names_the_user(waiting: Organization) -> None:
    job_id = submit_deployment(waiting, ANN, A, DeployOptions())
    assert not cancel_deployment(waiting, ANN, job_id).done
    assert outcome(waiting, job_id).status == "Canceling"
    run_jobs(waiting)
    result = outcome(waiting, job_id)
    assert (result.status, result.done, result.canceled_by_name) == ("Canceled", True, "Ann")
    assert waiting.components.list(KIND.name) == []


def test_what_is_over_cannot_be_canceled(waiting: Organization) -> None:
    job_id = deploy(waiting, A)
    with pytest.raises(OrgFault, match="already completed") as raised:
        cancel_deployment(waiting, ADMIN, job_id)
    assert raised.value.code == "INVALID_ID_FIELD"


def test_a_job_of_a_dead_worker_runs_in_the_next(waiting: Organization) -> None:
    job_id = submit_deployment(waiting, ADMIN, A, DeployOptions())
    [(job, lease)] = waiting.jobs.unfinished()
    assert waiting.jobs.claim(job.id, "another-machine:1::x", taken_from=lease, now=time.time() - 60)
    run_jobs(waiting)
    assert outcome(waiting, job_id).status == "Succeeded"


def test_a_full_queue_accepts_no_job(waiting: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_UNFINISHED_JOBS", 1)
    submit_deployment(waiting, ADMIN, A, DeployOptions())
    with pytest.raises(OrgFault, match="already waiting") as raised:
        submit_deployment(waiting, ADMIN, A, DeployOptions())
    assert raised.value.code == "REQUEST_LIMIT_EXCEEDED"


def test_a_quick_deploy_saves_exactly_what_was_validated(waiting: Organization) -> None:
    job_id = quick_deploy(waiting, ADMIN, validated(waiting))
    run_jobs(waiting)
    assert outcome(waiting, job_id).status == "Succeeded"
    assert waiting.components.content(KIND.name, "A") == definition("A")


def test_a_validation_is_deployed_once(waiting: Organization) -> None:
    validation = validated(waiting)
    quick_deploy(waiting, ADMIN, validation)
    assert "already deployed" in refusal(waiting, validation)
    run_jobs(waiting)
    assert "already deployed" in refusal(waiting, validation)


def test_a_validation_expires(waiting: Organization) -> None:
    validation = validated(waiting)
    age = limits.QUICK_DEPLOY_SECONDS + 1
    waiting.database.execute("UPDATE job SET ended_at = ended_at - ?", (age,))
    assert "older than 10 days" in refusal(waiting, validation)


def test_a_validation_is_void_when_the_org_was_deployed_to(waiting: Organization) -> None:
    validation = validated(waiting)
    deploy(waiting, B)
    assert "changed since this validation" in refusal(waiting, validation)


def test_a_validation_is_void_when_a_deployment_before_it_in_the_queue_changes_the_org(waiting: Organization) -> None:
    validation = validated(waiting)
    submit_deployment(waiting, ADMIN, B, DeployOptions())
    job_id = quick_deploy(waiting, ADMIN, validation)
    run_jobs(waiting)
    result = outcome(waiting, job_id)
    assert (result.status, result.error_status_code) == ("Failed", "INVALID_ID_FIELD")


def test_only_a_validation_that_succeeded_can_be_deployed(waiting: Organization) -> None:
    failed = submit_deployment(waiting, ADMIN, package({"A": b"<x/>"}), CHECK)
    run_jobs(waiting)
    for job_id in (failed, deploy(waiting, B), "0Af000000000099AAA", ""):
        assert (
            "not a successful validation" in (text := refusal(waiting, job_id)) or "validation cannot be found" in text
        )


def test_a_validation_of_another_user_is_not_found(waiting: Organization) -> None:
    assert "validation cannot be found" in refusal(waiting, validated(waiting, user=ANN), user=BOB)


def destructive(name: str, *members: str, files: dict[str, bytes] | None = None) -> bytes:
    content = [(xml_of(name), data) for name, data in (files or {}).items()]
    return build_zip(
        [("package.xml", write_manifest(everything())), (name, write_manifest(everything(*members))), *content]
    )


@pytest.mark.parametrize("name", ["destructiveChanges.xml", "destructiveChangesPre.xml", "destructiveChangesPost.xml"])
def test_components_are_deleted(waiting: Organization, name: str) -> None:
    deploy(waiting, A)
    result = outcome(waiting, deploy(waiting, destructive(name, "A")))
    [deleted] = [success for success in result.details.component_successes if success.deleted]
    assert (deleted.full_name, deleted.file_name, result.number_components_deployed) == ("A", name, 1)
    assert waiting.components.list(KIND.name) == []


def test_deleting_a_missing_component_is_a_warning(waiting: Organization) -> None:
    result = outcome(waiting, deploy(waiting, destructive("destructiveChangesPre.xml", "Gone")))
    warning = result.details.component_successes[-1]
    assert (result.status, warning.problem_type, warning.success) == ("Succeeded", "Warning", True)
    assert warning.problem == f"No {KIND.name} named: Gone found"


def test_deleting_components_of_other_types_is_a_warning_for_each(waiting: Organization) -> None:
    deploy(waiting, A)
    manifest = everything("A")
    manifest = replace(manifest, types=(*manifest.types, ManifestTypes("ApexClass", ("Orders", "Shop"))))
    entries = [("package.xml", write_manifest(everything())), ("destructiveChanges.xml", write_manifest(manifest))]
    result = outcome(waiting, deploy(waiting, build_zip(entries)))
    assert result.status == "Succeeded"
    assert waiting.components.list(KIND.name) == []
    assert [success.problem for success in result.details.component_successes if success.problem] == [
        "No ApexClass named: Orders found",
        "No ApexClass named: Shop found",
    ]


def test_what_is_deleted_first_is_made_anew_and_what_is_deleted_last_is_gone(waiting: Organization) -> None:
    deploy(waiting, A)
    files = {"A": definition("A")}
    result = outcome(waiting, deploy(waiting, destructive("destructiveChangesPre.xml", "A", files=files)))
    assert [(success.deleted, success.created) for success in result.details.component_successes[1:]] == [
        (True, False),
        (False, True),
    ]
    deploy(waiting, destructive("destructiveChangesPost.xml", "A", files=files))
    assert waiting.components.list(KIND.name) == []


def test_a_deployment_that_another_worker_has_ended_is_not_executed_again(waiting: Organization) -> None:
    job_id = submit_deployment(waiting, ADMIN, A, DeployOptions())
    job = waiting.jobs.get("deploy", job_id)
    assert job
    run_jobs(waiting)
    deploy(waiting, destructive("destructiveChanges.xml", "A"))
    waiting.database.execute("UPDATE job SET request = ? WHERE id = ?", (A, job_id))
    before = snapshot(waiting)
    run_deployment(waiting, job)
    assert snapshot(waiting) == before


@pytest.mark.parametrize("options", [CHECK, DeployOptions(check_only=True, rollback_on_error=False)])
def test_a_check_deletes_nothing(waiting: Organization, options: DeployOptions) -> None:
    deploy(waiting, A)
    before = snapshot(waiting)
    result = outcome(waiting, deploy(waiting, destructive("destructiveChanges.xml", "A"), options))
    assert result.details.component_successes[-1].deleted
    assert snapshot(waiting) == before


def test_a_wildcard_deletes_nothing_and_is_refused(waiting: Organization) -> None:
    deploy(waiting, A)
    result = outcome(waiting, deploy(waiting, destructive("destructiveChanges.xml", "*")))
    [failure] = result.details.component_failures
    assert (result.status, failure.file_name) == ("Failed", "destructiveChanges.xml")
    assert "wildcard" in (failure.problem or "")


def test_missing_files_may_be_allowed(waiting: Organization) -> None:
    zip_file = package({"A": definition("A")}, manifest=write_manifest(everything("A", "B")))
    assert outcome(waiting, deploy(waiting, zip_file)).status == "Failed"
    result = outcome(waiting, deploy(waiting, zip_file, DeployOptions(allow_missing_files=True)))
    assert (result.status, result.number_components_deployed) == ("Succeeded", 1)


def test_several_packages_are_deployed_together(waiting: Organization) -> None:
    manifest = write_manifest(everything())
    entries = [
        (f"{name.lower()}/{file}", content)
        for name in "AB"
        for file, content in (("package.xml", manifest), (xml_of(name), definition(name)))
    ]
    result = outcome(waiting, deploy(waiting, build_zip(entries), DeployOptions(single_package=False)))
    assert result.number_components_deployed == 2
