"""Deployments: a zip in, its components checked, and all of them saved or none."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import ArchiveError
from evalmeta.model.manifest import WILDCARD
from evalmeta.model.registry import NEWEST_API_VERSION, metadata_type, parse_api_version
from evalmeta.model.user import ADMIN
from evalmeta.package.archive import read_zip
from evalmeta.package.convert import META_XML_SUFFIX, full_name_of
from evalmeta.validation.validator import Judgement, validate_definition, validate_manifest
from evalmeta.wire.messages import DeployDetails, DeployMessage, DeployResult
from evalmeta.wire.soap import write_results
from evalmeta.wire.timestamps import to_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.manifest import Manifest
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import MetadataType
    from evalmeta.org.organization import Organization
    from evalmeta.store.components import Change
    from evalmeta.wire.messages import DeployOptions

__all__ = ["deploy"]

_MANIFEST: Final = "package.xml"
_ORG_JUDGEMENT: Final = Judgement(profile="orgs")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A component of the zip, and what is wrong with it."""

    type: MetadataType
    full_name: str
    file_name: str
    content: bytes
    problems: tuple[Problem, ...]

    @property
    def is_refused(self) -> bool:
        return any(problem.is_error for problem in self.problems)


def deploy(org: Organization, zip_file: bytes, options: DeployOptions) -> str:
    """Carries out a deployment and gives its job id; the outcome is kept for whoever asks.

    Nothing is changed when a component is refused and `rollback_on_error` is set (the
    default), or when `check_only` is.
    """
    try:
        candidates, failures = _unpack(zip_file)
    except ArchiveError as error:
        now = time.time()
        failed = _reply(options, now, status="Failed", error_message=str(error), error_status_code="INVALID_ZIP_FILE")
        with org.database.transaction():
            return _save(org, now, failed)
    with org.database.transaction():
        # Dates tell the order of commits: callers take what is dated after a deployment for somebody else's change.
        now = org.components.next_moment(time.time())
        return _save(org, now, _apply(org, candidates, failures, options, now))


def _unpack(zip_file: bytes) -> tuple[list[_Candidate], list[DeployMessage]]:
    entries = _below_manifest(read_zip(zip_file))
    if _MANIFEST not in entries:
        return [], [_message("", _MANIFEST, _MANIFEST, problem="No package.xml found")]
    manifest, problems = validate_manifest(entries[_MANIFEST], label=_MANIFEST)
    if manifest is None or problems:
        return [], [_problem_message("", _MANIFEST, _MANIFEST, problem) for problem in problems]
    failures: list[DeployMessage] = []
    candidates: list[_Candidate] = []
    for file_name, content in entries.items():
        if file_name == _MANIFEST:
            continue
        found = _component_of(file_name)
        if found is None or not _is_named(manifest, *found):
            type_name, name = (found[0].name, found[1]) if found else ("", file_name)
            problem = f"The file {file_name} is in the package but not named in package.xml"
            failures.append(_message(type_name, name, file_name, problem=problem))
        else:
            candidates.append(_candidate(*found, file_name, content, manifest))
    return candidates, [*failures, *_missing(manifest, candidates)]


def _below_manifest(entries: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Strips the one folder that a zip may have around package.xml."""
    if _MANIFEST in entries:
        return entries
    wrapped = [name for name in entries if name.count("/") == 1 and name.endswith(f"/{_MANIFEST}")]
    prefix = wrapped[0].removesuffix(_MANIFEST) if wrapped else ""
    return {name.removeprefix(prefix): content for name, content in entries.items() if name.startswith(prefix)}


def _component_of(file_name: str) -> tuple[MetadataType, str] | None:
    folder, _, name = file_name.rpartition("/")
    found = None if name.endswith(META_XML_SUFFIX) else full_name_of(name)
    return found if found and found[0].directory == folder else None


def _is_named(manifest: Manifest, kind: MetadataType, full_name: str) -> bool:
    return any(
        metadata_type(types.name) == kind and (WILDCARD in types.members or full_name in types.members)
        for types in manifest.types
    )


def _candidate(kind: MetadataType, full_name: str, file_name: str, content: bytes, manifest: Manifest) -> _Candidate:
    version = parse_api_version(manifest.version or "") or NEWEST_API_VERSION
    problems = validate_definition(
        content, label=file_name, full_name=full_name, judgement=_ORG_JUDGEMENT, api_version=version
    )
    return _Candidate(kind, full_name, file_name, content, tuple(problems))


def _missing(manifest: Manifest, candidates: Sequence[_Candidate]) -> Iterator[DeployMessage]:
    there = {(candidate.type, candidate.full_name) for candidate in candidates}
    for types in manifest.types:
        kind = metadata_type(types.name)
        for member in types.members:
            if kind and member != WILDCARD and (kind, member) not in there:
                problem = (
                    f"An object '{member}' of type {kind.name} was named in package.xml, "
                    "but was not found in zipped directory"
                )
                yield _message(kind.name, member, _MANIFEST, problem=problem)


def _apply(
    org: Organization,
    candidates: Sequence[_Candidate],
    failures: Sequence[DeployMessage],
    options: DeployOptions,
    now: float,
) -> DeployResult:
    # Every refused component is told, and of each as many problems as leave the reply readable.
    most = max(1, limits.MAX_DEPLOY_PROBLEMS // max(1, len(candidates)))
    refused = [
        _problem_message(each.type.name, each.full_name, each.file_name, problem)
        for each in candidates
        for problem in [problem for problem in each.problems if problem.is_error][:most]
    ]
    all_failures = [*failures, *refused]
    accepted = [candidate for candidate in candidates if not candidate.is_refused]
    saves = not options.check_only and not (all_failures and options.rollback_on_error)
    successes = [] if any(each.full_name == _MANIFEST for each in failures) else [_manifest_message(now)]
    for kind in dict.fromkeys(candidate.type for candidate in accepted):
        ours = [candidate for candidate in accepted if candidate.type == kind]
        contents = {candidate.full_name: candidate.content for candidate in ours}
        changes = org.components.save(kind, contents, now=now) if saves else org.components.preview(kind.name, contents)
        successes += [_success(candidate, changes[candidate.full_name], now) for candidate in ours]
    return _result(options, now, failures=all_failures, successes=successes, components=len(accepted))


def _result(
    options: DeployOptions,
    now: float,
    *,
    failures: Sequence[DeployMessage],
    successes: Sequence[DeployMessage],
    components: int,
) -> DeployResult:
    failed = {(failure.component_type, failure.full_name) for failure in failures}
    status = "Succeeded"
    if failures:
        status = "Failed" if options.rollback_on_error or not components else "SucceededPartial"
    return _reply(
        options,
        now,
        status=status,
        number_components_total=components + len(failed),
        number_components_deployed=components,
        number_component_errors=len(failed),
        details=DeployDetails(tuple(failures), tuple(successes)),
    )


def _reply(  # noqa: PLR0913 - the reply's own fields
    options: DeployOptions,
    now: float,
    *,
    status: str,
    number_components_total: int = 0,
    number_components_deployed: int = 0,
    number_component_errors: int = 0,
    error_message: str | None = None,
    error_status_code: str | None = None,
    details: DeployDetails | None = None,
) -> DeployResult:
    moment = to_timestamp(now)
    return DeployResult(
        id="",
        status=status,
        done=True,
        success=status == "Succeeded",
        check_only=options.check_only,
        rollback_on_error=options.rollback_on_error,
        ignore_warnings=options.ignore_warnings,
        created_by=ADMIN.id,
        created_by_name=ADMIN.name,
        created_date=moment,
        start_date=moment,
        completed_date=moment,
        last_modified_date=moment,
        number_components_total=number_components_total,
        number_components_deployed=number_components_deployed,
        number_component_errors=number_component_errors,
        error_message=error_message,
        error_status_code=error_status_code,
        details=details or DeployDetails(),
    )


def _save(org: Organization, now: float, result: DeployResult) -> str:
    job_id = org.jobs.new_id("deploy")
    reply = write_results("checkDeployStatus", [replace(result, id=job_id)])
    org.jobs.save("deploy", job_id, reply, now=now)
    return job_id


def _manifest_message(now: float) -> DeployMessage:
    return DeployMessage("", _MANIFEST, _MANIFEST, success=True, changed=True, created_date=to_timestamp(now))


def _success(candidate: _Candidate, change: Change, now: float) -> DeployMessage:
    warning = "; ".join(problem.message for problem in candidate.problems) or None
    return DeployMessage(
        candidate.type.name,
        candidate.full_name,
        candidate.file_name,
        success=True,
        changed=change.changed,
        created=change.created,
        created_date=to_timestamp(now),
        id=change.id or None,
        problem=warning,
        problem_type="Warning" if warning else None,
    )


def _problem_message(type_name: str, full_name: str, file_name: str, problem: Problem) -> DeployMessage:
    text = f"{problem.message} [{problem.code}] {problem.hint}".strip()
    message = _message(type_name, full_name, file_name, problem=text)
    return replace(message, line_number=problem.location.line or None, column_number=problem.location.column or None)


def _message(type_name: str, full_name: str, file_name: str, *, problem: str) -> DeployMessage:
    return DeployMessage(
        type_name,
        full_name,
        file_name,
        success=False,
        created_date=to_timestamp(time.time()),
        problem=problem,
        problem_type="Error",
    )
