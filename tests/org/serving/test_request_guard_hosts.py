from __future__ import annotations

import pytest

from evalmeta.errors import UsageError
from evalmeta.org.serving.request_guard import hosts_of, is_same_origin
from evalmeta.protocol.json_fields import is_loopback


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8160", "localhost:8160", "LOCALHOST:8160", "localhost.:8160", "[::1]:8160", "localhost",
     "[0:0:0:0:0:0:0:1]:8160", "[0000::0001]"],
)  # fmt: skip
def test_on_loopback_its_names_are_answered(host: str) -> None:
    assert hosts_of("127.0.0.1", 8160).accept(host)


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8160", "127.0.0.1.evil.example:8160", "localhost:9999", "localhost:x", "a b",
     "user@localhost:8160", "192.0.2.7:8160", "[::1", "localhost:8160:8160", "localhost:999999"],
)  # fmt: skip
def test_on_loopback_no_other_name_is_answered(host: str) -> None:
    assert not hosts_of("127.0.0.1", 8160).accept(host)


def test_a_server_on_all_addresses_accepts_addresses_but_not_names() -> None:
    hosts = hosts_of("0.0.0.0", 8160)  # noqa: S104 - nothing is bound
    assert hosts.accept("192.0.2.7:8160")
    assert hosts.accept("[2001:db8::1]:8160")
    assert not hosts.accept("192.0.2.7:80")
    assert not hosts.accept("rebound.example:8160")


def test_at_one_address_that_and_no_other_is_answered() -> None:
    hosts = hosts_of("192.0.2.7", 8160)
    assert hosts.accept("192.0.2.7:8160")
    assert not hosts.accept("localhost:8160")


def test_names_that_were_set_are_answered_with_any_port() -> None:
    hosts = hosts_of("127.0.0.1", 8160, others=["Org.example"])
    assert hosts.accept("org.example")
    assert hosts.accept("org.example:443")


def test_a_name_that_was_set_with_a_port_is_answered_with_this_port_only() -> None:
    hosts = hosts_of("127.0.0.1", 8160, others=["Org.example:8443", "[::2]:9000", "proxy.example:443"])
    assert [hosts.accept(host) for host in ("org.example:8443", "[::2]:9000", "proxy.example")] == [True, True, True]
    assert [hosts.accept(host) for host in ("org.example", "org.example:9000", "[::2]")] == [False, False, False]


@pytest.mark.parametrize("name", ["", "https://org.example", "org.example/", "a b", "org:x", "org:0", "org:65536", "*"])
def test_a_name_that_no_host_has_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid host") as raised:
        hosts_of("127.0.0.1", 8160, others=[name])
    assert "org.example.com:8443" in raised.value.actions[0]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.2", True), ("::1", True), ("localhost", True), ("192.0.2.7", False), ("org.example", False)],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, *, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("origin", "same"),
    [
        ("http://localhost:8160", True),
        ("http://LOCALHOST:8160", True),
        ("https://localhost:8160", True),
        ("http://localhost", False),
        ("http://evil.example", False),
        ("http://localhost:8160.evil.example", False),
        ("null", False),
        ("file://", False),
    ],
)
def test_an_origin_is_the_same_with_the_same_name_and_port(origin: str, *, same: bool) -> None:
    assert is_same_origin(origin, "localhost:8160") is same


def test_a_default_port_need_not_be_named() -> None:
    assert is_same_origin("https://org.example", "org.example")
    assert is_same_origin("https://org.example:443", "org.example")
