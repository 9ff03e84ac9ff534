"""Pages as replies: refusals, errors and rights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta.api.servers import make_token
from evalmeta.store.database import open_database
from evalmeta.store.users import Users
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser


@pytest.mark.parametrize("address", ["/view", "/view?token=wrong", "/view?code=wrong", "/view/runs", "/view/live"])
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
    monkeypatch.setattr("evalmeta.viewer.access.Source", None)

    reply = browser.client.get("/view/runs")

    assert reply.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert 'href="/view"' in reply.text
    assert "NoneType" not in reply.text
    assert "NoneType" in caplog.text


@pytest.mark.parametrize("csrf", ["missing", "empty", "wrong", "of another session"])
def test_a_form_without_the_sessions_value_changes_nothing(
    browser: Browser, run: Callable[..., int], csrf: str
) -> None:
    run()
    browser.log_in()
    other = browser.csrf()
    browser.log_in()
    values = {"missing": {}, "empty": {"csrf": ""}, "wrong": {"csrf": "0" * 64}, "of another session": {"csrf": other}}
    form = {"iteration": "1", "result": "topic_sequence_match", "turn": "0", "judgement": "wrong", **values[csrf]}

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


@pytest.mark.sqlite
def test_a_store_of_a_newer_version_is_explained(browser: Browser, run: Callable[..., int], project: Project) -> None:
    run()
    browser.log_in()
    with open_database(project.store) as database:
        database.execute("PRAGMA user_version = 999")

    reply = browser.client.get("/view/runs")

    assert reply.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert "was created by a newer evalmeta" in reply.text
    assert "Upgrade evalmeta." in reply.text


@pytest.mark.slow
def test_pages_can_be_read_while_another_program_writes(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    run()
    browser.log_in()
    with open_database(project.store) as database, database.transaction():
        database.execute("UPDATE run SET status = status")

        assert "orders.yaml" in browser.page("/view/runs")
        assert "FAILED" in browser.page(f"/view/runs/{RUN}")


def test_a_user_sees_only_the_own_runs(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    browser.log_in(make_token(project, username="ann"))

    for path in ("/view", "/view/runs", "/view/org", "/view/trends", "/view/compare"):
        assert "orders.yaml" not in browser.client.get(path).text
    for path in (f"/view/runs/{RUN}", f"/view/runs/{RUN}/cases/2", f"/view/compare?after={RUN}"):
        assert browser.client.get(path).status_code == httpx.codes.NOT_FOUND


def test_a_user_cannot_compare_with_runs_of_others(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    run()
    token = make_token(project, username="ann")
    with open_database(project.store) as database:
        [ann] = [user for user in Users(database).all_users() if not user.is_admin]
        database.execute("UPDATE run SET user_id = ? WHERE id <> ?", (ann.id, RUN))
    browser.log_in(token)

    for query in ("", f"&before={RUN}"):
        reply = browser.client.get(f"/view/compare?after=4KB000000000002GAA{query}")
        assert reply.status_code == httpx.codes.NOT_FOUND
