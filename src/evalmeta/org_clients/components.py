"""Components for other clients: the CRUD-based calls of the Metadata API, and deployments over REST.

The calls read, create, update, upsert, rename and delete components without a zip. Metadata API Developer Guide,
"CRUD-Based Calls": at most 10 components in one call; each has a result of its own, and the others are saved, unless
the AllOrNoneHeader is true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, OrgFault
from evalmeta.model.bundle_content import split_files
from evalmeta.model.registry import NEWEST_API_VERSION, MetadataType
from evalmeta.org.deployments import deployment_status, options_of
from evalmeta.org.handlers.rest import authenticated, json_reply, read_body, stream_body
from evalmeta.org.handlers.soap import known_type
from evalmeta.org.jobs import cancel_deployment, find_job, quick_deploy, submit_deployment, wait_briefly
from evalmeta.org.organization import Organization, run_in_thread
from evalmeta.package.files import is_safe_full_name
from evalmeta.protocol.json_fields import object_at, read_object, text
from evalmeta.protocol.metadata_api import (
    DeleteResult,
    DeployDetails,
    DeployOptions,
    DeployResult,
    MetadataError,
    SaveResult,
    UpsertResult,
)
from evalmeta.protocol.soap import Call, from_json, read_results, to_json, write_records, write_results
from evalmeta.validation.rules import RulePolicy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.nodes import children, find, read_node, text_of
from evalmeta.xmlio.reader import NAMESPACE
from evalmeta.xmlio.writer import Node, node, render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.login import User
    from evalmeta.org.handlers import Operation

    Action = Literal["create", "update", "upsert"]
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject


_POLICY: Final = RulePolicy(profile="orgs")
# As orgs write files.
_INDENT: Final = 4
_RENAME: Final = "Rename the file."
_ROLLED_BACK: Final = MetadataError(
    "The operation was rolled back because one of the operations in the request failed.",
    "ALL_OR_NONE_OPERATION_ROLLED_BACK",
)


class NewComponent(NamedTuple):
    """A component to save."""

    type: MetadataType
    full_name: str
    content: bytes


def save_components(
    org: Organization, user: User, components: Sequence[NewComponent], action: Action, *, all_or_none: bool
) -> list[SaveResult] | list[UpsertResult]:
    """Create or replace components, and return the result of each; raise OrgFault if there are too many."""
    _check_number(len(components))
    # Other writers wait for a transaction, and rules may take long.
    problems = [tuple(_problems(component)) for component in components]
    with org.database.transaction():
        errors = _with_conflicts(org, components, problems, action)
        if all_or_none and any(errors):
            errors = [error or (_ROLLED_BACK,) for error in errors]
        now = org.components.next_timestamp(org.database.now())
        created = [
            not error and _save(org, user, component, now) for component, error in zip(components, errors, strict=True)
        ]
    names = [component.full_name for component in components]
    if action == "upsert":
        return [
            UpsertResult(name, created=new, success=not error, errors=error)
            for name, new, error in zip(names, created, errors, strict=True)
        ]
    return [SaveResult(name, success=not error, errors=error) for name, error in zip(names, errors, strict=True)]


def rename_component(org: Organization, user: User, kind: MetadataType, old: str, new: str) -> SaveResult:
    """Give a component another full name; its id stays."""
    with org.database.transaction():
        content = org.components.content(kind.name, old)
        if content is None:
            errors: tuple[MetadataError, ...] = (_not_found(kind, old),)
        else:
            renamed = NewComponent(kind, new, content)
            problems = tuple(_problems(renamed))
            is_same = old.casefold() == new.casefold()
            [errors] = [problems] if is_same else _with_conflicts(org, [renamed], [problems], "create")
        if not errors:
            now = org.components.next_timestamp(org.database.now())
            org.components.rename(kind.name, old, new, now=now, by=user.id)
    return SaveResult(new, success=not errors, errors=errors)


def delete_components(
    org: Organization, kind: MetadataType, names: Sequence[str], *, all_or_none: bool
) -> list[DeleteResult]:
    """Delete components, and return the result of each; raise OrgFault if there are too many."""
    _check_number(len(names))
    with org.database.transaction():
        firsts = {name.casefold(): place for place, name in reversed(list(enumerate(names)))}
        exists = [
            firsts[name.casefold()] == place and org.components.content(kind.name, name) is not None
            for place, name in enumerate(names)
        ]
        is_refused = all_or_none and not all(exists)
        deleted = [not is_refused and org.components.delete(kind.name, name) is not None for name in names]
        if any(deleted):
            org.jobs.void_validations()
    return [
        DeleteResult(name, success=gone, errors=() if gone else (_ROLLED_BACK if known else _not_found(kind, name),))
        for name, known, gone in zip(names, exists, deleted, strict=True)
    ]


def _check_number(number: int) -> None:
    if number > limits.MAX_SAVED_COMPONENTS:
        text = f"{number} components; at most {limits.MAX_SAVED_COMPONENTS} are allowed in one call"
        raise OrgFault(text, code="EXCEEDED_ID_LIMIT")


def _save(org: Organization, user: User, component: NewComponent, now: float) -> bool:
    """Save a component, and return whether it is new."""
    name = component.full_name
    return org.components.save(component.type, {name: component.content}, now=now, by=user.id)[name].created


def _with_conflicts(
    org: Organization, components: Sequence[NewComponent], problems: Sequence[tuple[MetadataError, ...]], action: Action
) -> list[tuple[MetadataError, ...]]:
    """Return the errors of each component: that it exists and must not, or must and does not, or else its problems."""
    errors: list[tuple[MetadataError, ...]] = []
    saved: set[tuple[MetadataType, str]] = set()
    for component, own in zip(components, problems, strict=True):
        key = component.type, component.full_name.casefold()
        exists = key in saved or org.components.content(component.type.name, component.full_name) is not None
        if action == "create" and exists:
            what = f"The {component.type.name} '{component.full_name}'"
            text = f"{what} already exists; use updateMetadata or upsertMetadata"
            errors.append((MetadataError(text, "DUPLICATE_DEVELOPER_NAME", ("fullName",)),))
        elif action == "update" and not exists:
            errors.append((_not_found(component.type, component.full_name),))
        else:
            errors.append(own)
            saved.update(() if own else [key])
    return errors


def _problems(component: NewComponent) -> Iterator[MetadataError]:
    kind, name, content = component
    if not is_safe_full_name(name):
        text = f"{name[:80]!r} is not a valid full name: use letters, digits and underscores"
        yield MetadataError(text, "FIELD_INTEGRITY_EXCEPTION" if name else "REQUIRED_FIELD_MISSING", ("fullName",))
        return
    if kind.is_bundle:
        text = f"{kind.name} {name} has files, which this call cannot save: deploy it"
        yield MetadataError(text, "FUNCTIONALITY_NOT_ENABLED")
        return
    problems = validate_component(
        kind, content, label=name, full_name=name, policy=_POLICY, api_version=NEWEST_API_VERSION
    )
    for error in [problem for problem in problems if problem.is_error][: limits.MAX_SAVE_ERRORS]:
        # The rules about names speak of a file, which a call does not have.
        message, hint = error.message.replace("the file name", "the full name"), error.hint.removeprefix(_RENAME)
        fields = () if hint == error.hint else ("fullName",)
        yield MetadataError(f"{message} [{error.code}] {hint.strip()}".strip(), "FIELD_INTEGRITY_EXCEPTION", fields)


def _not_found(kind: MetadataType, name: str) -> MetadataError:
    return MetadataError(f"In field: fullName - no {kind.name} named {name[:80]} found", "INVALID_CROSS_REFERENCE_KEY")


def _read(org: Organization, _: User, call: Call) -> bytes:
    kind = known_type(call.text("type"))
    names = [text_of(child) for child in children(call.operation) if child.name == "fullNames"]
    if len(names) > limits.MAX_READ_NAMES:
        text = f"{len(names)} names; at most {limits.MAX_READ_NAMES} are allowed in one call"
        raise OrgFault(text, code="EXCEEDED_ID_LIMIT")
    contents = [(name, org.components.content(kind.name, name)) for name in names]
    records = [None if content is None else (name, _fields(kind, name, content)) for name, content in contents]
    return write_records(kind.name, records)


def _fields(kind: MetadataType, name: str, content: bytes) -> Node:
    """Return the fields of a component; those of a bundle are in its metadata file."""
    if kind.is_bundle:
        _, metadata = kind.bundle_files(name.casefold())
        content = next(data for file, data in split_files(content).items() if file.casefold() == metadata)
    return read_node(content, label=name)


def _save_all(org: Organization, user: User, call: Call) -> bytes:
    action: Action = "create" if call.name == "createMetadata" else "update"
    if call.name == "upsertMetadata":
        action = "upsert"
    components = [_new_component(child) for child in children(call.operation) if child.name == "metadata"]
    return write_results(call.name, save_components(org, user, components, action, all_or_none=call.all_or_none))


def _new_component(source: Node) -> NewComponent:
    kind = known_type(source.attributes.get("type", ""))
    fields = [child for child in children(source) if child.name != "fullName"]
    content = render(node(kind.name, fields, xmlns=NAMESPACE), indent=_INDENT)
    return NewComponent(kind, text_of(find(source, "fullName")).strip(), content)


def _rename(org: Organization, user: User, call: Call) -> bytes:
    old, new = call.text("oldFullName").strip(), call.text("newFullName").strip()
    return write_results(call.name, [rename_component(org, user, known_type(call.text("type")), old, new)])


def _delete(org: Organization, _: User, call: Call) -> bytes:
    names = [text_of(child).strip() for child in children(call.operation) if child.name == "fullNames"]
    results = delete_components(org, known_type(call.text("type")), names, all_or_none=call.all_or_none)
    return write_results(call.name, results)


OPERATIONS: Final[Mapping[str, Operation]] = {
    "readMetadata": _read,
    "createMetadata": _save_all,
    "updateMetadata": _save_all,
    "upsertMetadata": _save_all,
    "renameMetadata": _rename,
    "deleteMetadata": _delete,
}


# jsforce names the JSON part entity_content, the Metadata API Developer Guide names it json.
_JSON_PARTS: Final = ("entity_content", "json")
_ZIP_PART: Final = "file"
_MAX_PARTS: Final = 4


@authenticated()
async def post_deploy_request(request: Request, org: Organization, user: User) -> Response:
    """Accept a deployment: a form with a zip and its options, or JSON that names a validation to deploy quickly."""
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        zip_file, entity = await _read_form(request)
        options = from_json(DeployOptions, object_at(entity, "deployOptions"))
        return await _reply(org, user, lambda own: submit_deployment(own, user, zip_file, options), status=201)
    body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
    validation = text(body, "validatedDeployRequestId")
    if not validation:
        message = "the request must be a form with a zip, or name a validatedDeployRequestId"
        raise OrgFault(message, code="INVALID_INPUT")
    return await _reply(org, user, lambda own: _quick_deploy_rest(own, user, validation), status=201)


@authenticated()
async def get_deploy_request(request: Request, org: Organization, user: User) -> Response:
    """Return the status of a deployment; `includeDetails=true` adds the result of every component."""
    job_id = request.path_params["job_id"]
    await wait_briefly(org, job_id)
    details = request.query_params.get("includeDetails") == "true"
    return await _reply(org, user, lambda _: job_id, details=details)


@authenticated()
async def patch_deploy_request(request: Request, org: Organization, user: User) -> Response:
    """Cancel a deployment: `{"deployResult": {"status": "Canceling"}}`."""
    body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
    if text(object_at(body, "deployResult"), "status") != "Canceling":
        raise OrgFault("a deployment's status can only be set to Canceling", code="INVALID_INPUT")
    job_id = request.path_params["job_id"]
    return await _reply(org, user, lambda own: cancel_deployment(own, user, job_id).id, status=202)


def _quick_deploy_rest(org: Organization, user: User, validation: str) -> str:
    try:
        return quick_deploy(org, user, validation)
    except OrgFault as fault:
        # Metadata API Developer Guide, "Deploy a Recently Validated Component Set Without Tests": 404.
        raise OrgFault(str(fault), code=fault.code, status=404) from None


async def _reply(
    org: Organization, user: User, job_of: Callable[[Organization], str], *, details: bool = True, status: int = 200
) -> Response:
    content = await run_in_thread(org, lambda own: _described(own, user, job_of(own), details=details))
    return json_reply(content, status=status)


def _described(org: Organization, user: User, job_id: str, *, details: bool = True) -> JsonObject:
    job = find_job(org, "deploy", user, job_id)
    reply = org.jobs.reply(job.id)
    result = deployment_status(job) if reply is None else read_results(DeployResult, reply)[0]
    if not details:
        result = replace(result, details=DeployDetails())
    return {
        "id": job.id,
        "validatedDeployRequestId": job.validation,
        "deployResult": to_json(result),
        "deployOptions": to_json(options_of(job)),
    }


async def _read_form(request: Request) -> tuple[bytes, JsonObject]:
    stream = stream_body(request, limit=limits.MAX_SOAP_BYTES)
    parser = MultiPartParser(request.headers, stream, max_files=_MAX_PARTS, max_fields=_MAX_PARTS)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        raise MessageUnreadable(f"the form cannot be read: {getattr(error, 'message', error)}") from None
    try:
        parts = {
            name: await part.read() if isinstance(part, UploadFile) else part.encode()
            for name, part in form.multi_items()
        }
    finally:
        await form.close()
    entity = next((parts[name] for name in _JSON_PARTS if name in parts), b"{}")
    if _ZIP_PART not in parts:
        raise MessageUnreadable(f"the form has no part {_ZIP_PART!r} with a zip")
    return parts[_ZIP_PART], read_object(entity)
