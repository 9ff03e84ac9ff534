"""HTTP endpoints that accept and return JSON: agents and language models."""

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
from evalmeta.engine.trace_context import TURN
from evalmeta.errors import (
    SettingsError,
    SubjectBusy,
    SubjectError,
    SubjectRefused,
    SubjectUnavailable,
    SubjectUnreachable,
)
from evalmeta.model.json_value import JsonValue, is_too_deep, read_json
from evalmeta.model.redaction import redacted, redacted_bytes
from evalmeta.protocol.http import error_reason, failure_of_error, failure_of_status, redacted_logs, retry_after
from evalmeta.protocol.json_fields import host_of, is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.engine.server_events import Assembly


_Method: TypeAlias = Literal["DELETE", "GET", "POST", "PUT"]
# OpenAI's error code for an account without credit: its status is 429, but a retry never helps.
_NO_CREDIT: Final = "insufficient_quota"
_HINTS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "; check {credential}, and the url",
    HTTPStatus.FORBIDDEN: "; check {credential}, its permissions, and the url",
    HTTPStatus.NOT_FOUND: "; check the url",
    HTTPStatus.METHOD_NOT_ALLOWED: "; check the url and the method in evalmeta.toml",
}
_NO_KEY_HINT: Final = (
    "; the request has no key: name its variable in evalmeta.toml or with --api-key-env, or check the url"
)
# OpenAI, vLLM and Ollama answer so if they do not have the model.
_NO_MODEL: Final = re.compile(r"\bmodel\b", re.IGNORECASE)
_NO_MODEL_HINT: Final = "; check the model"
_KEY_STATUSES: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_MESSAGE_KEYS: Final = ("message", "detail", "title", "error_description")
_EXCERPT_CHARS: Final = 300
_MAX_PORT: Final = 65_535
# RFC 1035, 2.3.4.
_LABEL_CHARS: Final = 63
_TAGS: Final = re.compile(r"(?is)<(script|style)\b.*?</\1>|<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer: its status, its JSON without known secrets, and its headers.

    The value is None if the status is 204, or if the answer is empty and may be so.
    """

    status: int
    value: JsonValue = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


def _url_fault(url: str) -> str:
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL as error:
        return str(error)
    if parts.scheme not in {"http", "https"} or not parts.host:
        return "it does not begin with http:// or https:// and a host"
    if parts.port is not None and not 0 < parts.port <= _MAX_PORT:
        return f"{parts.port} is not a valid port"
    labels = parts.raw_host.removesuffix(b".").split(b".")
    if not all(0 < len(label) <= _LABEL_CHARS for label in labels):
        return "its host is not a valid name"
    return "it contains a user or a password; send them in headers" if parts.userinfo else ""


class Endpoint:
    """One address that many sessions send requests to at the same time; it keeps no cookies.

    Only connecting has a time limit: the case limits everything else. The query of the URL is kept. `secrets` are in
    the headers; they are never shown, even if the endpoint repeats them. `credential` says in errors where the key is
    from: the variable, or the login. `busy_statuses` also mean that the endpoint is busy. `transport` replaces the
    network. Raises SettingsError if the URL is not valid, or would send secrets over plain http to another machine.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
        credential: str = "the key",
        busy_statuses: frozenset[int] = frozenset(),
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if fault := _url_fault(url):
            raise SettingsError(
                f"the url of an endpoint is not valid: {redacted(fault)}",
                actions=(
                    "Write it in evalmeta.toml like https://agents.example.com/chat or http://127.0.0.1:8080/chat.",
                ),
            )
        parts = urlsplit(url)
        self._start, self._query = f"{parts.scheme}://{parts.netloc}{parts.path}", parts.query
        self._headers = {"Accept": "application/json", "Content-Type": "application/json", **(headers or {})}
        self._secrets = tuple(secrets)
        self._credential = credential
        self._busy_statuses = busy_statuses
        self._transport = transport
        self._opened: httpx.AsyncClient | None = None
        self._check_encrypted(self._secrets)

    async def send(
        self,
        body: JsonValue,
        path: str = "",
        *,
        method: _Method = "POST",
        headers: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
        assembly: Assembly | None = None,
        may_be_empty: bool = False,
    ) -> Reply:
        """Send one request, with or without a JSON body, and return its JSON answer.

        `path` is appended to the URL; `headers` are sent in addition to the endpoint's, and `secrets` are in them.
        `assembly` makes the answer of a stream's events, if the endpoint sends a stream and not JSON. With
        `may_be_empty`, an answer without a body is None.
        SubjectBusy means that the endpoint has not processed the request (`protocol.http`), SubjectUnreachable is
        another transient error, and SubjectError any other one.
        """
        self._check_encrypted(secrets := tuple(secrets))
        address = self._start.rstrip("/") + path if path else self._start
        try:
            content = None if body is None else orjson.dumps(body)
        except orjson.JSONEncodeError as error:
            raise SubjectError(f"the request cannot be written as JSON: {error}") from None
        url = f"{address}?{self._query}" if self._query else address
        sent = (*self._secrets, *secrets)
        spellings = _spellings(sent)
        try:
            with redacted_logs():
                async with self._client().stream(
                    method, url, content=content, headers=_with_trace(headers)
                ) as response:
                    if assembly and _is_stream(response):
                        from evalmeta.engine.server_events import assemble

                        value = await assemble(
                            *(address, response.aiter_bytes(), assembly),
                            redact=lambda data: redacted_bytes(data, spellings),
                        )
                        return Reply(response.status_code, value, response.headers)
                    received = bytearray()
                    async for piece in response.aiter_bytes():
                        received += piece
                        if len(received) > limits.MAX_ENDPOINT_BYTES:
                            break
        except httpx.HTTPError as error:
            text = f"{address} does not answer: {error_reason(error)}"
            failure = failure_of_error(error)
            if not failure.is_transient:
                raise SubjectError(f"{text}; check the url") from None
            hint = "; is it running?" if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else ""
            raise SubjectUnreachable(text + hint, is_unprocessed=failure.is_unprocessed) from None
        answer = redacted_bytes(bytes(received), spellings)
        if not response.is_success:
            raise _refusal(address, response, answer, self._busy_statuses, self._credential if any(sent) else "")
        if response.status_code == HTTPStatus.NO_CONTENT or (may_be_empty and not answer.strip()):
            return Reply(response.status_code, None, response.headers)
        if len(answer) > limits.MAX_ENDPOINT_BYTES:
            raise SubjectError(f"{address} answered with more than {limits.MAX_ENDPOINT_BYTES:,} bytes")
        return Reply(response.status_code, _decoded(address, answer), response.headers)

    def _check_encrypted(self, secrets: Iterable[str]) -> None:
        if any(secrets) and self._start.startswith("http:") and not is_loopback(host := host_of(self._start)):
            raise SettingsError(
                f"http://{host} cannot be used with a key: it would be sent unencrypted",
                actions=("Use https in evalmeta.toml; http is for this machine only (127.0.0.1, ::1, localhost).",),
            )

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.aclose()

    def _client(self) -> httpx.AsyncClient:
        # Connections belong to the running event loop. Every worker of a run may need one.
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


def _with_trace(headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
    turn = TURN.get()
    return {**(headers or {}), "traceparent": turn.traceparent} if turn else headers


def _is_stream(response: httpx.Response) -> bool:
    return response.is_success and "event-stream" in response.headers.get("content-type", "").lower()


def _decoded(address: str, answer: bytes) -> JsonValue:
    # RFC 8259, 8.1: parsers may ignore a byte order mark.
    answer = answer.removeprefix(codecs.BOM_UTF8)
    if not answer.strip():
        raise SubjectError(f"{address} returned an empty answer; expected JSON")
    try:
        value = read_json(answer)
    except orjson.JSONDecodeError as error:
        raise SubjectError(f"the answer of {address} is not valid JSON ({error}): {_excerpt(answer)}") from None
    if is_too_deep(value):
        raise SubjectError(f"the answer of {address} is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    return value


def _spellings(secrets: Iterable[str]) -> set[str]:
    """Return secrets as they are, and as JSON may write them."""
    plain = set(secrets)
    escaped = {json.dumps(secret)[1:-1] for secret in plain}
    return plain | escaped | {text.replace("/", "\\/") for text in escaped}


def _refusal(
    address: str, response: httpx.Response, answer: bytes, busy_statuses: frozenset[int], credential: str
) -> SubjectError:
    status = response.status_code
    if response.next_request is not None:
        url = response.next_request.url
        origin = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
        return SubjectError(f"{address} redirects to {origin}; nothing was sent there")
    message, code = _error_of(answer)
    hint = _NO_KEY_HINT if status in _KEY_STATUSES and not credential else _HINTS.get(status, "")
    if status == HTTPStatus.NOT_FOUND and _NO_MODEL.search(message):
        hint = _NO_MODEL_HINT
    hint = hint.replace("{credential}", credential)
    text = f"{address} answered with status {status}{message and f': {message}'}{hint}"
    failure = failure_of_status(status)
    if (failure.is_transient and failure.is_unprocessed and code != _NO_CREDIT) or status in busy_statuses:
        kind = SubjectUnavailable if status == HTTPStatus.SERVICE_UNAVAILABLE else SubjectBusy
        return kind(text, after=retry_after(response.headers))
    if failure.is_transient and not failure.is_unprocessed:
        return SubjectUnreachable(text)
    return SubjectRefused(text, status=status)


def _error_of(answer: bytes) -> tuple[str, str]:
    """Return the message and the code of an error, empty if they are unknown."""
    try:
        value: JsonValue = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return _excerpt(answer), ""
    error = value.get("error", value) if isinstance(value, dict) else value
    # The Agent API, like everything made with Spring, has a name there and the message beside it.
    if isinstance(error, str) and isinstance(value, dict) and isinstance(value.get("message"), str):
        error = value
    if isinstance(error, str):
        return _excerpt(error.encode()), ""
    if not isinstance(error, dict):
        return _excerpt(answer), ""
    messages = [text for key in _MESSAGE_KEYS if isinstance(text := error.get(key), str)]
    return _excerpt(messages[0].encode() if messages else answer), str(error.get("code"))


def _excerpt(answer: bytes) -> str:
    """Return the beginning of a body, without markup and without anything that looks like a secret."""
    beginning = answer[: 20 * _EXCERPT_CHARS].decode(errors="replace")
    text = redacted(" ".join(_TAGS.sub(" ", beginning).split()))
    return text if len(text) <= _EXCERPT_CHARS else f"{text[: _EXCERPT_CHARS - 1]}…"
