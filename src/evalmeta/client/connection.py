"""A connection to an org: where it is, as whom, and how requests and errors travel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

import httpx
import orjson

from evalmeta import limits
from evalmeta.errors import (
    MessageUnreadable,
    NotFound,
    OrgFault,
    OrgUnreachable,
    SettingsError,
    StoreError,
    SubjectNotBound,
    UsageError,
)
from evalmeta.wire.jsonfields import read_object, text
from evalmeta.wire.soap import read_results, write_call

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from evalmeta.errors import EvalmetaError
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.registry import ApiVersion
    from evalmeta.xmlio.writer import Node

__all__ = ["Connection"]

_T = TypeVar("_T")
_CLIENT: Final = "evalmeta"
_HTTP_ERROR: Final = 400
_TOKEN: Final = re.compile(r"[!-~]+")


class Connection:
    """An open connection; use it as an async context manager.

    Args:
        url: the org's address, such as `https://example.my.salesforce.com`.
        token: the session's access token; it appears in no message and no repr.
        api_version: the version that requests are made with.
        transport: how requests travel; None is the network, an `httpx.ASGITransport`
            reaches an org in this process.
        poll_seconds: how long to wait between two questions about a job.

    Raises:
        UsageError: the address or the token cannot be one.
    """

    def __init__(
        self,
        *,
        url: str,
        token: str,
        api_version: ApiVersion,
        transport: httpx.AsyncBaseTransport | None = None,
        poll_seconds: float = 1.0,
    ) -> None:
        self.url = url
        self.api_version = api_version
        self.poll_seconds = poll_seconds
        self._token = _checked(token)
        try:
            self._http = httpx.AsyncClient(base_url=url, transport=transport, timeout=limits.HTTP_TIMEOUT_SECONDS)
        except httpx.InvalidURL as error:
            raise UsageError(f"{url!r} is no address of an org: {error}") from None

    def __repr__(self) -> str:
        """Gives the address without the token."""
        return f"Connection({self.url!r}, api_version={str(self.api_version)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def call(self, operation: Node, result: type[_T]) -> list[_T]:
        """Makes a Metadata API call and gives its results.

        Raises:
            OrgFault: the org says no.
            OrgUnreachable: it says nothing.
            MessageUnreadable: it says what no org says.
            StoreError: its database cannot be used.
        """
        body = write_call(operation, session=self._token, client=_CLIENT)
        headers = {"Content-Type": "text/xml; charset=UTF-8", "SOAPAction": '""'}
        path = f"/services/Soap/m/{self.api_version}"
        status, content = await self._send("POST", path, content=body, headers=headers)
        try:
            return read_results(result, content)
        except OrgFault as fault:
            raise _named(fault) from None
        except MessageUnreadable as error:
            raise self._unreadable(status, str(error)) from None

    async def call_for_one(self, operation: Node, result: type[_T]) -> _T:
        """Makes a Metadata API call that has one result, and gives it; raises like `call`."""
        results = await self.call(operation, result)
        if len(results) != 1:
            raise MessageUnreadable(f"{self.url} answered {operation.name} with {len(results)} results; one is due")
        return results[0]

    async def get(self, path: str) -> JsonObject:
        """Gets a JSON object from `/services/data/vNN.0` + path; raises like `call`."""
        return await self._json("GET", path, None)

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """Posts a JSON object to `/services/data/vNN.0` + path; raises like `call`."""
        return await self._json("POST", path, orjson.dumps(body))

    async def _json(self, method: str, path: str, content: bytes | None) -> JsonObject:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        url = f"/services/data/v{self.api_version}{path}"
        status, reply = await self._send(method, url, content=content, headers=headers)
        if status >= _HTTP_ERROR:
            raise _rest_error(reply) or self._unreadable(status, "it holds no Salesforce error")
        try:
            return read_object(reply)
        except MessageUnreadable as error:
            raise self._unreadable(status, str(error)) from None

    def _unreadable(self, status: int, reason: str) -> MessageUnreadable:
        return MessageUnreadable(
            f"{self.url} answered with status {status}, and not as an org does: {reason}",
            actions=["Check the org's address, and that no proxy answers in its place."],
        )

    async def _send(
        self, method: str, path: str, *, content: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        try:
            async with self._http.stream(method, path, content=content, headers=headers) as response:
                return response.status_code, await _read_limited(response)
        except httpx.HTTPError as error:
            raise OrgUnreachable(
                f"{self.url} does not answer: {str(error) or type(error).__name__}",
                actions=["Check that the org is up and reachable."],
            ) from None


def _checked(token: str) -> str:
    """Refuses a token that no header can carry, before a library says so and shows it."""
    if not _TOKEN.fullmatch(token):
        raise UsageError("the access token is empty, or has blanks or characters that no token has")
    return token


async def _read_limited(response: httpx.Response) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > limits.MAX_REPLY_BYTES:
            raise MessageUnreadable(f"the org's answer has more than {limits.MAX_REPLY_BYTES:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _rest_error(reply: bytes) -> EvalmetaError | None:
    try:
        errors = orjson.loads(reply)
    except orjson.JSONDecodeError:
        return None
    if not (isinstance(errors, list) and errors and isinstance(errors[0], dict)):
        return None
    code, message = text(errors[0], "errorCode"), text(errors[0], "message")
    head, _, action = message.partition("\n")
    return _named(OrgFault(f"{code}: {head}", code=code, actions=[action] if action else []))


def _named(fault: OrgFault) -> EvalmetaError:
    """Gives the error that stands for a fault's code; the fault itself when none does."""
    head = str(fault).removeprefix(f"{fault.code}: ")
    match fault.code:
        case "SUBJECT_NOT_BOUND":
            return SubjectNotBound(head, actions=fault.actions)
        case "INVALID_SUBJECT":
            return SettingsError(head, actions=fault.actions)
        case "SERVER_UNAVAILABLE":
            return StoreError(head, actions=fault.actions)
        case "NOT_FOUND" | "INVALID_INPUT":
            return NotFound(head, actions=fault.actions)
        case _:
            return fault
