"""Serves an org that takes every deployment without looking at it, and prints address and token.

python instant_org.py FOLDER: what a client costs by itself.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from evalmeta.model.settings import Settings
from evalmeta.org.app import create_app
from evalmeta.org.organization import Organization
from evalmeta.org.serving.sockets import listen
from evalmeta.protocol.metadata_api import AsyncResult, DeployResult
from evalmeta.protocol.soap import write_results
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

JOB = "0Af000000000001CAA"
REPLIES = {
    b"<deploy>": write_results("deploy", [AsyncResult(done=False, id=JOB)]),
    b"<checkDeployStatus>": write_results(
        "checkDeployStatus", [DeployResult(JOB, "Succeeded", done=True, success=True, check_only=True)]
    ),
}


class Instant:
    """Answers deployments at once; everything else is left to the org."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "/Soap/" not in scope["path"]:
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        reply = next((reply for mark, reply in REPLIES.items() if mark in body[:2_000]), b"")
        await Response(reply, media_type="text/xml;charset=UTF-8")(scope, receive, send)


def main(folder: Path) -> None:
    with open_database(folder) as database, listen("127.0.0.1", 0) as listening:
        org = Organization(database, folder, Settings, lambda _: None)
        print(f"http://127.0.0.1:{listening.getsockname()[1]} {org.token}", flush=True)
        app = Instant(create_app(org))
        asyncio.run(uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off")).serve([listening]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
