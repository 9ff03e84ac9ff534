from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import UsageError
from evalmeta.protocol.json_fields import host_of, is_loopback, org_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://Desk.My.Salesforce.com/", "https://desk.my.salesforce.com"),
        ("desk.my.salesforce.com", "https://desk.my.salesforce.com"),
        (" https://desk.example:443/setup?sid=1#top\n", "https://desk.example"),
        ("https://desk.example:8443", "https://desk.example:8443"),
        ("http://127.0.0.1:8160//", "http://127.0.0.1:8160"),
        ("localhost:8160", "http://localhost:8160"),
        ("http://[::1]:80", "http://[::1]"),
        ("127.9.9.9", "http://127.9.9.9"),
    ],
)
def test_an_address_has_one_spelling(text: str, url: str) -> None:
    assert org_url(text) == url
    assert org_url(url) == url


@pytest.mark.parametrize("host", ["desk.example", "10.0.0.1", "localhost.example", "127.0.0.1.example"])
def test_http_is_refused_elsewhere_than_on_this_machine(host: str) -> None:
    with pytest.raises(UsageError, match=f"^http://{host} is not allowed: it would send the access token unencrypted"):
        org_url(f"http://{host}/")


@pytest.mark.parametrize(
    "text",
    ["", "https://", "ftp://desk.example", "https://desk.example:x", "https://[::1", "https://a b.example", "a\\b"],
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid address of an org"):
        org_url(text)


def test_an_address_with_a_user_is_refused_without_its_password() -> None:
    with pytest.raises(UsageError) as raised:
        org_url("https://me:hunter2@desk.example")
    assert "hunter2" not in str(raised.value)


def test_a_lightning_address_is_refused_with_the_right_one() -> None:
    with pytest.raises(UsageError) as raised:
        org_url("https://desk.lightning.force.com/lightning/setup")
    assert raised.value.actions == ("Use https://desk.my.salesforce.com",)


@given(st.text() | st.text().map("https://{}".format) | st.text().map("http://{}".format))
def test_every_accepted_address_is_https_or_on_this_machine(text: str) -> None:
    with suppress(UsageError):
        url = org_url(text)
        assert url.startswith("https://") or is_loopback(host_of(url))
        assert org_url(url) == url


def test_another_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="orgs use https, not ftp"):
        org_url("ftp://desk.example")
