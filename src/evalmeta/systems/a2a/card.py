"""Agent cards: which interface of an agent is asked, and the names that its version of the protocol has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from evalmeta.errors import SubjectError
from evalmeta.protocol.json_fields import is_loopback, list_of_objects, object_at, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue

_BINDING: Final = "JSONRPC"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")
_FIRST_VERSION: Final = "0.3"
_SHOWN: Final = 5


class Words(NamedTuple):
    """The names of a version: its methods, keys of each message, of each part and of each request, and headers."""

    send: str
    stream: str
    get: str
    cancel: str
    message: JsonObject
    part: JsonObject
    options: JsonObject
    headers: Mapping[str, str]


_WORDS: Final[Mapping[int, Words]] = {
    1: Words(
        *("SendMessage", "SendStreamingMessage", "GetTask", "CancelTask"),
        message={"role": "ROLE_USER"},
        part={},
        options={},
        headers={"A2A-Version": "1.0"},
    ),
    0: Words(
        *("message/send", "message/stream", "tasks/get", "tasks/cancel"),
        message={"kind": "message", "role": "user"},
        part={"kind": "text"},
        options={"configuration": {"blocking": True}},
        headers={},
    ),
}
"""By the major version; 0 is 0.3, whose messages 0.2 has, too."""


class Interface(NamedTuple):
    """The interface of an agent that is asked."""

    url: str
    words: Words
    streams: bool


def choose_interface(card: JsonValue, address: str) -> Interface:
    """Return the JSON-RPC interface of the newest version in a card, which was found at an address.

    Raise SubjectError if the card is not one, or names no such interface.
    """
    if not isinstance(card, dict):
        raise SubjectError(f"{address} is not an agent card: it is not a JSON object")
    offered = list(_offered(card))
    known = [
        (int(match[1]), urljoin(address, url))
        for binding, version, url in offered
        if binding.upper() == _BINDING and url and (match := _VERSION.match(version)) and int(match[1]) in _WORDS
    ]
    if not known:
        named = ", ".join(f"{binding} {version}" for binding, version, _ in offered[:_SHOWN]) or "none"
        raise SubjectError(
            f"the agent card at {address} has no JSON-RPC interface of A2A 1.0 or 0.3; its interfaces: {named}"
        )
    # The first of several interfaces of a version is the one that the agent prefers.
    major, url = max(known, key=lambda interface: interface[0])
    return Interface(url, _WORDS[major], object_at(card, "capabilities").get("streaming") is True)


def _offered(card: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield the binding, the version and the address of each interface: 1.0 has a list, 0.3 one and perhaps others."""
    for named in list_of_objects(card, "supportedInterfaces"):
        yield text(named, "protocolBinding"), text(named, "protocolVersion"), text(named, "url")
    if "url" in card:
        version = text(card, "protocolVersion") or _FIRST_VERSION
        yield text(card, "preferredTransport") or _BINDING, version, text(card, "url")
        for named in list_of_objects(card, "additionalInterfaces"):
            yield text(named, "transport"), version, text(named, "url")


def check_key_stays(url: str, interface: str) -> None:
    """Raise SubjectError if a card would send the key of the agent to another host."""
    own, named = urlsplit(url), urlsplit(interface)
    is_same = (own.scheme, own.netloc) == (named.scheme, named.netloc)
    if not is_same and not all(is_loopback(parts.hostname or "") for parts in (own, named)):
        raise SubjectError(
            f"the agent card names an interface at {named.scheme}://{named.hostname}, to which the key would be sent; "
            f'to allow that, set interface = "{named._replace(query="", fragment="").geturl()}" in evalmeta.toml'
        )
