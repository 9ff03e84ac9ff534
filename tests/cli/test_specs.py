"""Test specs with short forms, as a user writes and runs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from client.servers import replying_with
from engine.subjects.streams import DONE, chunk, streams

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
TOKENS = {"input": 9, "output": 1}

def answer(utterance, *, history):
    if "actions" in utterance:
        return {"outcome": "Booked.", "topic": "Trips", "actions": ["Find", "Book"], "tokens": TOKENS}
    return '{"city": "Paris"}' if "JSON" in utterance else f"The capital of France is Paris. ({len(history)})"
"""
CHECKS = """
def short(answer):
    return {"passed": len(answer) < 50, "reason": f"{len(answer)} characters"}
"""
CAPITAL = """\
testCases:
- input: What is the capital of France?
  contains: Paris
"""
ALL = """\
name: Everything
description: All short forms
subject: agents:answer
defaults:
  latency_ms: 60000
  not_contains: [sorry, cannot]
testCases:
- name: text
  tags: smoke
  input: What is the capital of France?
  contains: [capital, Paris]
  contains_any: [Rome, Paris]
  starts_with: The
  ends_with: (0)
  matches: (?i)\\bparis\\b
  equals: The capital of France is Paris. (0)
  function: checks:short
- input: Which actions?
  topic: Trips
  actions: [Find, Book]
  tokens: 10
- input: As JSON
  json: {path: $.city, equals: Paris}
- turns:
  - input: Hi
    contains: (0)
  - input: And now?
    contains: (2)
cases: questions.csv
"""
ONLY_OURS = (
    'contains_any "Rome", "Paris"', 'not_contains "sorry"', 'not_contains "cannot"', "matches (?i)\\bparis\\b",
    "function checks:short",
)  # fmt: skip
NO_EXPECTATION = "for which definitions have no expectation"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain folder, no project, with an agent."""
    (tmp_path / "agents.py").write_text(AGENT)
    (tmp_path / "checks.py").write_text(CHECKS)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/capital.yaml").write_text(CAPITAL)
    (tmp_path / "all.yaml").write_text(ALL)
    (tmp_path / "questions.csv").write_text("input,contains\nOne?,Paris\nTwo?,France\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_lines_are_a_test(evalmeta: Program) -> None:
    assert evalmeta("validate", "tests/capital.yaml").code == 0
    done = evalmeta("run", "tests", "--agent", "agents:answer")
    assert (done.code, "tests/capital.yaml passed: all judged cases passed" in done.out) == (0, True)


def test_a_failure_names_the_line_the_check_and_both_texts(evalmeta: Program, folder: Path) -> None:
    (folder / "tests/capital.yaml").write_text(CAPITAL.replace("Paris", "paris"))
    done = evalmeta("test", "run", "tests/capital.yaml", "--agent", "agents:answer", "--wait")
    assert done.code == 100
    assert (
        """\
FAILED    1 tests/capital.yaml:2
          utterance What is the capital of France?
          contains "paris": FAILURE
            expected  paris
            actual    The capital of France is Paris. (0)
            why       the answer does not contain "paris"; only upper and lower case differ
"""
        in done.out
    )


def test_a_failure_of_a_row_names_the_line_of_the_row(evalmeta: Program, folder: Path) -> None:
    (folder / "tests/spec.yaml").write_text("subject: agents:answer\ncases:\n- ../questions.csv\n- more.jsonl\n")
    (folder / "questions.csv").write_text("input,contains\nOne?,Paris\nTwo?,Rome\n")
    (folder / "tests/more.jsonl").write_text('\n{"name": "third", "input": "Three?", "contains": "Oslo"}\n')
    done = evalmeta("run", "tests/spec.yaml", "--report", "run.xml", "--report", "run.github.txt")
    assert "\nFAILED    2 ../questions.csv:3 questions.csv:3\n" in done.out
    assert "\nFAILED tests/more.jsonl:2  case 3 third  contains: " in done.out
    assert 'file="tests/more.jsonl" line="2"' in (folder / "run.xml").read_text()
    assert "::error file=tests/more.jsonl,line=2," in (folder / "run.github.txt").read_text()
    later = evalmeta("test", "results", "--job-id", "latest")
    assert "\nFAILED    3 third tests/more.jsonl:2\n" in later.out


def test_a_problem_of_a_row_names_the_line_of_the_row(evalmeta: Program, folder: Path) -> None:
    check = '{"name": "string_comparison", "label": "x", "parameters": [{"name": "operator", "value": "same"}]}'
    (folder / "spec.yaml").write_text("cases: more.jsonl\n")
    (folder / "more.jsonl").write_text(f'{{"input": "One?"}}\n{{"input": "Two?", "customEvaluations": [{check}]}}\n')
    shown = evalmeta("validate", "spec.yaml").out.splitlines()
    assert (shown[:1], [line.split()[0] for line in shown if " error " in line]) == (["more.jsonl"], ["2", "2", "2"])


def test_a_spec_can_have_all_short_forms_and_names_its_subject(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "all.yaml", "--wait", "--undecided", "fail")
    assert (done.code, "6 cases: 6 passed" in done.out) == (0, True), done.out


def test_a_spec_can_say_how_often_it_runs_and_what_share_must_pass(evalmeta: Program, folder: Path) -> None:
    cases = "testCases:\n- {input: One, contains: Paris}\n- {input: Two, contains: Rome}\n"
    (folder / "spec.yaml").write_text(f"subject: agents:answer\niterations: 2\nmin_pass_rate: 0.5\n{cases}")
    done = evalmeta("test", "run", "spec.yaml", "--wait", "--result-format", "json")
    assert (done.code, '"iterations": 2' in done.out or '"iterations":2' in done.out) == (0, True), done.out
    assert evalmeta("test", "run", "spec.yaml", "--wait", "--min-pass-rate", "1").code == 100


def test_a_spec_that_names_no_subject_says_where_to_write_it(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "tests/capital.yaml", "--wait")
    assert done.code == 2
    assert "Write the agent into tests/capital.yaml: subject: my_agent:answer" in done.err


def test_a_spec_can_name_an_endpoint(evalmeta: Program, folder: Path) -> None:
    (folder / "spec.yaml").write_text("subject: http://127.0.0.1:9/v1\ntestCases:\n- {input: Hi, contains: Paris}\n")
    done = evalmeta("test", "run", "spec.yaml", "--dry-run")
    assert (done.code, "spec.yaml: subject http://127.0.0.1:9/v1" in done.out) == (0, True)


def test_the_subject_of_the_command_replaces_that_of_the_spec(evalmeta: Program, folder: Path) -> None:
    (folder / "other.py").write_text("def answer(utterance):\n    return 'Rome'\n")
    done = evalmeta("test", "run", "all.yaml", "--agent", "other:answer", "--case", "text", "--wait")
    assert (done.code, "subject other:answer" in done.out) == (100, True)


def test_a_function_that_does_not_exist_is_found_before_the_run(evalmeta: Program, folder: Path) -> None:
    (folder / "all.yaml").write_text(ALL.replace("checks:short", "checks:long"))
    done = evalmeta("test", "run", "all.yaml", "--wait")
    assert (done.code, "the module 'checks' has no 'long'" in done.err) == (2, True)


def test_short_forms_become_a_definition_and_losses_are_named(evalmeta: Program) -> None:
    done = evalmeta("convert", "all.yaml", "--to", "definition", "--json")
    found = json.loads(done.out)["result"]
    losses = [f"{each['where']}: {each['what']}" for each in found["losses"] if each["where"] == "test case 1"]
    assert "<value>$.generatedData.outcome.city</value>" in found["contents"]
    assert '<label>contains "Paris"</label>' in found["contents"].replace("&quot;", '"')
    assert (
        losses
        == [
            "test case 1: its name 'text'",
            "test case 1: its tags smoke",
            'test case 1: the check \'contains_any "Rome", "Paris"\', for which definitions have no expectation',
            "test case 1: the check 'not_contains \"sorry\"', for which definitions have no expectation",
            "test case 1: the check 'not_contains \"cannot\"', for which definitions have no expectation",
            "test case 1: the check 'matches (?i)\\\\bparis\\\\b', for which definitions have no expectation",
            "test case 1: the check 'function checks:short', for which definitions have no expectation",
            *(
                f"test case {number}: the check 'not_contains \"{text}\"', for which definitions have no expectation"
                for number in (2, 3, 4, 5, 6, 7)
                for text in ("sorry", "cannot")
            ),
        ]
        or losses
    )


def test_a_spec_that_definitions_can_hold_comes_back_from_one(evalmeta: Program, folder: Path) -> None:
    (folder / "spec.yaml").write_text("""\
subject: Desk
testCases:
- input: Hi
  contains: Hello
  topic: Greeting
  actions: []
  json: {path: $.a, at_least: 3}
""")
    assert evalmeta("convert", "spec.yaml", "--to", "definition", "--strict", "-o", "d.xml").code == 0
    back = evalmeta("convert", "d.xml", "--to", "testspec", "--strict")
    assert (
        back.out
        == """\
name: spec
subjectType: AGENT
subjectName: Desk
testCases:
  - utterance: Hi
    expectedTopic: Greeting
    expectedActions: []
    customEvaluations:
      - label: "contains \\"Hello\\""
        name: string_comparison
        parameters:
          - name: operator
            value: contains
            isReference: false
          - name: actual
            value: $.generatedData.outcome
            isReference: true
          - name: expected
            value: Hello
            isReference: false
      - label: json $.a at_least 3
        name: numeric_comparison
        parameters:
          - name: operator
            value: greater_than_or_equal
            isReference: false
          - name: actual
            value: $.generatedData.outcome.a
            isReference: true
          - name: expected
            value: "3"
            isReference: false
"""
    )


def test_a_definition_needs_a_subject_that_a_spec_may_leave_out(evalmeta: Program) -> None:
    refused = evalmeta("convert", "tests/capital.yaml", "--to", "definition")
    assert (refused.code, "does not name an agent" in refused.err, "--subject-name" in refused.err) == (2, True, True)
    done = evalmeta("convert", "tests/capital.yaml", "--to", "definition", "--subject-name", "Desk", "--name", "Cap")
    assert ("<name>Cap</name>" in done.out, "<subjectName>Desk</subjectName>" in done.out) == (True, True)


def test_a_run_whose_file_of_cases_has_changed_is_not_extended(evalmeta: Program, folder: Path) -> None:
    (folder / "spec.yaml").write_text("subject: agents:answer\ncases: questions.csv\n")
    ran = evalmeta("test", "run", "spec.yaml", "--wait")
    (folder / "questions.csv").write_text("input\nThree?\n")
    run_id = ran.out.partition(", run ")[2].split()[0]
    refused = evalmeta("test", "run", "--extend", run_id, "--iterations", "2", "--wait")
    assert "has changed since the run started" in refused.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.yaml", "foo: bar\n", "x.yaml is not a test spec: it has no test cases; its keys are foo"),
        (
            "q.csv",
            "Question,Answer\na,b\n",
            "q.csv is not a table of tests: it has no test cases; its columns are Question, ",
        ),
    ],
)
def test_a_file_that_is_not_a_test_says_what_is_missing(
    evalmeta: Program, folder: Path, name: str, content: str, message: str
) -> None:
    (folder / name).write_text(content)
    for command in (["validate", name], ["test", "run", name, "--agent", "agents:answer"]):
        done = evalmeta(*command)
        assert (done.code, message in done.err, "NotFound" in done.err) == (2, True, False)


def test_a_json_file_that_is_cut_off_says_where(evalmeta: Program, folder: Path) -> None:
    (folder / "cut.json").write_text('{"tests": [')
    done = evalmeta("validate", "cut.json")
    assert "1:12 error this is not valid JSON: unexpected end of data" in done.out + done.err


def test_a_file_of_xml_that_is_not_a_definition_is_not_called_missing(evalmeta: Program, folder: Path) -> None:
    (folder / "x.yaml").write_text("<a/>\n")
    done = evalmeta("validate", "x.yaml")
    assert (done.code, "NotFound" in done.err) == (2, False)
    assert "'x.yaml' is neither a definition nor a manifest" in done.err


def test_an_empty_spec_is_reported_without_options_that_were_not_used(evalmeta: Program, folder: Path) -> None:
    (folder / "empty.yaml").write_text("subject: agents:answer\ntestCases: []\n")
    done = evalmeta("test", "run", "empty.yaml", "--wait")
    assert (done.code, "--tag" in done.err) == (2, False)
    assert "2:12 error a test spec has no test cases" in done.err


def test_an_empty_spec_says_so_beside_its_other_faults(evalmeta: Program, folder: Path) -> None:
    (folder / "empty.yaml").write_text("name: A\nsubjectName: Desk\ntestCases:\n")
    done = evalmeta("validate", "empty.yaml")
    assert (done.code, "needs 'subjectType'" in done.out) == (1, True)
    assert "3:11 error a test spec has no test cases" in done.out


def test_a_tag_selects_test_cases_of_specs_and_lists_of_the_settings(evalmeta: Program, folder: Path) -> None:
    call = ("run", "all.yaml", "tests", "--agent", "agents:answer", "--dry-run", "--json", "--tag")

    def selected() -> list[tuple[str, list[int]]]:
        planned = json.loads(evalmeta(*call, "smoke").out)["result"]
        return [(each["definition"], [case["number"] for case in each["cases"]]) for each in planned]

    assert selected() == [("all.yaml", [1]), ("tests/capital.yaml", [])]
    (folder / "evalmeta.toml").write_text('[tags]\nsmoke = ["capital:1"]\n')
    assert selected() == [("all.yaml", [1]), ("tests/capital.yaml", [1])]
    unknown = evalmeta(*call, "smok")
    assert (unknown.code, "Did you mean smoke?" in unknown.out) == (2, True)


STREAMED = """
subject: desk
testCases:
- input: Where is it?
  contains: sent
  first_token_ms: 60000
"""
BOUND = """
[subjects.desk]
adapter = "openai"
model = "desk-1"
stream = true
url = "{url}"
"""


def test_a_streamed_answer_is_reported_with_the_time_until_its_first_token(folder: Path, evalmeta: Program) -> None:
    reply = streams(chunk({"content": "It is "}), chunk({"content": "sent."}, ended="stop"), DONE)
    (folder / "desk.yaml").write_text(STREAMED)
    with replying_with(reply) as server:
        (folder / "evalmeta.toml").write_text(BOUND.format(url=server.url))
        done = evalmeta("run", "desk.yaml", "--report", "runs.csv", "--report", "runs.html", "--json")
    assert done.code == 0, done.out
    [run] = json.loads(done.out)["result"]
    milliseconds = run["testCases"][0]["generatedData"]["firstTokenMilliseconds"]
    assert run["evalmeta"]["statistics"]["firstTokenMilliseconds"]["p50"] == milliseconds
    assert f"{milliseconds:.15g}" in (folder / "runs.csv").read_text()
    assert "first token" in (folder / "runs.html").read_text()
    assert "first token: p50" in evalmeta("test", "results", "latest").out
