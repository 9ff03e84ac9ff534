"""The first page: what broke since an earlier state."""

from __future__ import annotations

import csv
import re
from html import unescape
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta.api.servers import make_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

LATER = "4KB000000000002GAA"


@pytest.fixture
def two(project: Project, run: Callable[..., int]) -> None:
    """Two runs: in the second, case 1 is a suspect, with a hostile answer."""
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"Orders"', '"Returns"').replace("Friday", "<script>alert(1)</script>"))
    run()


@pytest.mark.usefixtures("two")
def test_a_suspect_case_is_listed_apart_with_its_preview(browser: Browser) -> None:
    html = browser.page("/view")

    assert "No case broke for certain since" in html
    assert "; 1 is suspect" in html
    assert "Suspect: chance may be the reason" in html
    assert "The commit of 1 run is not known." in html
    preview = html.partition('id="preview"')[2]
    assert "Topic: " in preview
    assert f"/view/runs/{LATER}/cases/1" in preview
    assert "evalmeta run orders.yaml --case 1" in preview
    assert "<script>alert" not in html
    assert "&lt;script&gt;" in html
    assert "1 other case not passing, as before" in html


def test_a_new_case_that_is_not_judged_is_on_the_page(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    spec = project.root / "orders.yaml"
    spec.write_text(f"{spec.read_text().rstrip()}\n  - input: Where is it\n")
    run()
    html = browser.page("/view")

    assert "; 1 new case does not pass" in html
    assert "<h2>1 new case not passing</h2>" in html


def test_an_edited_expectation_is_shown_as_it_was_and_is(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    spec = project.root / "orders.yaml"
    spec.write_text(spec.read_text().replace("expectedTopic: Orders", "expectedTopic: Shipments"))
    run("--baseline", "previous")
    preview = browser.page("/view").partition('id="preview"')[2]

    assert re.findall(r'caption">(expected \w+)</div><pre dir="auto"><mark>(\w+)', preview) == [
        ("expected before", "Orders"),
        ("expected now", "Shipments"),
    ]


def test_an_answer_that_was_judged_is_shown_once(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    spec, agent = project.root / "orders.yaml", project.root / "order_agent.py"
    spec.write_text(spec.read_text().replace("expectedTopic: Orders", "contains: Friday"))
    run()
    agent.write_text(agent.read_text().replace("Friday", "Monday"))
    run()
    preview = browser.page("/view").partition('id="preview"')[2]

    assert "answer now" in preview
    assert ">actual<" not in preview


def test_a_crash_is_shown_with_its_place(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text() + "\ndef answer(utterance):\n    return {}[utterance]\n")
    run()
    preview = browser.page("/view").partition('id="preview"')[2]

    assert "<details open><summary>Where the agent failed</summary>" in preview
    assert "return {}[utterance]" in preview


def test_a_long_reason_is_shown_to_its_end(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text() + "\ndef answer(utterance):\n    raise OSError('x' * 150 + ' is closed')\n")
    run()
    causes, _, preview = browser.page("/view").partition('id="preview"')

    assert "xxx is closed</a>" in causes
    assert "xxx is closed</h2>" in preview


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("base", ["nonsense", "4KB999999999999GAA", "../../passwd.json", "<script>alert(1)</script>"])
def test_what_is_no_base_is_said_and_is_no_green(browser: Browser, base: str) -> None:
    browser.log_in()
    html = browser.client.get("/view", params={"other": base}).text

    assert 'role="alert"' in html
    assert "broke" not in html
    assert "<script>alert" not in html


def test_a_first_run_has_nothing_to_compare_with(browser: Browser, run: Callable[..., int]) -> None:
    assert "No test has run yet" in browser.page("/view")
    run()
    html = browser.page("/view")

    assert "There is nothing to compare with" in html
    assert "orders.yaml: it did not run before" in html
    assert "No case" not in html


@pytest.mark.usefixtures("two")
def test_the_base_is_chosen_by_the_form_and_kept_in_links(browser: Browser) -> None:
    html = unescape(browser.page("/view?since=previous"))

    assert '<option value="previous" selected>' in html
    assert f"/view?chosen={LATER}-1&since=previous" in html
    assert "evalmeta changes --since previous" in html


@pytest.mark.usefixtures("two")
def test_users_see_changes_of_their_own_runs_only(project: Project, browser: Browser) -> None:
    browser.log_in(make_token(project, username="ann"))
    html = browser.client.get("/view").text

    assert "No test has run yet" in html
    assert "orders.yaml" not in html


def test_the_branch_of_the_newest_results_is_named_and_another_one_chosen(
    project: Project, browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.root / "more.yaml").write_text((project.root / "orders.yaml").read_text())
    monkeypatch.setenv("GITHUB_HEAD_REF", "main")
    run(str(project.root / "more.yaml"))
    run(str(project.root / "more.yaml"))
    assert "the newest results are of the branch main" in browser.page("/view")
    assert 'name="branch"' not in browser.page("/view")

    monkeypatch.setenv("GITHUB_HEAD_REF", "fix")
    run()

    html = browser.page("/view")
    assert "the newest results are of the branches" in html
    assert "fix (1 test)" in html
    html = browser.page("/view?branch=main")
    assert '<option value="main" selected>' in html
    assert "the newest results are of the branch main" in html
    assert "evalmeta changes --branch main" in html
    assert "no run of the branch" in browser.page("/view?branch=nothing")


@pytest.mark.usefixtures("two")
def test_the_cases_that_changed_are_a_table_and_a_csv_file(browser: Browser) -> None:
    assert 'href="/view/changed?since=previous"' in browser.page("/view?since=previous")

    html = browser.page("/view/changed?since=previous&sort=case&columns=case.change")

    assert re.findall(rf'href="(/view/runs/{LATER}/cases/\d)"', html) == [f"/view/runs/{LATER}/cases/1"]
    assert "evalmeta changes --since previous" in html
    assert "<script>alert" not in html
    [row] = csv.DictReader(browser.page("/view/csv/changed?since=previous").splitlines())
    assert (row["Change"], row["Test"], row["Case"], row["Run"]) == ("suspect", "orders.yaml", "1", LATER)
    assert "No case changed." in browser.page("/view/changed?tag=nothing")
    browser.log_in()
    assert browser.client.get("/view/changed?since=nonsense").status_code == httpx.codes.BAD_REQUEST


@pytest.mark.usefixtures("two")
def test_exact_times_are_shown_on_hover(browser: Browser) -> None:
    html = browser.page("/view?since=previous")

    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    assert re.search(rf'<h1 title="since {moment}">', html)
    assert re.search(rf'<span title="{moment}">', html)
