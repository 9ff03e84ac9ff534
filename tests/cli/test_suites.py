"""Several tests of one command: they share their agent, and can be interrupted and resumed together."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

TESTS, CASES, CONCURRENCY = 8, 3, 5
# Writes down how many test cases are in memory: when it is imported, and when it is asked.
COUNTING = """\
import gc, pathlib, sys
from evalmeta.model.evaluation import Turn

FILE = pathlib.Path(__file__).with_name("kept")

def count():
    # Python fails in a thread that is making a tuple which another has from `get_objects`.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    gc.collect()
    kept = sum(type(thing) is Turn and thing.utterance.startswith("kept ") for thing in gc.get_objects())
    sys.setswitchinterval(interval)
    with FILE.open("a") as file:
        file.write(f"{kept}\\n")

count()

async def answer(utterance):
    if utterance.endswith(" 0"):
        count()
    return utterance
"""
AGENT = """\
import asyncio, pathlib

here = pathlib.Path(__file__).parent
in_flight = 0

async def answer(utterance):
    global in_flight
    in_flight += 1
    with (here / "asked.txt").open("a") as file:
        file.write(f"{in_flight} {utterance}\\n")
    while (here / "held").exists() and utterance[-1] == "3":
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)
    in_flight -= 1
    return {"outcome": "Done.", "topic": "Orders"}
"""
SETTINGS = f"""\
[run]
concurrency = {CONCURRENCY}
[subjects.Desk]
adapter = "python"
target = "desk:answer"
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with several definitions, whose agent writes down how many questions are in flight."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").write_text(SETTINGS)
    for test in range(TESTS):
        cases = "".join(
            f"<testCase><number>{number}</number><inputs><utterance>Question {test} {number}</utterance></inputs>"
            "<expectation><name>topic_sequence_match</name><expectedValue>Orders</expectedValue></expectation></testCase>"
            for number in range(1, CASES + 1)
        )
        (tmp_path / f"Test_{test}.aiEvaluationDefinition").write_text(
            f'<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata"><name>Test_{test}</name>'
            f"<description>{tmp_path.name}</description>{cases}"
            "<subjectName>Desk</subjectName><subjectType>AGENT</subjectType></AiEvaluationDefinition>"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(folder: Path) -> list[tuple[int, str]]:
    """Return what was in flight with each question, and the question."""
    lines = (folder / "asked.txt").read_text().splitlines()
    return [(int(count), question) for count, _, question in (line.partition(" ") for line in lines)]


QUESTIONS = [f"Question {test} {number}" for test in range(TESTS) for number in range(1, CASES + 1)]


def test_tests_use_the_whole_concurrency_of_their_agent_and_ask_in_order(evalmeta: Program, suite: Path) -> None:
    done = evalmeta("test", "run", ".", "--wait", "--json")
    results = json.loads(done.out)["result"]
    assert (done.code, [len(result["testCases"]) for result in results]) == (0, [CASES] * TESTS)
    assert [result["evalmeta"]["definition"] for result in results] == [f"Test_{test}" for test in range(TESTS)]
    assert len({result["evalmeta"]["options"]["origin"]["suite"] for result in results}) == 1
    assert max(count for count, _ in asked(suite)) == CONCURRENCY
    assert [question for _, question in asked(suite)] == QUESTIONS


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """Counts how often each definition is parsed."""
    counted = Counter[bytes]()
    parse = etree.fromstring

    def count(text: bytes, parser: etree.XMLParser) -> etree._Element:
        if text.startswith(b"<AiEvaluationDefinition"):
            counted[text] += 1
        return parse(text, parser)

    monkeypatch.setattr(etree, "fromstring", count)
    return counted


def test_files_are_parsed_once_in_a_run_that_passes(evalmeta: Program, suite: Path, parsed: Counter[bytes]) -> None:
    assert evalmeta("test", "run", ".", "--wait").code == 0
    assert parsed == Counter(path.read_bytes() for path in suite.glob("*.aiEvaluationDefinition"))


OPENED = """\
import sys
from collections import Counter

opened = Counter()
sys.addaudithook(lambda event, given: event == "open" and opened.update([str(given[0]).rpartition("/")[2]]))
from evalmeta.cli.main import main
try:
    main(["test", "run", ".", "--wait", "--result-format", "tap"])
finally:
    print({count for name, count in opened.items() if name.endswith(".aiEvaluationDefinition")}, file=sys.stderr)
"""


@pytest.mark.slow
def test_files_are_read_once_and_hashed_in_each_step_that_a_change_must_not_pass(suite: Path) -> None:
    # Hashed before it is read, for the suite that is saved, by the check, by the start and by the worker.
    ran = subprocess.run([sys.executable, "-c", OPENED], cwd=suite, capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1] == "{6}"


def test_the_file_of_a_case_that_failed_is_parsed_again_for_its_line(
    evalmeta: Program, suite: Path, parsed: Counter[bytes]
) -> None:
    failing = suite / "Test_3.aiEvaluationDefinition"
    failing.write_text(failing.read_text().replace(">Orders<", ">Returns<").replace("<testCase>", "\n<testCase>"))

    done = evalmeta("test", "run", ".", "--wait")
    assert done.code == 100
    assert f"Test_3.aiEvaluationDefinition:{CASES + 1}" in done.out
    assert parsed[failing.read_bytes()] == 2


def test_definitions_in_the_org_are_parsed_once_in_a_run(
    evalmeta: Program, suite: Path, parsed: Counter[bytes]
) -> None:
    (suite / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "."}]}')
    assert evalmeta("deploy").code == 0
    parsed.clear()

    assert evalmeta("test", "run", "--wait").code == 0
    assert parsed == Counter(path.read_bytes() for path in suite.glob("*.aiEvaluationDefinition"))


@pytest.mark.slow
def test_an_interrupted_suite_is_resumed_and_asks_nothing_twice_that_was_answered(
    evalmeta: Program, suite: Path, program: list[str]
) -> None:
    (suite / "held").touch()
    running = subprocess.Popen([*program, "test", "run", ".", "--wait"], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and not ((suite / "asked.txt").exists() and len(asked(suite)) >= 3 * CONCURRENCY):
        time.sleep(0.05)
    # Answers are committed before anything else happens to them; held questions stay unanswered.
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    error = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    counts = r"(\d+ of \d+ runs, )?\d+ (of \d+ )?cases?, .*\d failed"
    assert re.search(rf"\nFinished results are kept: {counts}.*\.\nResume: evalmeta test resume --unfinished\n", error)

    (suite / "held").unlink()
    done = evalmeta("test", "resume", "--unfinished", "--json")
    assert done.code == 0
    for command in ("resume", "cancel"):
        again = evalmeta("test", command, "--unfinished", "--json")
        assert (again.code, json.loads(again.out)["result"]) == (0, [])
        assert again.err == "No run of this project is unfinished.\n"
    times = Counter(question for _, question in asked(suite))
    assert sorted(times) == sorted(QUESTIONS)
    assert {question for question, count in times.items() if count > 1} <= {
        each for each in QUESTIONS if each[-1] == "3"
    }


@pytest.mark.slow
def test_what_prevents_one_run_does_not_stop_the_others(evalmeta: Program, suite: Path) -> None:
    (suite / "held").touch()
    folder = suite / "aiEvaluationDefinitions"
    folder.mkdir()
    for test in (0, 1):
        (suite / f"Test_{test}.aiEvaluationDefinition").rename(folder / f"Test_{test}.aiEvaluationDefinition")
    assert evalmeta("deploy").code == 0
    assert evalmeta("test", "run", "--wait", "0.01").code == 69
    evalmeta("test", "cancel", "--unfinished")
    first, second = "4KB000000000001GAA", "4KB000000000002GAA"
    (suite / "held").unlink()
    assert evalmeta("test", "run", "--api-name", "Test_0").code == 0
    done = evalmeta("test", "cancel", "--job-id", first, "--job-id", "4KB000000000003GAA", "--job-id", second)
    assert f"run {first} has already finished" in done.err
    assert f"run {second} has already finished" in done.err
    assert done.code != 0


def test_one_choice_of_runs_is_needed(evalmeta: Program, suite: Path) -> None:
    assert suite
    for words in ((), ("--unfinished", "-r"), ("--job-id", "4KB000000000001GAA", "--unfinished")):
        done = evalmeta("test", "resume", *words)
        assert (done.code, "Give one of --job-id, --use-most-recent and --unfinished." in done.err) == (2, True)


@pytest.mark.slow
def test_the_cases_of_a_suite_of_many_files_are_not_in_memory_together(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_REMEMBERED_CASES", 10)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk.py").write_text(COUNTING)
    for number in range(40):
        rows = (f'{{"input": "kept {number} {place}", "contains": "kept"}}' for place in range(5))
        (tmp_path / f"{number}.jsonl").write_text("\n".join(rows))

    ended = evalmeta("test", "run", *(f"{number}.jsonl" for number in range(40)), "--agent", "desk:answer", "--wait")

    assert ended.code == 0, ended.err
    assert "200 passed" in ended.out
    assert max(map(int, (tmp_path / "kept").read_text().split())) < 100
