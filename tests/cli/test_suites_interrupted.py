"""What a command with many runs promises when it is interrupted, killed, or out of time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs
from stores import store_in
from suites import make_suite, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suites import Suite

CONCURRENCY = 10
BLOCKING = """
async def answer(utterance):
    blocked = here / "blocked"
    if utterance == "Question 00 02" and not (here / "was_blocked").exists():
        (here / "was_blocked").touch()
        blocked.touch()
        while blocked.exists():
            time.sleep(0.01)
    return await answer_at_once(utterance)
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """A suite whose agent answers at once."""
    return make_suite(tmp_path / "project", wanted=0)


@pytest.fixture
def run(program: list[str], suite: Suite) -> Callable[..., Ended]:
    """Runs a command as a process of its own."""

    def run(*words: str) -> Ended:
        done = subprocess.run(
            [*program, *words], cwd=suite.root, capture_output=True, text=True, timeout=120, check=False
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


def saved(suite: Suite) -> Counter[str]:
    """Return how often each question has a result in the runs that asked."""
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        runs, ids = Runs(database), database.query("SELECT id FROM run WHERE answers_of IS NULL")
        return Counter(case.utterance for (run_id,) in ids for case in runs.cases(run_id))


def started(suite: Suite) -> int:
    """Return the number of runs."""
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        return int(database.query("SELECT count(*) FROM run")[0][0])


def stop_in_the_middle(suite: Suite, program: list[str], sign: signal.Signals) -> Ended:
    """Send a signal to a command whose first 25 questions are answered while the others are held."""
    suite.write("held", *suite.questions[25:])
    running = subprocess.Popen(
        [*program, "test", "run", ".", "--wait"],
        cwd=suite.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(suite.asked()) == 25 + CONCURRENCY)
    wait_until(lambda: saved(suite).total() == 25 and started(suite) == suite.tests)
    running.send_signal(sign)
    out, err = running.communicate(timeout=60)
    return Ended(running.returncode, out, err)


@pytest.mark.slow
def test_a_suite_that_is_stopped_while_its_runs_start_names_the_tests_that_did_not(
    suite: Suite, program: list[str], run: Callable[..., Ended]
) -> None:
    # The agent blocks the process with its second question.
    agent = suite.root / "desk.py"
    agent.write_text(f"{agent.read_text()}\nanswer_at_once = answer\n{BLOCKING}")
    running = subprocess.Popen(
        [*program, "test", "run", ".", "--wait"], cwd=suite.root, stderr=subprocess.PIPE, text=True
    )
    wait_until((suite.root / "blocked").exists)
    running.send_signal(signal.SIGINT)
    (suite.root / "blocked").unlink()
    err = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert "Finished results are kept.\nResume: evalmeta test resume --unfinished\n" in err
    named = re.search(r"Not started: (.*)\.", err)
    assert named
    assert named[1].split(", ")[-1] == "Test_19"

    assert run("test", "resume", "--unfinished").code == 0
    assert (started(suite), len(saved(suite))) == (suite.tests, suite.cases * suite.tests)


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_suite_that_is_stopped_keeps_all_answers_and_its_resumption_asks_only_the_others(
    suite: Suite, program: list[str], run: Callable[..., Ended], sign: signal.Signals, code: int
) -> None:
    stopped = stop_in_the_middle(suite, program, sign)
    assert stopped.code == code
    if sign is not signal.SIGKILL:
        assert re.search(r"\nFinished results are kept: .*\.\nResume: evalmeta test resume --unfinished\n", stopped.err)
        assert "Traceback" not in stopped.err
    assert saved(suite) == Counter(suite.questions[:25])

    suite.write("held", "nothing")
    assert run("test", "resume", "--unfinished").code == 0
    assert saved(suite) == Counter(suite.questions)
    again = [question for question, times in Counter(suite.asked()).items() if times > 1]
    # Only what was in flight is asked again.
    assert again == suite.questions[25 : 25 + CONCURRENCY]
    assert len(suite.asked()) == 60 + CONCURRENCY


@pytest.mark.slow
def test_a_wait_that_runs_out_names_all_runs_which_continue_and_are_resumed(
    suite: Suite, run: Callable[..., Ended]
) -> None:
    suite.write("held", *suite.questions[3:])
    ended = run("test", "run", ".", "--wait", "0.05")
    assert ended.code == 69
    assert "Resume them: evalmeta test resume --unfinished" in ended.err
    listed = re.search(
        r"Error \(WaitRanOut\): .* runs are not done after 3 s; they continue in the org: (.*)", ended.err
    )
    assert listed
    run_ids = listed[1].split(", ")
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        assert run_ids[-19:] == [run_id for run_id, _ in Runs(database).unfinished()][-19:]

    # A worker in the background has taken over.
    wait_until(lambda: Counter(suite.asked())["Question 01 01"] == 2)
    suite.write("held", "nothing")
    assert run("test", "resume", *(word for run_id in run_ids for word in ("--job-id", run_id))).code == 0
    assert saved(suite) == Counter(suite.questions)
    assert len(suite.asked()) <= 60 + CONCURRENCY


@pytest.mark.slow
def test_too_many_errors_stop_their_own_run_and_no_other(suite: Suite, run: Callable[..., Ended]) -> None:
    suite.write(
        "broken", *(question for question in suite.questions if question.startswith(("Question 03", "Question 07")))
    )
    ended = run("test", "run", ".", "--wait", "--concurrency", "1", "--max-errors", "2", "--json")
    assert ended.code == 1
    results = json.loads(ended.out)["result"]
    stopped = [result["evalmeta"]["definition"] for result in results if result["status"] == "ERROR"]
    assert stopped == ["Test_03", "Test_07"]
    assert [len(result["testCases"]) for result in results] == [2 if n in {3, 7} else 3 for n in range(20)]
    assert "2 runs stopped before all cases were asked. Ask the missing ones: evalmeta test resume" in ended.err
    missing = {"Question 03 03", "Question 07 03"}
    assert suite.asked() == [question for question in suite.questions if question not in missing]

    suite.write("broken", "nothing")
    suite.forget()
    resumed = run("test", "resume", "--job-id", "latest", "--json")
    results = json.loads(resumed.out)["result"]
    assert (resumed.code, {result["status"] for result in results}) == (1, {"COMPLETED"})
    assert [len(result["testCases"]) for result in results] == [3] * 20
    assert set(suite.asked()) == missing


@pytest.mark.slow
def test_the_shards_of_a_suite_are_the_whole_without_overlaps(suite: Suite, run: Callable[..., Ended]) -> None:
    shards = []
    for shard in ("1/3", "2/3", "3/3"):
        assert run("test", "run", ".", "--wait", "--shard", shard).code == 0
        shards.append(suite.asked())
        suite.forget()
    assert all(shards)
    assert sorted(question for shard in shards for question in shard) == suite.questions
    assert all(shard == sorted(shard) for shard in shards)


@pytest.mark.slow
def test_an_agent_that_cannot_be_loaded_stops_the_suite_before_the_first_question(
    suite: Suite, run: Callable[..., Ended]
) -> None:
    bad = suite.root / "aiEvaluationDefinitions" / "Test_11.aiEvaluationDefinition"
    bad.write_text(bad.read_text().replace("<subjectName>Desk<", "<subjectName>Lost<"))
    settings = suite.root / "evalmeta.toml"
    settings.write_text(settings.read_text() + '[subjects.Lost]\nadapter = "python"\ntarget = "lost:answer"\n')
    ended = run("test", "run", ".", "--wait")
    assert ended.code != 0
    assert "lost.py does not exist (Test_11)" in ended.err
    assert suite.asked() == []


@pytest.mark.slow
def test_an_agent_that_cannot_be_loaded_any_more_does_not_stop_the_other_runs(
    suite: Suite, run: Callable[..., Ended], program: list[str]
) -> None:
    bad = suite.root / "aiEvaluationDefinitions" / "Test_11.aiEvaluationDefinition"
    bad.write_text(bad.read_text().replace("<subjectName>Desk<", "<subjectName>Lost<"))
    settings, lost = suite.root / "evalmeta.toml", suite.root / "lost.py"
    settings.write_text(settings.read_text() + '[subjects.Lost]\nadapter = "python"\ntarget = "lost:answer"\n')
    lost.write_text("import asyncio\nasync def answer(utterance):\n    await asyncio.sleep(3600)\n")
    stop_in_the_middle(suite, program, signal.SIGINT)
    lost.unlink()
    suite.write("held", "nothing")
    ended = run("test", "resume", "--unfinished")
    assert (ended.code != 0, "lost" in ended.err) == (True, True)
    assert saved(suite) == Counter(question for question in suite.questions if not question.startswith("Question 11"))
