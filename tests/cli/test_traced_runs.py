from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from evalmeta.org.serving.sockets import listen
from evalmeta.store.database import open_database
from org.serving.traced_endpoint import Endpoint, endpoint
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

CASES = 16


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Serves an agent of the project in the current folder, which exports its traces."""
    monkeypatch.chdir(tmp_path)
    with endpoint(monkeypatch) as server:
        settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.settings.items())
        (tmp_path / "evalmeta.toml").write_text(f"[subjects.desk]\n{settings}")
        cases = "".join(
            f"- input: order {number}\n  actions: [{{name: get_order, input: {{id: '{number}'}}}}]\n"
            for number in range(1, CASES + 1)
        )
        (tmp_path / "desk.yaml").write_text(f"subject: desk\ntestCases:\n{cases}")
        yield server


def test_a_port_in_use_is_one_error_of_a_command_before_the_first_question(desk: Endpoint, evalmeta: Evalmeta) -> None:
    with listen("127.0.0.1", desk.trace_port):
        ended = evalmeta("run", "desk.yaml")
    assert (ended.code, desk.asked) == (2, [])
    assert ended.err.count("traces cannot be received at trace_port") == 1, ended.err


@pytest.mark.slow
def test_runs_of_a_command_share_the_fixed_port(desk: Endpoint, tmp_path: Path, evalmeta: Evalmeta) -> None:
    (tmp_path / "other.yaml").write_text((tmp_path / "desk.yaml").read_text())
    ended = evalmeta("run", "desk.yaml", "other.yaml")
    assert ended.code == 0, ended.out + ended.err
    assert len(desk.asked) == 2 * CASES


def kept(folder: Path) -> set[int]:
    with open_database(store_in(folder / ".evalmeta")) as database:
        return {number for (number,) in database.query("SELECT number FROM case_result")}


@pytest.mark.slow
def test_a_killed_run_is_resumed_with_only_the_missing_cases_and_their_own_traces(
    desk: Endpoint, tmp_path: Path, evalmeta: Evalmeta
) -> None:
    desk.seconds = 0.3
    words = ("test", "run", "desk.yaml", "--wait", "--concurrency", "2")
    with subprocess.Popen([sys.executable, "-m", "evalmeta", *words], stdout=-3, stderr=-3) as command:
        until = time.monotonic() + 60
        while len(desk.asked) < CASES // 2 and time.monotonic() < until:
            time.sleep(0.01)
        command.kill()
    before, results = desk.asked, kept(tmp_path)
    desk.asked = []

    ended = evalmeta("test", "resume", "--unfinished")

    assert ended.code == 0, ended.out + ended.err
    assert f"{CASES} passed" in ended.out
    assert 0 < len(results) < CASES
    assert sorted(desk.asked) == sorted(f"order {number}" for number in set(range(1, CASES + 1)) - results)
    assert len(before) < CASES
