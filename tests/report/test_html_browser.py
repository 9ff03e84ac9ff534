"""What the script of an HTML report does in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

import report_runs as make
from chromium import faults_of_access
from evalmeta.report import render

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def has_script(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def page(browser: Browser, tmp_path: Path, *, has_script: bool) -> Iterator[Page]:
    """Gives the page of three runs, 400 px wide; it makes no request and has no error."""
    file = tmp_path / "report.html"
    file.write_text(render("html", [make.mixed(), make.compared(), make.conversations()]), encoding="utf-8")
    context = browser.new_context(viewport={"width": 400, "height": 800}, java_script_enabled=has_script)
    found, errors, requests = context.new_page(), list[str](), list[str]()
    found.on("console", lambda message: errors.append(message.text))
    found.on("pageerror", lambda error: errors.append(str(error)))
    found.on("request", lambda request: requests.append(request.url))
    found.goto(file.as_uri())
    yield found
    assert (errors, {*requests}) == ([], {file.as_uri()})
    context.close()


def shown(page: Page) -> list[str]:
    """Return the utterances of the cases that can be seen."""
    return [each.text_content() or "" for each in page.locator(".case > summary .utterance").all() if each.is_visible()]


def test_the_filter_chooses_cases_of_all_runs(page: Page) -> None:
    page.locator(".filter label", has_text="known failure 1").click()
    assert shown(page) == ["Question 2?"]
    page.locator(".filter label", has_text="maybe fixed 1").click()
    assert shown(page) == ["Question 1?"]
    page.locator(".filter label", has_text="undecided results 3").click()
    assert shown(page) == [make.MIXED_CASES[number].utterance for number in (0, 1, 3)]


@pytest.mark.parametrize("has_script", [True], indirect=True)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("thank you", ["Thank you!"]),
        ("12500 euros", ["How much do I get back?"]),
        ("missing: PrintLabel", [make.MIXED_CASES[1].utterance]),
        ("bot_response_rating", ["How much do I get back?"]),
        ("within 120 s", ["Please print the label for return R-100"]),
        ("how long may", ["How long may I return what I bought?"]),
        ("nothing has this", []),
    ],
)
def test_the_search_finds_all_texts_of_a_case_and_unfolds_it(page: Page, text: str, found: list[str]) -> None:
    page.keyboard.press("/")
    page.keyboard.type(text)
    assert shown(page) == found
    assert page.locator("output").inner_text() == f"{len(found)} of 11 cases"
    page.get_by_role("searchbox").fill("")
    assert page.locator(".rest[open]").count() == 0


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_keys_go_from_case_to_case(page: Page) -> None:
    for key in ("j", "j", "k", "j", "j"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    assert page.locator(".case[open] .utterance").all_inner_texts()[1] == "Please print the label for return R-100"
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog", name="Keys").is_hidden()


def test_a_narrow_window_needs_no_scrolling_to_the_side(page: Page) -> None:
    assert page.locator("html").evaluate("each => each.scrollWidth") == 400


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_open_all_opens_the_cases_of_a_run_that_passed(page: Page, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(render("html", [make.report(make.PASSED)]), encoding="utf-8")
    page.reload()
    page.get_by_role("button", name="open all").click()
    assert page.locator(".case[open] .answer").is_visible()


@pytest.mark.npm
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_and_use_the_report(
    browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    file = tmp_path / "report.html"
    file.write_text(render("html", [make.mixed(), make.compared(), make.conversations()]), encoding="utf-8")
    page = browser.new_page(color_scheme=scheme)
    page.goto(file.as_uri())
    faults = faults_of_access(page)
    page.close()

    assert not faults, "\n".join(faults)
