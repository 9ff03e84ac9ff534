"""The Metadata API: one function for each SOAP operation of deployments and retrievals."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from starlette.responses import Response, StreamingResponse

from evalmeta import limits
from evalmeta.errors import EvalmetaError, OrgFault
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    OLDEST_API_VERSION,
    TYPES,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.org import jobs
from evalmeta.org.handlers import Operation, registered_handlers
from evalmeta.org.handlers.rest import code_of, message_of, read_body
from evalmeta.org.organization import Organization, run_in_thread
from evalmeta.org.retrievals import iterate_components
from evalmeta.protocol import soap
from evalmeta.protocol.metadata_api import AsyncResult, DescribeResult, MetadataObject
from evalmeta.xmlio.nodes import children, find, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from evalmeta.model.login import User
    from evalmeta.model.registry import MetadataType


_STATUS_OPERATIONS: Final = frozenset({"checkDeployStatus", "checkRetrieveStatus", "checkStatus"})
_XML: Final = "text/xml;charset=UTF-8"


async def handle_soap(request: Request) -> Response:
    """Answer a SOAP call; errors become faults with Salesforce's codes."""
    org: Organization = request.app.state.org
    try:
        call = soap.read_call(await read_body(request, limit=limits.MAX_SOAP_BYTES))
        if call.name in _STATUS_OPERATIONS and org.user_of(call.session) is not None:
            await jobs.wait_briefly(org, soap.read_job_id(call))
        version = request.path_params["version"]
        reply = await run_in_thread(org, lambda own: _answer(own, call, version=version))
        return _xml(reply) if isinstance(reply, bytes) else StreamingResponse(reply, media_type=_XML)
    except EvalmetaError as error:
        fault = soap.write_fault(code_of(error, otherwise="INVALID_OPERATION"), message_of(error, org))
        return _xml(fault, status=500)


def _answer(org: Organization, call: soap.Call, *, version: str) -> bytes | Iterator[bytes]:
    user = org.user_of(call.session)
    if user is None:
        text = "Invalid Session ID found in SessionHeader: Illegal Session"
        raise OrgFault(org.refusal_of(call.session, usual=text), code="INVALID_SESSION_ID")
    if not org.supports(version):
        text = f"Invalid Api version specified on URL; {OLDEST_API_VERSION} to {NEWEST_API_VERSION} are known"
        raise OrgFault(text, code="UNSUPPORTED_API_VERSION")
    operation = _OPERATIONS.get(call.name) or _registered_operation(call.name)
    return operation(org, user, call)


def _registered_operation(name: str) -> Operation:
    operations = {name: write for handlers in registered_handlers() for name, write in handlers.operations.items()}
    if name not in operations:
        answered = f"This org answers {', '.join(sorted(operations | _OPERATIONS))}."
        text = f"No operation available for request {name[:80]}"
        raise OrgFault(text, code="INVALID_OPERATION", actions=[answered])
    return operations[name]


def _describe(_: Organization, __: User, call: soap.Call) -> bytes:
    version = parse_api_version(call.text("asOfVersion")) or NEWEST_API_VERSION
    known = (row for row in TYPES if row.since <= version)
    objects = tuple(MetadataObject(row.directory, row.name, None if row.is_bundle else row.suffix) for row in known)
    return soap.write_results(call.name, [DescribeResult(objects)])


def _list(org: Organization, _: User, call: soap.Call) -> Iterator[bytes]:
    kinds = [known_type(text_of(find(child, "type"))) for child in children(call.operation) if child.name == "queries"]
    if len(kinds) > limits.MAX_LIST_QUERIES:
        text = f"{len(kinds)} queries; at most {limits.MAX_LIST_QUERIES} are allowed in one call"
        raise OrgFault(text, code="EXCEEDED_MAX_TYPES_LIMIT")
    components = [iterate_components(org, kind) for kind in kinds]
    return soap.stream_results(call.name, chain.from_iterable(components))


def _check_status(org: Organization, user: User, call: soap.Call) -> bytes:
    ids = [text_of(child).strip() for child in children(call.operation) if child.name == "asyncProcessId"]
    results = [jobs.check_job(org, user, job_id) for job_id in ids[: limits.MAX_READ_NAMES]]
    return soap.write_results(call.name, results)


def _check_deploy(org: Organization, user: User, call: soap.Call) -> bytes:
    details = soap.read_boolean("includeDetails", call.text("includeDetails"), otherwise=True)
    return jobs.check_deployment(org, user, soap.read_job_id(call), details=details)


def _retrieve(org: Organization, user: User, call: soap.Call) -> bytes:
    manifest, single_package = soap.read_retrieve(call)
    job_id = jobs.submit_retrieve(org, user, manifest, single_package=single_package)
    return soap.write_results(call.name, [AsyncResult(done=False, id=job_id)])


def known_type(name: str) -> MetadataType:
    """Return a metadata type by its name in a call; raise OrgFault (INVALID_TYPE)."""
    kind = metadata_type(name)
    if kind is None:
        near = nearest_type_name(name)
        known = f"Did you mean {near}?" if near else f"This org has {', '.join(row.name for row in TYPES)}."
        raise OrgFault(f"Unknown type:{name[:80]}", code="INVALID_TYPE", actions=[known])
    return kind


def _xml(body: bytes, *, status: int = 200) -> Response:
    return Response(body, status_code=status, media_type=_XML)


_OPERATIONS: Final[dict[str, Operation]] = {
    "describeMetadata": _describe,
    "listMetadata": _list,
    "deploy": lambda org, user, call: soap.write_results(
        call.name, [AsyncResult(done=False, id=jobs.submit_deployment(org, user, *soap.read_deploy(call)))]
    ),
    "checkDeployStatus": _check_deploy,
    "cancelDeploy": lambda org, user, call: soap.write_results(
        call.name, [jobs.cancel_deployment(org, user, soap.read_job_id(call))]
    ),
    "deployRecentValidation": lambda org, user, call: soap.write_text_result(
        call.name, jobs.quick_deploy(org, user, soap.read_job_id(call))
    ),
    "retrieve": _retrieve,
    "checkRetrieveStatus": lambda org, user, call: jobs.check_retrieve(org, user, soap.read_job_id(call)),
    "checkStatus": _check_status,
}
