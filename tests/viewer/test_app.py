"""Sessions, refusals and events of the pages."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import limits
from evalmeta.api.servers import list_tokens, make_token, revoke_token
from evalmeta.store.database import open_database
from evalmeta.store.users import Users
from viewer.conftest import RUN, TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser


def test_the_first_link_opens_a_session_and_leaves_no_token_in_the_address(browser: Browser) -> None:
    reply = browser.log_in()

    assert reply.status_code == httpx.codes.OK
    assert TOKEN not in str(reply.url)
    assert "HttpOnly" in reply.history[0].headers["set-cookie"]


@pytest.mark.parametrize(
    ("target", "page"),
    [
        ("/view/runs", "/view/runs"),
        ("view/runs", "/view/runs"),
        ("/lightning/setup", "/view"),
        ("//evil.example/view/", "/view"),
    ],
)
def test_a_frontdoor_address_opens_a_session_once(browser: Browser, target: str, page: str) -> None:
    query = {"otp": browser.frontdoor.issue(TOKEN), "startURL": target}

    opened = browser.client.get("/secur/frontdoor.jsp", params=query)
    browser.client.cookies.clear()
    again = browser.client.get("/secur/frontdoor.jsp", params=query)

    assert (opened.status_code, opened.url.path, opened.url.host) == (httpx.codes.OK, page, "127.0.0.1")
    assert again.status_code == httpx.codes.UNAUTHORIZED


def test_a_code_of_a_frontdoor_address_is_not_a_token_and_expires(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = browser.frontdoor.issue(TOKEN)
    assert browser.client.get("/view", params={"token": code}).status_code == httpx.codes.UNAUTHORIZED
    monkeypatch.setattr(limits, "FRONTDOOR_SECONDS", 0.0)
    late = browser.client.get("/secur/frontdoor.jsp", params={"otp": browser.frontdoor.issue(TOKEN)})
    assert late.status_code == httpx.codes.UNAUTHORIZED


def test_a_session_ends_when_the_token_that_opened_it_is_revoked(browser: Browser, project: Project) -> None:
    now = time.time()
    with open_database(project.state_dir) as database:
        users = Users(database)
        token = users.add_token(users.all_users()[0], org_id="00D", now=now, expires=now + 3600)
        opened = browser.client.get("/secur/frontdoor.jsp", params={"otp": browser.frontdoor.issue(token)})
        users.revoke(token.partition("!")[2].partition(".")[0], now=now)

    assert opened.status_code == httpx.codes.OK
    assert browser.client.get("/view").status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize("address", ["/view", "/view?token=wrong", "/view/runs", "/view/live"])
def test_nothing_is_told_without_a_session(browser: Browser, run: Callable[..., int], address: str) -> None:
    run()

    reply = browser.client.get(address)

    assert reply.status_code == httpx.codes.UNAUTHORIZED
    assert "Orders" not in reply.text


def test_every_section_of_the_navigation_has_a_page(browser: Browser) -> None:
    sections = re.findall(r'<a[^>]* href="(/view[^"]*)"', browser.log_in().text)

    assert len(sections) > 5
    assert {address: browser.client.get(address).status_code for address in (*sections, "/view/")} == dict.fromkeys(
        (*sections, "/view/"), httpx.codes.OK
    )


def test_an_unknown_page_has_a_way_back(browser: Browser) -> None:
    browser.log_in()

    reply = browser.client.get("/view/nowhere")

    assert reply.status_code == httpx.codes.NOT_FOUND
    assert 'href="/view"' in reply.text


def test_pages_allow_no_inline_script_and_no_foreign_request(browser: Browser) -> None:
    reply = browser.log_in()

    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "<script>" not in reply.text
    assert "style=" not in reply.text
    assert reply.headers["referrer-policy"] == "same-origin"  # else browsers send forms without their origin


def test_an_unexpected_error_is_told_only_to_the_log(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    browser.log_in()
    monkeypatch.setattr("evalmeta.viewer.app.Source", None)

    reply = browser.client.get("/view/runs")

    assert reply.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert 'href="/view"' in reply.text
    assert "NoneType" not in reply.text
    assert "NoneType" in caplog.text


def test_a_form_without_the_sessions_value_changes_nothing(browser: Browser, run: Callable[..., int]) -> None:
    run()
    browser.log_in()
    form = {"iteration": "1", "result": "topic_sequence_match", "turn": "0", "judgement": "wrong"}

    reply = browser.client.post(f"/view/runs/{RUN}/cases/2/mark", data=form)

    assert reply.status_code == httpx.codes.UNAUTHORIZED
    assert "says Local Admin" not in browser.page(f"/view/runs/{RUN}/cases/2")


@pytest.mark.parametrize("form", [b"\xff=1", b"&".join([b"a=1"] * 101)], ids=["not UTF-8", "too many fields"])
def test_a_form_that_is_not_one_is_refused(browser: Browser, form: bytes) -> None:
    browser.log_in()

    reply = browser.client.post(
        "/view/login", content=form, headers={"content-type": "application/x-www-form-urlencoded"}
    )

    assert reply.status_code == httpx.codes.BAD_REQUEST


@pytest.mark.parametrize("headers", [{"Host": "attacker.example"}, {"Origin": "https://attacker.example"}])
def test_other_hosts_and_origins_are_refused(browser: Browser, headers: dict[str, str]) -> None:
    browser.log_in()

    assert browser.client.get("/view", headers=headers).status_code == httpx.codes.FORBIDDEN


def test_a_store_of_a_newer_version_is_explained(browser: Browser, run: Callable[..., int], project: Project) -> None:
    run()
    browser.log_in()
    with open_database(project.state_dir) as database:
        database.execute("PRAGMA user_version = 999")

    reply = browser.client.get("/view/runs")

    assert reply.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert "was created by a newer evalmeta" in reply.text
    assert "Upgrade evalmeta." in reply.text


def test_pages_can_be_read_while_another_program_writes(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    run()
    browser.log_in()
    with open_database(project.state_dir) as database, database.transaction():
        database.execute("UPDATE run SET status = status")

        assert "orders.yaml" in browser.page("/view/runs")
        assert "FAILED" in browser.page(f"/view/runs/{RUN}")


def test_a_revoked_token_ends_its_sessions(project: Project, browser: Browser) -> None:
    token = make_token(project, username="ann")
    assert browser.client.get("/view", params={"token": token}).status_code == httpx.codes.OK

    [stored] = list_tokens(project)
    revoke_token(project, stored.id)

    assert browser.client.get("/view/runs").status_code == httpx.codes.UNAUTHORIZED


def test_a_user_sees_only_the_own_runs(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    browser.client.get("/view", params={"token": make_token(project, username="ann")})

    for path in ("/view", "/view/runs", "/view/org", "/view/trends", "/view/compare"):
        assert "orders.yaml" not in browser.client.get(path).text
    for path in (f"/view/runs/{RUN}", f"/view/runs/{RUN}/cases/2", f"/view/compare?after={RUN}"):
        assert browser.client.get(path).status_code == httpx.codes.NOT_FOUND


def test_a_user_cannot_compare_with_runs_of_others(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    run()
    token = make_token(project, username="ann")
    with open_database(project.state_dir) as database:
        [ann] = [user for user in Users(database).all_users() if not user.is_admin]
        database.execute("UPDATE run SET user_id = ? WHERE id <> ?", (ann.id, RUN))
    browser.client.get("/view", params={"token": token})

    for query in ("", f"&before={RUN}"):
        reply = browser.client.get(f"/view/compare?after=4KB000000000002GAA{query}")
        assert reply.status_code == httpx.codes.NOT_FOUND


def test_events_end_before_the_server_gives_up_on_a_silent_browser() -> None:
    assert limits.VIEW_EVENT_POLLS * limits.VIEW_POLL_SECONDS < limits.PIECE_SECONDS
