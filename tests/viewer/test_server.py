"""Real servers of the pages: `evalmeta view`, and a served org."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta.api.servers import make_token
from org.servers import WAIT, served
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.package.project import Project


@pytest.fixture
def link(project: Project) -> Iterator[str]:
    """Gives the link that `evalmeta view` prints, while it runs."""
    command = [sys.executable, "-m", "evalmeta", "view", "--port", "0", "--no-open"]
    with subprocess.Popen(
        command, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield process.stdout.readline().removeprefix("Open ").strip()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT)
        assert (process.returncode, err) == (0, "Stopped.\n"), out


@contextmanager
def opened(address: str) -> Iterator[httpx.Client]:
    """Yield a client that has opened a link."""
    base = address.partition("/view")[0]
    with httpx.Client(follow_redirects=True, timeout=WAIT, trust_env=False, base_url=base) as client:
        assert client.get(address).status_code == httpx.codes.OK
        yield client


def test_the_link_shows_the_project_and_its_token_is_in_no_log(
    project: Project, run: Callable[..., int], link: str
) -> None:
    run()

    with opened(link) as client:
        assert "orders.yaml" in client.get("/view/runs").text
        assert client.get("/").url.path == "/view"

    assert link.partition("token=")[2] not in (project.state_dir / "logs" / "view.log").read_text()


@pytest.mark.slow
def test_an_event_says_that_runs_have_changed(run: Callable[..., int], link: str) -> None:
    with opened(link) as client, client.stream("GET", "/view/live") as events:
        lines = events.iter_lines()
        assert next(lines) == "retry: 1000"
        run()
        assert next(line for line in lines if line.startswith("event")) == "event: change"


@pytest.mark.slow
def test_a_served_org_shows_its_pages_to_users_with_a_token(project: Project, run: Callable[..., int]) -> None:
    run()

    with served(project) as url:
        assert httpx.get(f"{url}/view", trust_env=False).status_code == httpx.codes.UNAUTHORIZED
        with httpx.Client(follow_redirects=True, base_url=url, trust_env=False) as client:
            entered = client.post("/view/login", data={"token": make_token(project)})
            assert RUN in client.get("/view/runs").text
        with httpx.Client(follow_redirects=True, base_url=url, trust_env=False) as client:
            client.post("/view/login", data={"token": make_token(project, username="ann")})
            assert RUN not in client.get("/view/runs").text

    assert entered.status_code == httpx.codes.OK
