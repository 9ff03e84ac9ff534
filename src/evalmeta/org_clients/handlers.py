"""The routes and operations of this wing, which `model/entry_points.py` names."""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from evalmeta.org.handlers.registry import Handlers
from evalmeta.org_clients.component_calls import OPERATIONS
from evalmeta.org_clients.deploy_requests import get_deploy_request, patch_deploy_request, post_deploy_request
from evalmeta.org_clients.logins import get_frontdoor, get_limits, get_named_user, get_resources
from evalmeta.org_clients.openapi import OPENAPI_PATH, get_openapi
from evalmeta.org_clients.records import (
    get_describe,
    get_more,
    get_object,
    get_objects,
    get_query,
    get_record,
    post_activation,
)

_DATA: Final = "/services/data/v{version}"
_DEPLOY_REQUESTS: Final = f"{_DATA}/metadata/deployRequest"
HANDLERS: Final = Handlers(
    [
        Route("/services/oauth2/singleaccess", get_frontdoor, methods=["GET", "POST"]),
        Route("/agentforce/bootstrap/nameduser", get_named_user, methods=["GET"]),
        Route(OPENAPI_PATH, get_openapi, methods=["GET"]),
        Route(_DATA, get_resources, methods=["GET"]),
        Route(_DATA + "/limits", get_limits, methods=["GET"]),
        Route(_DATA + "/queryAll", get_query, methods=["GET"]),
        Route(_DATA + "/queryAll/{locator}", get_more, methods=["GET"]),
        *(
            route
            for root in (_DATA, _DATA + "/tooling")
            for route in (
                Route(root + "/query", get_query, methods=["GET"]),
                Route(root + "/query/{locator}", get_more, methods=["GET"]),
                Route(root + "/sobjects", get_objects, methods=["GET"]),
                Route(root + "/sobjects/{name}", get_object, methods=["GET"]),
                Route(root + "/sobjects/{name}/describe", get_describe, methods=["GET"]),
                Route(root + "/sobjects/{name}/{record_id}", get_record, methods=["GET"]),
            )
        ),
        Route(_DATA + "/connect/bot-versions/{version_id}/activation", post_activation, methods=["POST"]),
        Route(_DEPLOY_REQUESTS, post_deploy_request, methods=["POST"]),
        Route(_DEPLOY_REQUESTS + "/validatedDeployRequestId", post_deploy_request, methods=["POST"]),
        Route(_DEPLOY_REQUESTS + "/{job_id}", get_deploy_request, methods=["GET"]),
        Route(_DEPLOY_REQUESTS + "/{job_id}", patch_deploy_request, methods=["PATCH"]),
    ],
    OPERATIONS,
)
