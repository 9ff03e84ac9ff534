"""A connection to an org: its address, session, requests and errors."""

from __future__ import annotations

import shlex
from asyncio import Lock, timeout
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self, TypeVar

import httpx
import orjson

from evalmeta import limits
from evalmeta.client import http
from evalmeta.errors import (
    MessageUnreadable,
    NotFound,
    OrgFault,
    SettingsError,
    StoreError,
    SubjectNotBound,
    Suggestion,
)
from evalmeta.model.redaction import redacted_bytes
from evalmeta.protocol.http import failure_of_status, redacted_logs, retry_after
from evalmeta.protocol.json_fields import org_url, read_object, text
from evalmeta.protocol.oauth import is_evalmeta, read_newest_version
from evalmeta.protocol.soap import read_results, read_text_result, write_call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from evalmeta.errors import EvalmetaError
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.registry import ApiVersion
    from evalmeta.xmlio.writer import Node


_T = TypeVar("_T")
_CLIENT: Final = "evalmeta"
_HTTP_ERROR: Final = 400
_SESSION_ENDED: Final = "INVALID_SESSION_ID"


class Connection:
    """An open connection; use it as an async context manager.

    Args:
        url: the org's address, such as `https://example.my.salesforce.com`.
        token: the session's access token; no message and no repr contains it.
        api_version: the API version of requests.
        transport: how requests are sent; None for the network, an `httpx.ASGITransport`
            for an org in this process.
        poll_seconds: the seconds between the first two status requests of a job; all other
            pauses are multiples of it.
        renew: returns a new access token; called once when the org says that the session has ended.
        is_ours: whether the org is one of evalmeta's own, which support more than Salesforce
            documents; `newest_version` sets it.

    Raises:
        UsageError: the address or the token is not valid, or the address is http on another machine.
    """

    def __init__(
        self,
        *,
        url: str,
        token: str,
        api_version: ApiVersion,
        transport: httpx.AsyncBaseTransport | None = None,
        poll_seconds: float = 1.0,
        renew: Callable[[], Awaitable[str]] | None = None,
        is_ours: bool = False,
    ) -> None:
        self.url = org_url(url) if transport is None else url
        self.api_version = api_version
        self.poll_seconds = poll_seconds
        self.is_ours = is_ours
        self._token = _checked(token)
        self._renew = renew
        self._renewing = Lock()
        self._http = http.open_http(self.url, transport=transport)

    def __repr__(self) -> str:
        """Return the address without the token."""
        return f"Connection({self.url!r}, api_version={str(self.api_version)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def call(self, operation: Node, result: type[_T]) -> list[_T]:
        """Make a Metadata API call and return its results.

        Raises:
            OrgFault: the org refuses the call.
            OrgBusy: the org asks to retry later.
            OrgUnreachable: the org does not answer.
            MessageUnreadable: the reply is not valid.
            StoreError: the org's database cannot be used.
        """
        return await self._in_session(lambda: self._call(operation, lambda reply: read_results(result, reply)))

    async def call_for_text(self, operation: Node) -> str:
        """Make a Metadata API call whose result is a text, and return it; raise like `call`."""
        return await self._in_session(lambda: self._call(operation, read_text_result))

    async def _call(self, operation: Node, read: Callable[[bytes], _T]) -> _T:
        body = write_call(operation, session=self._token, client=_CLIENT)
        headers = {"Content-Type": "text/xml; charset=UTF-8", "SOAPAction": '""'}
        path = f"/services/Soap/m/{self.api_version}"
        status, content = await self._send("POST", path, content=body, headers=headers)
        try:
            return read(content)
        except OrgFault as fault:
            raise _specific_error(fault) from None
        except MessageUnreadable as error:
            raise self._unreadable(status, str(error)) from None

    async def call_for_one(self, operation: Node, result: type[_T]) -> _T:
        """Make a Metadata API call that has one result, and return it; raise like `call`."""
        results = await self.call(operation, result)
        if len(results) != 1:
            raise MessageUnreadable(f"{self.url} answered {operation.name} with {len(results)} results, not with one")
        return results[0]

    async def get(self, path: str) -> JsonObject:
        """Get a JSON object from `/services/data/vNN.0` + path; raise like `call`."""
        return await self._in_session(lambda: self._json("GET", path, None))

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """Post a JSON object to `/services/data/vNN.0` + path; raise like `call`."""
        return await self._in_session(lambda: self._json("POST", path, orjson.dumps(body)))

    async def newest_version(self) -> ApiVersion:
        """Return the newest API version of the org, and set `is_ours`; raise like `call`."""
        status, reply = await self.retry(lambda: self._send("GET", "/services/data", content=None, headers={}))
        try:
            self.is_ours = is_evalmeta(reply)
            return read_newest_version(reply)
        except MessageUnreadable as error:
            raise self._unreadable(status, str(error)) from None

    async def retry(self, send: Callable[[], Awaitable[_T]], *, changes: bool = False) -> _T:
        """Send a request, and again after transient errors; see `send_with_retries`."""
        return await http.send_with_retries(send, every=self.poll_seconds, changes=changes)

    async def poll(
        self, check: Callable[[], Awaitable[_T]], is_done: Callable[[_T], bool], *, job_id: str, wait: float | None
    ) -> _T:
        """Check a job until it is done; see `evalmeta.client.http.poll`."""
        return await http.poll(check, is_done, job_id=job_id, wait=wait, every=self.poll_seconds)

    async def _in_session(self, send: Callable[[], Awaitable[_T]]) -> _T:
        token = self._token
        try:
            return await send()
        except OrgFault as fault:
            if fault.code != _SESSION_ENDED or self._renew is None:
                raise
        async with self._renewing:
            if self._token == token:
                self._token = _checked(await self._renew())
        return await send()

    async def _json(self, method: str, path: str, content: bytes | None) -> JsonObject:
        headers = {"Content-Type": "application/json", "Authorization": http.bearer(self._token)}
        url = f"/services/data/v{self.api_version}{path}"
        status, reply = await self._send(method, url, content=content, headers=headers)
        if status >= _HTTP_ERROR:
            raise _rest_error(reply, status) or self._unreadable(status, "it contains no Salesforce error")
        try:
            return read_object(reply)
        except MessageUnreadable as error:
            raise self._unreadable(status, str(error)) from None

    def _unreadable(self, status: int, reason: str) -> MessageUnreadable:
        return MessageUnreadable(
            f"{self.url} answered with status {status}, but the reply is not from an org: {reason}",
            actions=["Check the org's address, and that no proxy answers instead of the org."],
        )

    async def _send(
        self, method: str, path: str, *, content: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        token = self._token
        try:
            with redacted_logs():
                async with (
                    timeout(limits.REQUEST_SECONDS),
                    self._http.stream(method, path, content=content, headers=headers) as response,
                ):
                    if target := http.redirect_target(response):
                        reason = f"it redirects to {target}; nothing was sent there"
                        raise self._unreadable(response.status_code, reason)
                    status, reply = response.status_code, await http.read_limited(response, limits.MAX_REPLY_BYTES)
        except (httpx.HTTPError, TimeoutError) as error:
            raise http.unreachable_error(self.url, error) from None
        # Replies need not contain the session's token, but some error messages repeat it.
        reply = redacted_bytes(reply, [token])
        if failure_of_status(status).is_transient:
            raise http.busy_error(self.url, status, _error_text(reply), after=retry_after(response.headers))
        return status, reply


def _checked(token: str) -> str:
    http.bearer(token)
    return token


def _rest_error(reply: bytes, status: int = 0) -> EvalmetaError | None:
    try:
        errors = orjson.loads(reply)
    except orjson.JSONDecodeError:
        return None
    if not (isinstance(errors, list) and errors and isinstance(errors[0], dict)):
        return None
    code, message = text(errors[0], "errorCode"), text(errors[0], "message")
    head, _, action = message.partition("\n")
    return _specific_error(OrgFault(f"{code}: {head}", code=code, status=status, actions=_suggested(action)))


def _suggested(action: str) -> list[str]:
    """Return the action of an org's error; a command in it is a `Suggestion` again."""
    purpose, separator, command = action.partition(": evalmeta ")
    if separator and "\n" not in command:
        with suppress(ValueError):
            return [Suggestion(purpose, *shlex.split(command))]
    return [action] if action else []


def _error_text(reply: bytes) -> str:
    """Return the text of an org's REST or SOAP error; empty if the reply is not from an org."""
    try:
        return str(_rest_error(reply) or read_text_result(reply))
    except (OrgFault, MessageUnreadable) as error:
        return str(error) if isinstance(error, OrgFault) else ""


def _specific_error(fault: OrgFault) -> EvalmetaError:
    """Return the error class for a fault's code, or else the fault itself."""
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
