"""A project with runs, and its pages as a browser with a session gets them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from evalmeta.cli.main import main
from evalmeta.model.login import ADMIN
from evalmeta.org.serving.login_codes import LoginCodes
from evalmeta.org.serving.request_guard import RequestGuard, hosts_of
from evalmeta.package.project import find_project
from evalmeta.store.users import Holder
from evalmeta.viewer.app import Viewer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.package.project import Project

RUN: Final = "4KB000000000001GAA"
_SETTINGS: Final = """
[subjects.Order_Agent]
adapter = "python"
target = "order_agent:answer"
"""
_AGENT: Final = '''
def answer(utterance):
    """Say where an order is."""
    return {"topic": "Orders", "actions": ["Find_Order"], "outcome": "Order 12 arrives on Friday: " + utterance}
'''
_SPEC: Final = """
name: Orders
subjectType: AGENT
subjectName: Order_Agent
testCases:
  - utterance: Where is order 12?
    expectedTopic: Orders
  - utterance: Cancel order 13.
    expectedTopic: Cancellations
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Gives a project with one test of two cases, of which the second fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").write_text(_SETTINGS)
    (tmp_path / "order_agent.py").write_text(_AGENT)
    (tmp_path / "orders.yaml").write_text(_SPEC)
    return find_project(tmp_path)


@pytest.fixture
def run(project: Project, capsys: pytest.CaptureFixture[str]) -> Callable[..., int]:
    """Runs the project's test and gives the exit code."""

    def start(*options: str) -> int:
        with pytest.raises(SystemExit) as left:
            main(["run", str(project.root / "orders.yaml"), *options])
        code = int(left.value.code or 0)
        assert code in {0, 1, 100}, capsys.readouterr().err
        capsys.readouterr()
        return code

    return start


class Browser:
    """Asks for pages in process, with cookies."""

    _value = re.compile(r'name="csrf" value="(\w+)"')

    def __init__(self, project: Project) -> None:
        app = Starlette(routes=Viewer(project).routes())
        app.state.login_codes = self.codes = LoginCodes()
        guard = RequestGuard(app, hosts_of("127.0.0.1", 8161))
        self.client = TestClient(guard, base_url="http://127.0.0.1:8161", raise_server_exceptions=False)

    def code(self, *, is_private: bool = True) -> str:
        """Return a code of the admin."""
        return self.codes.issue(Holder(ADMIN.id), seconds=60, is_private=is_private)

    def log_in(self, token: str = "") -> httpx.Response:
        """Send the form of the login page with a token, or else with a new code."""
        return self.client.post("/view/login", data={"token": token or self.code()})

    def csrf(self, page: str = "/view") -> str:
        """Return the value that forms of a page send."""
        found = self._value.search(self.page(page))
        assert found
        return found[1]

    def page(self, path: str) -> str:
        """Return the HTML of a page that exists."""
        if not self.client.cookies:
            self.log_in()
        reply = self.client.get(path)
        assert reply.status_code == httpx.codes.OK, reply.text
        return reply.text

    def send(self, page: str, path: str, form: dict[str, str]) -> str:
        """Send a form of a page, and return the HTML of the page that follows."""
        reply = self.client.post(path, data={**form, "csrf": self.csrf(page)})
        assert reply.status_code == httpx.codes.OK, reply.text
        return reply.text


@pytest.fixture
def browser(project: Project) -> Browser:
    """Gives a browser for the project's pages, which has not logged in."""
    return Browser(project)
