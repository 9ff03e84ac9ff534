"""Deployments over REST, as @salesforce/source-deploy-retrieve can send them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, OrgFault
from evalmeta.org.deployments import deployment_status, options_of
from evalmeta.org.handlers.rest import authenticated, json_reply, read_body, stream_body
from evalmeta.org.jobs import cancel_deployment, find_job, quick_deploy, submit_deployment, wait_briefly
from evalmeta.org.organization import run_in_thread
from evalmeta.protocol.json_fields import object_at, read_object, text
from evalmeta.protocol.metadata_api import DeployDetails, DeployOptions, DeployResult
from evalmeta.protocol.soap import from_json, read_results, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization


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
