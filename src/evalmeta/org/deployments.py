"""Deployments: read and check the components of a zip, save and delete all of them or none, and report on each."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import ArchiveError
from evalmeta.model.component import WILDCARD
from evalmeta.model.registry import NEWEST_API_VERSION, metadata_type, parse_api_version
from evalmeta.package.archive import read_zip
from evalmeta.package.files import META_XML_SUFFIX, parse_safe_file_name
from evalmeta.protocol.json_fields import read_object, to_timestamp
from evalmeta.protocol.metadata_api import DeployDetails, DeployMessage, DeployOptions, DeployResult
from evalmeta.protocol.soap import from_json, to_json, write_results
from evalmeta.validation.manifests import validate_manifest
from evalmeta.validation.rules import RulePolicy
from evalmeta.validation.validator import validate_component

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.component import Manifest
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import MetadataType
    from evalmeta.org.organization import Organization
    from evalmeta.store.components import Change
    from evalmeta.store.jobs import Job


_OUTDATED: Final = "The org has changed since this validation; validate again"
MANIFEST: Final = "package.xml"
# Metadata API Developer Guide, "Deleting Components from an Organization": before the deployment, or after it.
_DESTRUCTIVE: Final = {
    "destructiveChanges.xml": True,
    "destructiveChangesPre.xml": True,
    "destructiveChangesPost.xml": False,
}
_ORG_POLICY: Final = RulePolicy(profile="orgs")


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
        now = org.components.next_timestamp(time.time())
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
        now = time.time()
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
    candidates = [_accepted_before(org, each) for each in package.candidates]
    failures = [*package.failures, *_refusals(candidates)]
    accepted = [candidate for candidate in candidates if not candidate.is_refused]
    saves = not options.check_only and not (failures and options.rollback_on_error)
    with nullcontext() if saves else org.database.dry_run():
        successes = [
            *_delete(org, (each for each in package.deletions if each.first)),
            *_save(org, accepted, now, by=result.created_by),
            *_delete(org, (each for each in package.deletions if not each.first)),
        ]
    deployed = sum(bool(each.component_type) for each in successes)
    if not saves:
        successes = [replace(each, id=None) if each.created else each for each in successes]
    if not any(each.full_name == MANIFEST for each in failures):
        successes.insert(0, DeployMessage("", MANIFEST, MANIFEST, success=True, changed=True))
    moment = result.completed_date or ""
    return _counted(
        result,
        options,
        deployed,
        failures=[replace(each, created_date=moment) for each in failures],
        successes=[replace(each, created_date=moment) for each in (*successes, *package.warnings)],
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
        problem_message(each.type.name, each.full_name, each.file_name, problem)
        for each in candidates
        for problem in [problem for problem in each.problems if problem.is_error][:most]
    ]


def _max_problems(candidates: Sequence[Candidate]) -> int:
    return max(1, limits.MAX_DEPLOY_PROBLEMS // max(1, len(candidates)))


def _save(org: Organization, accepted: Sequence[Candidate], now: float, *, by: str) -> Iterator[DeployMessage]:
    most = _max_problems(accepted)
    for kind in dict.fromkeys(candidate.type for candidate in accepted):
        ours = [candidate for candidate in accepted if candidate.type == kind]
        changes = org.components.save(kind, {each.full_name: each.content for each in ours}, now=now, by=by)
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
    for each in deletions:
        record_id = org.components.delete(each.type.name, each.full_name)
        if record_id is None:
            problem = f"No {each.type.name} named: {each.full_name} found"
            yield DeployMessage(
                "", each.file_name, each.file_name, success=True, problem=problem, problem_type="Warning"
            )
        else:
            yield DeployMessage(
                each.type.name, each.full_name, each.file_name, success=True, deleted=True, id=record_id
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A component of the zip with its problems."""

    type: MetadataType
    full_name: str
    file_name: str
    content: bytes
    problems: tuple[Problem, ...]

    @property
    def is_refused(self) -> bool:
        """Return whether the component has errors."""
        return any(problem.is_error for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A component to delete, before (`first`) or after the others are saved; `file_name` is the manifest."""

    type: MetadataType
    full_name: str
    file_name: str
    first: bool


@dataclass(frozen=True, slots=True)
class Package:
    """The content of a zip; `failures` and `warnings` are not about components in it."""

    candidates: tuple[Candidate, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    failures: tuple[DeployMessage, ...] = ()
    warnings: tuple[DeployMessage, ...] = ()


def unpack(zip_file: bytes, options: DeployOptions) -> Package:
    """Read a zip and check every component in it; raise ArchiveError if it cannot be read or trusted.

    Without `single_package`, every folder with a package.xml is a package.
    """
    entries = read_zip(zip_file)
    manifests = [name for name in entries if name.count("/") == 1 and name.endswith(f"/{MANIFEST}")]
    packages = []
    for prefix in [""] if MANIFEST in entries else [name.removesuffix(MANIFEST) for name in manifests]:
        own = {name.removeprefix(prefix): content for name, content in entries.items() if name.startswith(prefix)}
        packages.append(_unpack(own, options))
    if not packages:
        return Package(failures=(deploy_message("", MANIFEST, MANIFEST, problem="No package.xml found"),))
    candidates, repeated = _without_duplicates([each for package in packages for each in package.candidates])
    return Package(
        candidates,
        tuple(each for package in packages for each in package.deletions),
        (*(each for package in packages for each in package.failures), *repeated),
        tuple(each for package in packages for each in package.warnings),
    )


def deploy_message(type_name: str, full_name: str, file_name: str, *, problem: str) -> DeployMessage:
    """Return the message of an error."""
    return DeployMessage(type_name, full_name, file_name, success=False, problem=problem, problem_type="Error")


def problem_message(type_name: str, full_name: str, file_name: str, problem: Problem) -> DeployMessage:
    """Return the message of a validation problem, with its location."""
    text = f"{problem.message} [{problem.code}] {problem.hint}".strip()
    message = deploy_message(type_name, full_name, file_name, problem=text)
    return replace(message, line_number=problem.location.line or None, column_number=problem.location.column or None)


def _without_duplicates(candidates: Iterable[Candidate]) -> tuple[tuple[Candidate, ...], list[DeployMessage]]:
    """Return the first of each component, ignoring the case of names, and a failure for every other."""
    first: dict[tuple[MetadataType, str], Candidate] = {}
    repeated: list[DeployMessage] = []
    for each in candidates:
        if first.setdefault((each.type, each.full_name.casefold()), each) is not each:
            problem = f"The {each.type.name} '{each.full_name}' is in the zip more than once"
            repeated.append(deploy_message(each.type.name, each.full_name, each.file_name, problem=problem))
    return tuple(first.values()), repeated


def _unpack(entries: Mapping[str, bytes], options: DeployOptions) -> Package:
    manifest, problems = validate_manifest(entries[MANIFEST], label=MANIFEST)
    if manifest is None or problems:
        return Package(failures=tuple(problem_message("", MANIFEST, MANIFEST, problem) for problem in problems))
    named = _named(manifest)
    failures: list[DeployMessage] = []
    candidates: list[Candidate] = []
    for file_name, content in entries.items():
        if file_name == MANIFEST or file_name in _DESTRUCTIVE:
            continue
        found = _component_of(file_name)
        if found is None or named.get(found[0], frozenset()).isdisjoint((WILDCARD, found[1])):
            type_name, name = (found[0].name, found[1]) if found else ("", file_name)
            problem = f"The file {file_name} is in the package but not named in package.xml"
            failures.append(deploy_message(type_name, name, file_name, problem=problem))
        else:
            candidates.append(_candidate(*found, file_name, content, manifest))
    deletions, refused = _deletions(entries)
    missing = _missing(manifest, candidates)
    if options.allow_missing_files:
        warnings = tuple(replace(each, success=True, problem_type="Warning") for each in missing)
        return Package(tuple(candidates), deletions, (*failures, *refused), warnings)
    return Package(tuple(candidates), deletions, (*failures, *refused, *missing))


def _component_of(file_name: str) -> tuple[MetadataType, str] | None:
    folder, _, name = file_name.rpartition("/")
    found = None if name.endswith(META_XML_SUFFIX) else parse_safe_file_name(name)
    return found if found and found[0].directory == folder else None


def _named(manifest: Manifest) -> dict[MetadataType, frozenset[str]]:
    """Return the members of a manifest by type."""
    named: dict[MetadataType, frozenset[str]] = {}
    for types in manifest.types:
        if kind := metadata_type(types.name):
            named[kind] = named.get(kind, frozenset()).union(types.members)
    return named


def _candidate(kind: MetadataType, full_name: str, file_name: str, content: bytes, manifest: Manifest) -> Candidate:
    version = parse_api_version(manifest.version or "") or NEWEST_API_VERSION
    problems = validate_component(
        kind, content, label=file_name, full_name=full_name, policy=_ORG_POLICY, api_version=version
    )
    return Candidate(kind, full_name, file_name, content, tuple(problems))


def _missing(manifest: Manifest, candidates: list[Candidate]) -> Iterator[DeployMessage]:
    there = {(candidate.type, candidate.full_name) for candidate in candidates}
    for types in manifest.types:
        kind = metadata_type(types.name)
        for member in types.members:
            if kind and member != WILDCARD and (kind, member) not in there:
                problem = (
                    f"An object '{member}' of type {kind.name} was named in package.xml, "
                    "but was not found in zipped directory"
                )
                yield deploy_message(kind.name, member, MANIFEST, problem=problem)


def _deletions(entries: Mapping[str, bytes]) -> tuple[tuple[Deletion, ...], list[DeployMessage]]:
    deletions: list[Deletion] = []
    refused: list[DeployMessage] = []
    for file_name, first in _DESTRUCTIVE.items():
        if file_name not in entries:
            continue
        manifest, problems = validate_manifest(entries[file_name], label=file_name, destructive=True)
        refused += [problem_message("", file_name, file_name, problem) for problem in problems]
        for types in manifest.types if manifest and not problems else ():
            if kind := metadata_type(types.name):
                deletions += [Deletion(kind, member, file_name, first) for member in types.members]
    return tuple(deletions), refused
