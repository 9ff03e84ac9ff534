"""`--matrix`: the same tests with several agents or models, in one command."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from client.servers import listening
from engine.subjects.conversations import bodies, says

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENTS = """
def good(utterance):
    return "It is sent." if "it" in utterance else "You are here."

def bad(utterance):
    return "It is sent."
"""
SPEC = """\
subject: agents:good
testCases:
- input: Where is it?
  tags: orders
  contains: sent
- input: Where am I?
  contains: here
"""
SETTINGS = """
[subjects.first]
adapter = "python"
target = "agents:good"

[subjects.second]
adapter = "python"
target = "agents:bad"

[subjects.desk]
adapter = "openai"
model = "default"
url = "{url}"
"""
BOTH = ("--matrix", "subject=first,second")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "agents.py").write_text(AGENTS)
    (tmp_path / "desk.yaml").write_text(SPEC)
    (tmp_path / "evalmeta.toml").write_text(SETTINGS.format(url="http://127.0.0.1:1"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def models(request: bytes) -> bytes:
    """Answer as the model that a request names: only `large` knows where the user is."""
    body = json.loads(request.partition(b"\r\n\r\n")[2])
    knows = body["model"] == "large" and "am I" in body["messages"][-1]["content"]
    return says(
        {
            "choices": [{"message": {"content": "You are here." if knows else "It is sent."}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        }
    )


def test_every_test_runs_with_each_agent_and_they_are_compared(evalmeta: Program, folder: Path) -> None:
    (folder / "other.yaml").write_text(SPEC)
    done = evalmeta("run", *BOTH, "--report", "runs.xml", "--report", "runs.html", "--report", "runs.md")
    assert done.code == 100
    assert "second against first: 50 % against 100 % of 4 cases: no significant difference" in done.out
    assert "2 cases differ; passed of decided answers:" in done.out
    assert re.search(r"  other.yaml case 2: Where am I\? +1/1 +0/1\n", done.out)
    assert "2 of 4 runs passed" in done.out
    names = ["desk.yaml [first]", "desk.yaml [second]", "other.yaml [first]", "other.yaml [second]"]
    assert re.findall(r'<testsuite name="([^"]+)"', (folder / "runs.xml").read_text()) == names
    assert all("50 % against 100 % of 4 cases" in (folder / f"runs.{kind}").read_text() for kind in ("html", "md"))


def test_json_names_the_agents_and_compares_them_once(evalmeta: Program) -> None:
    done = evalmeta("run", *BOTH, "--json")
    first, second = json.loads(done.out)["result"]
    assert [run["subjectName"] for run in (first, second)] == ["first", "second"]
    matrix = first["evalmeta"]["matrix"]
    assert [(agent["label"], agent["passRate"]) for agent in matrix["agents"]] == [("first", 1.0), ("second", 0.5)]
    assert [case["number"] for case in matrix["differingCases"]] == [2]
    assert "matrix" not in second["evalmeta"]


def test_agents_that_pass_everything_pass_the_call(evalmeta: Program) -> None:
    done = evalmeta("run", "--matrix", "subject=first,agents:good")
    assert (done.code, "No case differs." in done.out) == (0, True)


def test_a_matrix_that_runs_in_the_background_is_compared_when_it_is_resumed(evalmeta: Program) -> None:
    started = evalmeta("test", "run", "desk.yaml", *BOTH)
    run_id = re.findall(r"\(run (\w+)\)", started.out)[0]
    done = evalmeta("test", "resume", "--job-id", run_id, "--wait")
    assert (done.code, "second against first: 50 % against 100 % of 2 cases" in done.out) == (100, True)


def test_saved_runs_of_a_matrix_are_compared_again(evalmeta: Program) -> None:
    evalmeta("run", *BOTH)
    assert "second against first: 50 % against 100 % of 2 cases" in evalmeta("test", "results", "latest").out


def test_models_of_an_agent_are_asked_with_the_rest_of_its_settings(evalmeta: Program, folder: Path) -> None:
    with listening(models) as server:
        (folder / "evalmeta.toml").write_text(SETTINGS.format(url=server.url))
        done = evalmeta("run", "--agent", "desk", "--matrix", "model=small,large", "--json")
    assert {body["model"] for body in bodies(server)} == {"small", "large"}
    small, large = json.loads(done.out)["result"]
    assert [run["subjectName"] for run in (small, large)] == ["desk@small", "desk@large"]
    assert small["evalmeta"]["options"]["setup"]["agent"].startswith("openai small at ")
    agents = small["evalmeta"]["matrix"]["agents"]
    assert [(agent["label"], agent["passRate"]) for agent in agents] == [("small", 0.5), ("large", 1.0)]
    assert agents[0]["tokens"] == {"input": 18, "output": 4}


@pytest.mark.slow
def test_models_behind_a_url_and_agents_times_models(evalmeta: Program, folder: Path) -> None:
    with listening(models) as server:
        done = evalmeta("run", "--agent", f"{server.url}/v1", "--matrix", "model=small,large")
        assert "large against small: 100 % against 50 % of 2 cases" in done.out
        assert f"--agent {server.url}/v1 --model small --failed-from" in done.out
        settings = SETTINGS.format(url=server.url)
        desk = settings[settings.index("[subjects.desk]") :]
        (folder / "evalmeta.toml").write_text(settings + desk.replace("desk", "shop"))
        done = evalmeta("run", "--matrix", "subject=desk,shop", "--matrix", "model=small,large", "--json")
    matrix = json.loads(done.out)["result"][0]["evalmeta"]["matrix"]
    assert [agent["label"] for agent in matrix["agents"]] == ["desk@small", "desk@large", "shop@small", "shop@large"]
    assert len(matrix["pairs"]) == 6


def test_an_agent_with_another_model_has_a_name_without_a_matrix_too(evalmeta: Program, folder: Path) -> None:
    with listening(models) as server:
        (folder / "evalmeta.toml").write_text(SETTINGS.format(url=server.url))
        assert evalmeta("run", "--agent", "desk@large").code == 0
    assert {body["model"] for body in bodies(server)} == {"large"}
    assert "nobody@large" in evalmeta("run", "--agent", "nobody@large").err


def test_failures_are_run_again_with_the_agent_that_failed(evalmeta: Program) -> None:
    failed = evalmeta("run", *BOTH)
    [command] = re.findall(r"To run only these again: evalmeta (.*)", failed.out)
    assert command.startswith("test run desk.yaml --agent second --failed-from ")
    [again] = json.loads(evalmeta(*command.split(), "--json").out)["result"]
    assert (again["subjectName"], [case["testNumber"] for case in again["testCases"]]) == ("second", [2])


@pytest.mark.parametrize("chosen", [("--case", "2"), ("--tag", "orders"), ("--failed-from", "latest:desk.yaml")])
def test_the_chosen_cases_are_asked_of_every_agent(evalmeta: Program, chosen: tuple[str, str]) -> None:
    evalmeta("run", "--agent", "second")
    runs = json.loads(evalmeta("run", *BOTH, *chosen, "--json").out)["result"]
    assert [len(run["testCases"]) for run in runs] == [1, 1]


def test_a_dry_run_shows_every_agent_and_asks_none(evalmeta: Program) -> None:
    done = evalmeta("run", *BOTH, "--dry-run")
    assert re.findall(r"desk.yaml: subject (\w+)", done.out) == ["first", "second"]
    assert "Would run 4 cases" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["subject=first"], "needs at least two agents or models"),
        (["subject=first,first"], "'first' is listed twice"),
        (["subject=first,"], "is not subject=NAME,... or model=NAME,..."),
        (["agent=first,second"], "is not subject=NAME,... or model=NAME,..."),
        (["subject=first,second", "--matrix", "subject=desk"], "--matrix has subject twice"),
        (["subject=first,nobody"], "--matrix subject=nobody: "),
        (["model=small,large"], "--matrix model=small: the agent 'agents:good' of desk.yaml has no model"),
        (
            ["model=small,large", "--agent", "first"],
            "--matrix model=small: the agent 'first' of desk.yaml has no model",
        ),
        (["subject=first,second", "--agent", "desk"], "--matrix subject=... and --agent cannot be combined"),
        (["model=a,b", "--agent", "http://127.0.0.1:1/v1", "--model", "c"], "--matrix model=... and --model cannot"),
        (["subject=first,second", "--shard", "1/2"], "--matrix and --shard cannot be combined"),
        (["subject=first,second", "--last-failed"], "--matrix and --last-failed cannot be combined"),
        (["subject=first,second", "--baseline", "latest"], "--matrix and --baseline cannot be combined"),
    ],
)
def test_what_has_no_meaning_is_refused_before_the_first_question(
    evalmeta: Program, folder: Path, words: list[str], message: str
) -> None:
    (folder / "agents.py").write_text("def good(utterance):\n    raise AssertionError\n\nbad = good\n")
    evalmeta("run", "--agent", "first")
    before = evalmeta("test", "history", "--json").out
    done = evalmeta("run", "desk.yaml", "--matrix", *words)
    assert (done.code, message in done.err) == (2, True), done.err
    assert "Try this" in done.err
    assert evalmeta("test", "history", "--json").out == before


def test_deployed_tests_have_no_matrix(evalmeta: Program) -> None:
    done = evalmeta("test", "run", *BOTH)
    assert (done.code, "--matrix is only for files" in done.err) == (2, True)
