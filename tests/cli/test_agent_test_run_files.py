"""`evalmeta test run PATH...`: files that are not deployed."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
def answer(utterance):
    return {"outcome": "It is on its way.", "topic": "Orders", "actions": []}
"""
SLOW_AGENT = """
import pathlib, time

def answer(utterance):
    while not (pathlib.Path(__file__).parent / "go").exists():
        time.sleep(0.01)
    return {"outcome": "It is on its way.", "topic": "Orders"}
"""
SPEC = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedTopic: {topic}
"""
SUBJECT = ("--agent", "desk:answer")
DEFINITION = """\
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>Desk</name><subjectName>Order_Desk</subjectName><subjectType>AGENT</subjectType>
    <testCase>
        <number>1</number>
        <inputs><utterance>Where?</utterance></inputs>
        <expectation><name>topic_sequence_match</name><expectedValue>Returns</expectedValue></expectation>
    </testCase>
</AiEvaluationDefinition>
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain folder, no project, with an agent."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC.format(topic="Orders"))
    (tmp_path / "returns.yaml").write_text(SPEC.format(topic="Returns"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_file_is_run_where_there_is_no_project(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "orders.yaml", *SUBJECT, "--wait")
    assert done.code == 0
    assert "orders.yaml: subject desk:answer, run 4KB" in done.out


def test_an_agent_in_the_current_folder_is_found_from_a_project_above_it(
    evalmeta: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "evalmeta.toml").touch()
    below = folder / "checks"
    below.mkdir()
    (below / "local_desk.py").write_text(AGENT)
    monkeypatch.chdir(below)
    done = evalmeta("test", "run", "../orders.yaml", "--agent", "local_desk:answer", "--wait")
    assert (done.code, "subject local_desk:answer" in done.out) == (0, True)


def test_several_files_are_several_runs_and_one_verdict(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "orders.yaml", "returns.yaml", *SUBJECT, "--wait", "--json")
    runs = json.loads(done.out)["result"]
    assert done.code == 100
    assert [(run["evalmeta"]["definition"], run["testCases"][0]["verdict"]) for run in runs] == [
        ("orders.yaml", "PASS"),
        ("returns.yaml", "FAILURE"),
    ]


def test_the_agent_that_the_file_names_is_asked_where_the_project_binds_it(evalmeta: Program, folder: Path) -> None:
    (folder / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    done = evalmeta("test", "run", "orders.yaml", "--wait")
    assert (done.code, "subject Order_Desk" in done.out) == (0, True)


def test_an_unbound_agent_is_reported(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "orders.yaml", "--wait")
    assert done.code == 2
    assert "no adapter is bound to the agent 'Order_Desk'" in done.err
    assert "[subjects.Order_Desk]" in done.err
    assert "Name the agent under test" in done.err


def test_a_recorded_conversation_is_never_compared_with_itself(evalmeta: Program, folder: Path) -> None:
    said = {"userMessage": {"role": "user", "content": "Where?"}, "output": {"role": "assistant", "content": "Here."}}
    (folder / "talks.evalset.json").write_text(json.dumps({"threads": [{"id": "t", "traces": [said]}]}))
    alone = evalmeta("test", "run", "talks.evalset.json", "--wait")
    assert alone.code == 2
    assert (
        "talks.evalset.json does not name an agent, and its expected answers are its recorded answers, "
        "so an agent must be asked"
    ) in " ".join(alone.err.split())
    assert "[subjects.My_Agent]" in alone.err
    asked = evalmeta("test", "run", "talks.evalset.json", *SUBJECT, "--wait", "--json")
    assert json.loads(asked.out)["result"][0]["testCases"][0]["generatedData"]["outcome"] == "It is on its way."


def test_a_trace_in_state_error_is_an_error_with_its_exception(evalmeta: Program, folder: Path) -> None:
    event = {"name": "exception", "attributes": {"exception.type": "KeyError", "exception.message": "'order 0'"}}
    inputs = {"mlflow.spanInputs": '{"question": "Where?"}'}
    root = {"name": "agent", "status": {"code": "STATUS_CODE_ERROR"}, "events": [event], "attributes": inputs}
    (folder / "set.jsonl").write_text(
        json.dumps({"trace": {"info": {"state": "ERROR"}, "data": {"spans": [root]}}, "expected_response": "Here."})
    )
    done = evalmeta("test", "run", "set.jsonl", "--wait", "--json")
    [case] = json.loads(done.out)["result"][0]["testCases"]
    assert (done.code, case["status"], case["testResults"]) == (1, "ERROR", [])
    assert "the recorded agent ended in an error: KeyError: 'order 0'" in json.dumps(case)


ONE_CASE = {
    "eval_set_id": "s",
    "eval_cases": [{"eval_id": "c", "conversation": [{"user_content": {"parts": [{"text": "Where?"}]}}]}],
}


@pytest.fixture
def eval_set(folder: Path) -> Path:
    (folder / "a.evalset.json").write_text(json.dumps(ONE_CASE))
    (folder / "eval_config.json").write_text('{"criteria": {"final_response_match_v2": 0.5}}')
    return folder


def metrics(done: Outcome) -> list[str]:
    return [*json.loads(done.out)["result"][0]["expectations"]]


def test_the_criteria_of_an_eval_set_can_be_named(evalmeta: Program, eval_set: Path) -> None:
    dry = ("test", "run", "a.evalset.json", "--dry-run", "--json")
    named = evalmeta(*dry, "--config", "eval_config.json")
    assert (metrics(named), "Criteria: eval_config.json" in named.err) == (["final_response_match_v2"], True)
    (eval_set / "evalmeta.toml").write_text('[adk]\nconfig = "eval_config.json"\n')
    assert metrics(evalmeta(*dry)) == ["final_response_match_v2"]
    done = evalmeta("test", "run", "a.evalset.json", *SUBJECT, "--wait", "--json")
    assert [each["name"] for each in json.loads(done.out)["result"][0]["testCases"][0]["testResults"]] == metrics(named)


def test_a_scenario_of_an_eval_set_is_counted_and_named_and_does_not_pass(evalmeta: Program, eval_set: Path) -> None:
    scenario = {"eval_id": "sim", "conversation_scenario": {"starting_prompt": "Hi"}}
    (eval_set / "only.evalset.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": [scenario]}))
    paths = ("only.evalset.json", "orders.yaml", *SUBJECT)

    planned = evalmeta("test", "run", *paths, "--dry-run")
    assert "1 sim: not run: it has a conversation scenario" in planned.out
    assert "Would run 2 cases: 1 question" in planned.out

    done = evalmeta("test", "run", *paths, "--wait")
    assert done.code == 1
    assert "only.evalset.json not passed: 1 case ended in an error" in done.out
    assert "case 1 sim  it has a conversation scenario, and evalmeta does not simulate users" in done.out
    assert "1 of 2 runs passed" in done.out


def test_the_criteria_beside_an_eval_set_are_mentioned(evalmeta: Program, eval_set: Path) -> None:
    (eval_set / "test_config.json").write_text('{"criteria": {"safety_v1": 1}}')
    done = evalmeta("test", "run", "a.evalset.json", "--dry-run", "--json")
    assert done.err.splitlines()[0] == "Criteria: test_config.json"


@pytest.mark.usefixtures("eval_set")
def test_criteria_that_are_not_used_are_mentioned(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "a.evalset.json", "--dry-run")
    assert "Criteria: ADK's defaults" in done.err
    assert "'eval_config.json' is not read" in done.err
    assert "pass --config eval_config.json, or move it to test_config.json" in done.err


def test_criteria_in_the_folder_above_are_mentioned(evalmeta: Program, eval_set: Path) -> None:
    (eval_set / "evalsets").mkdir()
    (eval_set / "a.evalset.json").rename(eval_set / "evalsets" / "a.evalset.json")
    done = evalmeta("test", "run", "evalsets/a.evalset.json", "--dry-run")
    assert "'../eval_config.json' is not read" in done.err
    assert "pass --config eval_config.json" in done.err


@pytest.mark.usefixtures("eval_set")
def test_criteria_without_an_eval_set_are_wrong_usage(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "orders.yaml", *SUBJECT, "--config", "eval_config.json")
    assert (done.code, "--config is only for eval sets of ADK" in done.err) == (2, True)
    assert "Use --config instead" in evalmeta("test", "run", "orders.yaml", "--config_file_path", "x").err


def test_all_that_files_need_is_listed_at_once_and_no_file_is_run(evalmeta: Program, folder: Path) -> None:
    (folder / "desk.py").write_text("\ndef answer(question, customer): pass\n")
    (folder / "shop.yaml").write_text(SPEC.format(topic="Orders").replace("Order_Desk", "Order_Shop"))
    (folder / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    for wait in ((), ("--wait",)):
        done = evalmeta("test", "run", "orders.yaml", "shop.yaml", "--rater", "judge", *wait)
        assert (done.code, done.out) == (2, "")
        assert "no test was run, for 3 reasons" in done.err
        assert "no adapter is bound to the agent 'Order_Shop' (shop.yaml)" in done.err
        assert "desk.py:2: the subject's target 'desk:answer' cannot be called: missing a required" in done.err
        assert "the rater 'judge' is not configured\n" in done.err
        assert "[subjects.Order_Shop]" in done.err
        assert "[raters.judge]" in done.err
    assert "no runs" in evalmeta("test", "history").out


@pytest.mark.parametrize(
    ("subject", "reason", "hint"),
    [
        (
            "Order_Dsk",
            "--agent 'Order_Dsk' is not module:name of a Python object, and evalmeta.toml does not bind it",
            "--agent Order_Desk?",
        ),
        (
            "dsk:answer",
            "the module of the subject's target 'dsk:answer' cannot be found",
            "Did you mean the module desk?",
        ),
        ("desk:anser", "names anser, which desk.py does not define", "Did you mean desk:answer?"),
    ],
)
def test_a_misspelt_subject_is_answered_with_the_nearest_one(
    evalmeta: Program, folder: Path, subject: str, reason: str, hint: str
) -> None:
    (folder / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    done = evalmeta("test", "run", "orders.yaml", "--agent", subject, "--wait")
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
    assert hint in done.err


def test_what_an_agent_prints_while_it_is_imported_is_not_in_the_output(evalmeta: Program, folder: Path) -> None:
    (folder / "desk.py").write_text(f"print('importing')\n{AGENT}")
    done = evalmeta("test", "run", "orders.yaml", *SUBJECT, "--wait", "--json")
    assert json.loads(done.out)["status"] == 0
    assert done.err.count("importing") == 1


def test_answers_of_a_file_do_not_matter_where_an_agent_is_asked(evalmeta: Program, folder: Path) -> None:
    (folder / "set.jsonl").write_text('{"request": "Where?", "response": "Nowhere."}\n')
    for subject, outcome in (((), "Nowhere."), (SUBJECT, "It is on its way.")):
        done = evalmeta("test", "run", "set.jsonl", *subject, "--wait", "--json")
        [case] = json.loads(done.out)["result"][0]["testCases"]
        assert case["generatedData"]["outcome"] == outcome
        names = {each["name"] for each in case["testResults"]}
        assert ("agent/latency_seconds" in names) is bool(subject)


def test_project_settings_complete_what_files_leave_out(evalmeta: Program, folder: Path) -> None:
    (folder / "evalmeta.toml").write_text(
        '[databricks]\nglobal_guidelines = ["Be kind"]\nmetrics = ["safety", "global_guideline_adherence"]\n'
    )
    (folder / "set.jsonl").write_text('{"request": "Where?", "response": "Nowhere."}\n')
    done = evalmeta("test", "run", "set.jsonl", "--dry-run", "--json")
    assert sorted(json.loads(done.out)["result"][0]["expectations"]) == [
        "response/llm_judged/global_guideline_adherence/rating",
        "response/llm_judged/safety/rating",
    ]
    (folder / "evalmeta.toml").write_text('[adk]\ndialect = "typescript"\n')
    (folder / "old.test.json").write_text('[{"query": "a", "reference": "b"}, {"query": "c", "reference": "d"}]')
    done = evalmeta("test", "run", "old.test.json", *SUBJECT, "--wait", "--json")
    assert [case["name"] for case in json.loads(done.out)["result"][0]["testCases"]] == ["eval-0", "eval-1"]


SET = '{"entries": [{"id": "greeting", "input": "Hello", "expectedTools": []}, {"id": "lost", "input": "Where?"}]}'


@pytest.mark.parametrize("case", ["lost", "set.json:lost", "set:lost", "set.json:2", "2"])
def test_a_case_of_a_file_is_chosen_by_its_label_or_number(evalmeta: Program, folder: Path, case: str) -> None:
    (folder / "set.json").write_text(SET)
    done = evalmeta("test", "run", "set.json", *SUBJECT, "--case", case, "--dry-run", "--json")
    assert json.loads(done.out)["result"][0]["cases"] == [
        {"number": 2, "name": "lost", "iterations": 1, "utterances": ["Where?"]}
    ]


def test_a_dry_run_shows_labels(evalmeta: Program, folder: Path) -> None:
    (folder / "set.json").write_text(SET)
    assert "   1 greeting: Hello\n" in evalmeta("test", "run", "set.json", *SUBJECT, "--dry-run").out


def test_an_unknown_case_is_refused_with_a_suggestion_to_list_cases(evalmeta: Program, folder: Path) -> None:
    (folder / "set.json").write_text(SET)
    label = evalmeta("test", "run", "set.json", *SUBJECT, "--case", "greetings", "--wait")
    assert (label.code, "Did you mean 'greeting'?" in label.err) == (2, True)
    of_file = evalmeta("test", "run", "set.json:greetings", *SUBJECT, "--wait")
    assert "no case of set.json has the label 'greetings'" in of_file.err
    assert "Did you mean 'greeting'?" in of_file.err
    line = evalmeta("test", "run", "set.json:2", *SUBJECT, "--wait")
    assert (line.code, "Choose cases by their number, not by their line: --case 2" in line.err) == (2, True)
    number = evalmeta("test", "run", "set.json", *SUBJECT, "--case", "9", "--wait")
    assert "evalmeta test run set.json --agent desk:answer --dry-run" in number.err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("desk.py:answer", "desk:answer"),
        ("agents/desk:answer", "agents.desk:answer"),
        ("agents\\desk.py:reply", "agents.desk:reply"),
        ("./desk.py:answer", "desk:answer"),
    ],
)
def test_an_agent_given_as_a_file_is_refused_with_the_right_form(evalmeta: Program, given: str, meant: str) -> None:
    done = evalmeta("test", "run", "orders.yaml", "--agent", given, "--wait")
    assert (done.code, f"Use --agent {meant}\n" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("agents/desk.py:reply", "Write subject: agents.desk:reply"),
        ("127.0.0.1:8000/v1", "Write subject: http://127.0.0.1:8000/v1"),
        ("desk", "Write the agent into spec.yaml: subject: desk:answer"),
    ],
)
def test_a_wrong_subject_of_a_spec_is_corrected_in_the_spec(
    evalmeta: Program, folder: Path, given: str, meant: str
) -> None:
    (folder / "spec.yaml").write_text(f"subject: {given}\ntestCases:\n- input: Where?\n  contains: way\n")
    done = evalmeta("run", "spec.yaml")
    assert (done.code, f"{meant}\n" in done.err) == (2, True)


EVAL_SET = (
    '{"evalSetId": "s", "evalCases": [{"evalId": "a", "conversation": [{"userContent": {"parts": [{"text": "Where?"}]},'
    ' "finalResponse": {"parts": [{"text": "It is on its way."}]}}]}]}'
)
CONFIG = '{"criteria": {"response_match_score": 0.5}}'


@pytest.mark.parametrize("config", ["sets/test-config.json", "test_config.json", "sets/below/test_config.json"])
def test_criteria_in_another_file_are_reported(evalmeta: Program, folder: Path, config: str) -> None:
    (folder / "sets/below").mkdir(parents=True)
    (folder / "sets/a.test.json").write_text(EVAL_SET)
    (folder / config).write_text(CONFIG)
    done = evalmeta("test", "run", "sets/a.test.json", *SUBJECT, "--dry-run")
    assert "there is no test_config.json beside the file, so ADK's default criteria apply" in done.err
    (folder / "sets/test_config.json").write_text(CONFIG)
    assert "default criteria" not in evalmeta("test", "run", "sets/a.test.json", *SUBJECT, "--dry-run").err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (CONFIG, "odd.json is ADK's configuration, not a test"),
        ("[]", "odd.json is an empty list"),
        ('[{"question": 1, "answer": 2}]', "its first item has the keys 'question', 'answer'"),
    ],
)
def test_the_content_of_a_file_with_an_unknown_format_is_reported(
    evalmeta: Program, folder: Path, content: str, told: str
) -> None:
    (folder / "odd.json").write_text(content)
    done = evalmeta("test", "run", "odd.json", *SUBJECT, "--wait")
    assert (done.code, told in done.err) == (2, True)


def test_other_tools_names_of_iterations_are_refused_with_ours(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "orders.yaml", "--num-runs", "2")
    assert (done.code, "Use --iterations instead." in done.err) == (2, True)


def test_a_warning_has_its_hint_on_a_line_of_its_own(evalmeta: Program, folder: Path) -> None:
    (folder / "set.json").write_text('{"entries": [{"input": "Hello", "expectedTool": []}]}')
    assert "\n  → Did you mean 'expectedTools'?\n" in evalmeta("test", "run", "set.json", *SUBJECT, "--dry-run").err


def test_reports_name_the_line_of_a_case(evalmeta: Program, folder: Path) -> None:
    (folder / "set.json").write_text('{"entries": [\n{"input": "Where?", "expectedTools": ["find"]}]}')
    done = evalmeta("test", "run", "set.json", *SUBJECT, "--wait", "--result-format", "junit")
    assert 'file="set.json" line="2"' in done.out
    assert evalmeta("test", "run", "set.json", *SUBJECT, "--wait").out.count("set.json\n") == 0


TABLE = 'Utterance,Expected Topic\n"Two\nlines",Orders\n\nWhere?,Returns\n'
JSON_SPEC = """\
{"name": "O", "subjectType": "AGENT", "subjectName": "Order_Desk", "testCases": [
  {"utterance": "Where?", "expectedTopic": "Returns"}]}
"""
STUDIO_SPEC = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - inputs:
      - utterance: Hello
      - utterance: Where?
    scorers: [{name: topic_sequence_match, expected: Returns}]
"""


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("spec.yaml", SPEC.format(topic="Returns"), [5]),
        ("spec.json", JSON_SPEC, [2]),
        ("studio.yaml", STUDIO_SPEC, [6, 7]),
        ("table.csv", TABLE, [5]),
        ("Desk.aiEvaluationDefinition", DEFINITION, [3]),
    ],
)
def test_every_format_reports_the_lines_of_its_cases(
    evalmeta: Program, folder: Path, name: str, content: str, lines: list[int]
) -> None:
    (folder / name).write_text(content)
    run = ("test", "run", name, *SUBJECT, "--wait", "--result-format")
    assert [int(line) for line in re.findall(r"line=(\d+)", evalmeta(*run, "github").out)] == lines
    assert all(f'file="{name}" line="{line}"' in evalmeta(*run, "junit").out for line in lines)


def test_history_and_more_iterations_know_runs_of_files(evalmeta: Program, folder: Path) -> None:
    evalmeta("test", "run", "orders.yaml", *SUBJECT, "--wait")
    assert "orders.yaml" in evalmeta("test", "history").out
    more = evalmeta("test", "run", "--extend", "4KB000000000001GAA", "--iterations", "2", "--wait", "--json")
    assert [case["iteration"] for case in json.loads(more.out)["result"][0]["testCases"]] == [1, 2]
    (folder / "orders.yaml").write_text(SPEC.format(topic="Returns"))
    changed = evalmeta("test", "run", "--extend", "4KB000000000001GAA", "--iterations", "3", "--wait")
    assert changed.code == 2
    assert "the file of run 4KB000000000001GAA has changed since the run started" in changed.err
    (folder / "orders.yaml").unlink()
    gone = evalmeta("test", "run", "--extend", "4KB000000000001GAA", "--iterations", "3", "--wait")
    assert (gone.code, "--ignore-changes" in gone.err) == (2, False)
    assert "the file of run 4KB000000000001GAA cannot be found any more" in gone.err


def test_companions_of_a_linked_file_are_beside_the_link(evalmeta: Program, folder: Path) -> None:
    turn = {"user_content": {"parts": [{"text": "hi"}]}, "final_response": {"parts": [{"text": "It is here."}]}}
    cases = {"eval_set_id": "greetings", "eval_cases": [{"eval_id": "greet", "conversation": [turn]}]}
    for where, threshold in (("shared", 0.9), ("here", 0.5)):
        (folder / where).mkdir()
        criteria = json.dumps({"criteria": {"response_match_score": threshold}})
        (folder / where / "test_config.json").write_text(criteria)
    (folder / "shared" / "greetings.test.json").write_text(json.dumps(cases))
    (folder / "here" / "greetings.test.json").symlink_to(folder / "shared" / "greetings.test.json")
    codes = [evalmeta("test", "run", each, *SUBJECT, "--wait").code for each in ("shared", "here")]
    assert codes == [100, 0]


@pytest.mark.slow
def test_a_run_that_is_not_over_is_resumed_with_the_agent_that_was_named(evalmeta: Program, folder: Path) -> None:
    (folder / "slow_desk.py").write_text(SLOW_AGENT)
    left = evalmeta("test", "run", "orders.yaml", "--agent", "slow_desk:answer")
    assert (left.code, "evalmeta test resume --job-id 4KB000000000001GAA" in left.out) == (0, True)
    with ThreadPoolExecutor() as pool:
        pool.submit(lambda: (time.sleep(1), (folder / "go").touch()))
        resumed = evalmeta("test", "resume", "--job-id", "4KB000000000001GAA")
    assert (resumed.code, "orders.yaml passed" in resumed.out) == (0, True)


def test_answers_are_judged_again_as_long_as_the_file_is_the_same(evalmeta: Program, folder: Path) -> None:
    evalmeta("test", "run", "orders.yaml", *SUBJECT, "--wait")
    assert evalmeta("test", "rescore", "4KB000000000001GAA").code == 0
    (folder / "orders.yaml").unlink()
    gone = evalmeta("test", "rescore", "4KB000000000001GAA")
    assert (gone.code, "orders.yaml cannot be found" in gone.err) == (2, True)
    now = evalmeta("test", "rescore", "4KB000000000001GAA", "--as-deployed")
    assert (now.code, "orders.yaml cannot be found" in now.err) == (2, True)


def test_a_dry_run_needs_no_agent(evalmeta: Program, folder: Path) -> None:
    (folder / "set.json").write_text('{"entries": [{"input": "Where?", "expectedTools": ["find"]}]}')
    planned = evalmeta("test", "run", "set.json", "orders.yaml", "--dry-run")
    assert planned.code == 0
    assert "set.json: no subject is named" in planned.out
    assert "orders.yaml: subject Order_Desk (no adapter is bound to it)" in planned.out


def test_a_dry_run_prints_the_cases(evalmeta: Program) -> None:
    planned = evalmeta("test", "run", "orders.yaml", *SUBJECT, "--dry-run", "--json")
    [run] = json.loads(planned.out)["result"]
    assert (run["definition"], run["questions"], run["expectations"]) == ("orders.yaml", 1, {"topic_sequence_match": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gone.yaml",), "the file 'gone.yaml' cannot be found"),
        (("Order_Desk",), "To run a test in the org, use -n Order_Desk"),
        (("orders.yaml", "-n", "Orders"), "files run in the embedded org"),
        (("orders.yaml", "-o", "staging"), "files run in the embedded org"),
        (("--agent", "desk:answer"), "--agent is only for files"),
        (("empty",), "there are no tests in"),
        (("orders.yaml", "--agent", "desk:"), "'desk:' is not a valid module:name of a Python object"),
        (("odd.json",), "odd.json has a format that evalmeta does not know"),
        (("empty.json",), "empty.json is empty"),
        (("utf16.json",), "utf16.json\n  1:1 error the file is UTF-16, not UTF-8"),
    ],
)
def test_files_that_cannot_run_are_refused_and_leave_nothing(
    evalmeta: Program, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "empty").mkdir()
    (folder / "evalmeta.toml").touch()
    (folder / "odd.json").write_text('{"a": 1}')
    (folder / "empty.json").write_text("\n")
    (folder / "utf16.json").write_text('{"evalCases": []}', encoding="utf-16")
    done = evalmeta("test", "run", *arguments, "--wait")
    assert done.code == 2
    assert message in done.err
    assert not (folder / ".evalmeta").exists()


def test_warnings_are_printed_before_the_error_about_the_agent(evalmeta: Program, tmp_path: Path) -> None:
    (tmp_path / "set.csv").write_text("request,respnse\nQ1,A1\n")
    (tmp_path / "half.jsonl").write_text('{"request": "Q1", "response": "a"}\n{"request": "Q2"}\n')

    misspelt, half = evalmeta("test", "run", "set.csv", "--wait"), evalmeta("test", "run", "half.jsonl", "--wait")

    assert "Did you mean 'response'?" in misspelt.err
    assert "row 2 has neither 'response' nor 'trace'" in half.err


def test_many_problems_are_printed_once_each_up_to_a_limit(evalmeta: Program, tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"request": "a", "guidelines": 1}\n' * 30)

    told = evalmeta("test", "run", "set.jsonl", "--wait").err

    assert (told.count("'guidelines' is a number"), "and 10 more, which --json lists" in told) == (20, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--output-dir", "results"),
        ("--result-format", "junit"),
        ("--baseline", "baseline.json"),
        ("--suspect", "fail"),
        ("--min-pass-rate", "0.5"),
        ("--undecided", "fail"),
    ],
)
@pytest.mark.parametrize("run", [("orders.yaml", *SUBJECT), ("--extend", "4KB000000000001GAA", "--iterations", "2")])
def test_options_that_need_results_are_refused_without_wait(
    evalmeta: Program, folder: Path, options: tuple[str, str], run: tuple[str, ...]
) -> None:
    refused = evalmeta("test", "run", *run, *options)
    assert (refused.code, f"{options[0]} needs --wait" in refused.err, refused.out) == (2, True, "")
    assert not (folder / ".evalmeta").exists()
    assert not (folder / "results").exists()


def test_several_options_that_need_results_are_refused_together(evalmeta: Program) -> None:
    refused = evalmeta(
        "test", "run", "orders.yaml", *SUBJECT, "-d", "results", "--min-pass-rate", "1", "--suspect", "fail"
    )
    assert "--min-pass-rate, --suspect and --output-dir need --wait" in refused.err


def test_a_dry_run_and_settings_need_no_wait(evalmeta: Program, folder: Path) -> None:
    assert evalmeta("test", "run", "orders.yaml", *SUBJECT, "--min-pass-rate", "0.5", "--dry-run").code == 0
    (folder / "evalmeta.toml").write_text("[run]\nmin_pass_rate = 0.5\nundecided = 'fail'\n")
    assert evalmeta("test", "run", "orders.yaml", *SUBJECT).code == 0
    evalmeta("test", "resume", "-r")


@pytest.mark.parametrize(
    ("path", "content", "subject"),
    [
        ("desk.py", AGENT, "desk:answer"),
        ("agents/desk.py", "import os\n\nasync def reply(question): ...\n", "agents.desk:reply"),
        ("empty.py", "", "empty:answer"),
    ],
)
def test_an_agent_in_the_place_of_a_test_is_refused_with_the_option(
    evalmeta: Program, folder: Path, path: str, content: str, subject: str
) -> None:
    (folder / "agents").mkdir()
    (folder / path).write_text(content)
    refused = evalmeta("test", "run", path, "--wait")
    assert (refused.code, f"{path} is not a test file" in refused.err) == (2, True)
    assert f"evalmeta test run TEST_FILE --agent {subject}" in refused.err


def test_a_spec_beside_its_definition_is_named_and_not_run(evalmeta: Program, folder: Path) -> None:
    (folder / "returns.yaml").unlink()
    (folder / "Orders.aiEvaluationDefinition").write_text(DEFINITION.replace("Desk", "Orders", 1))
    planned = evalmeta("test", "run", ".", *SUBJECT, "--dry-run")
    assert "orders.yaml is not run: Orders.aiEvaluationDefinition is its definition" in planned.err
    assert "Would run 1 case:" in planned.out


@pytest.mark.slow
@pytest.mark.parametrize("file", ["orders.yaml", "Desk.aiEvaluationDefinition-meta.xml"])
def test_suspect_cases_of_a_file_are_asked_again(evalmeta: Program, folder: Path, file: str) -> None:
    (folder / file).write_text({"orders.yaml": SPEC.format(topic="Orders")}.get(file) or DEFINITION)
    (folder / "desk.py").write_text(AGENT.replace("Orders", "Orders" if file == "orders.yaml" else "Returns"))
    evalmeta("test", "run", file, *SUBJECT, "--wait")
    evalmeta("test", "baseline", "-o", "b.json")
    # Python takes a file of the same second and size for the one that it compiled before.
    (folder / "desk.py").write_text(AGENT.replace("Orders", "Nowhere at all"))
    never = evalmeta("test", "run", file, *SUBJECT, "--wait", "--baseline", "b.json", "--confirm", "0")
    assert never.code == 0
    command = f"evalmeta test run {file} --agent desk:answer --wait --baseline b.json\n"
    assert command in evalmeta("test", "compare", "--baseline", "b.json").out
    asked = evalmeta("test", "run", file, *SUBJECT, "--wait", "--baseline", "b.json")
    assert (asked.code, "1/1 -> 0/1, again 0/20" in asked.out) == (100, True)


@pytest.mark.parametrize(
    ("given", "way_out"),
    [("Nobody", "Name a Python function: --agent my_agent:answer"), ("shop", "Did you mean --agent shop:answer?")],
)
def test_a_misspelt_subject_without_settings_is_not_blamed_on_settings(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, way_out: str
) -> None:
    (tmp_path / "t.yaml").write_text("testCases:\n- input: Hello\n  contains: Hi\n")
    (tmp_path / "shop.py").touch()
    monkeypatch.chdir(tmp_path)

    done = evalmeta("test", "run", "t.yaml", "--agent", given, "--wait")

    assert f"--agent '{given}' is not module:name of a Python object, and there is no evalmeta.toml" in done.err
    assert way_out in done.err
    assert "Create evalmeta.toml with these lines" in done.err


@pytest.mark.parametrize("command", [("test", "run", "--agent", "shop:answer"), ("validate",)])
def test_a_path_with_backslashes_is_answered_with_slashes(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/t.yaml").touch()
    monkeypatch.chdir(tmp_path)

    assert "Did you mean tests/t.yaml?" in evalmeta(*command, "tests\\t.yaml").err
    assert "Write / between folders: tests/u.yaml" in evalmeta(*command, "tests\\u.yaml").err


def test_an_agent_with_other_parameters_is_refused_with_those_that_it_needs(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.yaml").write_text("testCases:\n- input: Hello\n  contains: Hi\n")
    (tmp_path / "shop.py").write_text("def answer(*, other): ...\n\n\ndef nothing(): ...\n")
    monkeypatch.chdir(tmp_path)

    done = evalmeta("test", "run", "t.yaml", "--agent", "shop:answer", "--wait")

    assert "shop.py:1: the subject's target 'shop:answer' cannot be called: too many positional arguments" in done.err
    assert "it is answer(*, other), and must be answer(utterance, *, history, context)" in done.err
    done = evalmeta("test", "run", "t.yaml", "--agent", "shop:nothing", "--wait")
    assert "shop.py:4: the subject's target 'shop:nothing' takes no utterance, so it must return an agent" in done.err


def test_all_files_that_are_not_valid_are_reported_at_once(evalmeta: Program, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.yaml").write_text("testCases:\n- input: Hello\n  contains: 01\n")
    done = evalmeta("run", "a.yaml", "b.yaml")
    assert done.code == 2
    assert "2 files are not valid; nothing was run" in done.err
    assert all(f"{name}.yaml\n  3:13 error" in done.err for name in ("a", "b"))
