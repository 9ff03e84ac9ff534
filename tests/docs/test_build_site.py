from __future__ import annotations

import re
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from build_site import build, list_pages, stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("staged")
    stage(folder)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    stage(folder)
    assert build(folder) == 0
    return folder / "site"


def test_a_link_between_folders_of_the_repository_leads_to_the_page_of_the_site(staged: Path) -> None:
    validation = (staged / "pages/validation.md").read_text()

    assert "[`name-mismatch`](rules/name-mismatch.md)" in validation
    assert (staged / "pages/rules/name-mismatch.md").exists()


def test_pictures_of_pages_are_part_of_the_site(staged: Path) -> None:
    viewing = (staged / "pages/viewing.md").read_text()
    pictures = re.findall(r"\((screenshots/[^)]+)\)", viewing)

    assert len(set(pictures)) >= 27
    assert [picture for picture in pictures if not (staged / "pages" / picture).exists()] == []


def test_a_link_to_a_file_that_is_not_a_page_becomes_text(staged: Path) -> None:
    samples = (staged / "pages/samples.md").read_text()
    pages = (page.read_text() for page in (staged / "pages").rglob("*.md"))

    assert "([table](scoring.md))" in samples
    assert not [page for page in pages if re.search(r"\]\([./]*(src|metadata-samples|xsd)/", page)]


def test_the_name_of_a_file_is_only_in_the_title_of_its_code_block(staged: Path) -> None:
    tutorial = (staged / "pages/tutorials/ci.md").read_text()

    assert 'title="agents.py"' in tutorial
    assert "`agents.py`:" not in tutorial


def test_the_navigation_has_every_page_except_those_of_rules_and_samples(staged: Path) -> None:
    sections = tomllib.loads((staged / "zensical.toml").read_text())["project"]["nav"]
    pages = [page for section in sections for entries in section.values() for page in places(entries)]

    assert len(set(pages)) == len(pages)
    assert set(list_pages().values()) - set(pages) == {
        page for page in list_pages().values() if page.startswith("rules/") or page == "samples.md"
    }


def places(entries: str | list[dict[str, str]]) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    else:
        yield from (page for entry in entries for page in entry.values())


def test_the_python_api_is_described_in_the_site(staged: Path) -> None:
    assert "### evalmeta.evaluate\n" in (staged / "pages/api.md").read_text()


@pytest.mark.slow
def test_the_site_has_all_pages_and_no_broken_link(site: Path) -> None:
    assert {page.relative_to(site).parts[0] for page in site.rglob("index.html")} >= {"tutorials", "rules", "running"}


@pytest.mark.slow
def test_every_code_block_is_shown_as_one(site: Path) -> None:
    assert [page.relative_to(site) for page in site.rglob("index.html") if "```" in page.read_text()] == []


@pytest.mark.slow
@pytest.mark.parametrize("link", ["missing.md", "running.md#missing"])
def test_a_broken_link_fails_the_build(tmp_path: Path, capfd: pytest.CaptureFixture[str], link: str) -> None:
    stage(tmp_path)
    with (tmp_path / "pages/index.md").open("a") as page:
        page.write(f"\n[broken]({link})\n")

    assert build(tmp_path) == 1
    assert "index.md" in capfd.readouterr().out


@pytest.mark.slow
def test_no_page_loads_a_file_of_another_host(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=\"?(https?:)?//[^>]*>")

    assert [tag[0] for page in site.rglob("*.html") for tag in loads.finditer(page.read_text())] == []


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.browser
def test_the_search_finds_rate_limit_and_asks_no_other_host(address: str) -> None:
    from playwright.sync_api import sync_playwright

    requests: list[str] = []
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address, wait_until="networkidle")
        page.get_by_role("button", name="Search").first.click()
        page.get_by_placeholder("Search").or_(page.get_by_role("textbox")).first.fill("rate limit")
        page.get_by_role("option", name="Rate limits and retries").click()
        page.wait_for_url("**/running/**")
        text = page.locator("article").inner_text()
        browser.close()

    assert "--rate-limit" in text
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
    assert errors == []
