"""The viewer as people use it: a real server, a real store, Chromium."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from playwright.sync_api import expect

from chromium import chromium, clean_page, faults_of_access
from evalmeta.api.servers import make_token
from org.servers import wait_for
from viewer.conftest import RUN
from viewer.test_review import SPEC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from evalmeta.package.project import Project

pytestmark = pytest.mark.browser
SAMPLES: Final = Path(__file__).parents[2] / "metadata-samples"
LATER: Final = "4KB000000000002GAA"
_WAITING_AGENT: Final = """
import pathlib, time

def answer(utterance):
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return utterance
"""
WIDTHS: Final = (1280, 400)
PAGES: Final = (
    "/view",
    "/view/tests",
    "/view/runs",
    f"/view/runs/{LATER}",
    f"/view/runs/{LATER}?group=cause&sort=-latency&columns=case.why.answer",
    f"/view/runs/{LATER}/cases/2",
    f"/view/runs/{LATER}/cases/2/accept?iteration=1&result=topic_sequence_match",
    f"/view/compare?after={LATER}",
    f"/view/compare/cases?after={LATER}",
    "/view/review",
    "/view/trends",
    "/view/grid",
    "/view/org",
    "/view/runs/unknown",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Gives Chromium."""
    with chromium() as started:
        yield started


def run(project: Project) -> None:
    """Run the test in a process of its own, because Playwright has an event loop in this one."""
    command = [sys.executable, "-m", "evalmeta", "run", "orders.yaml"]
    assert subprocess.run(command, cwd=project.root, capture_output=True, check=False).returncode in {0, 1, 100}


class Started(NamedTuple):
    """What `evalmeta view` printed."""

    url: str
    code: str

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/view")


@pytest.fixture
def viewer(project: Project) -> Iterator[Started]:
    """Gives a viewer over two runs: in the second, case 1 fails too."""
    run(project)
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"Orders"', '"Returns"').replace("Friday", "Monday"))
    run(project)
    command = [sys.executable, "-m", "evalmeta", "view", "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url, code = (process.stdout.readline().split()[1] for _ in range(2))
        yield Started(url, code)
        process.send_signal(signal.SIGINT)


def log_in(page: Page, viewer: Started) -> None:
    """Enter the code."""
    page.goto(viewer.url)
    page.get_by_label("Code or access token").fill(viewer.code)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("navigation").wait_for()


@contextmanager
def page_of(browser: Browser, viewer: Started, *, width: int = 1280, script: bool = True) -> Iterator[Page]:
    """Yield a page that has logged in, and must log no error from then on."""
    context = browser.new_context(java_script_enabled=script)
    log_in(context.new_page(), viewer)
    with clean_page(browser, viewer.origin, width=width, script=script) as page:
        page.context.add_cookies(context.cookies())
        context.close()
        page.goto(viewer.url)
        yield page


@pytest.fixture(params=WIDTHS)
def page(browser: Browser, viewer: Started, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Gives a page that has logged in, at two widths."""
    with page_of(browser, viewer, width=request.param) as opened:
        yield opened


def address(page: Page, path: str) -> str:
    return page.url.partition("/view")[0] + path


def test_a_failure_is_found_explained_and_compared(page: Page) -> None:
    page.get_by_role("link", name="orders.yaml").click()
    page.locator("[data-row]").first.get_by_role("link").click()
    assert page.locator("h1").inner_text().startswith("FAILED Case")
    assert page.locator(".result mark").all_inner_texts()[-1] in {"Returns", "Orders", "Cancellations"}

    page.get_by_role("link", name="orders.yaml").first.click()
    page.get_by_role("link", name="Compare with the previous run").click()
    assert "1 suspect" in page.locator(".outcome").inner_text()
    assert page.locator(".compared .changed-result mark").all_inner_texts() == ["Orders", "Returns"]
    assert page.locator(".compared .neutral mark").all_inner_texts() == ["Friday", "Monday"]


def test_results_are_reviewed_by_key(page: Page, project: Project) -> None:
    (project.root / "orders.yaml").write_text(SPEC)
    run(project)
    page.goto(address(page, "/view/review"))
    page.keyboard.press("1")
    expect(page.locator("h1")).to_contain_text("1 result")
    page.keyboard.press("s")
    expect(page.locator("h1")).to_contain_text("1 result")
    page.keyboard.press("2")
    expect(page.get_by_text("Nothing to review")).to_be_visible()


def test_a_mark_is_made_and_shown(page: Page) -> None:
    page.goto(address(page, f"/view/runs/{LATER}/cases/2"))
    judge = page.locator(".judge").first
    judge.locator("summary").click()
    judge.get_by_label("Note").fill("the topic is right")
    judge.get_by_role("button", name="Wrong").click()

    assert "the topic is right" in page.locator(".mark.wrong").inner_text()


def test_the_slash_key_searches_all_runs(page: Page) -> None:
    page.goto(address(page, "/view/runs"))
    page.keyboard.press("/")
    page.keyboard.type("cancel")
    page.keyboard.press("Enter")
    page.wait_for_url("**/view/search?q=cancel")
    assert page.locator("mark").first.inner_text() == "Cancel"


def test_typing_filters_and_keeps_the_focus(page: Page) -> None:
    page.goto(address(page, f"/view/runs/{LATER}"))
    search = page.get_by_label("Search", exact=True)
    search.press_sequentially("cancel")
    expect(page.locator("[data-row]")).to_have_count(1)

    assert page.evaluate("document.activeElement.id") == "text"
    assert search.input_value() == "cancel"
    assert page.url.endswith("?text=cancel")
    page.reload()
    assert page.locator("[data-row]").count() == 1


def test_the_command_follows_what_is_chosen(page: Page) -> None:
    page.goto(address(page, "/view/runs"))
    page.get_by_role("combobox", name="Test", exact=True).select_option("orders.yaml")
    page.get_by_text("evalmeta test history orders.yaml").wait_for()
    page.get_by_role("button", name="Copy").wait_for()


def test_keys_go_through_the_rows(page: Page) -> None:
    page.goto(address(page, f"/view/runs/{LATER}"))
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.locator("[data-row]").first.get_attribute("class") == "current"
    page.keyboard.press("Enter")
    page.wait_for_url("**/cases/*")
    first = page.locator("h1").inner_text()
    page.keyboard.press("n")
    expect(page.locator("h1")).not_to_have_text(first)
    page.keyboard.press("p")
    expect(page.locator("h1")).to_have_text(first)

    page.goto(address(page, "/view/runs"))
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.press("Tab")
    page.locator("h1").click()
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()


def test_a_test_may_be_called_like_the_help(page: Page, project: Project) -> None:
    sample = SAMPLES / "aiEvaluationDefinitions/Refund_Limits.aiEvaluationDefinition"
    folder = project.root / "aiEvaluationDefinitions"
    folder.mkdir()
    (folder / "keys.aiEvaluationDefinition").write_text(sample.read_text().replace(sample.stem, "keys"))
    (project.root / "package.xml").write_text((SAMPLES / "package.xml").read_text())
    command = [sys.executable, "-m", "evalmeta", "deploy", "--manifest", "package.xml"]
    assert subprocess.run(command, cwd=project.root, capture_output=True, check=False).returncode == 0
    page.goto(address(page, "/view/tests"))
    page.locator("tr#keys").wait_for()
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()


def test_the_command_is_copied(page: Page) -> None:
    page.goto(address(page, f"/view/runs/{LATER}"))
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()

    assert page.evaluate("navigator.clipboard.readText()") == f"evalmeta test results --job-id {LATER}"


def test_a_trend_is_drawn(page: Page) -> None:
    page.goto(address(page, "/view/trends"))
    latency = page.locator(".chart", has_text="Latency")
    assert latency.locator(".key").all_inner_texts() == ["p50", "p95"]
    assert latency.locator("a").count() == 4
    rate = page.locator(".chart", has_text="Pass rate")
    last = rate.get_by_role("link", name=f"0 %: run {LATER}, FAILED")
    assert re.search(r", \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", last.locator("title").text_content() or "")

    last.click()
    page.wait_for_url(f"**/runs/{LATER}")


def test_no_page_is_wider_than_the_window(page: Page) -> None:
    for path in PAGES[:-1]:
        page.goto(address(page, path))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_is_followed_without_reloading(browser: Browser, project: Project, viewer: Started, width: int) -> None:
    gate = project.root / "go"
    (project.root / "order_agent.py").write_text(_WAITING_AGENT)
    with page_of(browser, viewer, width=width) as page:
        page.goto(address(page, "/view/runs"))
        page.evaluate("window.isSame = true")
        page.keyboard.press("j")
        command = [sys.executable, "-m", "evalmeta", "run", "orders.yaml"]
        with subprocess.Popen(command, cwd=project.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            page.get_by_text(re.compile("running|waiting")).first.wait_for()
            gate.touch()
        expect(page.locator("[data-row]")).to_have_count(3)
        expect(page.locator(".pill.running")).to_have_count(0)

        assert page.evaluate("window.isSame")
        assert page.locator(".current").get_attribute("id") == LATER


def test_pages_are_read_and_searched_without_scripts(browser: Browser, viewer: Started) -> None:
    with page_of(browser, viewer, script=False) as page:
        page.goto(address(page, f"/view/runs/{RUN}"))
        page.get_by_label("Search", exact=True).fill("cancel")
        page.get_by_role("button", name="Show").click()
        assert page.locator("[data-row]").count() == 1
        page.goto(address(page, "/view/trends"))
        assert page.locator(".plot a").first.is_visible()


def test_a_deep_link_survives_a_login_that_succeeds_at_last(browser: Browser, viewer: Started) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{viewer.url}/runs?test=orders.yaml&outcome=failed")
    assert page.locator("h1").inner_text() == "Log in"
    assert page.evaluate("document.activeElement.id") == "token"
    page.get_by_label("Code or access token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    assert page.get_by_role("alert").inner_text().startswith("This code or token is not valid")
    page.get_by_label("Code or access token").fill(viewer.code.lower())
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    assert page.url == f"{viewer.url}/runs?test=orders.yaml&outcome=failed"
    assert page.get_by_role("combobox", name="Result").input_value() == "failed"
    context.close()


def test_a_file_logs_in_and_leaves_no_code_in_history_and_referrer(browser: Browser, project: Project) -> None:
    code_file = project.root / "code"
    script = f"""
import asyncio, pathlib, webbrowser
from evalmeta.package.project import find_project
from evalmeta.viewer.server import serve_view

def show(start):
    webbrowser.open = lambda address: pathlib.Path({str(code_file)!r}).write_text(address)
    start.open_browser()

asyncio.run(serve_view(find_project(pathlib.Path.cwd()), port=0, on_start=show))
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=project.root) as process:
        try:
            file = wait_for(lambda: code_file.exists() and code_file.read_text())
            context = browser.new_context()
            page, addresses = context.new_page(), list[tuple[str, str]]()
            page.on("request", lambda request: addresses.append((request.url, request.headers.get("referer", ""))))
            page.goto("about:blank")
            page.goto(file)
            page.get_by_role("button", name="Log out").wait_for()
            [opening] = [url for url, _ in addresses if "/view/open?code=" in url]

            assert page.url.endswith("/view")
            assert page.evaluate("document.referrer") == ""
            assert opening.partition("?code=")[2] not in "".join(referrer for _, referrer in addresses)
            page.go_back()
            assert page.url == "about:blank"
            page.goto(opening)
            page.get_by_role("alert").wait_for()
            context.close()
        finally:
            process.send_signal(signal.SIGINT)
    assert not Path(file.removeprefix("file://")).exists()


def test_a_page_of_another_site_logs_nobody_in(browser: Browser, viewer: Started, project: Project) -> None:
    token = make_token(project, username="mallory")
    evil = "http://evil.example/"
    context = browser.new_context()
    form = f'<form method=post action="{viewer.url}/login"><input name=token value="{token}"><button>Go</button></form>'
    html = f'{form}<a href="{viewer.url}?token={token}">Link</a>'
    context.route(f"{evil}**", lambda route: route.fulfill(body=html, content_type="text/html"))
    page = context.new_page()
    page.goto(evil)
    with page.expect_response(f"{viewer.url}/login") as refused:
        page.get_by_role("button").click()
    assert refused.value.status == 403
    page.goto(evil)
    page.get_by_role("link").click()
    page.get_by_label("Code or access token").wait_for()
    assert context.cookies() == []
    context.close()


def test_a_log_out_ends_the_session_in_all_tabs(browser: Browser, viewer: Started) -> None:
    context = browser.new_context()
    page, other = context.new_page(), context.new_page()
    log_in(page, viewer)
    other.goto(viewer.url)
    page.get_by_role("button", name="Log out").click()
    assert page.get_by_role("status").inner_text() == "You have logged out."
    # The other tab follows runs, and hears that the session has ended.
    other.get_by_label("Code or access token").wait_for()
    context.close()


def test_a_page_that_nobody_sees_does_not_follow_runs(page: Page, project: Project) -> None:
    hide = """hidden => { Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange")); }"""
    page.goto(address(page, "/view/runs"))
    page.evaluate(hide, True)
    run(project)
    page.wait_for_timeout(1_500)
    assert page.locator("[data-row]").count() == 2
    page.evaluate(hide, False)
    expect(page.locator("[data-row]")).to_have_count(3)


def test_who_types_after_the_session_has_ended_sees_the_login(browser: Browser, viewer: Started) -> None:
    context = browser.new_context()
    page = context.new_page()
    log_in(page, viewer)
    page.goto(f"{viewer.url}/tests")
    context.clear_cookies()
    page.get_by_label("Search", exact=True).press_sequentially("orders")
    page.get_by_label("Code or access token").wait_for()
    context.close()


@pytest.mark.npm
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everyone_can_read_and_use_the_pages(
    browser: Browser, project: Project, viewer: Started, *, dark: bool
) -> None:
    copytree(SAMPLES / "aiEvaluationDefinitions", project.root / "aiEvaluationDefinitions")
    command = [sys.executable, "-m", "evalmeta", "deploy"]
    subprocess.run(command, cwd=project.root, capture_output=True, check=True)
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark" if dark else "light")
    page.goto(viewer.url)
    faults = faults_of_access(page)
    log_in(page, viewer)
    page.goto(address(page, "/view/org"))
    job = page.locator("a[href*='/jobs/']").first.get_attribute("href")
    for path in (*PAGES, job or "", f"/view/compare?after={LATER}&standing=still%20failing"):
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(address(page, path))
            faults += faults_of_access(page)
    page.context.close()

    assert not faults, "\n".join(faults)
