"""The adapter a2a: an agent that is found by its agent card, and asked over JSON-RPC."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field

from evalmeta import limits
from evalmeta.engine.answers import context_of
from evalmeta.engine.interfaces import SimpleSubject, Subject
from evalmeta.engine.json_rpc import check_number, request, result_of
from evalmeta.engine.subjects.http import fill_headers, header_variables
from evalmeta.errors import EvalmetaError, SubjectBusy, SubjectError, SubjectRefused, SubjectUnreachable
from evalmeta.model.redaction import address_in_words
from evalmeta.model.settings import SubjectSettings, TracePort
from evalmeta.protocol.json_fields import text
from evalmeta.systems.a2a.card import check_key_stays, choose_interface
from evalmeta.systems.a2a.tasks import TaskStream, is_running, read_answer, task_or_message

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.engine.subjects.http import FilledHeaders
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.login import SignIn
    from evalmeta.systems.a2a.card import Interface

_CARD: Final = "/.well-known/agent-card.json"
# Of versions before 0.3.
_OLD_CARD: Final = "/.well-known/agent.json"
_STREAMS: Final = "text/event-stream, application/json"
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 5.0
# Lost requests in a row for the state of a task.
_MAX_LOST: Final = 3


class A2aSubject(SubjectSettings):
    """An agent of the protocol A2A; `url` is the address of the agent or of its agent card.

    `interface` is the address of its JSON-RPC interface, if the one in its card cannot be used. With `stream = false`,
    answers are not streamed although the card says that the agent can. `api_key_env` is the environment variable with
    the key, sent as a bearer token. `${NAME}` in a header is replaced by an environment variable. With `traces`,
    evalmeta reads what answers leave out from traces that the agent exports to `trace_port` of this machine.
    """

    agent = "an agent with an A2A (Agent2Agent) interface"
    tracing = "received"
    named_by = ("url",)
    parts_unknown = "the skills in its agent card name no tools or topics, and no answer says which skill was used"

    adapter: Literal["a2a"]
    url: str
    interface: str = ""
    stream: bool = True
    api_key_env: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    traces: bool = False
    trace_port: TracePort = 0

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for the agent, whose card is read later; raise SettingsError if a setting is not valid."""
        agent = _Agent(self, fill_headers(self.headers, api_key_env=self.api_key_env))
        return SimpleSubject(lambda case: _Session(agent, case), close=agent.close)

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables in headers, too."""
        return (*super().key_variables(), *header_variables(self.headers))

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the address."""
        return f"a2a {address_in_words(self.url)}", []


class _Agent:
    """The card of an agent, which is read once, and the endpoint that it names."""

    def __init__(self, settings: A2aSubject, headers: FilledHeaders) -> None:
        self.streams = settings.stream
        self._headers = headers
        self._url = address_in_words(settings.url)
        own = self._endpoint(settings.url)
        parts = urlsplit(self._url)
        root = f"{parts.scheme}://{parts.netloc}"
        if parts.path.endswith(".json"):
            self._places = [(own, self._url, "")]
        else:
            above = [(self._endpoint(root), root, _CARD)] if parts.path.strip("/") else []
            base = self._url.rstrip("/")
            self._places = [(own, base, _CARD), *above, (own, base, _OLD_CARD)]
        self._asked = self._endpoint(settings.interface) if settings.interface else None
        self._reading = asyncio.Lock()
        self._interface: Interface | None = None

    async def interface(self) -> Interface:
        """Return the interface that the agent's card names; raise SubjectError if there is none."""
        async with self._reading:
            if self._interface is None:
                interface = choose_interface(*await self._card())
                if self._asked is None:
                    if any(self._headers.secrets):
                        check_key_stays(self._url, interface.url)
                    self._asked = self._endpoint(interface.url)
                self._interface = interface
        return self._interface

    async def call(self, method: str, params: JsonObject, *, stream: TaskStream | None = None) -> JsonObject:
        """Send a request to the interface, and return its result."""
        interface = await self.interface()
        asked = self._asked or self._places[0][0]
        headers = {**interface.words.headers, **({"Accept": _STREAMS} if stream else {})}
        reply = await asked.send(request(method, params), headers=headers, assembly=stream)
        check_number(reply.value)
        return result_of(reply.value)

    async def close(self) -> None:
        endpoints = [place[0] for place in self._places]
        for endpoint in [*endpoints, *([self._asked] if self._asked else [])]:
            await endpoint.close()

    async def _card(self) -> tuple[JsonValue, str]:
        """Return the card and its address: at the agent's address, or at the root of its host."""
        for endpoint, base, path in self._places:
            try:
                return (await endpoint.send(None, path, method="GET")).value, f"{base}{path}"
            except SubjectRefused as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
        tried = ", ".join(f"{base}{path}" for _, base, path in self._places)
        raise SubjectError(f"the agent at {self._url} has no agent card at {tried}; correct its url in evalmeta.toml")

    def _endpoint(self, url: str) -> Endpoint:
        from evalmeta.engine.http_endpoint import Endpoint

        headers, secrets, credential = self._headers
        return Endpoint(url, headers=headers, secrets=secrets, credential=credential)


class _Session:
    """One conversation: the ids of its context, and of the task that waits for the user's next message."""

    def __init__(self, agent: _Agent, case: Case) -> None:
        self._agent = agent
        self._metadata = context_of(case)
        # The protocol has no way to load a conversation.
        self._earlier = [entry.message or "" for entry in case.history if (entry.role or "").lower() == "user"]
        self._context_id = self._waiting_task = self._running_task = ""
        self._stream: TaskStream | None = None

    async def ask(self, utterance: str) -> GeneratedData:
        while self._earlier:
            await self._send(self._earlier[0])
            self._earlier.pop(0)
        return await self._send(utterance)

    async def close(self) -> None:
        """Cancel the task that still runs, such as after a time-out."""
        running = self._running_task or (self._stream.task_id if self._stream else "")
        if running:
            interface = await self._agent.interface()
            with suppress(EvalmetaError):
                await self._agent.call(interface.words.cancel, {"id": running})

    async def _send(self, utterance: str) -> GeneratedData:
        interface = await self._agent.interface()
        words = interface.words
        message: JsonObject = {
            "messageId": uuid.uuid4().hex,
            **words.message,
            "parts": [{**words.part, "text": utterance}],
            **({"contextId": self._context_id} if self._context_id else {}),
            **({"taskId": self._waiting_task} if self._waiting_task else {}),
            **({"metadata": self._metadata} if self._metadata else {}),
        }
        streams = interface.streams and self._agent.streams
        self._stream = TaskStream(continues=bool(self._waiting_task)) if streams else None
        begun = time.perf_counter()
        method = words.stream if streams else words.send
        result = await self._agent.call(method, {"message": message, **words.options}, stream=self._stream)
        content = await self._finished(task_or_message(result), words.get)
        first_part = self._stream.first_part if self._stream else None
        self._running_task, self._stream = "", None
        answer = read_answer(content, session=self._context_id)
        self._context_id, self._waiting_task = answer.context_id, answer.waiting_task
        if first_part is None:
            return answer.generated
        return replace(answer.generated, first_token_ms=round((first_part - begun) * 1000, 1))

    async def _finished(self, content: JsonObject, get: str) -> JsonObject:
        """Return a task when the agent does not work on it any more, which the time limit of the case bounds."""
        pause, lost = _FIRST_PAUSE, 0
        while is_running(content):
            self._running_task = text(content, "id")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                content, lost = task_or_message(await self._agent.call(get, {"id": self._running_task})), 0
            # The agent has the question already, so it must not be asked again.
            except SubjectUnreachable:
                lost += 1
                if lost > _MAX_LOST:
                    raise
            except SubjectBusy as busy:
                pause = min(_LONGEST_PAUSE if busy.after is None else busy.after, limits.MAX_RETRY_AFTER_SECONDS)
        return content
