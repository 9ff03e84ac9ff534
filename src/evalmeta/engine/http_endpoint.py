"""HTTP endpoints that take and give JSON: agents and models, asked by the engine."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import httpx
import orjson

from evalmeta import limits
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectRefused, SubjectUnreachable
from evalmeta.model.json_value import is_too_deep
from evalmeta.model.redaction import redacted, redacted_bytes
from evalmeta.protocol.http_logging import discreetly, reason_of
from evalmeta.protocol.json_fields import host_of, is_loopback
from evalmeta.protocol.transient_errors import failure_of_error, failure_of_status, retry_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.model.json_value import JsonValue


_Method: TypeAlias = Literal["DELETE", "GET", "POST", "PUT"]

# OpenAI's error code for an account without credit: its status is 429, but a retry never helps.
_NO_CREDIT: Final = "insufficient_quota"
_HINTS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "; check the key that evalmeta.toml names",
    HTTPStatus.FORBIDDEN: "; check the key that evalmeta.toml names, and what it may do",
    HTTPStatus.NOT_FOUND: "; check the url in evalmeta.toml",
    HTTPStatus.METHOD_NOT_ALLOWED: "; check the url and the method in evalmeta.toml",
}
_COMPLAINTS: Final = ("message", "detail", "title", "error_description")
_WORDS_CHARS: Final = 300
_LAST_PORT: Final = 65_535
_LABEL_CHARS: Final = 63
_TAGS: Final = re.compile(r"(?is)<(script|style)\b.*?</\1>|<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer: its status and its JSON, None when the status is 204; known secrets are not in it."""

    status: int
    value: JsonValue = field(repr=False)


def open_endpoint(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    transport: httpx.AsyncBaseTransport | None = None,
) -> Endpoint:
    """Makes an endpoint of a URL; nothing is sent yet.

    Args:
        url: http or https, where requests go; its query is kept.
        headers: are sent with every request.
        secrets: what of the headers must show up nowhere, even if the endpoint repeats it.
        transport: what carries requests instead of the network.

    Raises:
        SettingsError: the URL is none, or would carry secrets over plain http to another machine.
    """
    _check(url)
    endpoint = Endpoint(url, headers=headers or {}, secrets=tuple(secrets), transport=transport)
    endpoint.refuse_to_expose(secrets)
    return endpoint


class Endpoint:
    """One address that is asked; it may be used by many sessions at the same time, and keeps no cookies of theirs.

    It has no deadline but the one for connecting: the case's own decides.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        secrets: tuple[str, ...],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        parts = urlsplit(url)
        self._start, self._query = f"{parts.scheme}://{parts.netloc}{parts.path}", parts.query
        self._headers = {"Accept": "application/json", "Content-Type": "application/json", **headers}
        self._secrets = secrets
        self._transport = transport
        self._opened: httpx.AsyncClient | None = None

    async def send(
        self,
        body: JsonValue,
        path: str = "",
        *,
        method: _Method = "POST",
        headers: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
    ) -> Reply:
        """Sends one request and gives its JSON answer.

        `path` is appended to the URL; None as a body sends none. `headers` and
        `secrets` go for this request, besides those of the endpoint.

        Raises:
            SubjectBusy: it says to come later (420, 429, 503, 529), and has done nothing.
            SubjectUnreachable: it cannot be reached now: no connection, half an answer, 408, 502, 504.
            SubjectError: any other status than 2xx, a redirect, no JSON, or too much of it.
            SettingsError: a secret would go over plain http to another machine.
        """
        self.refuse_to_expose(secrets := tuple(secrets))
        place = self._start.rstrip("/") + path if path else self._start
        content = None if body is None else _written(body)
        url = f"{place}?{self._query}" if self._query else place
        try:
            with discreetly():
                async with self._client().stream(method, url, content=content, headers=headers) as response:
                    said = await _beginning(response)
        except httpx.HTTPError as error:
            raise _no_answer(place, error) from None
        return _read(place, response, redacted_bytes(said, _spellings((*self._secrets, *secrets))))

    def refuse_to_expose(self, secrets: Iterable[str]) -> None:
        """Sees to it that secrets travel encrypted, or not beyond this machine.

        Raises:
            SettingsError: they would not.
        """
        if any(secrets) and self._start.startswith("http:") and not is_loopback(host := host_of(self._start)):
            raise SettingsError(
                f"http://{host} is refused: a key would travel there in clear",
                actions=("Use https in evalmeta.toml; http is for this machine only (127.0.0.1, ::1, localhost).",),
            )

    async def close(self) -> None:
        """Closes its connections."""
        if self._opened is not None:
            await self._opened.aclose()

    def _client(self) -> httpx.AsyncClient:
        # Connections belong to the loop that runs now, and there may be one for each worker of the run.
        if self._opened is None:
            self._opened = httpx.AsyncClient(
                headers=self._headers,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                transport=self._transport,
                timeout=httpx.Timeout(None, connect=limits.CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=limits.MAX_CONCURRENCY),
                trust_env=not is_loopback(host_of(self._start)),
            )
        return self._opened


def _check(url: str) -> None:
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise _no_url(f"it is none ({error})") from None
    if parts.scheme not in {"http", "https"} or not parts.host:
        raise _no_url("it has no http:// or https:// and a host")
    if parts.port is not None and not 0 < parts.port <= _LAST_PORT:
        raise _no_url(f"there is no port {parts.port}")
    if not _is_name(parts.raw_host):
        raise _no_url("its host is no name that a network has")
    if parts.userinfo:
        raise _no_url("it has a user or a password in it: they belong into headers")


def _is_name(host: bytes) -> bool:
    """Tells whether a name can be looked up: labels of 1 to 63 characters (RFC 1035, 2.3.4)."""
    return all(0 < len(label) <= _LABEL_CHARS for label in host.removesuffix(b".").split(b"."))


def _no_url(reason: str) -> SettingsError:
    return SettingsError(
        f"the url of an endpoint cannot be used: {redacted(reason)}",
        actions=("Write it in evalmeta.toml like https://agents.example.com/chat or http://127.0.0.1:8080/chat.",),
    )


def _written(body: JsonValue) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise SubjectError(f"the question cannot be written as JSON: {error}") from None


def _spellings(secrets: Iterable[str]) -> set[str]:
    """Gives secrets as they are and as JSON may write them."""
    plain = set(secrets)
    escaped = {json.dumps(secret)[1:-1] for secret in plain}
    return plain | escaped | {each.replace("/", "\\/") for each in escaped}


async def _beginning(response: httpx.Response) -> bytes:
    """Reads a body until it has more than may be kept."""
    said = bytearray()
    async for piece in response.aiter_bytes():
        said += piece
        if len(said) > limits.MAX_ENDPOINT_BYTES:
            break
    return bytes(said)


def _no_answer(place: str, error: httpx.HTTPError) -> SubjectError:
    said = f"{place} gives no answer: {reason_of(error)}"
    if not failure_of_error(error).is_transient:
        return SubjectError(f"{said}; check the url in evalmeta.toml")
    hint = "; is it running?" if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else ""
    return SubjectUnreachable(said + hint)


def _read(place: str, response: httpx.Response, said: bytes) -> Reply:
    if not response.is_success:
        raise _refusal(place, response, said)
    if response.status_code == HTTPStatus.NO_CONTENT:
        return Reply(response.status_code, None)
    if len(said) > limits.MAX_ENDPOINT_BYTES:
        raise SubjectError(f"{place} answered with more than {limits.MAX_ENDPOINT_BYTES:,} bytes")
    return Reply(response.status_code, _value(place, said))


def _value(place: str, said: bytes) -> JsonValue:
    # RFC 8259, 8.1: who reads JSON may ignore a byte order mark.
    said = said.removeprefix(codecs.BOM_UTF8)
    if not said.strip():
        raise SubjectError(f"{place} answered with nothing; expected JSON")
    try:
        value: JsonValue = orjson.loads(said)
    except orjson.JSONDecodeError as error:
        raise SubjectError(f"{place} answered with no JSON ({error}): {_shown(said)}") from None
    if is_too_deep(value):
        raise SubjectError(f"{place} answered with JSON of more than {limits.MAX_JSON_DEPTH} levels")
    return value


def _refusal(place: str, response: httpx.Response, said: bytes) -> SubjectError:
    status = response.status_code
    if response.next_request is not None:
        return SubjectError(f"{place} leads to {_origin(response.next_request.url)}; nothing was sent there")
    complaint, code = _complaint(said)
    text = f"{place} answered with status {status}{complaint and f': {complaint}'}{_HINTS.get(status, '')}"
    failure = failure_of_status(status)
    if not failure.is_transient or code == _NO_CREDIT:
        return SubjectRefused(text, status=status)
    if not failure.is_unprocessed:
        return SubjectUnreachable(text)
    return SubjectBusy(text, after=retry_after(response.headers))


def _origin(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def _complaint(said: bytes) -> tuple[str, str]:
    """Gives what an endpoint says of an error, and its code for it, as far as it says so."""
    try:
        value: JsonValue = orjson.loads(said)
    except orjson.JSONDecodeError:
        return _shown(said), ""
    error = value.get("error", value) if isinstance(value, dict) else value
    # The Agent API, and whatever is made with Spring, has a name there and its words beside it.
    if isinstance(error, str) and isinstance(value, dict) and isinstance(value.get("message"), str):
        error = value
    if isinstance(error, str):
        return _shown(error.encode()), ""
    if not isinstance(error, dict):
        return _shown(said), ""
    words = [text for key in _COMPLAINTS if isinstance(text := error.get(key), str)]
    return _shown(words[0].encode() if words else said), str(error.get("code"))


def _shown(said: bytes) -> str:
    """Gives the first words of a body, without markup and what has the shape of a secret."""
    text = redacted(" ".join(_TAGS.sub(" ", said[: 20 * _WORDS_CHARS].decode(errors="replace")).split()))
    return text if len(text) <= _WORDS_CHARS else f"{text[: _WORDS_CHARS - 1]}…"
