"""Fields of JSON objects that come from elsewhere: the type that is asked for, or a default.

Addresses of orgs: one spelling for each, and https for all that are not on this machine.

Headers of HTTP answers.

Times as Salesforce writes them: ISO 8601 in UTC with milliseconds.
"""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

import orjson

from evalmeta.errors import MessageUnreadable, UsageError
from evalmeta.model.redaction import redacted

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


def read_object(data: bytes) -> JsonObject:
    """Reads a JSON object.

    Raises:
        MessageUnreadable: the bytes are no JSON, or no object.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise MessageUnreadable("it is no JSON") from None
    if not isinstance(value, dict):
        raise MessageUnreadable(f"a JSON object is due, not {type(value).__name__}")
    return value


def value_at(source: JsonObject, key: str) -> JsonValue:
    """Gives whatever stands at a key, None for nothing."""
    return source.get(key)


def text(source: JsonObject, key: str) -> str:
    """Gives text; numbers become text, anything else is empty."""
    value = source.get(key)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def optional_text(source: JsonObject, key: str) -> str | None:
    """Gives text, None when there is none."""
    value = source.get(key)
    return value if isinstance(value, str) else None


def integer(source: JsonObject, key: str, default: int) -> int:
    """Gives a whole number."""
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def number(source: JsonObject, key: str, default: float) -> float:
    """Gives a number."""
    value = source.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def optional_number(source: JsonObject, key: str) -> float | None:
    """Gives a number, None when there is none."""
    value = source.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def optional_integer(source: JsonObject, key: str) -> int | None:
    """Gives a whole number, None when there is none."""
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_at(source: JsonObject, key: str) -> JsonObject:
    """Gives an object, empty when there is none."""
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def texts(source: JsonObject, key: str) -> list[str]:
    """Gives the texts of a list."""
    value = source.get(key)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def list_of_objects(source: JsonObject, key: str) -> list[JsonObject]:
    """Gives the objects of a list."""
    value = source.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+")
_SHOWN: Final = re.compile(r"(?:\w+://)?([\w.-]+)")
_LIGHTNING: Final = ".lightning.force.com"


def org_url(text: str) -> str:
    """Gives an org's address as evalmeta keeps it: scheme, host in small letters, a port that is not the usual one.

    Without a scheme it is https, or http for this machine. A path is dropped.

    Raises:
        UsageError: it is no address, has a user in it, or is http elsewhere than on this machine.
    """
    parts = _split(text.strip())
    host = parts.hostname or ""
    if parts.scheme not in _PORTS:
        raise _no_address(text, f"orgs are reached by https, not by {parts.scheme}")
    if parts.username or parts.password or not host:
        raise _no_address(text, "an org's address is like https://mycompany.my.salesforce.com")
    if parts.scheme == "http" and not is_loopback(host):
        raise UsageError(
            f"http://{host} is refused: an access token would travel there in clear",
            actions=["Use https; http is for this machine only (127.0.0.1, ::1, localhost)."],
        )
    if host.endswith(_LIGHTNING):
        mine = host.removesuffix(_LIGHTNING) + ".my.salesforce.com"
        raise UsageError(f"{host} is for browsers and has no API", actions=[f"Use https://{mine}"])
    named = f"[{host}]" if ":" in host else host
    port = "" if parts.port in {None, _PORTS[parts.scheme]} else f":{parts.port}"
    return f"{parts.scheme}://{named}{port}"


def host_of(url: str) -> str:
    """Gives the host of an address, empty when it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Tells whether a host is this machine: 127.0.0.0/8, ::1 or localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _split(text: str) -> SplitResult:
    try:
        if "://" not in text:
            text = f"{'http' if is_loopback(urlsplit(f'//{text}').hostname or '') else 'https'}://{text}"
        parts = urlsplit(text)
        _ = parts.port  # is read, and refused, only now
    except ValueError:
        raise _no_address(text, "it has a part that no address has, such as a port that is no number") from None
    if not _HOST.fullmatch(parts.hostname or "localhost"):
        raise _no_address(text, "it has characters that no host has")
    return parts


def _no_address(text: str, reason: str) -> UsageError:
    """Puts it into words with the host alone: what stands before and behind it may be a password or a token."""
    host = _SHOWN.match(text.rpartition("@")[2])
    return UsageError(f"{redacted(host[1]) if host else 'what was given'} is no address of an org: {reason}")


# Year 10000, which no datetime holds; the last moments before it are rounded up to it.
_END: Final = 253_402_300_800.0


def to_timestamp(seconds: float) -> str:
    """Writes seconds since the epoch, such as `2026-11-20T15:08:45.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_timestamp(text: str) -> float | None:
    """Reads a time with any number of decimals and any offset, UTC without one; None when it is no time."""
    try:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds < _END else None
