from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import orjson
import pytest

from evalmeta import limits
from evalmeta.errors import ProjectError, UsageError
from evalmeta.org.lease import new_worker, working
from evalmeta.org.serving.server_file import claim_server_file, read_server, remove_server_file, renew_server_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_server_is_found_while_it_lives(tmp_path: Path) -> None:
    server = claim_server_file(tmp_path, "http://127.0.0.1:1", now=5.0)
    with working(server.process):
        assert read_server(tmp_path) == server
        assert (server.pid, server.started) == (os.getpid(), 5.0)
    assert read_server(tmp_path) is None


@pytest.mark.slow
def test_commands_find_a_server_without_uvicorn() -> None:
    code = "import sys; sys.modules['uvicorn'] = None; import evalmeta.api.runs.org, evalmeta.api.servers"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_of_two_servers_one_gets_the_place(tmp_path: Path) -> None:
    server = claim_server_file(tmp_path, "http://127.0.0.1:1", now=0)
    with working(server.process), pytest.raises(UsageError, match=f"is already running at {server.url}"):
        claim_server_file(tmp_path, "http://127.0.0.1:2", now=0)


def test_the_place_of_a_server_that_died_is_free(tmp_path: Path) -> None:
    claim_server_file(tmp_path, "http://127.0.0.1:1", now=0)
    assert claim_server_file(tmp_path, "http://127.0.0.1:2", now=0).url == "http://127.0.0.1:2"


def test_a_server_that_ends_leaves_nothing(tmp_path: Path) -> None:
    claim_server_file(tmp_path, "http://127.0.0.1:1", now=0)
    remove_server_file(tmp_path)
    remove_server_file(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"pid": 1, "process": "x"}', b'{"pid": "1"}'])
def test_an_invalid_server_file_means_no_server(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "server.json").write_bytes(content)
    assert read_server(tmp_path) is None


def test_a_server_on_another_machine_is_alive_while_it_renews_its_file(tmp_path: Path) -> None:
    process = new_worker().partition(":")[2]
    fields = {"url": "http://elsewhere:1", "pid": 7, "started": 0, "process": f"elsewhere:{process}"}
    (tmp_path / "server.json").write_bytes(orjson.dumps(fields))
    assert read_server(tmp_path).url == "http://elsewhere:1"
    # The second is from before the clock was set back.
    for renewed in (time.time() - limits.SERVER_LEASE_SECONDS - 1, time.time() + 3600):
        os.utime(tmp_path / "server.json", (0, renewed))
        assert read_server(tmp_path) is None
    renew_server_file(tmp_path)
    assert read_server(tmp_path).host == "elsewhere"


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProjectError, match="cannot be"):
        claim_server_file(tmp_path / "file", "http://127.0.0.1:1", now=0)
