"""Logins, sessions and log-outs of the pages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import pytest

from evalmeta import limits
from evalmeta.api.servers import list_tokens, make_token, revoke_token
from evalmeta.model.login import ADMIN
from evalmeta.store.database import open_database
from evalmeta.store.users import Holder, Sessions, Users, public_id
from viewer.conftest import Browser

if TYPE_CHECKING:
    from evalmeta.package.project import Project

CROSS_SITE = {"sec-fetch-site": "cross-site"}
TYPED = {"sec-fetch-site": "none"}


def with_cookies_of(browser: Browser, project: Project) -> Browser:
    """Return a browser at a new server of the same project, with the cookies of another."""
    other = Browser(project)
    other.client.cookies.update(dict(browser.client.cookies))
    return other


def is_in(browser: Browser) -> bool:
    reply = browser.client.get("/view")
    assert reply.status_code in {httpx.codes.OK, httpx.codes.UNAUTHORIZED}
    return reply.status_code == httpx.codes.OK


@pytest.mark.parametrize("change", [str, str.lower, lambda code: f" {code.replace('-', '')} "])
def test_a_code_is_entered_once_in_any_case_and_with_or_without_hyphens(browser: Browser, change: object) -> None:
    code = change(browser.code())

    reply = browser.log_in(code)
    browser.client.cookies.clear()
    again = browser.log_in(code)

    assert (reply.status_code, reply.url.path, reply.url.query) == (httpx.codes.OK, "/view", b"")
    assert "HttpOnly" in reply.history[0].headers["set-cookie"]
    assert again.status_code == httpx.codes.UNAUTHORIZED
    assert "This code or token is not valid" in again.text
    assert not is_in(browser)


def test_a_code_ends_after_some_minutes(browser: Browser) -> None:
    code = browser.codes.issue(Holder(ADMIN.id), seconds=0)
    assert browser.log_in(code).status_code == httpx.codes.UNAUTHORIZED


def test_the_address_of_the_redirect_file_opens_a_session_once_and_leaves_no_code(browser: Browser) -> None:
    # The page that leads there is a file, which browsers count as another site.
    address = f"/view/open?code={browser.code()}"
    opened = browser.client.get(address, headers=CROSS_SITE)
    browser.client.cookies.clear()
    again = browser.client.get(address, headers=CROSS_SITE)

    assert (opened.status_code, opened.url.path, opened.url.query) == (httpx.codes.OK, "/view", b"")
    assert again.status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize("name", ["token", "code"])
def test_a_secret_in_the_address_of_a_page_logs_nobody_in(project: Project, browser: Browser, name: str) -> None:
    secret = make_token(project) if name == "token" else browser.code()

    reply = browser.client.get("/view", params={name: secret}, headers=CROSS_SITE)

    assert reply.status_code == httpx.codes.UNAUTHORIZED
    assert not browser.client.cookies


@pytest.mark.parametrize("headers", [CROSS_SITE, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.example"}])
def test_a_form_of_another_site_logs_nobody_in(project: Project, browser: Browser, headers: dict[str, str]) -> None:
    reply = browser.client.post("/view/login", data={"token": make_token(project)}, headers=headers)

    assert reply.status_code == httpx.codes.FORBIDDEN
    assert not browser.client.cookies


@pytest.mark.parametrize("path", ["/secur/frontdoor.jsp?otp=", "/view/open?code="])
@pytest.mark.parametrize("headers", [CROSS_SITE, {"sec-fetch-site": "same-site"}, {}])
def test_a_link_of_another_site_asks_before_it_logs_in(
    project: Project, browser: Browser, path: str, headers: dict[str, str]
) -> None:
    token = make_token(project, username="mallory")
    with open_database(project.store) as database:
        mallory = Users(database).user_of(token, now=time.time())
    assert mallory
    code = browser.codes.issue(Holder(mallory.id, public_id(token)), seconds=60)

    reply = browser.client.get(path + code, headers=headers)

    assert f"Log in as {mallory.name}?" in reply.text
    assert not browser.client.cookies
    assert not is_in(browser)
    # The page has asked, and the code is still valid.
    assert browser.log_in(code).status_code == httpx.codes.OK


@pytest.mark.parametrize(
    ("target", "page"),
    [
        ("/view/runs", "/view/runs"),
        ("view/runs", "/view/runs"),
        ("/view/runs?text=a%20b&outcome=failed", "/view/runs?text=a%20b&outcome=failed"),
        ("/lightning/setup", "/view"),
        ("//evil.example/view/", "/view"),
    ],
)
def test_a_frontdoor_address_opens_a_session_once(browser: Browser, target: str, page: str) -> None:
    query = {"otp": browser.code(is_private=False), "startURL": target}

    opened = browser.client.get("/secur/frontdoor.jsp", params=query, headers=TYPED)
    browser.client.cookies.clear()
    again = browser.client.get("/secur/frontdoor.jsp", params=query, headers=TYPED)

    assert (opened.status_code, str(opened.url)) == (httpx.codes.OK, f"http://127.0.0.1:8161{page}")
    assert again.status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize(
    "address",
    ["/view", "/view/runs", "/view/runs?text=a%20b&outcome=failed", "/view/trends?test=%C3%A4%2Fb.yaml", "/view?x=%22"],
)
def test_a_deep_link_survives_the_login_with_its_filters(browser: Browser, address: str) -> None:
    asked = browser.client.get(address)
    [target] = asked.text.split('name="next" value="')[1:]
    target = target.partition('"')[0].replace("&amp;", "&").replace("&#34;", '"')
    wrong = browser.client.post("/view/login", data={"token": "wrong", "next": target})
    reply = browser.client.post("/view/login", data={"token": browser.code(), "next": target})

    assert (asked.status_code, target) == (httpx.codes.UNAUTHORIZED, address)
    assert f'value="{target.replace("&", "&amp;")}"' in wrong.text
    assert (reply.status_code, str(reply.url)) == (httpx.codes.OK, f"http://127.0.0.1:8161{address}")


@pytest.mark.parametrize(
    "target",
    [
        *("https://evil.example/view", "//evil.example/view", "/\\evil.example/view", "\\\\evil.example", "/viewer"),
        *(
            "/view\\..\\..",
            "/view/\t/evil.example",
            "/view/\r\nset-cookie: a=b",
            "javascript:alert(1)",
            "/services/data",
        ),
        "/view?" + "x" * limits.MAX_HEADER_BYTES,
    ],
)
def test_a_login_leads_to_no_other_site(browser: Browser, target: str) -> None:
    form = {"token": browser.code(), "next": target}
    reply = browser.client.post("/view/login", data=form, follow_redirects=False)
    opened = browser.client.get(
        f"/view/open?code={browser.code()}&next={quote(target[:1_000])}", follow_redirects=False
    )

    assert (reply.status_code, reply.headers["location"]) == (httpx.codes.SEE_OTHER, "/view")
    assert len(target) > 1_000 or opened.headers["location"] == "/view"


def test_a_session_survives_a_restart_of_the_server(project: Project, browser: Browser) -> None:
    browser.log_in()

    assert is_in(with_cookies_of(browser, project))
    assert not is_in(Browser(project))


def test_only_the_hash_of_a_session_is_stored(project: Project, browser: Browser) -> None:
    browser.log_in()
    [cookie] = browser.client.cookies.values()

    stored = b"".join(path.read_bytes() for path in project.state_dir.glob("org.sqlite3*"))
    assert len(cookie) > 40
    assert cookie.encode() not in stored


def test_a_session_ends_after_twelve_hours(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    browser.log_in()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + limits.VIEW_SESSION_SECONDS - 60)
    assert is_in(browser)
    monkeypatch.setattr(time, "time", lambda: now + limits.VIEW_SESSION_SECONDS + 1)
    assert not is_in(browser)


def test_a_log_out_ends_the_session_on_the_server(project: Project, browser: Browser) -> None:
    browser.log_in()
    thief = with_cookies_of(browser, project)
    assert is_in(thief)

    reply = browser.client.post("/view/logout", data={"csrf": browser.csrf()})

    assert "You have logged out." in reply.text
    assert not browser.client.cookies
    assert not is_in(thief)
    with open_database(project.store) as database:
        assert not Sessions(database).valid(now=time.time())


@pytest.mark.parametrize("csrf", ["", "0" * 64])
def test_another_page_logs_nobody_out(browser: Browser, csrf: str) -> None:
    browser.log_in()

    assert browser.client.post("/view/logout", data={"csrf": csrf}).status_code == httpx.codes.UNAUTHORIZED
    assert is_in(browser)


@pytest.mark.parametrize("path", ["/view/login", "/view/logout"])
def test_addresses_of_forms_lead_to_the_first_page(browser: Browser, path: str) -> None:
    browser.log_in()

    assert browser.client.get(path).url.path == "/view"


def test_a_new_login_of_a_browser_ends_its_session_before(project: Project, browser: Browser) -> None:
    browser.log_in()
    before = with_cookies_of(browser, project)
    assert is_in(before)
    browser.log_in()

    assert is_in(browser)
    assert not is_in(before)


@pytest.mark.slow
def test_logins_of_one_user_end_no_session_of_others(project: Project, browser: Browser) -> None:
    token, of_ann = make_token(project), make_token(project, username="ann")
    assert browser.log_in(of_ann).status_code == httpx.codes.OK
    first = Browser(project)
    assert first.log_in(token).status_code == httpx.codes.OK
    with open_database(project.store) as database:
        for _ in range(limits.MAX_USER_SESSIONS):
            Sessions(database).add(Holder(ADMIN.id, public_id(token)), now=time.time())
        assert len(Sessions(database).valid(now=time.time())) == limits.MAX_USER_SESSIONS + 1

    assert is_in(browser)
    assert not is_in(first)


def test_codes_of_one_user_end_no_code_of_others(browser: Browser) -> None:
    of_ann, first = browser.codes.issue(Holder("ann"), seconds=60), browser.code()
    for _ in range(limits.MAX_USER_CODES):
        browser.code()

    assert browser.codes.redeem(of_ann) == Holder("ann")
    assert browser.codes.redeem(first) is None


def test_a_code_of_a_frontdoor_address_is_not_a_token_and_expires(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = browser.code(is_private=False)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + limits.FRONTDOOR_SECONDS + 1)
    late = browser.client.get("/secur/frontdoor.jsp", params={"otp": code}, headers=TYPED)
    assert late.status_code == httpx.codes.UNAUTHORIZED


def test_a_session_ends_when_the_token_that_opened_it_is_revoked(browser: Browser, project: Project) -> None:
    token = make_token(project)
    code = browser.codes.issue(Holder(ADMIN.id, public_id(token)), seconds=60)
    opened = browser.client.get("/secur/frontdoor.jsp", params={"otp": code}, headers=TYPED)
    revoke_token(project, public_id(token))

    assert opened.status_code == httpx.codes.OK
    assert not is_in(browser)


def test_a_revoked_token_ends_its_sessions(project: Project, browser: Browser) -> None:
    assert browser.log_in(make_token(project, username="ann")).status_code == httpx.codes.OK

    [stored] = list_tokens(project)
    revoke_token(project, stored.id)

    assert not is_in(browser)
