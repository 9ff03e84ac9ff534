"""The Metadata API: one function for each SOAP operation, and deployments over REST."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response, StreamingResponse

from evalmeta import limits
from evalmeta.errors import EvalmetaError, MessageUnreadable, OrgFault
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    OLDEST_API_VERSION,
    TYPES,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.org.component_calls import NewComponent, delete_components, rename_component, save_components
from evalmeta.org.deployments import deployment_status, options_of
from evalmeta.org.handlers.rest import authenticated, code_of, json_reply, message_of, read_body, stream_body
from evalmeta.org.jobs import (
    cancel_deployment,
    check_deployment,
    check_job,
    check_retrieve,
    find_job,
    quick_deploy,
    submit_deployment,
    submit_retrieve,
    wait_briefly,
)
from evalmeta.org.organization import run_in_thread
from evalmeta.org.retrievals import iterate_components
from evalmeta.protocol.json_fields import object_at, read_object, text
from evalmeta.protocol.metadata_api import (
    AsyncResult,
    DeployDetails,
    DeployOptions,
    DeployResult,
    DescribeResult,
    MetadataObject,
)
from evalmeta.protocol.soap import (
    from_json,
    read_boolean,
    read_call,
    read_deploy,
    read_job_id,
    read_results,
    read_retrieve,
    stream_results,
    to_json,
    write_fault,
    write_records,
    write_results,
    write_text_result,
)
from evalmeta.xmlio.nodes import children, find, read_node, text_of
from evalmeta.xmlio.reader import NAMESPACE
from evalmeta.xmlio.writer import node, render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.requests import Request

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.model.registry import MetadataType
    from evalmeta.org.component_calls import Action
    from evalmeta.org.organization import Organization
    from evalmeta.protocol.soap import Call
    from evalmeta.xmlio.writer import Node


_STATUS_OPERATIONS: Final = frozenset({"checkDeployStatus", "checkRetrieveStatus", "checkStatus"})
# jsforce names the JSON part entity_content, the Metadata API Developer Guide names it json.
_JSON_PARTS: Final = ("entity_content", "json")
_ZIP_PART: Final = "file"
_MAX_PARTS: Final = 4
_XML: Final = "text/xml;charset=UTF-8"
# As orgs write files.
_INDENT: Final = 4


async def handle_soap(request: Request) -> Response:
    """Answer a SOAP call; errors become faults with Salesforce's codes."""
    org: Organization = request.app.state.org
    try:
        call = read_call(await read_body(request, limit=limits.MAX_SOAP_BYTES))
        if call.name in _STATUS_OPERATIONS and org.user_of(call.session) is not None:
            await wait_briefly(org, read_job_id(call))
        version = request.path_params["version"]
        reply = await run_in_thread(org, lambda own: _answer(own, call, version=version))
        return _xml(reply) if isinstance(reply, bytes) else StreamingResponse(reply, media_type=_XML)
    except EvalmetaError as error:
        fault = write_fault(code_of(error, otherwise="INVALID_OPERATION"), message_of(error, org))
        return _xml(fault, status=500)


def _answer(org: Organization, call: Call, *, version: str) -> bytes | Iterator[bytes]:
    user = org.user_of(call.session)
    if user is None:
        text = "Invalid Session ID found in SessionHeader: Illegal Session"
        raise OrgFault(text, code="INVALID_SESSION_ID")
    if not org.supports(version):
        text = f"Invalid Api version specified on URL; {OLDEST_API_VERSION} to {NEWEST_API_VERSION} are known"
        raise OrgFault(text, code="UNSUPPORTED_API_VERSION")
    operation = _OPERATIONS.get(call.name)
    if operation is None:
        answered = f"This org answers {', '.join(sorted(_OPERATIONS))}."
        text = f"No operation available for request {call.name[:80]}"
        raise OrgFault(text, code="INVALID_OPERATION", actions=[answered])
    return operation(org, user, call)


def _describe(_: Organization, __: User, call: Call) -> bytes:
    version = parse_api_version(call.text("asOfVersion")) or NEWEST_API_VERSION
    known = (row for row in TYPES if row.since <= version)
    objects = tuple(MetadataObject(row.directory, row.suffix, row.name) for row in known)
    return write_results(call.name, [DescribeResult(objects)])


def _list(org: Organization, _: User, call: Call) -> Iterator[bytes]:
    kinds = [_kind(text_of(find(child, "type"))) for child in children(call.operation) if child.name == "queries"]
    if len(kinds) > limits.MAX_LIST_QUERIES:
        text = f"{len(kinds)} queries; at most {limits.MAX_LIST_QUERIES} are allowed in one call"
        raise OrgFault(text, code="EXCEEDED_MAX_TYPES_LIMIT")
    found = [iterate_components(org, kind) for kind in kinds]
    return stream_results(call.name, chain.from_iterable(found))


def _read(org: Organization, _: User, call: Call) -> bytes:
    kind = _kind(call.text("type"))
    names = [text_of(child) for child in children(call.operation) if child.name == "fullNames"]
    if len(names) > limits.MAX_READ_NAMES:
        text = f"{len(names)} names; at most {limits.MAX_READ_NAMES} are allowed in one call"
        raise OrgFault(text, code="EXCEEDED_ID_LIMIT")
    found = [(name, org.components.content(kind.name, name)) for name in names]
    records = [None if content is None else (name, read_node(content, label=name)) for name, content in found]
    return write_records(kind.name, records)


def _save(org: Organization, user: User, call: Call) -> bytes:
    action: Action = "create" if call.name == "createMetadata" else "update"
    if call.name == "upsertMetadata":
        action = "upsert"
    found = [_new_component(child) for child in children(call.operation) if child.name == "metadata"]
    return write_results(call.name, save_components(org, user, found, action, all_or_none=call.all_or_none))


def _new_component(source: Node) -> NewComponent:
    kind = _kind(source.attributes.get("type", ""))
    fields = [child for child in children(source) if child.name != "fullName"]
    content = render(node(kind.name, fields, xmlns=NAMESPACE), indent=_INDENT)
    return NewComponent(kind, text_of(find(source, "fullName")).strip(), content)


def _rename(org: Organization, user: User, call: Call) -> bytes:
    old, new = call.text("oldFullName").strip(), call.text("newFullName").strip()
    return write_results(call.name, [rename_component(org, user, _kind(call.text("type")), old, new)])


def _delete(org: Organization, _: User, call: Call) -> bytes:
    names = [text_of(child).strip() for child in children(call.operation) if child.name == "fullNames"]
    found = delete_components(org, _kind(call.text("type")), names, all_or_none=call.all_or_none)
    return write_results(call.name, found)


def _check_status(org: Organization, user: User, call: Call) -> bytes:
    ids = [text_of(child).strip() for child in children(call.operation) if child.name == "asyncProcessId"]
    return write_results(call.name, [check_job(org, user, identifier) for identifier in ids[: limits.MAX_READ_NAMES]])


def _deploy(org: Organization, user: User, call: Call) -> bytes:
    job_id = submit_deployment(org, user, *read_deploy(call))
    return write_results(call.name, [AsyncResult(done=False, id=job_id)])


def _check_deploy(org: Organization, user: User, call: Call) -> bytes:
    details = read_boolean("includeDetails", call.text("includeDetails"), otherwise=True)
    return check_deployment(org, user, read_job_id(call), details=details)


def _cancel_deploy(org: Organization, user: User, call: Call) -> bytes:
    return write_results(call.name, [cancel_deployment(org, user, read_job_id(call))])


def _quick_deploy(org: Organization, user: User, call: Call) -> bytes:
    return write_text_result(call.name, quick_deploy(org, user, read_job_id(call)))


def _retrieve(org: Organization, user: User, call: Call) -> bytes:
    manifest, single_package = read_retrieve(call)
    job_id = submit_retrieve(org, user, manifest, single_package=single_package)
    return write_results(call.name, [AsyncResult(done=False, id=job_id)])


def _check_retrieve(org: Organization, user: User, call: Call) -> bytes:
    return check_retrieve(org, user, read_job_id(call))


def _kind(name: str) -> MetadataType:
    kind = metadata_type(name)
    if kind is None:
        near = nearest_type_name(name)
        known = f"Did you mean {near}?" if near else f"This org has {', '.join(row.name for row in TYPES)}."
        raise OrgFault(f"Unknown type:{name[:80]}", code="INVALID_TYPE", actions=[known])
    return kind


def _xml(body: bytes, *, status: int = 200) -> Response:
    return Response(body, status_code=status, media_type=_XML)


_OPERATIONS: Final[dict[str, Callable[[Organization, User, Call], bytes | Iterator[bytes]]]] = {
    "describeMetadata": _describe,
    "listMetadata": _list,
    "readMetadata": _read,
    "deploy": _deploy,
    "checkDeployStatus": _check_deploy,
    "cancelDeploy": _cancel_deploy,
    "deployRecentValidation": _quick_deploy,
    "retrieve": _retrieve,
    "checkRetrieveStatus": _check_retrieve,
    "checkStatus": _check_status,
    "createMetadata": _save,
    "updateMetadata": _save,
    "upsertMetadata": _save,
    "renameMetadata": _rename,
    "deleteMetadata": _delete,
}


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
