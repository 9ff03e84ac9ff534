from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from org.parts import KIND

if TYPE_CHECKING:
    from clients_elsewhere.orgs import Org
    from clients_elsewhere.workspace import Workspace

USED = "INVALID_ID_FIELD: The validation was already deployed; validate again"


def validate(workspace: Workspace) -> str:
    """Validate a definition in the shared org and return the job's id."""
    name = workspace.write("Validated")
    done = workspace.sf("project deploy validate --json", "-m", f"{KIND.name}:{name}")
    assert (done.code, done.reply.result.checkOnly) == (0, True), done
    return str(done.reply.result.id)


def test_a_deployment_continues_and_can_be_checked_and_followed(workspace: Workspace, idle: Org) -> None:
    name = workspace.write("Later")
    begun = workspace.sf("project deploy start --async --json", "-m", f"{KIND.name}:{name}", org=idle)
    assert (begun.code, begun.reply.result.status) == (0, "Queued"), begun
    job_id = begun.reply.result.id

    waiting = workspace.sf("project deploy report --json --job-id", job_id, org=idle)
    assert (waiting.code, waiting.reply.result.status) == (0, "Pending")

    idle.run_jobs()
    done = workspace.sf("project deploy report --json --job-id", job_id, org=idle)
    assert (done.code, done.reply.result.status, done.reply.result.numberComponentsDeployed) == (0, "Succeeded", 1)

    resumed = workspace.sf("project deploy resume --job-id", job_id, org=idle)
    assert (resumed.code, "Status: Succeeded" in resumed.out) == (0, True), resumed

    over = workspace.sf("project deploy resume --job-id", job_id, org=idle)
    assert (over.code, "already completed with status: Succeeded" in over.err) == (0, True), over


def test_a_deployment_can_be_canceled(workspace: Workspace, idle: Org) -> None:
    job_id = idle.submit("Later")

    with ThreadPoolExecutor() as pool:
        canceling = pool.submit(workspace.sf, "project deploy cancel --job-id", job_id, org=idle)
        idle.run_jobs(once="Canceling")
        done = canceling.result()

    assert (done.code, f"Successfully canceled {job_id}" in done.out) == (0, True), done


def test_a_deployment_can_be_canceled_without_waiting(workspace: Workspace, idle: Org) -> None:
    job_id = idle.submit("Later")

    queued = workspace.sf("project deploy cancel --async --json --job-id", job_id, org=idle)
    assert (queued.code, queued.reply.result.status) == (0, "Queued"), queued

    report = workspace.sf("project deploy report --json --job-id", job_id, org=idle).reply.result
    assert (report.status, report.canceledByName) == ("Canceling", "Local Admin")


def test_a_deployment_that_is_over_cannot_be_canceled(workspace: Workspace, idle: Org) -> None:
    job_id = idle.submit("Over")
    idle.run_jobs()

    done = workspace.sf("project deploy cancel --json --job-id", job_id, org=idle)

    assert (done.code, done.reply.name) == (1, "CannotCancelDeployError"), done


def test_an_unknown_deployment_is_reported(workspace: Workspace) -> None:
    done = workspace.sf("project deploy report --json --job-id 0Af000000000999AAA")

    assert (done.code, done.reply.name) == (1, "InvalidDeployIdError"), done


def test_what_was_validated_is_deployed_once(workspace: Workspace) -> None:
    job_id = validate(workspace)

    done = workspace.sf("project deploy quick --job-id", job_id)
    assert (done.code, "Successfully deployed" in done.out) == (0, True), done

    again = workspace.sf("project deploy quick --json --job-id", job_id)
    assert (again.code, again.reply.data.message) == (1, USED), again


def test_what_was_validated_is_deployed_over_rest(workspace: Workspace) -> None:
    job_id = validate(workspace)

    done = workspace.sf("project deploy quick --json --job-id", job_id, env={"SF_ORG_METADATA_REST_DEPLOY": "true"})

    assert (done.code, done.reply.result.status) == (0, "Succeeded"), done


def test_a_failed_validation_is_reported(workspace: Workspace) -> None:
    name = workspace.write("Empty", b"")

    done = workspace.sf("project deploy validate", "-m", f"{KIND.name}:{name}")

    assert (done.code, "FailedValidationError" in done.err) == (1, True), done
