"""Tables and JSON Lines with other titles and with metadata, as a user runs, checks and converts them."""

from __future__ import annotations

import csv
import io
import json
import shlex
from typing import TYPE_CHECKING

import pytest

from evalmeta import evaluate, limits
from evalmeta.errors import FormatError, UsageError
from evalmeta.model.evaluation import Case, Turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

TABLE = """\
Question,Expected answer,Region,owner
Hi,Hello,EU,ann
Bye,Bye,US,bob
"""
LINES = """\
{"Question": "Hi", "Expected answer": "Hello", "Region": "EU", "owner": "ann"}
{"Question": "Bye", "Expected answer": "Bye", "Region": "US", "owner": "bob"}
"""
COLUMNS = ("--columns", "input=Question", "--columns", "contains = Expected answer")
SETTINGS = '[columns]\ninput = "Question"\ncontains = "Expected answer"\n'
ASKED: list[str] = []


def answer(question: str) -> str:
    ASKED.append(question)
    return "Hello"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents.py").write_text("def answer(question):\n    return 'Hello'\n")
    (tmp_path / "q.csv").write_text(TABLE)
    (tmp_path / "q.jsonl").write_text(LINES)
    ASKED.clear()
    return tmp_path


def run(evalmeta: Program, *words: str) -> Outcome:
    return evalmeta("run", *words, "--agent", "agents:answer")


@pytest.mark.parametrize("file", ["q.csv", "q.jsonl"])
def test_the_columns_of_a_file_are_named_on_the_command_line(evalmeta: Program, file: str) -> None:
    done = run(evalmeta, file, *COLUMNS)
    assert done.code == 100
    assert "2 cases: 1 passed, 1 failed, 0 errors, 0 undecided" in done.out
    assert "metadata  Region: US, owner: bob" in done.out
    assert evalmeta("validate", file, *COLUMNS).code == 0
    again = evalmeta("run", "--last-failed", file, "--agent", "agents:answer", *COLUMNS)
    assert "1 case: 0 passed, 1 failed" in again.out


def test_a_finished_run_knows_its_columns(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    # The file is read again for each report, as in another process.
    monkeypatch.setattr(limits, "MAX_REMEMBERED_CASES", 0)
    run(evalmeta, "q.csv", *COLUMNS)
    shown = evalmeta("test", "results", "--job-id", "latest").out
    assert "FAILED q.csv:3" in shown
    command = next(line for line in shown.splitlines() if line.startswith("To run only these again: "))
    again = evalmeta(*shlex.split(command.partition(": evalmeta ")[2]))
    assert "1 case: 0 passed, 1 failed" in again.out


def test_the_columns_of_a_project_are_in_its_settings(evalmeta: Program, project: Path) -> None:
    (project / "evalmeta.toml").write_text(SETTINGS)
    assert "2 cases: 1 passed, 1 failed" in run(evalmeta, "q.csv").out
    assert evalmeta("validate", "q.csv").code == 0
    assert evaluate("q.csv", answer).summary.passed == 1
    # The command line replaces a single key.
    (project / "other.csv").write_text(TABLE.replace("Question", "Ask me"))
    assert "2 cases: 1 passed, 1 failed" in run(evalmeta, "other.csv", "--columns", "input=Ask me").out


def test_evaluate_takes_columns_and_functions_read_the_metadata() -> None:
    columns = {"input": "Question", "contains": "Expected answer"}
    finished = evaluate("q.csv", answer, columns=columns, checks=[lambda case: case.metadata["owner"] == "ann"])
    assert [case.verdict for case in finished.run.cases] == ["PASS", "FAILURE"]
    assert [case.metadata for case in finished.run.cases] == [
        {"Region": "EU", "owner": "ann"},
        {"Region": "US", "owner": "bob"},
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"input": "Qestion"}, "the column 'Qestion', which 'columns' names for 'input', does not exist"),
        ({"input": "Question", "contains": "Question"}, "the column 'Question' is for 'input' already"),
        ({"inptu": "Question"}, "'columns': a test case has no key 'inptu'"),
        ({"input": "Question"}, "column 2 has the unknown title 'Expected answer'"),
    ],
)
@pytest.mark.parametrize("file", ["q.csv", "q.jsonl"])
def test_a_mistake_in_columns_is_reported_before_the_first_question(
    evalmeta: Program, file: str, columns: dict[str, str], message: str
) -> None:
    if file == "q.jsonl":
        message = message.replace("column 2 has the unknown title", "a test case has no key")
    with pytest.raises(FormatError) as caught:
        evaluate(file, answer, columns=columns)
    assert any(message in str(problem) for problem in caught.value.problems)
    words = [word for key, title in columns.items() for word in ("--columns", f"{key}={title}")]
    told = run(evalmeta, file, *words).err
    assert message in told
    assert "does not exist" not in message or "or a section of evalmeta.toml" in told
    assert ASKED == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("q.csv", "--columns", "input"), "'input' is not a key with its column, such as input=Question"),
        (("q.csv", "--columns", "input=A", "--columns", "input=B"), "'input' has two columns, 'A' and 'B'"),
        (("spec.yaml", *COLUMNS), "columns are only for tables (CSV) and JSON Lines"),
    ],
)
def test_columns_that_cannot_be_used_are_an_error(
    evalmeta: Program, project: Path, words: tuple[str, ...], message: str
) -> None:
    (project / "spec.yaml").write_text("testCases: [{input: Hi, contains: Hello}]\n")
    assert message in run(evalmeta, *words).err.replace("\n", " ")
    with pytest.raises(UsageError, match="columns are only for tables"):
        evaluate([{"input": "Hi", "contains": "Hello"}], answer, columns={"input": "Question"})


def test_metadata_is_in_reports_and_chooses_cases(evalmeta: Program, project: Path) -> None:
    reports = ("--report", "r.csv", "--report", "r.xml", "--report", "r.jsonl", "--report", "r.json")
    done = run(evalmeta, "q.csv", *COLUMNS, "--tag", "Region=EU", "--iterations", "2", *reports)
    assert done.code == 0, done.err
    rows = [*csv.DictReader(io.StringIO((project / "r.csv").read_text()))]
    assert [(row["case"], json.loads(row["metadata"])) for row in rows] == [("1", {"Region": "EU", "owner": "ann"})] * 2
    assert '<property name="metadata-owner" value="ann"/>' in (project / "r.xml").read_text()
    assert json.loads((project / "r.jsonl").read_text().splitlines()[0])["metadata"]["Region"] == "EU"
    assert json.loads((project / "r.json").read_text())["testCases"][0]["metadata"]["owner"] == "ann"
    unknown = run(evalmeta, "q.csv", *COLUMNS, "--tag", "Region=E")
    assert "Did you mean Region=EU?" in unknown.err


@pytest.mark.parametrize("file", ["q.csv", "q.jsonl"])
def test_a_file_without_a_check_says_what_it_keeps_as_metadata(evalmeta: Program, project: Path, file: str) -> None:
    (project / "t.csv").write_text("input,Erwartet wird\nHi,Hello\n")
    (project / "t.jsonl").write_text('{"input": "Hi", "Erwartet wird": "Hello"}\n')
    (project / "t.yaml").write_text(f"cases: {file.replace('q', 't')}\ndefaults: {{not_contains: sorry}}\n")
    warning = "no column is a check; kept as metadata: 'Erwartet wird' [csv-unchecked]"
    hint = "map it with 'columns', such as contains: Erwartet wird."
    for test in ("t.yaml", file.replace("q", "t")):
        said = [run(evalmeta, test), evalmeta("validate", test)]
        assert all(warning in outcome.out + outcome.err for outcome in said)
        assert hint in said[0].err
    assert "csv-unchecked" not in evalmeta("validate", file, *COLUMNS).out


def test_metadata_that_a_conversion_loses_is_named(evalmeta: Program) -> None:
    done = evalmeta("convert", "q.csv", *COLUMNS, "--to", "definition", "--subject-name", "Shop")
    assert done.out.count("<testCase>") == 2
    assert "test case 1: its metadata Region, owner" in done.err


def test_a_case_in_python_has_metadata_within_the_limits() -> None:
    case = Case(1, (Turn("Hi"),), metadata={"area": "x" * 20_000})
    with pytest.raises(UsageError, match="case 1: the metadata has 20,011 bytes"):
        evaluate([case], answer)
    assert evaluate([{"input": "Hi", "metadata": {"area": 1}}], answer).run.cases[0].metadata == {"area": 1}
