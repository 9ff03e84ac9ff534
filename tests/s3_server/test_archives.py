"""Archives on S3: a server on loopback speaks its protocol, with the usual variables."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from relay import relay

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[2] / ".venv" / "s3-server"
SECRET = "canary-2b7e151628aed2a6abf7158809cf4f3c"  # noqa: S105 - looked for where it must not be
SPEC = "subject: desk:answer\ncases:\n- input: When?\n  topic: Orders\n- input: Where?\n  topic: Other\n"
ARCHIVE = "s3://evaluations/2026/orders"
# A process that dies when it is about to complete the archive.
KILLED = """
import os, signal, sys
from evalmeta.store.archive_folders import ArchiveFolder

put = ArchiveFolder.put

def put_until(self, name, pieces):
    if name == "manifest.json":
        os.kill(os.getpid(), signal.SIGKILL)
    put(self, name, pieces)

ArchiveFolder.put = put_until
from evalmeta.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server with a bucket."""
    assert (SERVER / "ready").exists(), "Install the server: make .venv/s3-server/ready"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    command = [SERVER / "bin/python", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(number)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _make_bucket(number)
            yield number
        finally:
            server.kill()


def _make_bucket(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/evaluations", method="PUT")
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - loopback
            return
        time.sleep(0.1)
    pytest.fail("the server did not start")


@pytest.fixture
def environment(tmp_path: Path, port: int) -> dict[str, str]:
    """The environment of commands in a project with a run."""
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text("def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'Soon.'}\n")
    (tmp_path / "orders.yaml").write_text(SPEC)
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    keys = {"AWS_ACCESS_KEY_ID": "AKIAQWERTYUIOPASDFGH", "AWS_SECRET_ACCESS_KEY": SECRET}
    found = {**others, **keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    assert call(tmp_path, found, "run", "orders.yaml").returncode == 100
    return found


def call(
    folder: Path, environment: dict[str, str], *words: str, program: tuple[str, ...] = ("-m", "evalmeta")
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *program, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert SECRET not in done.stdout + done.stderr
    return done


def test_an_archive_on_s3_is_written_read_compared_viewed_and_found_again(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = call(tmp_path, environment, "test", "archive", "latest", ARCHIVE, "--json")
    result = json.loads(done.stdout)["result"]
    assert (result["folder"], result["results"], result["new"]) == (ARCHIVE, 2, True), done
    assert (
        json.loads(call(tmp_path, environment, "test", "archive", "latest", ARCHIVE, "--json").stdout)["result"]["new"]
        is False
    )
    stored = call(tmp_path, environment, "test", "results", "latest", "--result-format", "json")
    read = call(tmp_path, environment, "test", "results", ARCHIVE, "--result-format", "json")
    assert (read.returncode, read.stdout) == (100, stored.stdout)
    time.sleep(1)
    call(tmp_path, environment, "run", "orders.yaml")
    assert call(tmp_path, environment, "test", "compare", ARCHIVE, "latest").returncode == 0
    assert "has another archive" in call(tmp_path, environment, "test", "archive", "latest", ARCHIVE).stderr
    shown = call(tmp_path, environment, "view", ARCHIVE, "--export", "pages")
    assert re.search(r"Wrote \d+ pages into pages", shown.stdout), shown
    stored_files = [path for path in (tmp_path / ".evalmeta").rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in stored_files)


def test_an_archive_on_s3_that_is_killed_is_not_one_and_the_same_command_completes_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    place = f"{ARCHIVE}-killed"
    words = ("test", "archive", "latest", place, "--delete")
    assert call(tmp_path, environment, *words, program=("-c", KILLED)).returncode == -9
    refused = call(tmp_path, environment, "test", "results", place)
    assert f"{place} has an archive that was not completed" in refused.stderr
    done = call(tmp_path, environment, *words)
    assert "Deleted 1 run here." in done.stdout
    assert call(tmp_path, environment, "test", "results", place).returncode == 100


@pytest.mark.parametrize(
    ("place", "words"), [("s3://absent/orders", "bucket"), ("s3://evaluations/nothing", "has no archive of runs")]
)
def test_a_bucket_or_a_folder_that_is_not_there_is_an_error_with_its_address(
    tmp_path: Path, environment: dict[str, str], place: str, words: str
) -> None:
    refused = call(tmp_path, environment, "test", "results", place)
    assert refused.returncode in {2, 4}
    assert place in refused.stderr
    assert words in refused.stderr
    if "absent" in place:
        assert call(tmp_path, environment, "test", "archive", "latest", place).returncode == 4


def test_a_server_that_is_cut_off_is_an_error_and_the_runs_stay(
    tmp_path: Path, environment: dict[str, str], port: int
) -> None:
    place = f"{ARCHIVE}-cut"
    with relay(port) as passing:
        cut_off = {**environment, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{passing.port}"}
        passing.cut()
        refused = call(tmp_path, cut_off, "test", "archive", "latest", place, "--delete")
        assert (refused.returncode, f"{place} cannot be" in refused.stderr) == (4, True), refused
        passing.mend()
        assert call(tmp_path, cut_off, "test", "archive", "latest", place, "--delete").returncode == 0
