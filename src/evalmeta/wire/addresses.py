"""Addresses of orgs: one spelling for each, and https for all that are not on this machine."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from evalmeta.errors import UsageError
from evalmeta.model.secrecy import redacted

__all__ = ["host_of", "is_loopback", "org_url"]

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
