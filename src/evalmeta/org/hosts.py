"""Which names a served org answers to: a page that has its own name point here (DNS rebinding) is not answered."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.wire.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Hosts", "hosts_of", "is_same_origin"]

_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_AUTHORITY: Final = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?::(?P<port>\d{1,5}))?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names of a served org.

    Attributes:
        names: those that hold with the server's own port, in small letters.
        port: the server's.
        others: those that hold with any port, as behind a proxy, in small letters.
        any_address: whether IP addresses hold too; only names can be made to point elsewhere.
    """

    names: frozenset[str]
    port: int
    others: frozenset[str] = frozenset()
    any_address: bool = False

    def answer_to(self, host: str) -> bool:
        """Tells whether a Host header names this org."""
        found = _AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name = _plain(found["v6"] or found["name"])
        if name in self.others:
            return True
        is_ours = name in self.names or (self.any_address and _is_address(name))
        return is_ours and int(found["port"] or self.port) == self.port


def hosts_of(bound: str, port: int, *, others: Iterable[str] = ()) -> Hosts:
    """Gives the names of a server that listens at an address.

    Args:
        bound: the address or name it listens at.
        port: where it listens.
        others: names that were set for it, with any port.
    """
    names = {_plain(bound)} | (set(_LOOPBACK_NAMES) if is_loopback(bound) or _is_any(bound) else set())
    return Hosts(frozenset(names), port, frozenset(map(_plain, others)), any_address=_is_any(bound))


def is_same_origin(origin: str, host: str) -> bool:
    """Tells whether a page of an Origin was served under a Host header's name."""
    scheme, _, authority = origin.partition("://")
    port = _DEFAULT_PORTS.get(scheme.lower())
    return port is not None and authority.lower() in {host.lower(), f"{host.lower()}:{port}"}


def _plain(host: str) -> str:
    """Gives the one spelling of a name or address: `::1` for `0:0:0:0:0:0:0:1`."""
    return str(ipaddress.ip_address(host)) if _is_address(host) else host.lower().removesuffix(".")


def _is_any(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
