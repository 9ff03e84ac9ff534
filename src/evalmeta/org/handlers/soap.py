"""The Metadata API over SOAP: one function per operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from evalmeta import limits
from evalmeta.errors import EvalmetaError, OrgFault
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, TYPES, metadata_type, parse_api_version
from evalmeta.org.handlers.bodies import read_body
from evalmeta.org.handlers.faults import code_of, message_of
from evalmeta.org.jobs import (
    cancel_deployment,
    check_deployment,
    check_retrieve,
    quick_deploy,
    settle,
    submit_deployment,
    submit_retrieve,
)
from evalmeta.org.retrievals import list_components
from evalmeta.org.threads import in_thread
from evalmeta.wire.messages import AsyncResult, DescribeResult, MetadataObject
from evalmeta.wire.soap import (
    read_call,
    read_deploy,
    read_job_id,
    read_retrieve,
    write_fault,
    write_records,
    write_results,
    write_text_result,
)
from evalmeta.wire.structs import read_boolean
from evalmeta.xmlio.nodes import children, find, read_node, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from evalmeta.model.registry import MetadataType
    from evalmeta.model.user import User
    from evalmeta.org.organization import Organization
    from evalmeta.wire.soap import Call
    from evalmeta.xmlio.writer import Node

__all__ = ["handle_soap"]


async def handle_soap(request: Request) -> Response:
    """Answers a SOAP call; what goes wrong becomes a fault with Salesforce's code."""
    org: Organization = request.app.state.org
    try:
        call = read_call(await read_body(request, limit=limits.MAX_SOAP_BYTES))
        if call.name in _QUESTIONS and org.user_of(call.session) is not None:
            await settle(org, read_job_id(call))
        version = request.path_params["version"]
        return _xml(await in_thread(org, lambda own: _answer(own, call, version=version)))
    except EvalmetaError as error:
        fault = write_fault(code_of(error, otherwise="INVALID_OPERATION"), message_of(error, org))
        return _xml(fault, status=500)


def _answer(org: Organization, call: Call, *, version: str) -> bytes:
    user = org.user_of(call.session)
    if user is None:
        text = "Invalid Session ID found in SessionHeader: Illegal Session"
        raise OrgFault(text, code="INVALID_SESSION_ID")
    if not org.speaks(version):
        text = f"Invalid Api version specified on URL; {OLDEST_API_VERSION} to {NEWEST_API_VERSION} are known"
        raise OrgFault(text, code="UNSUPPORTED_API_VERSION")
    operation = _OPERATIONS.get(call.name)
    if operation is None:
        raise OrgFault(f"No operation available for request {call.name}", code="INVALID_OPERATION")
    return operation(org, user, call)


def _describe(_: Organization, __: User, call: Call) -> bytes:
    version = parse_api_version(call.text("asOfVersion")) or NEWEST_API_VERSION
    known = (row for row in TYPES if row.since <= version)
    objects = tuple(MetadataObject(row.directory, row.suffix, row.name) for row in known)
    return write_results(call.name, [DescribeResult(objects)])


def _list(org: Organization, _: User, call: Call) -> bytes:
    kinds = [_kind(text_of(find(each, "type"))) for each in children(call.operation) if each.name == "queries"]
    if len(kinds) > limits.MAX_LIST_QUERIES:
        text = f"{len(kinds)} queries; at most {limits.MAX_LIST_QUERIES} are answered at a time"
        raise OrgFault(text, code="EXCEEDED_MAX_TYPES_LIMIT")
    found = [each for kind in kinds for each in list_components(org, kind)]
    return write_results(call.name, found)


def _read(org: Organization, _: User, call: Call) -> bytes:
    kind = _kind(call.text("type"))
    names = [text_of(each) for each in children(call.operation) if each.name == "fullNames"]
    if len(names) > limits.MAX_READ_NAMES:
        text = f"{len(names)} names; at most {limits.MAX_READ_NAMES} are read at a time"
        raise OrgFault(text, code="EXCEEDED_ID_LIMIT")
    return write_records(kind.name, [_record(org, kind, name) for name in names])


def _record(org: Organization, kind: MetadataType, name: str) -> tuple[str, Node] | None:
    content = org.components.content(kind.name, name)
    return None if content is None else (name, read_node(content, label=name))


def _deploy(org: Organization, user: User, call: Call) -> bytes:
    job_id = submit_deployment(org, user, *read_deploy(call))
    return write_results(call.name, [AsyncResult(done=False, id=job_id)])


def _check_deploy(org: Organization, user: User, call: Call) -> bytes:
    return check_deployment(org, user, read_job_id(call), details=_wants_details(call))


def _wants_details(call: Call) -> bool:
    return read_boolean("includeDetails", call.text("includeDetails"), otherwise=True)


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
        raise OrgFault(f"Unknown type:{name[:80]}", code="INVALID_TYPE")
    return kind


def _xml(body: bytes, *, status: int = 200) -> Response:
    return Response(body, status_code=status, media_type="text/xml;charset=UTF-8")


_QUESTIONS: Final = frozenset({"checkDeployStatus", "checkRetrieveStatus"})
_OPERATIONS: Final[dict[str, Callable[[Organization, User, Call], bytes]]] = {
    "describeMetadata": _describe,
    "listMetadata": _list,
    "readMetadata": _read,
    "deploy": _deploy,
    "checkDeployStatus": _check_deploy,
    "cancelDeploy": _cancel_deploy,
    "deployRecentValidation": _quick_deploy,
    "retrieve": _retrieve,
    "checkRetrieveStatus": _check_retrieve,
}
