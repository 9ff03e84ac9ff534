"""Real servers of the pages: `evalmeta view`, and a served org."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import httpx
import pytest

from evalmeta import limits
from evalmeta.api.servers import make_token
from evalmeta.errors import StoreError
from evalmeta.viewer.server import RedirectFile
from org.servers import WAIT, served, wait_for
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalmeta.package.project import Project


class Started(NamedTuple):
    """What `evalmeta view` printed."""

    url: str
    code: str


@contextmanager
def viewer(project: Project) -> Iterator[Started]:
    """Run `evalmeta view`."""
    command = [sys.executable, "-m", "evalmeta", "view", "--port", "0", "--no-open"]
    with subprocess.Popen(
        command, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        url, code = (process.stdout.readline().split()[1] for _ in range(2))
        yield Started(url, code)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT)
        assert (process.returncode, err) == (0, "Stopped.\n"), out


@pytest.fixture
def started(project: Project) -> Iterator[Started]:
    """Gives what `evalmeta view` printed, while it runs."""
    with viewer(project) as found:
        yield found


@contextmanager
def opened(started: Started) -> Iterator[httpx.Client]:
    """Yield a client that has entered the code."""
    base = started.url.partition("/view")[0]
    with httpx.Client(follow_redirects=True, timeout=WAIT, trust_env=False, base_url=base) as client:
        assert client.get("/view").status_code == httpx.codes.UNAUTHORIZED
        assert client.post("/view/login", data={"token": started.code}).status_code == httpx.codes.OK
        yield client


@pytest.mark.slow
def test_the_code_shows_the_project_once_and_is_in_no_log(
    project: Project, run: Callable[..., int], started: Started
) -> None:
    run()

    with opened(started) as client:
        assert "orders.yaml" in client.get("/view/runs").text
        assert client.get("/").url.path == "/view"
        again = httpx.post(f"{started.url}/login", data={"token": started.code}, trust_env=False)

    assert again.status_code == httpx.codes.UNAUTHORIZED
    assert started.code not in (project.state_dir / "logs" / "view.log").read_text()
    assert "?" not in started.url


@pytest.mark.slow
def test_a_session_survives_a_restart_of_the_command(project: Project) -> None:
    with viewer(project) as first, opened(first) as client:
        [session] = client.cookies.values()
    with viewer(project) as second:
        name = f"evalmeta_{httpx.URL(second.url).port}"
        assert httpx.get(second.url, cookies={name: session}, trust_env=False).status_code == httpx.codes.OK


_BROWSER: Final = """\
#!{python}
import pathlib, re, sys, time, urllib.request
pathlib.Path("arguments").write_text(" ".join(sys.argv[1:]))
page = pathlib.Path(sys.argv[1].removeprefix("file://"))
mode = oct(page.stat().st_mode)[-3:] + oct(page.parent.stat().st_mode)[-3:]
address = re.search('url=([^"]+)', page.read_text())[1]
html = urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(address).read().decode()
pathlib.Path("seen.new").write_text(f"{{mode}} {{page.exists()}} {{'Log out' in html}} {{address}}")
pathlib.Path("seen.new").rename("seen")
"""


@pytest.mark.slow
def test_a_browser_is_opened_by_a_private_file_that_is_deleted_when_it_has_logged_in(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, seen = project.root / "browser", project.root / "seen"
    browser.write_text(_BROWSER.format(python=sys.executable))
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(browser))
    # The command opens a browser only in a terminal.
    terminal, inner = os.openpty()
    command = [sys.executable, "-m", "evalmeta", "view", "--port", "0"]
    with subprocess.Popen(command, cwd=project.root, stdout=inner, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(seen.exists)
        finally:
            process.send_signal(signal.SIGINT)
    os.close(inner)
    printed = os.read(terminal, 10_000).decode()
    os.close(terminal)
    mode, exists, is_in, address = seen.read_text().split()

    assert (mode, exists, is_in) == ("600700", "False", "True")
    code = address.partition("?code=")[2]
    assert len(code) > 20
    assert code not in (project.root / "arguments").read_text() + printed
    assert not [*project.state_dir.glob("open-view-*")]


@pytest.mark.slow
def test_an_event_says_that_runs_have_changed(run: Callable[..., int], started: Started) -> None:
    with opened(started) as client, client.stream("GET", "/view/live") as events:
        lines = events.iter_lines()
        assert next(lines) == "retry: 1000"
        assert next(line for line in lines if line.startswith("event")) == "event: change"
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


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = RedirectFile(tmp_path, "http://127.0.0.1/?code=A").path
    finally:
        os.umask(before)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_it_leads_to_the_address_and_names_no_referrer(tmp_path: Path) -> None:
    html = RedirectFile(tmp_path, 'http://127.0.0.1/?a=1&b="2').path.read_text()
    assert 'content="0; url=http://127.0.0.1/?a=1&amp;b=&quot;2"' in html
    assert '<meta name="referrer" content="no-referrer">' in html
    assert "<script" not in html


def test_it_is_deleted_with_its_folder(tmp_path: Path) -> None:
    file = RedirectFile(tmp_path, "http://127.0.0.1/")
    file.delete()
    file.delete()
    assert list(tmp_path.iterdir()) == []


def test_files_of_killed_servers_are_deleted_and_no_others(tmp_path: Path) -> None:
    old, young = (RedirectFile(tmp_path, "http://127.0.0.1/").path.parent for _ in range(2))
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / "open-view-link").symlink_to(victim)
    for folder in (old, victim):
        os.utime(folder, (0, time.time() - limits.FRONTDOOR_SECONDS - 1))

    new = RedirectFile(tmp_path, "http://127.0.0.1/").path.parent

    assert {path.name for path in tmp_path.iterdir()} == {young.name, new.name, "victim", "open-view-link"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing/open-view-\w+: cannot be written: No such file or directory"):
        RedirectFile(tmp_path / "missing", "http://127.0.0.1/")
