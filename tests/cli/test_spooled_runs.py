"""Runs whose shared store cannot be reached for a while."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalmeta.model.store import Store, read_store_url
from evalmeta.store.database import open_database
from relay import relay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from postgres_servers import PostgresServers, PostgresStore
    from relay import Relay

CASES, IN_FLIGHT, SECONDS = 120, 4, 120
AGENT = """
import time
def answer(utterance):
    time.sleep(0.05)
    with open("asked", "a") as file:
        file.write(utterance + "\\n")
    return "The answer is " + utterance
"""
SPEC = "subject: desk:answer\ncases:\n" + "".join(f"- {{input: q{n}, contains: q{n}}}\n" for n in range(CASES))


class SharedRun(NamedTuple):
    """A project whose store is reached over a relay."""

    root: Path
    program: list[str]
    environment: dict[str, str]
    relay: Relay
    store: Store

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [*self.program, *words],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def asked(self) -> list[str]:
        """Return what the agent was asked and has answered."""
        file = self.root / "asked"
        return file.read_text().split() if file.exists() else []

    def wait_for_answers(self, count: int, process: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + SECONDS
        while len(self.asked()) < count:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def results(self) -> Counter[int]:
        """Count the results of each case in the store."""
        with open_database(self.store) as database:
            return Counter(number for (number,) in database.query("SELECT number FROM case_result"))

    def unsent(self) -> list[Path]:
        """Return the files with results that the store does not have."""
        return list(self.root.glob(".evalmeta/unsent/*"))


@pytest.fixture(params=["direct", "pooled"])
def run(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    program: list[str],
    postgres_servers: PostgresServers,
    postgres_store: PostgresStore,
) -> Iterator[SharedRun]:
    import os

    port = {"direct": postgres_servers.postgres.port, "pooled": postgres_servers.pool.port}[request.param]
    url = getattr(postgres_store, request.param)
    (tmp_path / "evalmeta.toml").write_text(f"[run]\nconcurrency = {IN_FLIGHT}\n")
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC)
    with relay(port) as passing:
        environment = os.environ | {"EVALMETA_STORE": url.replace(f":{port}/", f":{passing.port}/")}
        yield SharedRun(tmp_path, program, environment, passing, Store(tmp_path / "here", read_store_url(url)))


@pytest.mark.slow
def test_a_run_goes_on_while_its_store_cannot_be_reached(run: SharedRun) -> None:
    process = run.begin("run", "orders.yaml")
    run.wait_for_answers(20, process)
    run.relay.cut()
    run.wait_for_answers(60, process)
    assert len(run.unsent()) == 1
    assert sum(run.results().values()) < 60
    run.relay.mend()
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out + err
    assert err.count("its results wait in") == 1
    assert Counter(run.asked()) == Counter(f"q{number}" for number in range(CASES))
    assert run.results() == Counter(range(1, CASES + 1))
    assert run.unsent() == []


@pytest.mark.slow
def test_a_run_that_ends_while_its_store_cannot_be_reached_waits_for_it(run: SharedRun) -> None:
    process = run.begin("run", "orders.yaml")
    run.wait_for_answers(20, process)
    run.relay.cut()
    run.wait_for_answers(CASES, process)
    run.relay.mend()
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out + err
    assert run.results() == Counter(range(1, CASES + 1))
    assert len(run.asked()) == CASES
    assert run.unsent() == []


@pytest.mark.slow
def test_results_of_a_killed_process_reach_the_store_when_the_run_is_resumed(run: SharedRun) -> None:
    process = run.begin("run", "orders.yaml")
    run.wait_for_answers(20, process)
    run.relay.cut()
    run.wait_for_answers(60, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    known = sum(run.results().values())
    assert known < 60
    run.relay.mend()
    resumed = run.begin("test", "resume", "--job-id", "latest")
    out, err = resumed.communicate(timeout=SECONDS)
    assert resumed.returncode == 0, out + err
    assert run.results() == Counter(range(1, CASES + 1))
    assert len(run.asked()) <= CASES + IN_FLIGHT
    assert run.unsent() == []
