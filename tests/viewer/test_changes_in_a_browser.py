"""Stores of twelve days: the first page says what broke since yesterday, why, by whose fault, and since when."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from chromium import chromium, clean_page, faults_of_access
from viewer.test_in_a_browser import WIDTHS, Started, log_in
from viewer.three_projects import PROJECTS, SHOP, ExampleProject
from viewer.twelve_days import build_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from playwright.sync_api._generated import Cookie

    Open = Callable[..., AbstractContextManager[Page]]

pytestmark = pytest.mark.browser
SHOP_ONLY: Final = pytest.mark.parametrize("project", [SHOP], ids=["shop"], indirect=True)


class Viewer(NamedTuple):
    """A viewer, and the cookies of a browser that has logged in."""

    started: Started
    cookies: Sequence[Cookie]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Gives Chromium."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module", params=PROJECTS, ids=[project.name for project in PROJECTS])
def project(request: pytest.FixtureRequest) -> ExampleProject:
    """Gives each project."""
    chosen: ExampleProject = request.param
    return chosen


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory, project: ExampleProject) -> Path:
    """Gives the folder of a project with twelve days of runs."""
    folder = tmp_path_factory.mktemp("days") / project.name
    build_project(project, folder, cases=10_000)
    return folder


@pytest.fixture(scope="module")
def viewer(browser: Browser, days: Path) -> Iterator[Viewer]:
    """Gives a viewer over the twelve days of a project."""
    command = [sys.executable, "-m", "evalmeta", "view", "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=days, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url, code = (process.stdout.readline().split()[1] for _ in range(2))
        context = browser.new_context()
        log_in(context.new_page(), Started(url, code))
        yield Viewer(Started(url, code), context.cookies())
        context.close()
        process.send_signal(signal.SIGINT)


@pytest.fixture
def opened(browser: Browser, viewer: Viewer) -> Open:
    """Opens the first page; it must log no error."""

    @contextmanager
    def open_page(*, width: int = 1280, script: bool = True, dark: bool = False) -> Iterator[Page]:
        with clean_page(browser, viewer.started.origin, width=width, script=script, dark=dark) as page:
            page.context.add_cookies([*viewer.cookies])
            page.goto(viewer.started.url)
            yield page

    return open_page


def check_answers(page: Page, project: ExampleProject) -> None:
    """Check what the first page says without a click."""
    assert page.locator("h1").inner_text().startswith("8 cases broke since ")
    assert page.locator(".faults dd:first-of-type").all_inner_texts() == ["4", "1", "2", "1"]
    causes = page.locator(".cause").all_inner_texts()
    for words in project.broken:
        assert any(all(word in cause for word in words) for cause in causes), causes
    suspects = page.locator("h2:has-text('Suspect') ~ .cause").all_inner_texts()
    assert [project.suspect in suspect for suspect in suspects] == [True]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without"])
def test_two_clicks_lead_from_what_broke_to_the_case(
    opened: Open, project: ExampleProject, width: int, *, script: bool
) -> None:
    with opened(width=width, script=script) as page:
        check_answers(page, project)
        page.locator(".cause", has_text="JSONDecodeError").get_by_role("link", name="Preview").click()
        assert "JSONDecodeError" in page.locator("#preview h2").inner_text()
        page.get_by_role("link", name="Open the case").click()
        assert "Case 5" in page.locator("h1").inner_text()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without"])
def test_one_click_shows_the_call_that_is_missing(
    opened: Open, project: ExampleProject, width: int, *, script: bool
) -> None:
    with opened(width=width, script=script) as page:
        page.locator(".cause", has_text=project.broken[0].cause).get_by_role("link").first.click()
        assert project.missing in page.locator(".waterfall").inner_text()


def test_the_page_of_a_case_says_whose_fault_it_is_and_since_when(opened: Open, project: ExampleProject) -> None:
    for broken in project.broken:
        with opened() as page:
            page.locator(".cause", has_text=broken.cause).get_by_role("link").first.click()
            head = page.locator("section.verdict").inner_text()
            assert broken.fault in head
            assert broken.since in head


def test_keys_choose_a_cause_and_open_its_case(opened: Open) -> None:
    with opened() as page:
        causes = page.locator(".cause h2 a").all_inner_texts()
        assert page.locator("#preview-title").inner_text() == causes[0]
        for cause in causes[1:]:
            page.keyboard.press("j")
            page.locator("#preview-title", has_text=cause).wait_for()
        page.keyboard.press("k")
        page.locator("#preview-title", has_text=causes[-2]).wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url("**/cases/*")
        assert page.locator("h1").inner_text().startswith(("FAILED", "ERROR"))


@SHOP_ONLY
def test_a_narrow_window_has_at_most_two_lines_of_sections_and_of_faults(opened: Open) -> None:
    lines = "found => [...new Set(found.map(element => element.offsetTop))].length"
    with opened(width=400) as page:
        assert page.locator("header nav a").evaluate_all(lines) <= 2
        assert page.locator("header nav").evaluate("nav => nav.scrollWidth <= nav.clientWidth")
        assert page.locator(".faults > div").evaluate_all(lines) == 2


@SHOP_ONLY
def test_a_grid_of_twelve_runs_scrolls_inside_a_narrow_window(opened: Open) -> None:
    with opened(width=400) as page:
        page.goto(f"{page.url}/grid?test=tests/orders.yaml")
        assert page.locator(".grid a.square").count() == 60
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@SHOP_ONLY
def test_a_screen_reader_gets_the_verdict_of_each_square(opened: Open) -> None:
    with opened() as page:
        page.locator(".cause").get_by_role("link").first.click()
        squares = page.get_by_role("navigation", name="This case in the latest runs")
        names = re.findall(r'link "(.*?)"', squares.aria_snapshot())
        assert [name.split(",")[0] for name in names] == [*["ok"] * 11, "FAILED"]


def test_an_older_base_shows_what_broke_since_then(opened: Open) -> None:
    with opened() as page:
        page.get_by_label("or with a run, a branch, a day").fill("5d")
        page.get_by_role("button", name="Compare").click()
        page.get_by_text("2 commits tested since").wait_for()
        assert page.locator(".cause", has_text="Other answers for one").count() == 1


@pytest.mark.npm
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_can_be_used_by_everyone(opened: Open, width: int, *, dark: bool) -> None:
    with opened(width=width, dark=dark) as page:
        assert faults_of_access(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
