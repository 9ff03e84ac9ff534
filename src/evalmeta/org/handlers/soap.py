"""The Metadata API over SOAP: one function per operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from evalmeta import limits
from evalmeta.errors import EvalmetaError, OrgFault
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, TYPES, metadata_type
from evalmeta.org.deployments import deploy
from evalmeta.org.handlers.bodies import read_body
from evalmeta.org.handlers.faults import code_of, message_of
from evalmeta.org.retrievals import list_components, retrieve
from evalmeta.wire.messages import AsyncResult, DescribeResult, FileProperties, MetadataObject
from evalmeta.wire.soap import read_call, read_deploy, read_retrieve, write_fault, write_results
from evalmeta.xmlio.nodes import children, find, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from evalmeta.org.organization import Organization
    from evalmeta.store.jobs import JobKind
    from evalmeta.wire.soap import Call

__all__ = ["handle_soap"]


async def handle_soap(request: Request) -> Response:
    """Answers a SOAP call; what goes wrong becomes a fault with Salesforce's code."""
    org: Organization = request.app.state.org
    try:
        call = read_call(await read_body(request, limit=limits.MAX_SOAP_BYTES))
        return _xml(_answer(org, call, version=request.path_params["version"]))
    except EvalmetaError as error:
        fault = write_fault(code_of(error, otherwise="INVALID_OPERATION"), message_of(error, org))
        return _xml(fault, status=500)


def _answer(org: Organization, call: Call, *, version: str) -> bytes:
    if org.user_of(call.session) is None:
        text = "Invalid Session ID found in SessionHeader: Illegal Session"
        raise OrgFault(text, code="INVALID_SESSION_ID")
    if not org.speaks(version):
        text = f"Invalid Api version specified on URL; {OLDEST_API_VERSION} to {NEWEST_API_VERSION} are known"
        raise OrgFault(text, code="UNSUPPORTED_API_VERSION")
    operation = _OPERATIONS.get(call.name)
    if operation is None:
        raise OrgFault(f"No operation available for request {call.name}", code="INVALID_OPERATION")
    return operation(org, call)


def _describe(_: Organization, call: Call) -> bytes:
    objects = tuple(MetadataObject(row.directory, row.suffix, row.name) for row in TYPES)
    return write_results(call.name, [DescribeResult(objects)])


def _list(org: Organization, call: Call) -> bytes:
    found: list[FileProperties] = []
    for query in (each for each in children(call.operation) if each.name == "queries"):
        name = text_of(find(query, "type"))
        kind = metadata_type(name)
        if kind is None:
            raise OrgFault(f"Unknown type:{name}", code="INVALID_TYPE")
        found += list_components(org, kind)
    return write_results(call.name, found)


def _deploy(org: Organization, call: Call) -> bytes:
    job_id = deploy(org, *read_deploy(call))
    return write_results(call.name, [AsyncResult(done=False, id=job_id)])


def _check_deploy(org: Organization, call: Call) -> bytes:
    return _reply(org, "deploy", call.text("asyncProcessId"))


def _retrieve(org: Organization, call: Call) -> bytes:
    manifest, single_package = read_retrieve(call)
    job_id = retrieve(org, manifest, single_package=single_package)
    return write_results(call.name, [AsyncResult(done=False, id=job_id)])


def _check_retrieve(org: Organization, call: Call) -> bytes:
    return _reply(org, "retrieve", call.text("asyncProcessId"))


def _reply(org: Organization, kind: JobKind, job_id: str) -> bytes:
    reply = org.jobs.reply(kind, job_id)
    if reply is None:
        raise OrgFault(f"invalid cross reference id {job_id}", code="INVALID_CROSS_REFERENCE_KEY")
    return reply


def _xml(body: bytes, *, status: int = 200) -> Response:
    return Response(body, status_code=status, media_type="text/xml;charset=UTF-8")


_OPERATIONS: Final[dict[str, Callable[[Organization, Call], bytes]]] = {
    "describeMetadata": _describe,
    "listMetadata": _list,
    "deploy": _deploy,
    "checkDeployStatus": _check_deploy,
    "retrieve": _retrieve,
    "checkRetrieveStatus": _check_retrieve,
}
