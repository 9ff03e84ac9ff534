"""Tests of the tags that results keep, on pages that filter by them, and of the names that files give their tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.store.database import open_database
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

SPEC: Final = """
name: All <orders>
subject: Order_Agent
cases:
  - input: Where is order 12?
    contains: Friday
    tags: [smoke, "a & b"]
  - input: Cancel order 13.
    contains: CONTAINED
    tags: smoke
    metadata: {owner: ann}
  - input: Order 14?
    contains: Friday
"""
SECOND: Final = "4KB000000000002GAA"
NOT_KNOWN: Final = "not say which tags"


@pytest.fixture
def tagged(project: Project, run: Callable[..., int]) -> None:
    """Two runs, of which the second case fails in the later one."""
    settings = project.root / "evalmeta.toml"
    settings.write_text(settings.read_text() + '\n[tags]\nweekly = ["orders:2-3", "Another:1"]\nnever = ["1"]\n')
    for text in ("Friday", "Monday"):
        (project.root / "orders.yaml").write_text(SPEC.replace("CONTAINED", text))
        run()


def cases(html: str) -> list[str]:
    return re.findall(r'data-row id="[\w-]*?-(\d+)-\d+"', html)


@pytest.mark.usefixtures("tagged")
@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("smoke", ["2", "1"]),
        ("weekly", ["2", "3"]),
        ("a%20%26%20b", ["1"]),
        ("owner%3Dann", ["2"]),
        ("owner%3Dbob", []),
        ("never", []),
        ("smok", []),
    ],
)
def test_cases_of_a_run_are_filtered_by_tag(browser: Browser, tag: str, expected: list[str]) -> None:
    html = browser.page(f"/view/runs/{SECOND}?tag={tag}")
    assert cases(html) == expected
    assert NOT_KNOWN not in html


@pytest.mark.usefixtures("tagged")
def test_tags_of_a_run_are_listed_and_stay_in_links(browser: Browser) -> None:
    html = browser.page(f"/view/runs/{SECOND}?tag=owner%3Dann")
    listed = re.search(r'<select id="tag".*?</select>', html, re.DOTALL)
    assert listed
    assert re.findall('value="(.*?)"', listed[0]) == ["", "a &amp; b", "owner=ann", "smoke", "weekly"]
    [passed] = re.findall(r'href="([^"]*verdict=PASS[^"]*)#cases"', html)
    assert "tag=owner%3Dann" in passed
    assert f'href="/view/runs/{SECOND}?tag=weekly"' in browser.page(f"/view/runs/{SECOND}/cases/2")


@pytest.mark.usefixtures("tagged")
def test_runs_from_before_say_that_their_tags_are_not_known(project: Project, browser: Browser) -> None:
    with open_database(project.store) as database:
        database.execute("UPDATE run SET keeps_tags = 0 WHERE id = ?", (SECOND,))
    assert "1 run does not say which tags" in browser.page(f"/view/runs/{SECOND}?tag=smoke")
    assert NOT_KNOWN not in browser.page(f"/view/runs/{SECOND}")
    assert NOT_KNOWN not in browser.page(f"/view/runs/{RUN}?tag=smoke")
    assert "1 run does not say which tags" in browser.page(f"/view/compare?after={SECOND}&tag=smoke")
    assert "1 run does not say which tags" in browser.page("/view?since=previous&tag=smoke")


@pytest.mark.usefixtures("tagged")
def test_compared_cases_are_filtered_by_tag(browser: Browser) -> None:
    found = browser.page(f"/view/compare?after={SECOND}&tag=owner%3Dann")
    assert 'aria-label="case 2"' in found
    assert '<option value="owner=ann" selected>' in found
    assert "No case matches these filters" in browser.page(f"/view/compare?after={SECOND}&tag=a%20%26%20b")


@pytest.mark.usefixtures("tagged")
def test_changes_are_filtered_by_tag(browser: Browser) -> None:
    every = browser.page("/view?since=previous")
    assert '<option value="owner=ann">' in every
    found = browser.page("/view?since=previous&tag=owner%3Dann")
    assert 'class="card preview"' in found
    assert "since=previous&amp;tag=owner%3Dann" in found or "tag=owner%3Dann" in found
    other = browser.page("/view?since=previous&tag=a+%26+b")
    assert "No case with the tag a &amp; b broke" in other
    assert 'class="card preview"' not in other


@pytest.mark.usefixtures("tagged")
def test_the_name_of_a_spec_is_shown_and_found(browser: Browser) -> None:
    for path in (f"/view/runs/{SECOND}", "/view/runs?text=all+%3CORDERS", "/view/tests?text=all+%3Corders"):
        assert 'orders.yaml <span class="dim small">All &lt;orders&gt;</span>' in browser.page(path)
    assert "orders.yaml" not in browser.page("/view/tests?text=no+orders").partition("<tbody>")[2]
