"""Agents that fail in every way, in runs of a real project: only one case is affected, and every report has it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest

from evalmeta import limits
from evalmeta.model.run import Run, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.run_worker import work
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.report import FORMATS, render
from evalmeta.store.stored_cases import encode_case
from org.parts import make_project, opened_of, started
from report_runs import report_of

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import CaseResult

CASES, BROKEN = 5, 3
AGENT = """\
import asyncio, functools, itertools, time

numbers = itertools.count(1)

class Mute(Exception):
    def __str__(self):
        raise ValueError("it cannot be shown")

def nested(levels):
    return functools.reduce(lambda inner, _: [inner], range(levels), [])

class Session:
    def __init__(self, number):
        self.number = number

    async def ask(self, utterance):
        if self.number == 3:
            ASK
        return {"outcome": f"An answer to {utterance}", "topic": "Orders", "latency_ms": 7}

    async def close(self):
        if self.number == 3:
            CLOSE

class Desk:
    async def open(self, history, context):
        number = next(numbers)
        if number == 3:
            OPEN
        return Session(number)
"""
BLOCKING = """\
def answer(utterance):
    if utterance == "Orders 3":
        ASK
    return {"outcome": f"An answer to {utterance}", "topic": "Orders", "latency_ms": 7}
"""
SETTINGS = '[subjects.Desk]\nadapter = "python"\ntarget = "desk:NAME"\n'
HANG = "await asyncio.Event().wait()"
# Long enough for any agent that answers, also on a busy machine; only an agent that hangs is given less time.
ENOUGH_SECONDS = 60
TOO_LATE_SECONDS = 1
TOO_LATE = "no answer within 1 s"
RAISED = {
    'raise ValueError("no line")': "ValueError: no line",
    r'raise ValueError("\x1b[2J\ud800")': "ValueError: \x1b[2J?",
    'raise ValueError("x" * 10_000_000)': "xxx…",
    "raise Mute": "Mute: the error cannot be shown",
    "raise MemoryError": "MemoryError",
    'raise ExceptionGroup("two", [ValueError("a"), ValueError("b")])': "two (2 sub-exceptions)",
    "raise TimeoutError": "TimeoutError",
    "raise SystemExit(3)": "SystemExit: 3",
    "raise asyncio.CancelledError": "the agent cancelled itself",
    HANG: TOO_LATE,
    "time.sleep(1.2)": TOO_LATE,
}
ANSWERED = {
    "return None": "nothing (None)",
    "return object()": "type object",
    "return b'text'": "type bytes",
    "return [object()]": "object",
    "return (turn for turn in ())": "type generator",
    "return {}": "no keys",
    'return {"outcome": object()}': "object",
    'return {"outcome": "x", "turns": []}': "'turns'",
    'return {"outcome": "x", "latency_ms": float("nan")}': "latency_ms is nan",
    'return {"outcome": "x", "latency_ms": float("-inf")}': "latency_ms is -inf",
    'return {"outcome": "x", "trace": [float("nan")]}': "trace is not valid JSON",
    'return {"outcome": "x", "trace": {"a": object()}}': "trace is not valid JSON",
    r'return {"outcome": "x", "trace": "\ud800"}': "trace is not valid JSON",
    'return {"outcome": "x", "actions": [{"name": "A", "output": 10 ** 400}]}': "output of A is not valid JSON",
    'return "x" * 10_000_000': "10000000 characters",
    r'return "\ud800"': "not valid Unicode",
    r'return {"outcome": "x", "topic": "\udfff"}': "not valid Unicode",
    'return {"outcome": "x", "trace": nested(200)}': "nested more than",
    'return {"outcome": "x", "trace": nested(99_999)}': "trace is not valid JSON",
}
CLOSED = ["raise ValueError('stuck')", "raise SystemExit(1)", "raise asyncio.CancelledError", HANG]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLOSE_SECONDS", 0.05)


def run_of(folder: Path, agent: str, *, name: str = "Desk", seconds: float = ENOUGH_SECONDS) -> Run:
    """Carries out a run of five cases that are all asked at the same time."""
    project = make_project(folder, agent=agent, settings=SETTINGS.replace("NAME", name))
    run_id = started(project, cases=CASES, options=RunOptions(concurrency=CASES, case_timeout=seconds))
    with opened_of(project) as org:
        asyncio.run(work(org, run_id))
        return replace(org.runs.get(run_id), cases=org.runs.cases(run_id))


def seconds_for(words: str) -> float:
    """Return the time limit of a case whose error is to contain these words."""
    return TOO_LATE_SECONDS if words == TOO_LATE else ENOUGH_SECONDS


def agent(*, at_open: str = "pass", ask: str = "pass", close: str = "pass") -> str:
    return AGENT.replace("OPEN", at_open).replace("ASK", ask).replace("CLOSE", close)


def others(run: Run) -> bytes:
    """Return the cases without a fault, without their times."""
    sound = [case._replace(started=0, ended=0) for case in run.cases if case.number != BROKEN]
    return b"\n".join(map(encode_case, sound))


def broken_case(run: Run) -> CaseResult:
    assert (run.status, len(run.cases)) == (RunStatus.COMPLETED, CASES)
    assert {case.verdict for case in run.cases if case.number != BROKEN} == {Verdict.PASS}
    return run.cases[BROKEN - 1]


def check_that_all_can_tell(run: Run) -> None:
    """Reads the run back from its results object, and writes it in every format without what acts on a terminal."""
    for escape in (True, False):
        restored = read_run(orjson.loads(orjson.dumps(write_run(run, escape=escape))))
        assert [case.verdict for case in restored.cases] == [case.verdict for case in run.cases]
    for name in FORMATS:
        text = render(name, [report_of(run)])
        assert not {*"\x00\x1b\x9b\u202e"} & {*text}, name
        text.encode()


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    run = run_of(tmp_path_factory.mktemp("sound") / "project", agent())
    assert {case.verdict for case in run.cases} == {Verdict.PASS}
    return others(run)


@pytest.mark.parametrize(("fault", "words"), [*RAISED.items(), *ANSWERED.items()])
def test_what_an_agent_does_in_a_turn_spoils_that_case_alone(
    tmp_path: Path, unharmed: bytes, fault: str, words: str
) -> None:
    run = run_of(tmp_path / "project", agent(ask=fault), seconds=seconds_for(words))
    case = broken_case(run)
    assert (case.verdict, words in (case.error or "")) == (Verdict.ERROR, True), case.error
    assert others(run) == unharmed
    check_that_all_can_tell(run)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "words"), RAISED.items())
def test_what_an_agent_does_when_it_is_opened_spoils_that_case_alone(
    tmp_path: Path, unharmed: bytes, fault: str, words: str
) -> None:
    run = run_of(tmp_path / "project", agent(at_open=fault), seconds=seconds_for(words))
    case = broken_case(run)
    assert (case.verdict, words in (case.error or "")) == (Verdict.ERROR, True), case.error
    assert others(run) == unharmed


@pytest.mark.parametrize("fault", CLOSED)
def test_what_an_agent_does_when_it_is_closed_spoils_nothing(tmp_path: Path, unharmed: bytes, fault: str) -> None:
    run = run_of(tmp_path / "project", agent(close=fault))
    assert broken_case(run).verdict is Verdict.PASS
    assert others(run) == unharmed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import threading; threading.Event().wait()", TOO_LATE),
        ("return (each for each in ())", "generator"),
    ],
)
def test_what_a_function_does_in_its_thread_spoils_its_case_alone(
    tmp_path: Path, unharmed: bytes, fault: str, words: str
) -> None:
    run = run_of(tmp_path / "project", BLOCKING.replace("ASK", fault), name="answer", seconds=seconds_for(words))
    case = broken_case(run)
    assert (case.verdict, words in (case.error or "")) == (Verdict.ERROR, True), case.error
    assert others(run) == unharmed


def test_control_characters_are_kept_as_they_are_and_shown_as_escapes(tmp_path: Path, unharmed: bytes) -> None:
    hostile = r"\x1b[2J\x00\x9b\u202e]]>\r\n::error::"
    run = run_of(tmp_path / "project", agent(ask=f'return {{"outcome": "{hostile}", "topic": "Orders"}}'))
    case = broken_case(run)
    assert case.verdict is Verdict.PASS
    assert case.generated is not None
    assert case.generated.outcome == "\x1b[2J\x00\x9b\u202e]]>\r\n::error::"
    assert others(run) == unharmed
    check_that_all_can_tell(run)
