"""Fields of received messages: JSON values of one type or a default, org addresses, and timestamps."""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime
from typing import Final, TypeVar
from urllib.parse import SplitResult, urlsplit

import orjson

from evalmeta.errors import MessageUnreadable, UsageError
from evalmeta.model.json_value import JsonObject, read_json
from evalmeta.model.redaction import redacted

_T = TypeVar("_T")
_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")
_SHOWN: Final = re.compile(r"(?:\w+://)?([\w.-]+)")
_LIGHTNING: Final = ".lightning.force.com"
# Year 10000, which datetime does not support; the last moments before it are rounded up to it.
_END: Final = 253_402_300_800.0


def read_object(data: bytes) -> JsonObject:
    """Return a JSON object; raise MessageUnreadable if the bytes are not one."""
    try:
        value = read_json(data)
    except orjson.JSONDecodeError:
        raise MessageUnreadable("it is not valid JSON") from None
    if not isinstance(value, dict):
        raise MessageUnreadable(f"expected a JSON object, found {type(value).__name__}")
    return value


def text(source: JsonObject, key: str) -> str:
    """Return text or a number as text; else an empty text."""
    value = source.get(key)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def optional_text(source: JsonObject, key: str) -> str | None:
    """Return text, or None."""
    value = source.get(key)
    return value if isinstance(value, str) else None


def integer(source: JsonObject, key: str, default: _T) -> int | _T:
    """Return an integer, or the default, which may be None."""
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def number(source: JsonObject, key: str, default: _T) -> float | _T:
    """Return a number, or the default, which may be None."""
    value = source.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def object_at(source: JsonObject, key: str) -> JsonObject:
    """Return an object, or an empty one."""
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def texts(source: JsonObject, key: str) -> list[str]:
    """Return the texts in a list."""
    value = source.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def list_of_objects(source: JsonObject, key: str) -> list[JsonObject]:
    """Return the objects in a list."""
    value = source.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def org_url(text: str) -> str:
    """Return the normalised address of an org: the scheme, the host in lower case, and any non-default port.

    The default scheme is https, and http for this machine. A path is removed. Raise UsageError if the address is
    not valid, contains a user, or is http on another machine.
    """
    parts = _split(text.strip())
    host = parts.hostname or ""
    if parts.scheme not in _PORTS:
        raise _invalid_address(text, f"orgs use https, not {parts.scheme}")
    if parts.username or parts.password or not host:
        raise _invalid_address(text, "the address of an org looks like https://mycompany.my.salesforce.com")
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError(
            f"http://{host} is not allowed: it would send the access token unencrypted",
            actions=["Use https; http is allowed only for this machine (127.0.0.1, ::1, localhost)."],
        )
    if host.endswith(_LIGHTNING):
        mine = host.removesuffix(_LIGHTNING) + ".my.salesforce.com"
        raise UsageError(f"{host} is for browsers and has no API", actions=[f"Use https://{mine}"])
    named = f"[{host}]" if ":" in host else host
    port = "" if parts.port in {None, _PORTS[parts.scheme]} else f":{parts.port}"
    return f"{parts.scheme}://{named}{port}"


def host_of(url: str) -> str:
    """Return the host of an address, or an empty text."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine: 127.0.0.0/8, ::1 or localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _split(text: str) -> SplitResult:
    try:
        if "://" not in text:
            text = f"{'http' if is_loopback(urlsplit(f'//{text}').hostname or '') else 'https'}://{text}"
        parts = urlsplit(text)
        _ = parts.port  # raises ValueError if it is not a valid port
    except ValueError:
        raise _invalid_address(text, "a part of it is not valid, such as the port") from None
    if not _HOST.fullmatch(parts.hostname or "localhost"):
        raise _invalid_address(text, "its host has characters that are not allowed")
    return parts


def _invalid_address(text: str, reason: str) -> UsageError:
    """Return an error that shows only the host: the rest of the address may be a password or a token."""
    host = _SHOWN.match(text.rpartition("@")[2])
    return UsageError(f"{redacted(host[1]) if host else 'the value'} is not a valid address of an org: {reason}")


def to_timestamp(seconds: float) -> str:
    """Return seconds since the epoch as a timestamp such as `2026-11-20T15:08:45.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_timestamp(text: str) -> float | None:
    """Return a timestamp in seconds since the epoch, by default in UTC; None if it is not valid."""
    try:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds < _END else None
