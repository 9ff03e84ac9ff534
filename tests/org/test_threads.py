from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from evalmeta.org.app import create_app
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.protocol.soap import deploy_call, write_call
from evalmeta.store.database import open_database
from org.parts import URL, definition, package

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization


def test_others_are_answered_while_a_call_waits_for_the_database(waiting: Organization) -> None:
    call = write_call(deploy_call(package({"A": definition("A")}), DeployOptions()), session=waiting.token, client="c")

    async def go() -> tuple[int, bool]:
        transport = httpx.ASGITransport(app=create_app(waiting))
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            with open_database(waiting.database.store) as other, other.transaction():
                deploying = asyncio.create_task(http.post("/services/Soap/m/66.0", content=call))
                await asyncio.sleep(0.1)
                answer = await http.get("/services/data")
                was_waiting = not deploying.done()
            return (answer.status_code + (await deploying).status_code, was_waiting)

    assert asyncio.run(go()) == (400, True)
