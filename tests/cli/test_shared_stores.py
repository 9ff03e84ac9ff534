"""Commands on two machines that share a store: two projects with folders and keys of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from evalmeta.model.store import STORE_VARIABLE
from evalmeta.org.serving.server_file import read_server
from evalmeta.package.project import find_project
from org.servers import send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Outcome

    Evalmeta = Callable[..., Outcome]

AGENT = "def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'It arrives on Tuesday.'}\n"
SPEC = "subject: desk:answer\ncases:\n- input: When?\n  contains: Tuesday\n"


class Machines:
    """Two folders; the commands of each run in it, as a user with a key of their own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._monkeypatch = monkeypatch
        for name in ("here", "there"):
            self.go(name).mkdir()
            (root / name / "evalmeta.toml").touch()
            (root / name / "desk.py").write_text(AGENT)
            (root / name / "orders.yaml").write_text(SPEC)

    def go(self, name: str) -> Path:
        """Go to a machine, and return its folder."""
        self._monkeypatch.setenv("XDG_STATE_HOME", str(self._root / f"{name}-home"))
        folder = self._root / name
        if folder.exists():
            self._monkeypatch.chdir(folder)
        return folder


@pytest.fixture
def password(store_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The password of the shared store, which the variable names."""
    monkeypatch.setenv(STORE_VARIABLE, store_url)
    return urlsplit(store_url).password or ""


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str) -> Iterator[Machines]:
    assert password
    made = Machines(tmp_path, monkeypatch)
    yield made
    for name in ("here", "there"):
        if server := read_server(made.go(name) / ".evalmeta"):
            os.kill(server.pid, signal.SIGKILL)


def test_a_run_of_one_machine_is_seen_on_the_other(machines: Machines, evalmeta: Evalmeta) -> None:
    machines.go("here")
    assert evalmeta("run", "orders.yaml").code == 0
    machines.go("there")
    assert "orders" in evalmeta("test", "results", "--job-id", "latest").out
    exported = evalmeta("view", "--export", "pages")
    assert exported.code == 0
    assert "orders" in (machines.go("there") / "pages" / "index.html").read_text()


def test_the_pages_of_a_store_are_shown_without_a_project(
    machines: Machines, evalmeta: Evalmeta, store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machines.go("here")
    assert evalmeta("run", "orders.yaml").code == 0
    monkeypatch.delenv(STORE_VARIABLE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    parts = urlsplit(store_url)
    monkeypatch.setenv("PGPASSWORD", unquote(parts.password or ""))
    url = f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"
    exported = evalmeta("view", "--store", url, "--export", "pages")
    assert exported.code == 0, exported.err
    assert "orders" in (elsewhere / "pages" / "index.html").read_text()
    empty = evalmeta("view", "--store", "local", "--export", "local-pages")
    assert empty.code == 0
    assert "orders" not in (elsewhere / "local-pages" / "index.html").read_text()
    refused = evalmeta("view", "--store", store_url, "--export", "others")
    assert refused.code == 2
    assert "a password was given on the command line" in refused.err
    assert parts.password not in refused.err


def test_a_token_made_on_one_machine_is_valid_for_the_server_of_the_other(
    machines: Machines, evalmeta: Evalmeta
) -> None:
    folder = machines.go("here")
    assert evalmeta("org", "start", "--port", "0", "--detach").code == 0
    server = read_server(find_project(folder).state_dir)
    assert server
    machines.go("there")
    token = evalmeta("org", "token", "--user", "eve").out.strip()
    seen = send("GET", f"{server.url}/services/oauth2/userinfo", authorization=f"Bearer {token}")
    assert seen.status_code == 200
    assert "eve" in seen.text
    assert "void" not in evalmeta("org", "token", "--list").out
    token_id = token.partition("!")[2].partition(".")[0]
    assert evalmeta("org", "token", "--revoke", token_id).code == 0
    refused = send("GET", f"{server.url}/services/oauth2/userinfo", authorization=f"Bearer {token}")
    assert refused.status_code in {401, 403}


def test_the_password_of_the_store_is_in_no_command_line_output_or_file(
    machines: Machines, evalmeta: Evalmeta, password: str, store_url: str
) -> None:
    folder = machines.go("here")
    shown = [evalmeta("org", "start", "--port", "0", "--detach"), evalmeta("org", "status"), evalmeta("doctor")]
    shown += [evalmeta("run", "orders.yaml"), evalmeta("org", "status", "--json"), evalmeta("store", "--help")]
    shown += [evalmeta("test", "list"), evalmeta("run", "orders.yaml", "--json"), evalmeta("store", "check")]
    assert [done.code for done in shown] == [0] * len(shown)
    secrets = [text.encode() for text in (password, unquote(password), store_url)]
    texts = [(done.out + done.err).encode() for done in shown]
    if Path("/proc/self/cmdline").exists():
        texts += [file.read_bytes() for file in command_lines()]
    written = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert len(written) > 4
    assert not [text for text in (*texts, *written) for secret in secrets if secret in text]


def command_lines() -> Iterator[Path]:
    for folder in Path("/proc").glob("[0-9]*"):
        if (folder / "cmdline").exists():
            yield folder / "cmdline"
