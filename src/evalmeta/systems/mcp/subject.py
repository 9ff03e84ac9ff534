"""The adapter mcp: the tools of a server as what cases call."""

from __future__ import annotations

import asyncio
import shlex
import time
from typing import TYPE_CHECKING, Final, Literal, Protocol

from pydantic import Field

from evalmeta.engine.interfaces import Description
from evalmeta.engine.subjects.http import fill_headers, header_variables
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of
from evalmeta.errors import EvalmetaError, SettingsError, SubjectUnreachable
from evalmeta.model.redaction import address_in_words, path_in_words
from evalmeta.model.settings import SubjectSettings
from evalmeta.systems.mcp.calls import call_of, call_of_turn, check_call, example_of, read_result, tools_in_words
from evalmeta.systems.mcp.connection import Client, HttpConnection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.engine.subjects.command import ProcessPool
    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.login import SignIn
    from evalmeta.systems.mcp.connection import Tool as ListedTool
    from evalmeta.systems.mcp.stdio import ServerProcess

_SHOWN_TESTS: Final = 20
_REPEATED: Final = "evalmeta repeats only calls of tools with readOnlyHint or idempotentHint"


class McpSubject(SubjectSettings):
    """A server of MCP, whose tools are called: a program (`command`), or one at a `url` over streamable HTTP.

    `environment` is added to the environment of the program. `api_key_env` is the environment variable with the key,
    sent as a bearer token. `${NAME}` in a header is replaced by an environment variable. With `check_calls = false`,
    tools are called that the server does not list, or with arguments that their JSON Schemas refuse.
    """

    agent = "a server of MCP (Model Context Protocol), whose tools are called"
    named_by = ("url", "command")
    is_described = True
    parts_unknown = ""

    adapter: Literal["mcp"]
    command: tuple[str, ...] = ()
    url: str = ""
    environment: dict[str, str] = Field(default_factory=dict)
    api_key_env: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    check_calls: bool = True

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for the server, which is started later; raise SettingsError if a setting is not valid."""
        if bool(self.command) == bool(self.url):
            raise SettingsError(
                "the adapter mcp needs either a command or a url",
                actions=('Add a line like command = ["python", "server.py"] or url = "http://127.0.0.1:8000/mcp".',),
            )
        if self.command:
            from evalmeta.engine.subjects.command import ProcessPool
            from evalmeta.systems.mcp.stdio import ServerProcess

            return _Tools(_Programs(ProcessPool(ServerProcess, self.command, root, self.environment)), self)
        from evalmeta.engine.http_endpoint import Endpoint

        headers, secrets, credential = fill_headers(self.headers, api_key_env=self.api_key_env)
        return _Tools(_Sessions(Endpoint(self.url, headers=headers, secrets=secrets, credential=credential)), self)

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables in headers, too."""
        return (*super().key_variables(), *header_variables(self.headers))

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the address, or the program with its arguments, which may be files."""
        if self.url:
            return f"mcp {address_in_words(self.url)}", []
        words = [path_in_words(word, root) for word in self.command]
        return f"mcp {shlex.join(words)}", [root / word for word in self.command]


class _Source(Protocol):
    """Where connections come from: each session has one of its own."""

    async def acquire(self) -> _Opened: ...

    async def close(self) -> None: ...


class _Opened:
    """The client of a connection, and what ends it, or keeps it for another session."""

    def __init__(self, client: Client, release: Callable[[], Awaitable[None]]) -> None:
        self.client = client
        self.release = release


class _Programs:
    """Programs, each of which is used again by later sessions."""

    def __init__(self, pool: ProcessPool[ServerProcess]) -> None:
        self._pool = pool

    async def acquire(self) -> _Opened:
        process = await self._pool.acquire()
        if process.client is None:
            client = Client(process)
            try:
                await client.start()
            except BaseException:
                process.kill()
                await self._pool.release(process)
                raise
            process.client = client
        return _Opened(process.client, lambda: self._pool.release(process))

    async def close(self) -> None:
        await self._pool.close()


class _Sessions:
    """Sessions with a server over HTTP."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def acquire(self) -> _Opened:
        connection = HttpConnection(self._endpoint)
        client = Client(connection)
        try:
            await client.start()
        except EvalmetaError:
            await connection.end()
            raise
        return _Opened(client, connection.end)

    async def close(self) -> None:
        await self._endpoint.close()


class _Tools:
    """The tools of a server, which are listed once."""

    def __init__(self, source: _Source, settings: McpSubject) -> None:
        self._source = source
        self._checks = settings.check_calls
        self._listing = asyncio.Lock()
        self._tools: dict[str, ListedTool] | None = None

    async def open(self, case: Case) -> Session:
        """Start a session, after a check of all calls of the case."""
        calls = [call_of_turn(turn) for turn in case.turns]
        opened = await self._source.acquire()
        try:
            tools = await self._list(opened.client) if self._checks else {}
            if self._checks:
                for call in calls:
                    check_call(call, tools)
        except BaseException:
            await opened.release()
            raise
        return _Session(opened, tools)

    async def describe(self) -> Description:
        """Return the names of the tools, and calls of those that only read, or of all if the server does not say."""
        tools = await self._listed()
        reading = [tool for tool in tools.values() if tool.only_reads] or [*tools.values()]
        return Description(tools_in_words(tools), tuple(map(example_of, reading[:_SHOWN_TESTS])))

    async def inventory(self) -> Inventory:
        """Return the tools as actions."""
        listed = (await self._listed()).values()
        return inventory_of([Member("", tuple(Tool(tool.name, tool.description) for tool in listed))])

    async def _listed(self) -> dict[str, ListedTool]:
        opened = await self._source.acquire()
        try:
            return await self._list(opened.client)
        finally:
            await opened.release()
            await self.close()

    async def close(self) -> None:
        await self._source.close()

    async def _list(self, client: Client) -> dict[str, ListedTool]:
        async with self._listing:
            if self._tools is None:
                self._tools = await client.list_tools()
        return self._tools


class _Session:
    """The calls of one case."""

    def __init__(self, opened: _Opened, tools: Mapping[str, ListedTool]) -> None:
        self._opened = opened
        self._tools = tools
        # A tool that was called, and must not be called twice.
        self._changed_by = ""

    async def ask(self, utterance: str) -> GeneratedData:
        """Call the tool that the JSON of a text names."""
        return await self.ask_value(utterance)

    async def ask_value(self, inputs: JsonValue) -> GeneratedData:
        """Call a tool, and return its result."""
        call = call_of(inputs)
        tool = self._tools.get(call.tool)
        changes = "" if tool and tool.is_repeatable else call.tool
        begun = time.perf_counter()
        try:
            reply = await self._opened.client.exchange("tools/call", {"name": call.tool, "arguments": call.arguments})
        except SubjectUnreachable as error:
            if changed_by := self._changed_by or ("" if error.is_unprocessed else changes):
                why = f"{changed_by} may have been carried out, and {_REPEATED}"
                raise SubjectUnreachable(f"{error}; the case is not retried: {why}", is_retried=False) from None
            raise
        self._changed_by = self._changed_by or changes
        return read_result(call, reply, latency_ms=round((time.perf_counter() - begun) * 1000, 1))

    async def close(self) -> None:
        await self._opened.release()
