"""The page with the coverage of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from evalmeta.package.project import Project
    from viewer.conftest import Browser

SCRIPT = """\
start_agent router:
    reasoning:
        actions:
            go: @utils.transition to @subagent.Orders
subagent Orders:
    label: "Orders"
"""


@pytest.fixture
def agents(project: Project) -> list[str]:
    """Gives the names of two agents in the project, of which one has tests."""
    names = ["Order_Agent", "Return_Agent"]
    for name in names:
        path = project.root / f"aiAuthoringBundles/{name}/{name}.agent"
        path.parent.mkdir(parents=True)
        path.write_text(SCRIPT)
    return names


@pytest.mark.usefixtures("agents")
def test_the_parts_of_all_agents_are_shown(browser: Browser) -> None:
    html = browser.page("/view/coverage")
    assert "Order_Agent: 100 % of 2 parts are covered (1 test, 2 cases)" in html
    assert "Return_Agent: 0 % of 2 parts are covered (0 tests, 0 cases)" in html
    assert '<span class="pill failure">open</span></td><td>Orders</td>' in html
    assert '<option value="Return_Agent">' in html


@pytest.mark.usefixtures("agents")
def test_one_agent_can_be_chosen(browser: Browser) -> None:
    html = browser.page("/view/coverage?agent=Return_Agent")
    assert "Return_Agent: 0 %" in html
    assert "Order_Agent: " not in html
    assert "evalmeta coverage Return_Agent" in html
    assert "no agent &#39;X&#39; is in the files" in browser.page("/view/coverage?agent=X")


@pytest.mark.usefixtures("agents")
def test_a_test_that_cannot_be_read_is_an_error_on_the_page(project: Project, browser: Browser) -> None:
    (project.root / "orders.yaml").write_text("subject: Order_Agent\ntestCases: [")
    html = browser.page("/view/coverage")
    assert 'role="alert"' in html
    assert "parts are covered" not in html


def test_a_project_without_agents_in_files_says_so(browser: Browser) -> None:
    assert "has no agent in Agent Script or classic metadata" in browser.page("/view/coverage")
