"""Deployments: save and delete the components of a zip, all of them or none, and report on each."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import ArchiveError
from evalmeta.org.deployment_zip import MANIFEST, Candidate, Deletion, Package, not_there, problem_message, unpack
from evalmeta.protocol.json_fields import read_object, to_timestamp
from evalmeta.protocol.metadata_api import DeployDetails, DeployMessage, DeployOptions, DeployResult
from evalmeta.protocol.soap import from_json, to_json, write_results
from evalmeta.store.database import dry_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.org.organization import Organization
    from evalmeta.store.components import Change
    from evalmeta.store.jobs import Job


_OUTDATED: Final = "The org has changed since this validation; validate again"


def write_options(options: DeployOptions) -> bytes:
    """Return the stored form of deploy options."""
    return orjson.dumps(to_json(options))


def options_of(job: Job) -> DeployOptions:
    """Return the deploy options of a job."""
    return from_json(DeployOptions, read_object(job.options))


def run_deployment(org: Organization, job: Job) -> None:
    """Run a deployment and store its result in one transaction.

    Nothing changes if a component is refused and `rollback_on_error` is set (the default), if `check_only`
    is set, or if the job was canceled. A job that another worker has finished is left as it is.
    """
    options = options_of(job)
    try:
        package = unpack(org.jobs.request(job.id) or b"", options)
    except ArchiveError as error:
        fail_deployment(org, job, str(error), code="INVALID_ZIP_FILE")
        return
    with org.database.transaction():
        # Timestamps must follow the order of commits: clients treat later ones as changes of other users.
        now = org.components.next_timestamp(org.database.now())
        current = org.jobs.get("deploy", job.id)
        if current is None or current.is_over:
            return
        if current.status == "Canceling":
            result = _ended(current, now, status="Canceled")
        elif current.validation and org.jobs.is_outdated(current.validation):
            result = _ended(current, now, status="Failed", error=_OUTDATED, code="INVALID_ID_FIELD")
        else:
            result = _apply(org, package, options, _ended(current, now, status="Succeeded"), now)
        _finish(org, result, now)


def deployment_status(job: Job) -> DeployResult:
    """Return the status of an unfinished deployment."""
    options = options_of(job)
    last = job.created if job.started is None else job.started
    return DeployResult(
        id=job.id,
        status=job.status,
        done=job.is_over,
        success=False,
        check_only=options.check_only,
        rollback_on_error=options.rollback_on_error,
        ignore_warnings=options.ignore_warnings,
        canceled_by=job.canceled_by,
        canceled_by_name=job.canceled_name,
        created_by=job.user_id,
        created_by_name=job.user_name,
        created_date=to_timestamp(job.created),
        start_date=None if job.started is None else to_timestamp(job.started),
        last_modified_date=to_timestamp(last),
    )


def fail_deployment(org: Organization, job: Job, error: str, *, code: str) -> None:
    """End a deployment that cannot run, unless another worker has ended it."""
    with org.database.transaction():
        now = org.database.now()
        current = org.jobs.get("deploy", job.id)
        if current is None or current.is_over:
            return
        if current.status == "Canceling":
            _finish(org, _ended(current, now, status="Canceled"), now)
        else:
            _finish(org, _ended(current, now, status="Failed", error=error, code=code), now)


def _ended(job: Job, now: float, *, status: str, error: str | None = None, code: str | None = None) -> DeployResult:
    moment = to_timestamp(now)
    return replace(
        deployment_status(job),
        status=status,
        done=True,
        success=status == "Succeeded",
        completed_date=moment,
        last_modified_date=moment,
        error_message=error,
        error_status_code=code,
    )


def _finish(org: Organization, result: DeployResult, now: float) -> None:
    reply = write_results("checkDeployStatus", [result])
    org.jobs.finish(result.id, result.status, reply, now=now)


def _apply(
    org: Organization, package: Package, options: DeployOptions, result: DeployResult, now: float
) -> DeployResult:
    candidates = [_accepted_before(org, candidate) for candidate in package.candidates]
    failures = [*package.failures, *_refusals(candidates)]
    accepted = [candidate for candidate in candidates if not candidate.is_refused]
    saves = not options.check_only and not (failures and options.rollback_on_error)
    with nullcontext() if saves else dry_run(org.database):
        successes = [
            *_delete(org, (deletion for deletion in package.deletions if deletion.first)),
            *_save(org, accepted, now, by=result.created_by),
            *_delete(org, (deletion for deletion in package.deletions if not deletion.first)),
        ]
    deployed = sum(bool(success.component_type) for success in successes)
    if not saves:
        successes = [replace(success, id=None) if success.created else success for success in successes]
    if not any(failure.full_name == MANIFEST for failure in failures):
        successes.insert(0, DeployMessage("", MANIFEST, MANIFEST, success=True, changed=True))
    moment = result.completed_date or ""
    return _counted(
        result,
        options,
        deployed,
        failures=[replace(failure, created_date=moment) for failure in failures],
        successes=[replace(success, created_date=moment) for success in (*successes, *package.warnings)],
    )


def _accepted_before(org: Organization, candidate: Candidate) -> Candidate:
    """Return a candidate without problems if the org has it already as it is."""
    if (
        not candidate.is_refused
        or org.components.content(candidate.type.name, candidate.full_name) != candidate.content
    ):
        return candidate
    return replace(candidate, problems=())


def _refusals(candidates: Sequence[Candidate]) -> list[DeployMessage]:
    # Every refused component is reported; the number of its problems is limited to keep the reply small.
    most = _max_problems(candidates)
    return [
        problem_message(candidate.type.name, candidate.full_name, problem.location.path, problem)
        for candidate in candidates
        for problem in [problem for problem in candidate.problems if problem.is_error][:most]
    ]


def _max_problems(candidates: Sequence[Candidate]) -> int:
    return max(1, limits.MAX_DEPLOY_PROBLEMS // max(1, len(candidates)))


def _save(org: Organization, accepted: Sequence[Candidate], now: float, *, by: str) -> Iterator[DeployMessage]:
    most = _max_problems(accepted)
    for kind in dict.fromkeys(candidate.type for candidate in accepted):
        ours = [candidate for candidate in accepted if candidate.type == kind]
        contents = {candidate.full_name: candidate.content for candidate in ours}
        changes = org.components.save(kind, contents, now=now, by=by)
        yield from (_saved(candidate, changes[candidate.full_name], most) for candidate in ours)


def _saved(candidate: Candidate, change: Change, most: int) -> DeployMessage:
    warnings = [problem.message for problem in candidate.problems]
    more = [f"... and {len(warnings) - most:,} more"] if len(warnings) > most else []
    warning = "; ".join([*warnings[:most], *more]) or None
    return DeployMessage(
        candidate.type.name,
        candidate.full_name,
        candidate.file_name,
        success=True,
        changed=change.changed,
        created=change.created,
        id=change.id or None,
        problem=warning,
        problem_type="Warning" if warning else None,
    )


def _delete(org: Organization, deletions: Iterable[Deletion]) -> Iterator[DeployMessage]:
    for deletion in deletions:
        record_id = org.components.delete(deletion.type.name, deletion.full_name)
        if record_id is None:
            yield not_there(deletion.type.name, deletion.full_name, deletion.file_name)
        else:
            yield DeployMessage(
                deletion.type.name, deletion.full_name, deletion.file_name, success=True, deleted=True, id=record_id
            )


def _counted(
    result: DeployResult,
    options: DeployOptions,
    deployed: int,
    *,
    failures: Sequence[DeployMessage],
    successes: Sequence[DeployMessage],
) -> DeployResult:
    failed = {(failure.component_type, failure.full_name) for failure in failures}
    status = "Succeeded"
    if failures:
        status = "Failed" if options.rollback_on_error or not deployed else "SucceededPartial"
    return replace(
        result,
        status=status,
        success=status == "Succeeded",
        number_components_total=deployed + len(failed),
        number_components_deployed=deployed,
        number_component_errors=len(failed),
        details=DeployDetails(tuple(failures), tuple(successes)),
    )
