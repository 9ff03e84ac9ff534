"""Reports of runs that are larger than what a command may hold."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

import evalmeta
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.run_options import RunOptions
from evalmeta.report import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

ROWS = {"few": 2_000, "many": 20_000}
ANSWER = "Your parcel is on its way to you, and it should arrive on <Thursday> & not later. " * 60
MAX_GROWTH_MB = 24
OUTPUTS = {**{name: ("--result-format", name) for name in FORMATS}, "envelope": ("--json",)}


class Stored(NamedTuple):
    """A run in the state folder of a project."""

    run_id: str
    project: Path
    state: Path

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "evalmeta", "test", "results", "--job-id", self.run_id, *arguments],
            cwd=self.project,
            env={**os.environ, "EVALMETA_HOME": str(self.state), "HOME": str(self.state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )


def answer(utterance: str, *, text: str = ANSWER) -> dict[str, object]:
    number = int(utterance.split()[1])
    if number % 500 == 0:
        raise RuntimeError("the agent is out of order")
    return {"outcome": f"{number}: {text}", "topic": "Orders" if number % 7 else "Returns", "actions": []}


def stored_run(folder: Path, rows: int, *, text: str = ANSWER, iterations: int = 1) -> Stored:
    expectations = (
        evalmeta.Expectation("topic_sequence_match", "Orders"),
        evalmeta.Expectation("action_sequence_match", "[]"),
    )
    cases = tuple(Case(number, (Turn(f"Question {number} is?", expectations),)) for number in range(1, rows + 1))
    state, project = folder / "state", folder / "project"
    project.mkdir()
    (project / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "."}]}')
    options = RunOptions(iterations=iterations)
    done = evalmeta.evaluate(
        Evaluation("Orders", "Desk", cases),
        partial(answer, text=text),
        journal=state,
        options=options,
        keep_results=False,
    )
    return Stored(done.run.id, project, state)


def peak_mb(process: subprocess.Popen[bytes]) -> int:
    """Read all that a command prints, and return the largest resident memory that it needed."""
    assert process.stdout
    with process.stdout as printed:
        while printed.read(1 << 20):
            pass
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 1  # cases ended in errors
    return usage.ru_maxrss // (1_000_000 if sys.platform == "darwin" else 1_000)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stored]:
    """Runs with 10 MB and with 100 MB of results."""
    return {name: stored_run(tmp_path_factory.mktemp(name), rows) for name, rows in ROWS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_memory_of_a_report_does_not_grow_with_the_results(stores: dict[str, Stored], output: str) -> None:
    few, many = (peak_mb(stores[name].command(*OUTPUTS[output])) for name in ROWS)
    assert many - few < MAX_GROWTH_MB


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A run of a few megabytes, so that it is read from the database piece by piece."""
    return stored_run(tmp_path_factory.mktemp("small"), 300, iterations=2)


@pytest.fixture
def texts_of(
    evalmeta: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Stored], dict[str, str]]:
    """Returns what each output option prints of a run."""

    def texts(stored: Stored) -> dict[str, str]:
        monkeypatch.chdir(stored.project)
        monkeypatch.setenv("EVALMETA_HOME", str(stored.state))
        monkeypatch.setenv("HOME", str(tmp_path))
        command = ("test", "results", "--job-id", stored.run_id)
        return {name: evalmeta(*command, *options).out for name, options in OUTPUTS.items()}

    return texts


@pytest.mark.slow
def test_each_format_has_all_cases_of_a_large_run(small: Stored, texts_of: Callable[[Stored], dict[str, str]]) -> None:
    texts = texts_of(small)
    assert len(json.loads(texts["json"])["testCases"]) == 600
    assert [len(each["testCases"]) for each in json.loads(texts["envelope"])["result"]] == [600]
    assert len(texts["jsonl"].splitlines()) == 600
    assert len(list(csv.DictReader(io.StringIO(texts["csv"], newline="")))) == 1_200
    assert json.loads(texts["ctrf"])["results"]["summary"]["tests"] == texts["junit"].count("<testcase ") == 600
    assert "\n1..600\n" in texts["tap"]
    assert texts["html"].count('<details class="case') == 300
    assert 'tests="600"' in texts["junit"]


@pytest.mark.parametrize(("rows", "iterations"), [(60, 1), (6, 20)], ids=["with failures", "repeated"])
def test_the_verdict_of_a_large_run_is_printed_without_reading_its_results(
    tmp_path: Path, evalmeta: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, rows: int, iterations: int
) -> None:
    stored = stored_run(tmp_path, rows, iterations=iterations)
    monkeypatch.chdir(stored.project)
    monkeypatch.setenv("EVALMETA_HOME", str(stored.state))
    printed = {"kept": evalmeta("test", "results", "--job-id", stored.run_id, "-q")}
    with closing(sqlite3.connect(stored.state / "org.sqlite3", isolation_level=None)) as database:
        counts = database.execute("SELECT tally, verdict FROM run").fetchone()
        database.execute("UPDATE run SET tally = NULL, verdict = NULL")
        printed["counted"] = evalmeta("test", "results", "--job-id", stored.run_id, "-q")
        database.execute("UPDATE run SET tally = ?, verdict = ?", counts)
        database.execute("UPDATE case_result SET body = zeroblob(length(body))")
    printed["unread"] = evalmeta("test", "results", "--job-id", stored.run_id, "-q")
    assert len(set(printed.values())) == 1
    assert f"{rows:,} cases" in printed["kept"].out


def test_a_process_that_is_killed_while_it_writes_a_report_leaves_the_old_one(tmp_path: Path) -> None:
    old = tmp_path / "report.json"
    old.write_text("the old report")
    code = (
        "import os, signal, sys; from pathlib import Path; from evalmeta.package.files import put_pieces\n"
        "def pieces():\n    yield b'the new '\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "put_pieces(Path(sys.argv[1]), pieces())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(old)], check=False, timeout=60)
    assert (done.returncode, old.read_text()) == (-signal.SIGKILL, "the old report")


@pytest.mark.slow
def test_reports_that_are_written_at_the_same_time_are_both_complete(small: Stored) -> None:
    options = ("--result-format", "jsonl", "--output-dir", str(small.project))
    processes = [small.command(*options) for _ in range(2)]
    printed = {process.communicate()[0] for process in processes}
    assert printed == {(small.project / f"test-result-{small.run_id}.jsonl").read_bytes()}


@pytest.mark.slow
def test_an_answer_of_a_megabyte_is_complete_in_json_and_cut_in_reports_for_people(
    tmp_path: Path, texts_of: Callable[[Stored], dict[str, str]]
) -> None:
    texts = texts_of(stored_run(tmp_path, 2, text="a" * 999_000))
    assert len(json.loads(texts["json"])["testCases"][0]["generatedData"]["outcome"]) == 999_003
    assert len(json.loads(texts["jsonl"].splitlines()[0])["outcome"]) == 999_003
    assert all(len(texts[name]) < 100_000 for name in ("human", "html", "markdown", "junit", "tap", "ctrf", "github"))
