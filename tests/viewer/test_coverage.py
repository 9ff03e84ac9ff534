"""The page with the coverage of agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.agent_inventories import find_inventory
from evalmeta.model.login import User
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from evalmeta.viewer.coverage import coverage_page
from evalmeta.viewer.pages import Source
from systems.mcp.tool_server import PROGRAM
from viewer.conftest import Browser

if TYPE_CHECKING:
    from evalmeta.package.project import Project

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


def test_a_page_shows_the_tools_that_an_agent_listed_last_and_starts_nothing(project: Project) -> None:
    note = project.root / "started.txt"
    program = f"import runpy; open({str(note)!r}, 'w'); runpy.run_path({PROGRAM[1]!r}, run_name='__main__')"
    settings = project.root / "evalmeta.toml"
    settings.write_text(f'[subjects.Shop]\nadapter = "mcp"\ncommand = {json.dumps([PROGRAM[0], "-c", program])}\n')
    (project.root / "orders.yaml").write_text("subject: Shop\ntestCases:\n- {input: {tool: count}, contains: a}\n")
    shop = Browser(find_project(project.root))
    html = shop.page("/view/coverage")
    assert "<code>evalmeta coverage Shop</code>" in html
    assert "parts are covered" not in html
    assert not note.exists()

    find_inventory(find_project(project.root), "Shop")
    note.unlink()
    html = shop.page("/view/coverage?agent=Shop")
    assert "Shop: 33.33 % of 3 parts are covered (1 test, 1 case)" in html
    assert "Its topics and tools are those that it listed on 2" in html
    assert "have changed since then" not in html
    assert not note.exists()

    settings.write_text('[subjects.Shop]\nadapter = "mcp"\nurl = "http://127.0.0.1:9/mcp"\n')
    assert "have changed since then" in Browser(find_project(project.root)).page("/view/coverage")


def test_a_user_who_is_no_admin_sees_no_agents(project: Project) -> None:
    ann = User("005000000000009AAA", "ann", "ann@example.com", is_admin=False)
    with open_database(project.store) as database:
        page = coverage_page(Source(project, database, user=ann), {})
    assert page.values["names"] == page.values["commands"] == []
