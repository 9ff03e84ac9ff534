"""Evaluation files of one session feed one pool for each agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta.store.database import open_database
from stores import store_in
from suites import Suite, make_suite, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    Session = Callable[..., subprocess.CompletedProcess[str]]

SOURCES = str(Path(evalmeta.__file__).parent.parent)
COMMAND = [sys.executable, "-m", "pytest", "-p", "evalmeta.pytest_plugin", "-p", "xdist.plugin", "--evalmeta", "-rA"]
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": SOURCES}


def session(suite: Suite, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a program of its own in a suite's folder."""
    return subprocess.run(
        [*COMMAND, *words], cwd=suite.root, env=_environment(), capture_output=True, text=True, timeout=120, check=False
    )


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | ENVIRONMENT


@pytest.mark.slow
def test_the_files_of_a_session_use_the_whole_concurrency_of_their_agent_and_ask_in_order(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project")
    done = session(suite)
    assert "60 passed" in done.stdout
    assert suite.most_in_flight() == 10
    assert suite.asked() == suite.questions


@pytest.mark.slow
def test_files_before_and_after_other_tests_do_not_run_during_these(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project", tests=4, concurrency=6)
    folder = suite.root / "aiEvaluationDefinitions"
    (folder / "Test_01z").mkdir()
    (folder / "Test_01z" / "test_between.py").write_text(
        "from pathlib import Path\n"
        "def test_between():\n"
        "    log = (Path(__file__).parents[2] / 'asked.txt').read_text()\n"
        "    assert log.count('+') == log.count('-') == 6\n"
    )
    for test in (2, 3):
        name = f"Test_{test:02}.aiEvaluationDefinition"
        (folder / "Test_01z" / name).write_bytes((folder / name).read_bytes())
        (folder / name).rename(folder / "Test_01z" / f"{name[:7]}.aiEvaluationDefinition")
    words = [str(folder / "Test_00.aiEvaluationDefinition"), str(folder / "Test_01.aiEvaluationDefinition")]
    words += [str(folder / "Test_01z" / "test_between.py")]
    words += [str(folder / "Test_01z" / f"Test_{test:02}.aiEvaluationDefinition") for test in (2, 3)]
    assert "13 passed" in session(suite, *words).stdout
    assert suite.most_in_flight() == 6


@pytest.mark.slow
def test_only_selected_cases_of_all_files_are_asked(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project", tests=6, concurrency=6)
    (suite.root / "desk.py").write_text((suite.root / "desk.py").read_text().replace("TOTAL = 6, 18", "TOTAL = 6, 6"))
    done = session(suite, "-k", "2:")
    assert "6 passed, 12 deselected" in done.stdout
    assert suite.asked() == [question for question in suite.questions if question.endswith(" 02")]


@pytest.mark.slow
def test_a_session_stops_at_the_first_failure_and_asks_no_more(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project", wanted=0)
    suite.write("wrong", "00 01")
    suite.write("held", *(question for question in suite.questions if question != "Question 00 01"))
    done = session(suite, "-x")
    assert "1 failed" in done.stdout
    # The place of the answered case was taken by the next.
    assert suite.asked() == suite.questions[:11]


@pytest.mark.slow
def test_what_failed_last_is_asked_again_and_nothing_else(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project", tests=6, wanted=0)
    suite.write("wrong", "01 02", "04 03")
    assert "2 failed, 16 passed" in session(suite).stdout
    suite.forget()
    suite.write("wrong", "nothing")
    assert "2 passed" in session(suite, "--lf").stdout
    assert suite.asked() == ["Question 01 02", "Question 04 03"]


@pytest.mark.slow
def test_ctrl_c_reports_the_finished_cases_and_stops_the_others(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project", wanted=0)
    suite.write("held", *suite.questions[6:])
    command = [*COMMAND, "-v"]
    running = subprocess.Popen(command, cwd=suite.root, env=_environment(), stdout=subprocess.PIPE, text=True)
    wait_until(lambda: len(suite.asked()) == 16)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out = running.communicate(timeout=60)[0]
    assert running.returncode == pytest.ExitCode.INTERRUPTED
    assert "6 passed" in out
    assert "KeyboardInterrupt" in out
    assert suite.asked() == suite.questions[:16]


@pytest.mark.slow
@pytest.mark.parametrize("dist", ["load", "loadfile"])
def test_workers_share_the_rate_of_an_agent(tmp_path: Path, dist: str) -> None:
    suite = make_suite(tmp_path / "project", tests=5, cases=2, wanted=0, more="rate_limit = 10")
    began = time.time()
    done = session(suite, "-n", "2", "--dist", dist)
    assert "10 passed" in done.stdout
    assert Counter(suite.asked()) == Counter(suite.questions)
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        [(agent, next_slot)] = database.query("SELECT agent, next_slot FROM pace")
    assert agent == "Desk"
    # Each of the ten questions had a slot of its own.
    assert next_slot >= began + 10 / 10


@pytest.mark.slow
def test_an_agent_named_by_an_option_is_one_for_all_files(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project", tests=4, concurrency=6)
    for path in suite.root.rglob("Test_0[13].aiEvaluationDefinition"):
        path.write_text(path.read_text().replace("<subjectName>Desk<", "<subjectName>Other<"))
    assert "12 passed" in session(suite, "--evalmeta-subject", "desk:answer").stdout
    assert suite.most_in_flight() == 6
