"""The page of several runs side by side."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from evalmeta import limits
from evalmeta.cli.main import main
from evalmeta.viewer.export import export
from viewer.conftest import RUN
from viewer.exports import read_export

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

SECOND, THIRD = "4KB000000000002GAA", "4KB000000000003GAA"
_AGENTS: Final = """
[subjects.Order_Agent]
adapter = "python"
target = "order_agent:answer"

[subjects.Other_Agent]
adapter = "python"
target = "order_agent:other"
"""
_OTHER: Final = '''

def other(utterance):
    """Say that every order is cancelled."""
    return {"topic": "Cancellations", "actions": [], "outcome": "It is cancelled: " + utterance}
'''


@pytest.fixture
def matrix(project: Project, run: Callable[..., int]) -> None:
    """Gives the suite of a command that asked two agents; the first passes case 1, the second case 2."""
    (project.root / "evalmeta.toml").write_text(_AGENTS)
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text() + _OTHER)
    run("--matrix", "subject=Order_Agent,Other_Agent")


def rows(html: str) -> list[str]:
    """Return the text of each row of cases."""
    found = re.findall(r"<tr data-row>(.*?)</tr>", html, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", row)).split()) for row in found]


@pytest.mark.usefixtures("matrix")
def test_the_agents_of_a_command_are_side_by_side(browser: Browser) -> None:
    runs = browser.page("/view/runs")
    [suite] = set(re.findall(r"/view/suites/([\w-]+)", runs))
    page = browser.page(f"/view/suites/{suite}")
    [address] = re.findall(r'href="(/view/matrix\?suite=[\w-]+)"', page)

    html = browser.page(address)

    assert "Order_Agent" in html
    assert "Other_Agent against Order_Agent: 50 % against 50 % of 2 cases: no significant difference" in html
    first, second = rows(html)
    assert re.match(r"orders.yaml case 1 Where is order 12\? ok case 1 FAILED case 1 topic.*got Cancellations", first)
    assert "Cancel order 13." in second
    assert f'href="/view/runs/{SECOND}/cases/1"' in html
    assert f"/view/compare?before={RUN}&amp;after={SECOND}" in html


def test_a_command_with_one_agent_has_no_matrix(browser: Browser, run: Callable[..., int]) -> None:
    run()
    [suite] = set(re.findall(r"/view/suites/([\w-]+)", browser.page("/view/runs")))

    assert "/view/matrix" not in browser.page(f"/view/suites/{suite}")
    reply = browser.client.get(f"/view/matrix?suite={suite}")
    assert reply.status_code == httpx.codes.NOT_FOUND
    assert "fewer than two runs" in reply.text


@pytest.fixture
def three(project: Project, run: Callable[..., int]) -> None:
    """Gives three runs of one test: the agent gets case 1 wrong in the second one."""
    agent = project.root / "order_agent.py"
    good = agent.read_text()
    run()
    agent.write_text(good.replace('"topic": "Orders"', '"topic": "Nothing"'))
    run()
    agent.write_text(good)
    run()


@pytest.mark.usefixtures("three")
def test_chosen_runs_are_side_by_side_and_cases_that_differ_come_first(browser: Browser) -> None:
    runs = browser.page("/view/runs")
    assert re.findall(r'name="run" form="choice" value="(\w+)"', runs) == [THIRD, SECOND, RUN]

    html = browser.page(f"/view/matrix?run={RUN}&run={SECOND}&run={THIRD}")

    [differing] = rows(html)
    assert differing.startswith("orders.yaml case 1 Where is order 12?")
    assert "Nothing" in differing
    assert [row.split()[2] for row in rows(browser.page(f"/view/matrix?run={RUN},{SECOND},{THIRD}&show=all"))] == [
        "1",
        "2",
    ]


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("query", "cases"),
    [
        ("text=ORDER+13", []),
        ("text=order+12", ["1"]),
        ("text=order+13&show=all", ["2"]),
        ("expectation=topic_sequence_match&show=all", ["1"]),
        ("expectation=output_validation&show=all", []),
        ("show=all&sort=number", ["1", "2"]),
    ],
)
def test_cases_are_filtered(browser: Browser, query: str, cases: list[str]) -> None:
    html = browser.page(f"/view/matrix?run={RUN}&run={SECOND}&{query}")

    assert [row.split()[2] for row in rows(html)] == cases
    assert ("No case" in html) == (not cases)


def test_cases_are_paired_by_what_they_ask(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    spec = project.root / "orders.yaml"
    spec.write_text(
        spec.read_text().replace("testCases:\n", "testCases:\n  - utterance: Hello?\n    contains: Friday\n")
    )
    run()

    html = browser.page(f"/view/matrix?run={RUN}&run={SECOND}&show=all&sort=number")

    assert f'href="/view/runs/{RUN}/cases/1"' in html
    shown = rows(html)
    assert "case 1 Where is order 12? ok case 1 ok case 2" in shown[0]
    assert sum("Hello?" in row and "not run" in row for row in shown) == 1


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("query", "code", "problem"),
    [
        ("", httpx.codes.NOT_FOUND, "fewer than two runs"),
        (f"run={RUN}", httpx.codes.NOT_FOUND, "fewer than two runs"),
        (f"run={RUN}&run={RUN}", httpx.codes.NOT_FOUND, "fewer than two runs"),
        (f"run={RUN}&run=4KB000000000009GAA", httpx.codes.NOT_FOUND, "cannot be found"),
        (f"run={RUN}&run={SECOND}@https://elsewhere.example", httpx.codes.NOT_FOUND, "cannot be found"),
    ],
)
def test_what_cannot_be_shown_says_what_to_choose(browser: Browser, query: str, code: int, problem: str) -> None:
    browser.log_in()

    reply = browser.client.get(f"/view/matrix?{query}")

    assert (reply.status_code, problem in reply.text) == (code, True)
    assert "Choose at least two runs of the same test" in reply.text


@pytest.mark.usefixtures("three")
def test_too_much_for_a_page_is_refused(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    browser.log_in()
    monkeypatch.setattr(limits, "MAX_VIEW_COLUMNS", 2)
    assert "at most 2 runs" in browser.client.get(f"/view/matrix?run={RUN}&run={SECOND}&run={THIRD}").text
    monkeypatch.setattr(limits, "MAX_VIEW_MATRIX_RESULTS", 3)
    assert "more than 3 results" in browser.client.get(f"/view/matrix?run={RUN}&run={SECOND}").text


def test_runs_of_different_tests_are_refused(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    (project.root / "more.yaml").write_text((project.root / "orders.yaml").read_text())
    run("more.yaml")
    browser.log_in()

    assert "all of different tests" in browser.client.get(f"/view/matrix?run={RUN}&run={SECOND}").text


@pytest.mark.usefixtures("three")
def test_runs_that_were_deleted_are_not_shown_any_more(browser: Browser) -> None:
    address = f"/view/matrix?run={RUN}&run={SECOND}&show=all"
    assert len(rows(browser.page(address))) == 2
    with pytest.raises(SystemExit):
        main(["test", "prune", "--keep", "1"])

    assert browser.client.get(address).status_code == httpx.codes.NOT_FOUND


@pytest.mark.usefixtures("matrix")
def test_an_export_has_the_agents_side_by_side(project: Project, tmp_path: Path) -> None:
    export(project, tmp_path / "out")

    shown = read_export(tmp_path / "out")
    [address] = [address for address in shown.pages if address.startswith("#/matrix")]
    assert any(f'href="{address}"' in html for html in shown.html)
    [html] = [html for html in shown.html if "Other_Agent against Order_Agent" in html]
    assert len(rows(html)) == 2
    assert not any('name="run"' in html for html in shown.html)
