"""The Metadata API over REST: deployments handed in as a form, asked about, canceled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, OrgFault
from evalmeta.org.deployments import describe_deployment, options_of
from evalmeta.org.handlers.bodies import limited, read_body
from evalmeta.org.handlers.rest import guarded, json_reply
from evalmeta.org.jobs import cancel_deployment, find_job, quick_deploy, settle, submit_deployment
from evalmeta.org.threads import in_thread
from evalmeta.wire.jsonfields import object_at, read_object, text
from evalmeta.wire.messages import DeployDetails, DeployOptions, DeployResult
from evalmeta.wire.soap import read_results
from evalmeta.wire.structs import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.user import User
    from evalmeta.org.organization import Organization

__all__ = ["get_deploy_request", "patch_deploy_request", "post_deploy_request"]

# jsforce calls the JSON part entity_content, the Metadata API Developer Guide calls it json.
_JSON_PARTS: Final = ("entity_content", "json")
_ZIP_PART: Final = "file"
_MAX_PARTS: Final = 4


async def post_deploy_request(request: Request) -> Response:
    """Accepts a deployment: a form with a zip and its options, or JSON that names a validation to deploy quickly."""

    async def answer(org: Organization, user: User) -> Response:
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            zip_file, entity = await _read_form(request)
            options = from_json(DeployOptions, object_at(entity, "deployOptions"))
            return await _reply(org, user, lambda own: submit_deployment(own, user, zip_file, options), status=201)
        validation = text(
            read_object(await read_body(request, limit=limits.MAX_JSON_BYTES)), "validatedDeployRequestId"
        )
        if not validation:
            raise OrgFault("a form with a zip is due, or validatedDeployRequestId", code="INVALID_INPUT")
        return await _reply(org, user, lambda own: _quick_deploy(own, user, validation), status=201)

    return await guarded(request, answer)


async def get_deploy_request(request: Request) -> Response:
    """Tells how far a deployment is; `includeDetails=true` adds what became of every component."""

    async def answer(org: Organization, user: User) -> Response:
        job_id = request.path_params["job_id"]
        await settle(org, job_id)
        details = request.query_params.get("includeDetails") == "true"
        return await _reply(org, user, lambda _: job_id, details=details)

    return await guarded(request, answer)


async def patch_deploy_request(request: Request) -> Response:
    """Cancels a deployment: `{"deployResult": {"status": "Canceling"}}`."""

    async def answer(org: Organization, user: User) -> Response:
        body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
        if text(object_at(body, "deployResult"), "status") != "Canceling":
            raise OrgFault("a deployment's status can be set to Canceling only", code="INVALID_INPUT")
        job_id = request.path_params["job_id"]
        return await _reply(org, user, lambda own: cancel_deployment(own, user, job_id).id, status=202)

    return await guarded(request, answer)


def _quick_deploy(org: Organization, user: User, validation: str) -> str:
    try:
        return quick_deploy(org, user, validation)
    except OrgFault as fault:
        # Metadata API Developer Guide, "Deploy a Recently Validated Component Set Without Tests": 404.
        raise OrgFault(str(fault), code=fault.code, status=404) from None


async def _reply(
    org: Organization, user: User, job_of: Callable[[Organization], str], *, details: bool = True, status: int = 200
) -> Response:
    return json_reply(
        await in_thread(org, lambda own: _described(own, user, job_of(own), details=details)), status=status
    )


def _described(org: Organization, user: User, job_id: str, *, details: bool = True) -> JsonObject:
    job = find_job(org, "deploy", user, job_id)
    reply = org.jobs.reply(job.id)
    result = describe_deployment(job) if reply is None else read_results(DeployResult, reply)[0]
    if not details:
        result = replace(result, details=DeployDetails())
    return {
        "id": job.id,
        "validatedDeployRequestId": job.validation,
        "deployResult": to_json(result),
        "deployOptions": to_json(options_of(job)),
    }


async def _read_form(request: Request) -> tuple[bytes, JsonObject]:
    from starlette.datastructures import UploadFile  # noqa: PLC0415 - few orgs are asked this way
    from starlette.formparsers import MultiPartException, MultiPartParser  # noqa: PLC0415 - as above

    stream = limited(request, limit=limits.MAX_SOAP_BYTES)
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
