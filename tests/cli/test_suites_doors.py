"""Each way to run a suite uses the whole concurrency of its agent, and no more."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import judging, serving
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs
from stores import store_in
from suites import make_suite, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome
    from suites import Suite

    Program = Callable[..., Outcome]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of 20 definitions in the current folder; its agent answers when ten questions are in flight."""
    made = make_suite(tmp_path / "project")
    monkeypatch.chdir(made.root)
    return made


def assert_all_used(suite: Suite) -> None:
    assert suite.most_in_flight() == 10
    assert suite.asked() == suite.questions


def is_over(suite: Suite) -> bool:
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        return not Runs(database).unfinished()


@pytest.mark.slow
def test_deployed_tests(evalmeta: Program, suite: Suite) -> None:
    assert evalmeta("deploy").code == 0
    assert evalmeta("test", "run", "--wait").code == 0
    assert_all_used(suite)


def test_tests_in_files(evalmeta: Program, suite: Suite) -> None:
    assert evalmeta("test", "run", ".", "--wait").code == 0
    assert_all_used(suite)


@pytest.mark.slow
def test_a_worker_in_the_background(evalmeta: Program, suite: Suite) -> None:
    assert evalmeta("test", "run", ".").code == 0
    wait_until(lambda: is_over(suite))
    assert_all_used(suite)


@pytest.mark.slow
def test_unfinished_runs_that_are_resumed(evalmeta: Program, suite: Suite) -> None:
    suite.write("held", *suite.questions)
    assert evalmeta("test", "run", ".").code == 0
    wait_until(lambda: len(suite.asked()) == 10)
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        runs = Runs(database)
        worker = runs.lease(runs.unfinished()[0][0]).worker
    assert worker
    os.kill(int(worker.split(":")[1]), signal.SIGKILL)
    suite.forget()
    suite.write("held", "nothing")
    assert evalmeta("test", "resume", "--unfinished").code == 0
    assert_all_used(suite)


@pytest.mark.slow
def test_runs_of_a_served_org(evalmeta: Program, suite: Suite, program: list[str]) -> None:
    assert evalmeta("deploy").code == 0
    server = subprocess.Popen([*program, "org", "start"], stdout=subprocess.DEVNULL)
    wait_until((suite.root / ".evalmeta" / "server.json").exists)
    try:
        done = evalmeta("test", "run", "--wait")
        assert done.code == 0, done.err
    finally:
        server.terminate()
        assert server.wait(60) == 0
    assert suite.most_in_flight() == 10
    assert Counter(suite.asked()) == Counter(suite.questions)


@pytest.mark.slow
def test_a_command_shares_the_concurrency_with_the_server_of_its_org(
    evalmeta: Program, suite: Suite, program: list[str]
) -> None:
    """The workers of the server take runs of the command that wait; here, they ask while no question is answered."""
    suite.write("held", *suite.questions)
    assert evalmeta("deploy").code == 0
    server = subprocess.Popen([*program, "org", "start"], stdout=subprocess.DEVNULL)
    wait_until((suite.root / ".evalmeta" / "server.json").exists)
    command = subprocess.Popen(
        [*program, "test", "run", "--wait"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: len(suite.asked()) > 10 or (len(suite.asked()) == 10 and waiting_workers(suite)))
        suite.write("held", "nothing")
        assert command.wait(120) == 0
    finally:
        command.kill()
        command.wait()
        server.terminate()
        assert server.wait(60) == 0
    assert suite.most_in_flight() == 10


def waiting_workers(suite: Suite) -> bool:
    """Return whether workers of at least two processes know of each other, and one of them waits for places."""
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        rows = database.query("SELECT worker, wanted FROM place")
    return len({worker.split(":")[1] for worker, _ in rows}) > 1 and any(wanted for _, wanted in rows)


RATER = """
[score]
rater = "judge"
[raters.judge]
adapter = "llm"
model = "judge-1"
concurrency = 3
url = "{url}"
"""


@pytest.mark.slow
def test_runs_share_the_concurrency_of_their_rater(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_flight, most, lock = 0, 0, threading.Lock()

    def judge(_request: bytes) -> bytes:
        nonlocal in_flight, most
        with lock:
            in_flight += 1
            most = max(most, in_flight)
        time.sleep(0.1)
        with lock:
            in_flight -= 1
        return judging(5)

    with serving(judge) as server:
        expected = ("bot_response_rating", "It is done.")
        suite = make_suite(
            tmp_path / "project", tests=6, cases=2, wanted=0, more=RATER.format(url=server.url), expectation=expected
        )
        monkeypatch.chdir(suite.root)
        done = evalmeta("test", "run", ".", "--wait")
    assert done.code == 0, done.out
    assert len(server.bodies) == 12
    assert most == 3
