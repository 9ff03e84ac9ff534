"""Tests of the page that searches all runs."""

from __future__ import annotations

import html
import re
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import httpx
import pytest

from evalmeta import limits
from evalmeta.api.servers import make_token
from evalmeta.store.database import open_database
from evalmeta.store.search_index import open_index
from evalmeta.viewer import search
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

SECOND: Final = "4KB000000000002GAA"


@pytest.fixture
def indexed(project: Project, run: Callable[..., int]) -> None:
    """Two runs, whose results are in the index."""
    run()
    run()
    with open_database(project.store) as database, open_index(database) as index:
        assert index.update(seconds=60)


def found(page: str) -> list[tuple[str, str]]:
    """Return runs and cases of the results on a page."""
    return re.findall(r'</span> <a href="/view/runs/(\w+)/cases/(\d+)">case', page)


def marked(page: str) -> set[str]:
    return {html.unescape(word) for word in re.findall("<mark>(.*?)</mark>", page)}


@pytest.mark.usefixtures("indexed")
def test_results_of_all_runs_are_found_newest_first_with_their_words_marked(browser: Browser) -> None:
    page = browser.page("/view/search?q=CANCEL+order")
    assert found(page) == [(SECOND, "2"), (RUN, "2")]
    assert marked(page) == {"Cancel", "order", "Order"}
    assert page.count("<section aria-label") == 1
    assert found(browser.page("/view/search?q=cancellations")) == [(SECOND, "2"), (RUN, "2")]


@pytest.mark.usefixtures("indexed")
def test_results_are_limited_to_a_test_or_a_run(browser: Browser) -> None:
    assert found(browser.page(f"/view/search?q=cancel&run={RUN}")) == [(RUN, "2")]
    assert found(browser.page("/view/search?q=cancel&test=orders.yaml")) == [(SECOND, "2"), (RUN, "2")]
    assert "No result of 0 runs has cancel" in browser.page("/view/search?q=cancel&test=other.yaml")


@pytest.mark.usefixtures("indexed")
def test_longer_words_are_found_if_no_result_has_the_word_itself(browser: Browser) -> None:
    page = browser.page("/view/search?q=canc")
    assert "words that begin like it" in page
    assert len(found(page)) == 2
    assert marked(page) == {"Cancel"}


@pytest.mark.usefixtures("indexed")
def test_tests_are_found_by_name_and_by_the_name_of_their_spec(browser: Browser) -> None:
    page = browser.page("/view/search?q=ORDERS&kind=tests")
    assert f'<a href="/view/runs/{SECOND}">orders.yaml <span class="dim small">Orders</span></a>' in page
    assert ">2 runs</a>, the newest" in page
    assert found(page) == []
    assert "None of the commits of 2 runs has orders" in browser.page("/view/search?q=orders&kind=commits")


@pytest.mark.usefixtures("indexed")
def test_commits_are_found_by_any_part_of_their_hash_branch_or_message(project: Project, browser: Browser) -> None:
    origin = '{"origin": {"revision": "9c1f0aabcdef", "subject": "Remove <tracking>"}}'
    with open_database(project.store) as database:
        database.execute("UPDATE run SET branch = 'fix/été', options = ? WHERE id = ?", (origin.encode(), RUN))
    for query in ("9c1f0aab", "tracking+remove", "ETE"):
        page = browser.page(f"/view/search?q={query}&kind=commits")
        assert f'<a href="/view/runs/{RUN}">9c1f0aabcd Remove &lt;tracking&gt;</a>' in page, query


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        '"cancel',
        "cancel*",
        "words:cancel",
        "NEAR(cancel order)",
        "cancel OR order",
        "-cancel",
        "^cancel",
        "cancel\0order",
        "cancel & !order | <-> :*",
        "'; DROP TABLE run; --",
        "\ud83d\ude00",
        "(" * 500,
        "cancel " * 1500,
        "%_\\",
        "<script>alert(1)</script>",
    ],
)
def test_hostile_queries_are_plain_texts(browser: Browser, query: str) -> None:
    browser.page("/view")
    reply = browser.client.get("/view/search?q=" + quote(query.encode("utf-8", "surrogatepass")))
    assert reply.status_code == httpx.codes.OK
    assert "cannot be searched" not in reply.text
    assert "<script>alert" not in reply.text


@pytest.mark.usefixtures("indexed")
def test_an_empty_search_says_what_is_searched(browser: Browser) -> None:
    page = browser.page("/view/search")
    assert "Search what was asked and answered in 2 runs" in page
    assert "none in this text" in browser.page("/view/search?q=%3F%21")
    assert "No result of 2 runs has zebra. Searched were utterances" in browser.page("/view/search?q=zebra")


@pytest.mark.usefixtures("indexed")
def test_every_page_has_the_search_in_its_head(browser: Browser) -> None:
    for path in ("/view", "/view/runs", f"/view/runs/{RUN}/cases/1"):
        assert '<form class="search" method="get" action="/view/search" role="search">' in browser.page(path)


def test_a_page_reads_results_that_the_index_does_not_have(browser: Browser, run: Callable[..., int]) -> None:
    run()
    assert found(browser.page("/view/search?q=cancel")) == [(RUN, "2")]
    run()
    assert found(browser.page("/view/search?q=cancel")) == [(SECOND, "2"), (RUN, "2")]


def test_a_page_says_that_results_are_not_read_yet_and_another_thread_reads_them(
    browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    monkeypatch.setattr(limits, "SEARCH_UPDATE_SECONDS", -1.0)
    monkeypatch.setattr(limits, "SEARCHED_AT_ONCE", 1)
    assert "1 run is not searched completely yet" in browser.page("/view/search?q=cancel")
    for thread in threading.enumerate():
        if thread.name == search.READER:
            thread.join(60)
    page = browser.page("/view/search?q=cancel")
    assert "not searched completely" not in page
    assert found(page) == [(RUN, "2")]


def test_users_find_results_of_their_own_runs_only(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    run()
    browser.log_in(make_token(project, username="ann"))
    assert "No result of 0 runs has cancel" in browser.page("/view/search?q=cancel")
    with open_database(project.store) as database:
        [(ann,)] = database.query("SELECT id FROM org_user WHERE username LIKE 'ann%'")
        database.execute("UPDATE run SET user_id = ? WHERE id = ?", (ann, RUN))
    assert found(browser.page("/view/search?q=cancel")) == [(RUN, "2")]
    assert "1 run</a>, the newest" in browser.page("/view/search?q=orders&kind=tests")


@pytest.mark.sqlite
@pytest.mark.usefixtures("indexed")
def test_an_index_that_is_damaged_while_it_is_open_is_made_again(project: Project, browser: Browser) -> None:
    with closing(sqlite3.connect(project.state_dir / "search.sqlite3", isolation_level=None)) as connection:
        connection.execute("DROP TABLE searched_run")
    assert "Results cannot be searched" in browser.page("/view/search?q=cancel")
    assert len(found(browser.page("/view/search?q=cancel"))) == 2


@pytest.mark.sqlite
@pytest.mark.usefixtures("indexed")
def test_a_search_file_that_is_damaged_is_made_again(project: Project, browser: Browser) -> None:
    (project.state_dir / "search.sqlite3").write_bytes(b"no database" * 1000)
    assert len(found(browser.page("/view/search?q=cancel"))) == 2
