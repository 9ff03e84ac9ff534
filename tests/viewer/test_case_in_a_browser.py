"""The page of a case in Chromium: a conversation of three turns that passed, and then lost a word and a call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from chromium import faults_of_access
from viewer.conftest import RUN
from viewer.test_in_a_browser import LATER, WIDTHS, Started, address, browser, log_in, page_of, run, viewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from evalmeta.package.project import Project

__all__ = ["browser", "viewer"]
pytestmark = pytest.mark.browser
CASE: Final = f"/view/runs/{LATER}/cases/1"
_AGENT: Final = '''
def answer(utterance):
    """Say when an order arrives."""
    find = {"name": "Find_Order", "input": {"id": "<b>"}, "output": {"day": "Friday"}, "latency_ms": 20.0}
    track = {"name": "Track_Parcel", "latency_ms": 30.0}
    return {"actions": [find, track], "latency_ms": 80.0, "outcome": "- **On** Friday: " + utterance}
'''
_SPEC: Final = """
subjectName: Order_Agent
testCases:
  - turns:
      - utterance: Hello
        contains: Hello
      - utterance: Where is it?
        actions: [Find_Order, Track_Parcel]
        contains: Friday
      - utterance: Thanks
        contains: Thanks
"""


@pytest.fixture
def project(project: Project) -> Project:
    """Gives a project whose test is one conversation; `viewer` makes the agent say Monday after the first run."""
    (project.root / "order_agent.py").write_text(_AGENT)
    (project.root / "orders.yaml").write_text(_SPEC)
    return project


@pytest.fixture
def lost(project: Project, viewer: Started) -> Started:
    """Gives the viewer after a third run, in which the second turn lost its last call, too."""
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace("[find, track]", "[find]"))
    run(project)
    return viewer


THIRD: Final = CASE.replace(LATER, RUN.replace("1GAA", "3GAA"))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_failure_is_seen_at_once_and_a_step_shows_its_input(browser: Browser, lost: Started, width: int) -> None:
    with page_of(browser, lost, width=width) as page:
        page.goto(address(page, THIRD))
        head = page.get_by_role("region", name="Result")
        assert "turn 2 of 3" in head.inner_text()
        assert "Track_Parcel missing" in page.locator(".lane-row.missing").inner_text()
        assert page.locator("details.turn-card[open]").count() == 1
        assert {"Friday", "Monday"} <= {*page.locator(".result mark").all_inner_texts()}

        cut = "names => names.filter(name => name.scrollWidth > name.clientWidth).length"
        assert page.locator(".lane-row .name").evaluate_all(cut) == 0

        page.locator(".waterfall").get_by_role("link", name="Find_Order").first.click()
        expect(page.locator("#turn-2-step-1")).to_be_visible()
        assert "<b>" in page.locator("#turn-2-step-1").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        head.get_by_role("link", name="Go to this expectation").click()
        expect(page.locator(":target")).to_be_in_viewport()


def test_without_scripts_the_page_is_complete(browser: Browser, lost: Started) -> None:
    with page_of(browser, lost, script=False) as page:
        page.goto(address(page, THIRD))
        page.locator(".waterfall").get_by_role("link", name="Find_Order").first.click()
        expect(page.locator("#turn-2-step-1")).to_be_visible()
        page.get_by_label("as sent").check()
        expect(page.locator("#turn-2 pre.as-sent")).to_be_visible()
        expect(page.locator("#turn-2 div.rendered")).to_be_hidden()
        page.locator(".square.pass").first.click()
        assert page.url.endswith(f"/runs/{RUN}/cases/1")
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", page.locator("time").first.inner_text())


def test_times_are_relative_and_exact_on_hover(browser: Browser, lost: Started) -> None:
    with page_of(browser, lost) as page:
        page.goto(address(page, THIRD))
        time = page.locator("time").first

        assert re.fullmatch(r"now|\d+ (second|minute)s? ago", time.inner_text())
        assert re.search(r"\(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)$", time.get_attribute("title") or "")


def test_a_chosen_theme_stays(browser: Browser, lost: Started) -> None:
    with page_of(browser, lost) as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Theme: system").click()
        page.get_by_role("button", name="Theme: light").click()
        dark = page.evaluate(ground)
        page.goto(address(page, THIRD))

        page.get_by_role("button", name="Theme: dark").wait_for()
        assert light != dark == page.evaluate(ground)


def test_after_back_the_link_has_the_focus(browser: Browser, lost: Started) -> None:
    with page_of(browser, lost) as page:
        page.goto(address(page, "/view/runs"))
        link = page.locator("[data-row] a").nth(2)
        href = link.get_attribute("href")
        link.click()
        page.get_by_role("heading", name="Cases").wait_for()
        page.go_back()

        page.wait_for_function("document.activeElement.matches('[data-row] a')")
        assert page.evaluate("document.activeElement.getAttribute('href')") == href


@pytest.mark.npm
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everyone_can_read_and_use_the_page(browser: Browser, lost: Started, *, dark: bool) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark" if dark else "light")
    log_in(page, lost)
    faults = list[str]()
    for path in (THIRD, f"{THIRD}/text?part=turn-2-answer"):
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(address(page, path))
            faults += faults_of_access(page)
    page.context.close()

    assert not faults, "\n".join(faults)
