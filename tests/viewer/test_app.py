"""Sessions, refusals and events of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from viewer.conftest import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from viewer.conftest import Browser


def test_the_first_link_opens_a_session_and_leaves_no_token_in_the_address(browser: Browser) -> None:
    reply = browser.log_in()

    assert reply.status_code == httpx.codes.OK
    assert TOKEN not in str(reply.url)
    assert "HttpOnly" in reply.history[0].headers["set-cookie"]


@pytest.mark.parametrize("address", ["/view", "/view?token=wrong", "/view/runs", "/view/live"])
def test_nothing_is_told_without_a_session(browser: Browser, run: Callable[..., int], address: str) -> None:
    run()

    reply = browser.client.get(address)

    assert reply.status_code == httpx.codes.UNAUTHORIZED
    assert "Orders" not in reply.text


def test_an_unknown_page_has_a_way_back(browser: Browser) -> None:
    browser.log_in()

    reply = browser.client.get("/view/nowhere")

    assert reply.status_code == httpx.codes.NOT_FOUND
    assert 'href="/view/"' in reply.text


def test_pages_allow_no_inline_script_and_no_foreign_request(browser: Browser) -> None:
    reply = browser.log_in()

    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "<script>" not in reply.text
    assert "style=" not in reply.text
