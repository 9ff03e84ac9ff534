from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]
    Copy = Callable[..., Path]

WAIT = 120
ANSWERED = 16
SLOW_AGENT = """
import asyncio, pathlib
async def answer(utterance):
    with pathlib.Path("asked.txt").open("a") as log:
        log.write(utterance + "\\n")
    await asyncio.sleep({seconds})
    while int(utterance.split()[1]) > {answered} and pathlib.Path("held").exists():
        await asyncio.sleep(0.01)
    return {{"outcome": "Understood.", "actions": []}}
"""


TALKATIVE = """
_answer = answer
def answer(utterance):
    print("debug")
    return _answer(utterance)
"""


STALE = """\
<?xml version="1.0" encoding="UTF-8"?>
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
  <description>Stale</description>
  <name>Stale</name>
  <subjectName>Gone_Agent</subjectName>
  <subjectType>AGENT</subjectType>
  <testCase>
    <expectation>
      <expectedValue>Orders</expectedValue>
      <name>topic_sequence_match</name>
    </expectation>
    <inputs>
      <utterance>Where is my order?</utterance>
    </inputs>
    <number>1</number>
  </testCase>
</AiEvaluationDefinition>
"""


@pytest.fixture
def slow_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that makes a project of 40 cases, whose agent writes down what it is asked and takes its time.

    While the file `held` exists, the agent answers the first 16 questions only: the run cannot end
    before the test has interrupted it, however busy the machine is.
    """

    def make(seconds: float, *, is_held: bool = False) -> Path:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "slow.py").write_text(SLOW_AGENT.format(seconds=seconds, answered=ANSWERED))
        if is_held:
            (tmp_path / "held").touch()
        (tmp_path / "evalmeta.toml").write_text(
            '[run]\nconcurrency = 4\n[subjects.Desk]\nadapter = "python"\ntarget = "slow:answer"\n'
        )
        cases = "".join(
            f"<testCase><number>{number}</number><inputs><utterance>Question {number}</utterance></inputs>"
            "<expectation><name>action_sequence_match</name><expectedValue>[]</expectedValue></expectation></testCase>"
            for number in range(1, 41)
        )
        folder = tmp_path / "aiEvaluationDefinitions"
        folder.mkdir()
        (folder / "Slow.aiEvaluationDefinition").write_text(
            '<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata"><name>Slow</name>'
            f"<subjectName>Desk</subjectName><subjectType>AGENT</subjectType>{cases}</AiEvaluationDefinition>"
        )
        return tmp_path

    return make


def test_the_samples_pass(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples()
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait")

    assert done.code == 0
    assert "7 of 7 runs passed\n  21 cases: " in done.out
    assert "only an LLM rater can judge this" in done.out


def test_a_dx_project_passes(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples("dx-project")
    evalmeta("deploy", "--manifest", "manifest/package.xml")

    assert evalmeta("test", "run", "--wait").code == 0


def test_a_failed_expectation_exits_100_and_says_why(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples("failing")
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait")

    assert done.code == 100
    assert "numbers differ: expected 84.95, got 89.9" in done.out
    assert "Returns_Desk_Checks.aiEvaluationDefinition:25" in done.out


def test_a_lower_pass_rate_can_be_enough(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples("failing")
    evalmeta("deploy")

    assert evalmeta("test", "run", "--wait", "--min-pass-rate", "0.25", "--iterations", "3").code == 0


def test_undecided_results_can_be_made_to_fail(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples()
    evalmeta("deploy")

    assert evalmeta("test", "run", "--wait", "-n", "my_test_n1", "--undecided", "fail").code == 100


def test_results_files_have_the_documented_shape(evalmeta: Program, copy_samples: Copy, tmp_path: Path) -> None:
    copy_samples("failing")
    evalmeta("deploy")

    evalmeta("test", "run", "--wait", "--result-format", "json", "--output-dir", str(tmp_path / "results"))

    [path] = (tmp_path / "results").iterdir()
    results = json.loads(path.read_text())
    assert path.name == "test-result-4KB000000000001GAA.json"
    assert {"status", "startTime", "endTime", "errorMessage", "subjectName", "testCases"} <= results.keys()
    case = results["testCases"][1]
    assert {"status", "testNumber", "startTime", "endTime", "inputs", "generatedData", "testResults"} <= case.keys()
    assert case["inputs"]["utterance"] == "I want to return a lamp, it came broken"
    assert {"topic", "actionsSequence", "invokedActions", "outcome", "sessionId"} <= case["generatedData"].keys()
    result = case["testResults"][0]
    assert (result["name"], result["result"], result["score"]) == ("topic_sequence_match", "FAILURE", 0)
    assert {"actualValue", "expectedValue", "metricLabel", "metricExplainability", "status"} <= result.keys()


@pytest.mark.parametrize(("name", "begins"), [("junit", "<?xml"), ("tap", "TAP version 14"), ("json", "{")])
def test_stdout_holds_the_report_alone(evalmeta: Program, copy_samples: Copy, name: str, begins: str) -> None:
    copy_samples("failing")
    evalmeta("deploy")

    assert evalmeta("test", "run", "--wait", "--result-format", name).out.startswith(begins)


def test_without_deployed_tests_the_error_suggests_a_deploy(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples()

    done = evalmeta("test", "run", "--wait")

    assert done.code == 2
    assert "because a fresh checkout has an empty org: evalmeta deploy" in done.err
    assert "evalmeta test create --spec FILE --api-name NAME" in done.err
    assert "evalmeta run FOLDER" in done.err


def test_an_unknown_test_is_refused_with_the_closest_name(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples()
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait", "-n", "my_test_n2")

    assert done.code == 2
    assert "Did you mean my_test_n1?" in done.err


def test_an_unbound_agent_is_refused_with_the_lines_to_add(evalmeta: Program, copy_samples: Copy) -> None:
    project = copy_samples("failing")
    (project / "evalmeta.toml").write_text("")
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait")

    assert done.code == 2
    assert "[subjects.Returns_Desk]" in done.err
    assert 'adapter = "python"' in done.err


@pytest.mark.slow
def test_an_unbound_agent_of_a_test_that_only_the_org_has_is_called_so(evalmeta: Program, copy_samples: Copy) -> None:
    project = copy_samples()
    stale = project / "aiEvaluationDefinitions/Stale.aiEvaluationDefinition"
    stale.write_text(STALE)
    evalmeta("deploy")
    here = evalmeta("test", "run", "--wait")
    assert "no adapter is bound to the agent 'Gone_Agent' (Stale)" in here.err
    stale.unlink()
    gone = evalmeta("test", "run", "--wait")
    message = "no adapter is bound to the agent 'Gone_Agent'; only the org has Stale, the project has no file of it"
    assert (gone.code, message in gone.err) == (2, True)
    key = "AiEvaluationDefinition:Stale"
    assert f"evalmeta manifest generate --type post --metadata {key}" in gone.err
    assert f"evalmeta retrieve --metadata {key}" in gone.err
    assert evalmeta("manifest", "generate", "--type", "post", "--metadata", key).code == 0
    deleted = evalmeta("deploy", "-x", "package.xml", "--post-destructive-changes", "destructiveChangesPost.xml")
    assert deleted.code == 0
    assert evalmeta("test", "run", "--wait").code == 0


@pytest.mark.parametrize(
    ("body", "seconds", "said"),
    [
        ("raise RuntimeError('the agent is down')", "60", "the agent is down"),
        ("return object()", "60", "type object"),
        ("return {'outcome': 'x', 'latency_ms': float('nan')}", "60", "latency"),
        ("time.sleep(60)", "0.2", "0.2"),
    ],
)
def test_an_agent_that_cannot_answer_makes_errors_not_failures(
    evalmeta: Program, copy_samples: Copy, body: str, seconds: str, said: str
) -> None:
    project = copy_samples("failing")
    (project / "returns_agent.py").write_text(f"import time\ndef answer(utterance):\n    {body}\n")
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait", "--case-timeout", seconds)

    assert done.code == 1
    assert "4 errors" in done.out
    assert said in done.out


def test_an_adapter_that_cannot_be_loaded_is_a_usage_error(evalmeta: Program, copy_samples: Copy) -> None:
    project = copy_samples("failing")
    (project / "returns_agent.py").write_text("def answer(:\n")
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait")

    assert done.code == 2
    assert "returns_agent" in done.err


@pytest.mark.slow
def test_ctrl_c_keeps_results_and_resume_runs_only_the_rest(
    evalmeta: Program, slow_project: Callable[..., Path], program: list[str]
) -> None:
    project = slow_project(0.02, is_held=True)
    evalmeta("deploy")
    running = subprocess.Popen([*program, "test", "run", "--wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _wait_for_questions(project, 12)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=WAIT)
    (project / "held").unlink()

    done = evalmeta("test", "resume", "--job-id", "4KB000000000001GAA")

    assert running.returncode == 130
    assert b"evalmeta test resume --job-id 4KB000000000001GAA" in err
    assert b"Traceback" not in err
    assert (done.code, "40 passed" in done.out) == (0, True)
    asked = (project / "asked.txt").read_text().splitlines()
    assert set(asked) == {f"Question {number}" for number in range(1, 41)}
    assert len(asked) <= 44


@pytest.mark.slow
def test_a_killed_run_is_resumed_with_every_case_once(
    evalmeta: Program, slow_project: Callable[..., Path], program: list[str]
) -> None:
    project = slow_project(0.02, is_held=True)
    evalmeta("deploy")
    running = subprocess.Popen([*program, "test", "run", "--wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _wait_for_results(project)
    running.kill()
    running.communicate()
    (project / "held").unlink()
    kept = json.loads(evalmeta("test", "results", "-i", "4KB000000000001GAA", "--json").out)["result"][0]["testCases"]
    asked_before = (project / "asked.txt").read_text().splitlines()

    done = evalmeta("test", "resume", "--job-id", "4KB000000000001GAA", "--json")

    cases = json.loads(done.out)["result"][0]["testCases"]
    assert [case["testNumber"] for case in cases] == list(range(1, 41))
    asked_after = (project / "asked.txt").read_text().splitlines()[len(asked_before) :]
    finished = {case["inputs"]["utterance"] for case in kept}
    assert finished
    assert not finished & set(asked_after)


def test_without_wait_a_run_continues_in_the_background(evalmeta: Program, slow_project: Callable[..., Path]) -> None:
    project = slow_project(0.01)
    evalmeta("deploy")

    started = evalmeta("test", "run")

    assert started.code == 0
    assert "evalmeta test resume --job-id 4KB000000000001GAA" in started.out
    done = evalmeta("test", "resume", "--job-id", "4KB000000000001GAA")
    assert done.code == 0
    assert len((project / "asked.txt").read_text().splitlines()) == 40


def test_what_an_agent_prints_does_not_reach_a_report(evalmeta: Program, copy_samples: Copy) -> None:
    project = copy_samples("failing")
    agent = project / "returns_agent.py"
    agent.write_text(agent.read_text() + TALKATIVE)
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait", "--result-format", "json")

    assert json.loads(done.out)["status"] == "COMPLETED"
    assert "debug" in done.err


@pytest.mark.slow
def test_a_resume_with_a_broken_agent_is_refused_and_nothing_is_lost(
    evalmeta: Program, slow_project: Callable[..., Path], program: list[str]
) -> None:
    project = slow_project(0.02, is_held=True)
    evalmeta("deploy")
    running = subprocess.Popen([*program, "test", "run", "--wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _wait_for_questions(project, 6)
    running.terminate()
    running.communicate(timeout=WAIT)
    (project / "held").unlink()
    agent = project / "slow.py"
    works = agent.read_text()
    agent.write_text("def answer(:")

    refused = evalmeta("test", "resume", "-i", "4KB000000000001GAA")
    agent.write_text(works)
    done = evalmeta("test", "resume", "-i", "4KB000000000001GAA")

    assert (running.returncode, refused.code, done.code) == (130, 2, 0)
    assert "40 passed, 0 failed, 0 errors" in done.out


def test_no_test_is_run_if_the_agent_of_one_is_not_bound(evalmeta: Program, copy_samples: Copy) -> None:
    project = copy_samples()
    settings = project / "evalmeta.toml"
    settings.write_text(settings.read_text().replace("[subjects.Field_Service_Agent]", "[subjects.Nobody]"))
    evalmeta("deploy")

    for wait in ((), ("--wait",)):
        done = evalmeta("test", "run", *wait, "-n", "my_test_n1", "-n", "Field_Service_Appointments")
        assert (done.code, done.out) == (2, "")
        assert "no adapter is bound to the agent 'Field_Service_Agent' (Field_Service_Appointments)" in done.err
    assert "no runs" in evalmeta("test", "history").out


def test_a_folder_that_cannot_be_created_is_a_usage_error_before_cases_run(
    evalmeta: Program, slow_project: Callable[..., Path]
) -> None:
    project = slow_project(0.01)
    evalmeta("deploy")

    done = evalmeta("test", "run", "--wait", "--output-dir", "slow.py/results")

    assert done.code == 2
    assert "cannot be created" in done.err
    assert not (project / "asked.txt").exists()


@pytest.mark.parametrize("job_id", ["", "4KB/results", "a\nb"])
def test_an_invalid_run_id_is_a_usage_error(evalmeta: Program, copy_samples: Copy, job_id: str) -> None:
    copy_samples()

    assert evalmeta("test", "results", "--job-id", job_id).code == 2


@pytest.mark.slow
def test_sigterm_stops_a_run_gracefully_even_if_ctrl_c_is_ignored(
    slow_project: Callable[..., Path], program: list[str]
) -> None:
    project = slow_project(0.02, is_held=True)
    subprocess.run([*program, "deploy"], check=True, capture_output=True)
    words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *program, "test", "run", "--wait"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _wait_for_questions(project, 4)
    running.terminate()

    _, err = running.communicate(timeout=WAIT)

    assert running.returncode == 130
    assert b"evalmeta test resume --job-id" in err


@pytest.mark.slow
def test_an_interruption_is_printed_as_json(slow_project: Callable[..., Path], program: list[str]) -> None:
    project = slow_project(0.02, is_held=True)
    subprocess.run([*program, "deploy"], check=True, capture_output=True)
    words = [*program, "test", "run", "--wait", "--json"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _wait_for_questions(project, 4)
    running.send_signal(signal.SIGINT)

    out, _ = running.communicate(timeout=WAIT)

    assert (json.loads(out)["name"], json.loads(out)["exitCode"]) == ("Interrupted", 130)


def test_a_timed_out_wait_exits_69_and_the_run_continues(evalmeta: Program, slow_project: Callable[..., Path]) -> None:
    project = slow_project(0.05)
    evalmeta("deploy")

    over = evalmeta("test", "run", "--wait", "0.002")
    done = evalmeta("test", "resume", "--use-most-recent")

    assert (over.code, "evalmeta test resume --job-id 4KB000000000001GAA" in over.err) == (69, True)
    assert (done.code, "40 passed" in done.out) == (0, True)
    assert len((project / "asked.txt").read_text().splitlines()) <= 44


@pytest.mark.slow
def test_waiting_for_a_resumed_run_can_time_out(evalmeta: Program, slow_project: Callable[..., Path]) -> None:
    slow_project(0.05)
    evalmeta("deploy")
    evalmeta("test", "run")

    assert evalmeta("test", "resume", "-r", "--wait", "0.001").code == 69
    assert evalmeta("test", "resume", "-r").code == 0


@pytest.mark.slow
def test_a_canceled_run_keeps_its_finished_cases(evalmeta: Program, slow_project: Callable[..., Path]) -> None:
    project = slow_project(0.02, is_held=True)
    evalmeta("deploy")
    evalmeta("test", "run")
    _wait_for_results(project)

    done = evalmeta("test", "cancel", "--use-most-recent")
    shown = json.loads(evalmeta("test", "results", "-r", "--json").out)["result"][0]
    (project / "held").unlink()
    resumed = evalmeta("test", "resume", "-r")

    assert (done.code, done.out.startswith("Canceled run 4KB000000000001GAA; ")) == (0, True)
    assert shown["status"] == "TERMINATED"
    assert 0 < len(shown["testCases"]) < 40
    assert (resumed.code, "canceled by" in resumed.out) == (1, True)


def test_a_run_that_is_over_cannot_be_canceled(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples("failing")
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")

    done = evalmeta("test", "cancel", "-r", "--json")

    assert (done.code, "has already finished" in json.loads(done.out)["message"]) == (1, True)


@pytest.mark.parametrize("command", ["resume", "results", "cancel"])
@pytest.mark.parametrize("words", [[], ["-r"], ["-i", "4KB000000000009GAA"], ["-r", "-i", "4KB000000000001GAA"]])
def test_an_unknown_run_is_a_usage_error(evalmeta: Program, copy_samples: Copy, command: str, words: list[str]) -> None:
    copy_samples()

    assert evalmeta("test", command, *words).code == 2


def _wait_for_questions(project: Path, count: int) -> None:
    log = project / "asked.txt"
    _wait_for(lambda: log.exists() and len(log.read_text().splitlines()) >= count)


def _wait_for_results(project: Path) -> None:
    """Wait until the org has kept the result of a case."""
    _wait_for_questions(project, ANSWERED)
    with closing(sqlite3.connect(project / ".evalmeta" / "org.sqlite3")) as store:
        _wait_for(lambda: store.execute("SELECT count(*) FROM case_result").fetchone() != (0,))


def _wait_for(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not is_done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
