"""An export as people use it: opened from disk in Chromium."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from chromium import chromium, clean_page, faults_of_access
from evalmeta.viewer.export import export
from viewer.test_in_a_browser import WIDTHS, run
from viewer.three_projects import SHOP, TOOL_REMOVED
from viewer.twelve_days import build_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from evalmeta.package.project import Project

pytestmark = pytest.mark.browser
_HOSTILE_AGENT = '''
def answer(utterance):
    """Answer with what would be a program, if a page took it for markup."""
    return "<img src=x onerror='document.title=`stolen`'><script>document.title = 'stolen'</script>" + utterance
'''


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Gives Chromium."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the export of twelve days of runs."""
    folder = tmp_path_factory.mktemp("days") / "shop"
    build_project(SHOP, folder)
    # A store must be opened by a process of its own, because Playwright has an event loop in this one.
    command = [sys.executable, "-m", "evalmeta", "view", "--export", "out"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return folder / "out"


@pytest.fixture(params=WIDTHS)
def page(browser: Browser, days: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Gives the first page, at two widths."""
    with clean_page(browser, "file://", width=request.param) as opened:
        opened.goto((days / "index.html").as_uri())
        yield opened


def test_a_broken_case_is_found_and_explained(page: Page) -> None:
    assert page.locator("h1").inner_text().startswith("8 cases broke since ")
    page.get_by_role("link", name="Actions: missing: Track_Parcel").click()

    expect(page.locator("h1")).to_contain_text("FAILED Case 1 parcel 10001")
    assert page.title() == "Case 1 of tests/orders.yaml - evalmeta"
    assert page.locator(".facing dd").all_inner_texts() == [
        "Get_Customer, Get_Order, Track_Parcel",
        "Get_Customer, Get_Order",
    ]
    head = page.locator("section.verdict").inner_text()
    assert "agent first in " in head
    assert TOOL_REMOVED in head
    turn = page.locator(".turn-card[open]")
    assert turn.locator("pre.answer").inner_text() == "Order 10001 arrives on Friday."
    assert turn.locator(".lane-row.missing").inner_text().startswith("Track_Parcel missing")
    turn.get_by_text("Get_Customer", exact=True).click()
    assert turn.get_by_text("input").first.is_visible()
    assert page.locator("#page > footer code").first.inner_text() == "evalmeta run tests/orders.yaml --case 1"
    squares = page.locator(".square")
    assert squares.last.get_attribute("class") == "square failure"
    squares.first.click()
    expect(page.locator("h1")).to_contain_text("ok Case 1")


def test_back_returns_to_the_link_that_led_away(page: Page) -> None:
    page.get_by_role("link", name="Tests", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("Tests")
    assert page.locator("header [aria-current]").all_inner_texts() == ["Tests"]
    page.get_by_role("link", name="tests/refunds.yaml").click()
    expect(page.locator("h1")).to_contain_text("tests/refunds.yaml")
    page.go_back()

    expect(page.locator("h1")).to_have_text("Tests")
    assert page.evaluate("document.activeElement.textContent").startswith("tests/refunds.yaml")
    page.go_back()
    assert page.locator("h1").inner_text().startswith("8 cases broke since ")
    page.reload()
    assert page.locator("h1").inner_text().startswith("8 cases broke since ")


def test_cases_of_a_run_are_chosen_and_searched(page: Page) -> None:
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_label("Search", exact=True).fill("refunds")
    page.locator("[data-row]:visible").last.get_by_role("link").first.click()
    rows = page.locator("#results [data-row]:visible")
    expect(rows).to_have_count(4)
    page.get_by_label("Cases by verdict").get_by_role("link", name="ok").click()
    expect(page.locator(".chips [aria-current]")).to_contain_text("ok")
    page.get_by_label("Search", exact=True).fill("order 22")
    expect(rows).to_have_count(1)
    page.reload()
    assert page.get_by_label("Search", exact=True).input_value() == "order 22"
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Case 3")


def test_the_cases_of_all_runs_are_searched(page: Page) -> None:
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("sold stock.yaml")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Search")
    rows = page.locator("#results [data-row]")
    expect(rows).to_have_count(4)
    expect(page.locator("main")).to_contain_text("4 case results of all exported runs: sold stock.yaml")
    rows.first.get_by_role("link").click()
    expect(page.locator("h1")).to_contain_text("FAILED Case 4")
    page.go_back()
    expect(rows).to_have_count(4)


def test_each_link_leads_to_a_page(page: Page) -> None:
    seen, waiting = {"#/changes"}, ["#/changes"]
    while waiting:
        address = waiting.pop()
        page.goto(f"{page.url.partition('#')[0]}{address}")
        expect(page.locator("h1")).not_to_have_text("Not shown")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        links = page.evaluate(
            "[...document.querySelectorAll('a[href^=\"#/\"]')].map((link) => link.getAttribute('href'))"
        )
        kinds = {known.partition("?")[0] for known in seen}
        # One page of each kind, and one of each kind that it leads to.
        new = {link.partition("?")[0]: link for link in links if link.partition("?")[0] not in kinds}
        seen |= {*new.values()}
        waiting += new.values()
    assert {known.partition("?")[0].removeprefix("#/") for known in seen} == {
        *("changes", "tests", "runs", "run", "suite", "case", "compare", "trends", "coverage", "org")
    }


def test_a_page_that_was_left_out_says_how_to_see_it(page: Page) -> None:
    page.goto(f"{page.url}#/case?run=4KB000000000999GAA&number=1")

    expect(page.locator("h1")).to_have_text("Not shown")
    assert "evalmeta view shows all." in page.locator("main").inner_text()


@pytest.mark.npm
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_can_be_used_by_everyone(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    for address in ("changes", "tests", "runs", "compare", "trends", "coverage", "org"):
        page.goto(f"{page.url.partition('#')[0]}#/{address}")
        assert faults_of_access(page) == []
    page.goto(f"{page.url.partition('#')[0]}#/changes")
    for name in ("Remove tracking tool", "Actions: missing: Track_Parcel"):
        page.locator("main").get_by_role("link", name=name).first.click()
        expect(page.locator("h1 .pill")).to_be_visible()
        assert faults_of_access(page) == []
        page.go_back()


def test_hostile_answers_run_nothing(browser: Browser, project: Project) -> None:
    (project.root / "order_agent.py").write_text(_HOSTILE_AGENT)
    run(project)
    export(project, project.root / "out")
    with clean_page(browser, "file://") as page:
        page.goto(f"{(project.root / 'out' / 'index.html').as_uri()}#/case?run=4KB000000000001GAA&number=2")
        expect(page.locator("h1")).to_contain_text("Case 2")
        assert page.locator("pre.answer").inner_text().startswith("<img src=x")
        assert page.locator("main img, main script").count() == 0
        assert page.title() == "Case 2 of orders.yaml - evalmeta"


def test_changes_are_read_without_scripts(browser: Browser, days: Path) -> None:
    with clean_page(browser, "file://", script=False) as page:
        page.goto((days / "index.html").as_uri())
        assert page.locator("h1").inner_text().startswith("8 cases broke since ")
        assert page.get_by_role("link", name="Actions: missing: Track_Parcel").is_visible()
        assert page.locator("noscript").inner_text().strip() == "The other pages need JavaScript."


def test_without_its_data_the_page_says_what_is_missing(browser: Browser, project: Project) -> None:
    run(project)
    export(project, project.root / "out")
    (project.root / "out" / "data.js").write_text("")
    with clean_page(browser, "file://") as page:
        page.goto((project.root / "out" / "index.html").as_uri())
        assert page.get_by_role("alert").inner_text().startswith("The other pages cannot be shown: data.js must be")
