"""Clients of the preview API of an org, in process."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeVar

import httpx

from evalmeta.org.app import create_app
from evalmeta.package.settings import load_settings
from org.parts import URL, opened_with
from systems.agent_script.projects import SHOP

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

__all__ = ["NAMED", "RULES", "Client", "preview", "read"]

T = TypeVar("T")

API = "/einstein/ai-agent/v1.1"
_OTHER = "ada@example.com"
NAMED = SHOP.replace(
    "config:\n", 'config:\n    agent_label: "Bikes"\n    default_agent_user: "shop@example.com"\n'
).replace(
    '    instructions: "You work',
    '    messages:\n        welcome: "Hello {!@variables.customer_id}!"\n    instructions: "You work',
)
RULES = """\
rules:
  - {subagent: reception, utterance: "*person*", call: human}
  - {subagent: reception, call: to_repairs}
  - {utterance: "*lost*", call: look_up, with: {number: "404"}}
  - {call: look_up, with: {number: "7"}}
  - {answer: "It costs {!@variables.price}."}
"""


@dataclass(frozen=True, slots=True)
class Client:
    """Sends the requests of @salesforce/agents.

    Attributes:
        token: the token of the requests.
        others: the token of another user.
    """

    http: httpx.AsyncClient
    token: str
    others: str

    async def send(self, method: str, path: str, body: object = None, *, token: str | None = None) -> httpx.Response:
        """Send a request below the API's path."""
        headers = {"authorization": f"Bearer {self.token if token is None else token}"}
        return await self.http.request(method, API + path, json=body, headers=headers)

    async def compile(self, script: str = NAMED) -> httpx.Response:
        """Compile a script."""
        asset = {"type": "AFScript", "name": "AFScript", "content": script}
        return await self.send("POST", "/authoring/scripts", {"assets": [asset], "afScriptVersion": "2.0.0"})

    async def request_session(self, script: str = NAMED, **changes: object) -> httpx.Response:
        """Compile a script and request a session with it."""
        definition = (await self.compile(script)).json()["compiledArtifact"]
        definition["agentVersion"]["developerName"] = "v3"
        body = {
            "agentDefinition": definition,
            "enableSimulationMode": True,
            "externalSessionKey": "a key",
            "variables": [{"name": "$Context.CustomerId", "type": "Text", "value": "C1"}],
            "executionHistory": [],
            "conversationContext": [],
        }
        return await self.send("POST", "/preview/sessions", body | changes)

    async def start(self, script: str = NAMED, **changes: object) -> str:
        """Start a session, and return its id."""
        return str(read(await self.request_session(script, **changes)).sessionId)

    async def say(self, session: str, said: str, number: int = 1) -> httpx.Response:
        """Send a message."""
        message = {"sequenceId": number, "type": "Text", "text": said}
        return await self.send("POST", f"/preview/sessions/{session}/messages", {"message": message, "variables": []})

    async def plan(self, session: str, answer: httpx.Response) -> SimpleNamespace:
        """Return the plan of an answer."""
        return read(await self.send("GET", f"/preview/sessions/{session}/plans/{read(answer).messages[0].planId}"))


def read(response: httpx.Response) -> SimpleNamespace:
    """Return the body of a good reply."""
    assert response.status_code == 200, response.text
    found = json.loads(response.content, object_hook=lambda members: SimpleNamespace(**members))
    assert isinstance(found, SimpleNamespace)
    return found


def preview(folder: Path, do: Callable[[Client], Awaitable[T]], *, is_served: bool = True) -> T:
    """Use the preview API of an org with the settings of a project."""
    file = folder / "evalmeta.toml"
    with opened_with(folder, lambda: load_settings(file), is_served=is_served) as org:
        now = org.database.now()
        other = org.users.find_by_name(_OTHER) or org.users.add(_OTHER, "Ada", now=now)
        others = org.new_token(other, now=now, expires=now + 60)

        async def go() -> T:
            transport = httpx.ASGITransport(app=create_app(org))
            async with httpx.AsyncClient(transport=transport, base_url=URL, timeout=60) as http:
                return await do(Client(http, org.token, others))

        return asyncio.run(go())
