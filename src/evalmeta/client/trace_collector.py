"""Sending traces to a collector: OTLP/HTTP with protobuf (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP")."""

from __future__ import annotations

import os
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import httpx

from evalmeta import limits
from evalmeta.client.http import trusted_certificates
from evalmeta.errors import CollectorError, UsageError
from evalmeta.model.redaction import redacted_bytes
from evalmeta.protocol.http import error_reason, failure_of_error, redacted_logs, retry_after, retry_pause
from evalmeta.protocol.json_fields import host_of, is_loopback
from evalmeta.traces.requests import read_reply, read_signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.traces.requests import Rejection

_HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
# RFC 9110, 5.6.2.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PATHS: Final = {"traces": "/v1/traces", "logs": "/v1/logs"}
# OTLP/HTTP, "Failures": all other errors are final.
_RETRIED: Final = frozenset({
    HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT,
})  # fmt: skip
_ADVICE: Final = {
    HTTPStatus.UNAUTHORIZED: f"Set {_HEADERS} to the header that the collector expects, as name=value.",
    HTTPStatus.FORBIDDEN: f"Check the key in {_HEADERS}.",
    HTTPStatus.NOT_FOUND: "Check the path of the address: evalmeta appends /v1/traces and /v1/logs to it.",
}


class Collector(NamedTuple):
    """A collector, and the headers of requests, which may have secrets."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Collector({self.url!r})"


def open_collector(url: str) -> Collector:
    """Return the collector at an address, with the headers in `OTEL_EXPORTER_OTLP_HEADERS`; nothing is sent.

    Raise UsageError if the address or the headers are not valid, headers would be sent over plain http to another
    machine, or opentelemetry-proto is not installed.
    """
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        raise _not_valid("it is not a URL") from None
    if address.scheme not in {"http", "https"} or not address.host:
        raise _not_valid("it does not begin with http:// or https:// and a host")
    if address.userinfo or address.query or address.fragment:
        raise _not_valid(f"it has a user or a query; send secrets in {_HEADERS}")
    headers = _headers()
    if headers and address.scheme == "http" and not is_loopback(address.host):
        raise UsageError(
            f"{_HEADERS} would be sent to {address.host} without encryption",
            actions=["Use https://, or a collector on this machine."],
        )
    read_signal('{"resourceSpans":[]}')
    return Collector(url.rstrip("/"), headers)


def _not_valid(reason: str) -> UsageError:
    return UsageError(
        f"the address of the collector is not valid: {reason}", actions=["Write it like http://127.0.0.1:4318."]
    )


def _headers() -> dict[str, str]:
    """Return the headers of the environment: `name=value` pairs with commas between them, percent-encoded."""
    headers = {}
    for pair in filter(str.strip, os.environ.get(_HEADERS, "").split(",")):
        name, sign, value = (unquote(part).strip() for part in pair.partition("="))
        if not (sign and _NAME.fullmatch(name) and value.isascii() and value.isprintable()):
            # The value may be a secret.
            raise UsageError(f"{_HEADERS} is not valid", actions=["Write it like name=value,other=value."])
        headers[name] = value
    return headers


def send(collector: Collector, lines: Iterable[str]) -> None:
    """Send the requests of `request_lines` one after the other.

    Raise CollectorError if the collector refuses one of them, takes only a part, or cannot be reached within
    `limits.COLLECTOR_SECONDS`; a request that may pass is sent again.
    """
    rejected = []
    timeout = httpx.Timeout(limits.COLLECTOR_REQUEST_SECONDS)
    is_here = is_loopback(host_of(collector.url))
    with httpx.Client(timeout=timeout, trust_env=not is_here, verify=trusted_certificates()) as http, redacted_logs():
        for line in lines:
            signal, body = read_signal(line)
            reply, is_json = _post(http, collector, f"{collector.url}{_PATHS[signal]}", body)
            rejected += [found] if (found := read_reply(signal, reply, is_json=is_json)) else []
    if rejected:
        raise _rejection_error(collector, rejected)


def _rejection_error(collector: Collector, rejected: list[Rejection]) -> CollectorError:
    number = sum(found.number for found in rejected)
    reason = next((found.reason for found in rejected if found.reason), "no reason given")
    secrets = [word for value in collector.headers.values() for word in (value, *value.split())]
    shown = redacted_bytes(reason.encode(), secrets).decode()
    return CollectorError(f"{collector.url} did not take {number:,} spans or events: {shown}")


def _post(http: httpx.Client, collector: Collector, url: str, body: bytes) -> tuple[bytes, bool]:
    """Send a request until the collector takes it, and return its reply, and whether that is JSON."""
    end = time.monotonic() + limits.COLLECTOR_SECONDS
    headers = {**collector.headers, "Content-Type": "application/x-protobuf"}
    attempt = 0
    while True:
        attempt += 1
        try:
            with http.stream("POST", url, content=body, headers=headers) as response:
                kind = response.headers.get("content-type", "")
                if response.is_success and "html" not in kind:
                    return _read(response, end), "json" in kind
                page = " with a web page" if "html" in kind else ""
                reason, pause = f"it answered {response.status_code}{page}", retry_after(response.headers)
                is_retried = response.status_code in _RETRIED
                advice = _ADVICE.get(HTTPStatus(response.status_code)) if _is_known(response.status_code) else None
        except httpx.HTTPError as error:
            reason, pause, advice = error_reason(error), None, "Check the address, and that the collector is up."
            is_retried = failure_of_error(error).is_transient
        pause = retry_pause(attempt) if pause is None else pause
        if not is_retried or time.monotonic() + pause > end:
            tries = f" (tried {attempt} times)" if attempt > 1 else ""
            raise CollectorError(f"{url} did not take the traces: {reason}{tries}", actions=[advice] if advice else [])
        time.sleep(pause)


def _is_known(status: int) -> bool:
    return status in {known.value for known in HTTPStatus}


def _read(response: httpx.Response, end: float) -> bytes:
    """Return the reply to a request, which says what was rejected; empty if it is too long or too slow."""
    reply = bytearray()
    for part in response.iter_bytes():
        reply += part
        if len(reply) > limits.MAX_COLLECTOR_REPLY_BYTES or time.monotonic() > end:
            return b""
    return bytes(reply)
