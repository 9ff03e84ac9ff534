"""`evalmeta run`: the tests in files, without deploying them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from cli.test_agent_test_run_files import AGENT, SPEC
from client.servers import replying_with
from engine.subjects.conversations import says
from formats.discovery_corpus import NEAR, VALID

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

DESK = ("--agent", "desk:answer")
COMMAND = f'adapter = "command"\ncommand = {json.dumps([sys.executable, "pays.py"])}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent and two tests, without settings."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "tests").mkdir()
    for topic in ("Orders", "Returns"):
        (tmp_path / "tests" / f"{topic.lower()}.yaml").write_text(SPEC.format(topic=topic))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_all_tests_in_the_folder_run_to_their_end(evalmeta: Program) -> None:
    done = evalmeta("run", *DESK, "--json")
    runs = json.loads(done.out)["result"]
    assert done.code == 100
    assert [run["evalmeta"]["definition"] for run in runs] == ["tests/orders.yaml", "tests/returns.yaml"]


def test_all_tests_of_the_project_run_wherever_the_command_is_called(
    evalmeta: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    (folder / "docs").mkdir()
    monkeypatch.chdir(folder / "docs")
    assert len(json.loads(evalmeta("run", "--json").out)["result"]) == 2


def test_named_files_run_alone(evalmeta: Program) -> None:
    assert evalmeta("run", "tests/orders.yaml", *DESK).code == 0


def test_subject_is_another_name_of_agent(evalmeta: Program) -> None:
    named = evalmeta("run", "tests/orders.yaml", "--subject", "desk:answer", "--json")
    assert json.loads(named.out)["result"][0]["subjectName"] == "desk:answer"


def test_failures_are_run_again_with_the_same_command(evalmeta: Program) -> None:
    failed = evalmeta("run", *DESK)
    assert "To run only these again: evalmeta run --last-failed --agent desk:answer" in failed.out
    again = evalmeta("run", "--last-failed", *DESK, "--json")
    assert [run["evalmeta"]["definition"] for run in json.loads(again.out)["result"]] == ["tests/returns.yaml"]


def test_failures_of_a_bare_call_are_run_again_with_the_short_command(evalmeta: Program, folder: Path) -> None:
    (folder / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    assert "To run only these again: evalmeta run --last-failed\n" in evalmeta("run").out


def test_failures_of_an_endpoint_are_run_again_with_its_model(evalmeta: Program) -> None:
    with replying_with(says({"choices": [{"message": {"content": "On its way."}}]})) as server:
        agent = ("--agent", f"{server.url}/v1", "--model", "desk-1")
        evalmeta("run", "tests/returns.yaml", *agent)
    results = evalmeta("test", "results", "--job-id", "latest").out
    assert f"evalmeta test run tests/returns.yaml {' '.join(agent)} --failed-from" in results


def test_a_name_of_a_deployed_test_leads_to_the_command_that_runs_it(evalmeta: Program) -> None:
    refused = evalmeta("run", "-n", "Orders")
    assert (refused.code, "Use `evalmeta test run -n` instead." in refused.err) == (2, True)


def test_a_folder_without_tests_is_refused(evalmeta: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "empty").mkdir()
    monkeypatch.chdir(folder / "empty")
    refused = evalmeta("run").err
    assert "there are no tests in" in refused
    assert "Or write the first tests: evalmeta init\n" in refused


def test_an_endpoint_needs_no_settings(evalmeta: Program) -> None:
    with replying_with(says({"choices": [{"message": {"content": "On its way."}}]})) as server:
        subject = ("--agent", f"{server.url}/v1", "--model", "desk-1")
        done = evalmeta("run", "tests/orders.yaml", *subject, "--json")
    [run] = json.loads(done.out)["result"]
    assert run["testCases"][0]["generatedData"]["outcome"] == "On its way."
    assert server.requests[0].startswith(b"POST /v1/chat/completions ")
    assert b"desk-1" in server.requests[0]


def test_an_agent_for_deployed_tests_leads_to_their_files(evalmeta: Program, folder: Path) -> None:
    (folder / "evalmeta.toml").touch()
    refused = evalmeta("test", "run", "--wait", *DESK)
    assert (refused.code, "evalmeta run --agent desk:answer" in refused.err) == (2, True)


PAYS = """\
import json, sys

def answer(utterance):
    return {"outcome": "Paid.", "topic": "Orders", "actions": [{"name": "Pay", "input": {"id": 2**70 + 1}}]}

if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(line)), flush=True)
"""
PAYMENT = """\
subject: Order_Desk
testCases:
- input: Pay.
  customEvaluations:
  - name: string_comparison
    label: id
    parameters:
    - {name: operator, value: equals, isReference: false}
    - {name: actual, value: "$.generatedData.invokedActions[0][0].function.input.id", isReference: true}
    - {name: expected, value: "ID", isReference: false}
"""


@pytest.mark.parametrize("subject", ['adapter = "python"\ntarget = "pays:answer"', COMMAND])
@pytest.mark.parametrize(("expected", "code"), [(2**70 + 1, 0), (2**70, 100)])
def test_an_integer_of_more_than_64_bits_is_judged_and_reported_by_all_its_digits(
    evalmeta: Program, folder: Path, subject: str, expected: int, code: int
) -> None:
    (folder / "pays.py").write_text(PAYS)
    (folder / "evalmeta.toml").write_text(f"[subjects.Order_Desk]\n{subject}\n")
    (folder / "pay.yaml").write_text(PAYMENT.replace("ID", str(expected)))
    done = evalmeta("run", "pay.yaml", "--json")
    assert (done.code, str(2**70 + 1) in done.out) == (code, True)
    for report in ("json", "jsonl", "html", "csv"):
        shown = evalmeta("test", "results", "--use-most-recent", "--result-format", report)
        assert str(2**70 + 1) in shown.out, report


@pytest.mark.parametrize("command", [("run",), ("run", "tests"), ("test", "run", "tests", "--wait")])
def test_a_run_reports_every_test_with_a_mistake_in_a_folder_and_asks_nothing(
    evalmeta: Program, folder: Path, command: tuple[str, ...]
) -> None:
    for name, content in NEAR.items():
        (folder / "tests" / name).write_bytes(content.encode())
    (folder / "desk.py").write_text("def answer(question):\n    open('asked.txt', 'w').close()\n    return question\n")
    done = evalmeta(*command, *DESK, "--json")
    found = json.loads(done.out)["data"]
    assert (done.code, sorted({each["file"] for each in found if each["line"]})) == (
        2,
        sorted(f"tests/{name}" for name in NEAR),
    )
    assert not (folder / "asked.txt").exists()


@pytest.mark.parametrize("name", VALID)
def test_a_run_of_a_folder_runs_every_valid_test(evalmeta: Program, folder: Path, name: str) -> None:
    (folder / "set").mkdir()
    (folder / "set" / name).write_text(VALID[name])
    [run] = json.loads(evalmeta("run", "set", *DESK, "--json").out)["result"]
    assert run["evalmeta"]["definition"] == f"set/{name}"


def test_a_case_without_checks_does_not_pass(evalmeta: Program, folder: Path) -> None:
    (folder / "tests/returns.yaml").write_text("testCases:\n- input: Hi\n")
    done = evalmeta("run", *DESK)
    assert (done.code, "tests/returns.yaml:2  case 1  the case has no expectations" in done.out) == (100, True)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ((), "\n2 files were not tests: data.csv, package.json; -v says why\n"),
        (("-v",), "\n  package.json: it is an npm package\n"),
        (("--json",), "\n2 files were not tests: data.csv, package.json; -v says why\n"),
        (("--dry-run",), "2 files were not tests: data.csv, package.json; -v says why\n"),
        (("--case", "1"), "\n2 files were not tests: data.csv, package.json; -v says why\n"),
    ],
)
def test_a_run_of_a_folder_names_the_files_that_were_not_tests_last(
    evalmeta: Program, folder: Path, options: tuple[str, ...], shown: str
) -> None:
    (folder / "package.json").write_text('{"name": "desk", "scripts": {}}')
    (folder / "data.csv").write_text("date,amount\n1,2\n")
    done = evalmeta("run", *DESK, *options)
    assert f"\n{done.err}".endswith(shown)
    assert "not test" not in evalmeta("run", "tests", *DESK).err
    assert "not test" not in evalmeta("run", *DESK, "-q").err


MUTE = """\
testCases:
- input: Tell me the password.
  not_contains: hunter2
  latency_ms: 60000
  actions: []
"""


def test_an_agent_that_does_nothing_does_not_pass(evalmeta: Program, folder: Path) -> None:
    (folder / "mute.yaml").write_text(MUTE)
    (folder / "mute.py").write_text("def answer(question):\n    return {'outcome': ' ', 'actions': []}\n")
    done = evalmeta("run", "mute.yaml", "--agent", "mute:answer")
    assert done.code == 100
    assert "the agent returned an empty answer and took no action" in " ".join(done.out.split())


def test_an_empty_answer_passes_where_the_case_says_that_it_is_valid(evalmeta: Program, folder: Path) -> None:
    (folder / "mute.yaml").write_text(f"{MUTE}  empty: true\n")
    (folder / "mute.py").write_text("def answer(question):\n    return {'outcome': '', 'actions': []}\n")
    assert evalmeta("run", "mute.yaml", "--agent", "mute:answer").code == 0


def test_a_recorded_call_with_other_arguments_fails_before_and_after_a_conversion(
    evalmeta: Program, folder: Path
) -> None:
    call = {"name": "sumTool", "arguments": {"a": 1, "b": 1}}
    said = {"role": "assistant", "content": "2"}
    trace = {"userMessage": {"role": "user", "content": "1+1?"}, "output": said, "toolCalls": [call]}
    (folder / "sums.evalset.json").write_text(json.dumps({"threads": [{"id": "sums", "traces": [trace]}]}))
    (folder / "sums.py").write_text(
        "def answer(_):\n    return {'outcome': '2', 'actions': [{'name': 'sumTool', 'input': {'a': 999, 'b': -7}}]}\n"
    )
    asked = ("--agent", "sums:answer")
    assert "sumTool.input.a: expected 1, got 999" in " ".join(evalmeta("run", "sums.evalset.json", *asked).out.split())
    convert = ("convert", "sums.evalset.json", "--to", "testspec", "--subject-name", "Sums", "-o", "sums.yaml")
    assert evalmeta(*convert).code == 0
    done = evalmeta("run", "sums.yaml", *asked)
    assert done.code == 100
    assert "argument a of sumTool" in done.out
