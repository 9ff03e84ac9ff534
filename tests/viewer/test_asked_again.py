"""Runs that only asked suspect cases again are not the last results of a test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

LATER: Final = "4KB000000000002GAA"
SPEC: Final = """
name: Orders
subjectType: AGENT
subjectName: Order_Agent
testCases:
  - utterance: Where is order 12?
    expectedTopic: Orders
  - utterance: Tell me about order 12.
    expectedOutcome: The agent is polite.
  - utterance: Cancel order 13.
    expectedActions: [Find_Order]
"""


@pytest.fixture
def asked_again(project: Project, run: Callable[..., int]) -> None:
    """Two runs; in the second, case 1 fails, and it fails when it is asked again."""
    (project.root / "orders.yaml").write_text(SPEC)
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"Orders"', '"Returns"'))
    run("--baseline", RUN)


@pytest.mark.usefixtures("asked_again")
def test_the_last_result_of_a_test_is_that_of_all_its_cases(browser: Browser) -> None:
    html = browser.page("/view/tests")

    assert "50 %" in html
    assert "some cases" not in html


@pytest.mark.usefixtures("asked_again")
def test_a_case_that_fails_when_asked_again_is_broken(browser: Browser) -> None:
    for _ in range(2):
        html = browser.page("/view/tests")

        assert "1 broken" in html
        assert "1 suspect" not in html


@pytest.mark.usefixtures("asked_again")
def test_results_of_all_cases_are_still_reviewed(browser: Browser) -> None:
    assert "Tell me about order 12." in browser.page("/view/review")


@pytest.mark.usefixtures("asked_again")
def test_the_list_of_runs_says_which_asked_again(browser: Browser) -> None:
    assert ">asked again<" in browser.page("/view/runs")


@pytest.mark.usefixtures("asked_again")
def test_the_cases_of_a_command_are_counted_once(browser: Browser) -> None:
    link = re.search(r'href="(/view/suites/[^"?]+)"', browser.page(f"/view/runs/{LATER}"))
    assert link
    html = browser.page(link[1])

    assert re.search(r"1 run of one command, and \d+ that asked suspect cases again", html)
    assert "all <b>3</b>" in html


@pytest.mark.usefixtures("asked_again")
def test_the_history_of_a_case_has_a_square_for_each_run_of_all_cases(browser: Browser) -> None:
    html = browser.page(f"/view/runs/{LATER}/cases/1")

    assert html.count('<a class="square') == 2
    assert re.search(r"Asked again: 0 of \d+ answers passed", html)
