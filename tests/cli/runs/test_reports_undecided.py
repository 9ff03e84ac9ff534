"""Runs whose results cannot all be judged, as the command line reports them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
def answer(utterance):
    return "It will arrive on Friday."
"""
SPEC = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedOutcome: The agent tells the customer about the state of the order.
    metrics:
      - output_latency_milliseconds
"""
RUN = ("test", "run", "orders.yaml", "--agent", "desk:answer", "--wait")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain folder with an agent that returns text."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


ROUTED = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedTopic: Orders
    expectedActions: []
"""
REPORTING = """
def answer(utterance):
    return {"outcome": "It will arrive on Friday.", "topic": "", "actions": []}
"""


@pytest.mark.parametrize("profile", ["default", "testing-center"])
def test_a_plain_text_agents_topic_and_actions_are_undecided(evalmeta: Program, folder: Path, profile: str) -> None:
    (folder / "orders.yaml").write_text(ROUTED)
    done = evalmeta(*RUN, "--scoring", profile)
    assert done.code == 100
    assert "0 passed, 0 failed, 0 errors, 1 undecided" in done.out
    assert "the agent does not report its topic" in done.out
    assert "the agent does not report its actions; if it took none, it must return an empty list" in done.out


@pytest.mark.slow
def test_unknown_and_empty_differ_in_the_journal_and_in_recorded_answers(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(ROUTED)
    (folder / "reporting.py").write_text(REPORTING)
    agents = {"desk:answer": [None, None], "reporting:answer": ["FAILURE", "PASS"]}
    for agent, verdicts in agents.items():
        done = evalmeta("test", "run", "orders.yaml", "--agent", agent, "--wait", "--json")
        first = json.loads(done.out)["result"][0]
        again = evalmeta("test", "rescore", first["evalmeta"]["runId"], "--json")
        (folder / "recorded.json").write_text(done.out)
        (folder / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "replay"\nfile = "recorded.json"\n')
        replayed = evalmeta("test", "run", "orders.yaml", "--agent", "Order_Desk", "--wait", "--json")
        for each in (done, again, replayed):
            [case] = json.loads(each.out)["result"][0]["testCases"]
            assert [result["result"] for result in case["testResults"][:2]] == verdicts


def test_a_case_with_only_undecided_and_measured_results_has_not_passed(evalmeta: Program) -> None:
    done = evalmeta(*RUN)
    assert done.code == 100
    assert "undecided 1 orders.yaml" in done.out
    assert "1 case: 0 passed, 0 failed, 0 errors, 1 undecided" in done.out


MIXED = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: When will it arrive?
    expectedOutcome: It will arrive on Friday.
  - utterance: Where is my order?
    expectedTopic: Orders
  - utterance: Where is my parcel?
    expectedOutcome: The agent tells the customer about the state of the order.
"""


def test_a_pass_rate_stands_beside_its_coverage(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(MIXED)
    done = evalmeta(*RUN, "--min-decided", "0.2")
    assert done.code == 0
    judged = "1 of 3 results were judged (33.33 %; required: at least 20 %)"
    assert f"orders.yaml passed: all judged cases passed; {judged}" in done.out
    assert "finished, 3 of 3 cases, 0 not passed, 2 undecided" in done.err


def test_a_run_that_failed_states_its_pass_rate_and_coverage(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(MIXED.replace("on Friday", "on Sunday"))
    done = evalmeta(*RUN)
    assert done.code == 100
    assert "  pass rate 0 % (required: at least 100 %); 1 of 3 results were judged (33.33 %)\n" in done.out


def test_half_of_the_results_must_be_judged_by_default(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(MIXED)
    done = evalmeta(*RUN)
    assert done.code == 100
    required = "only 1 of 3 results were judged (required by default: at least 50 %)"
    assert f"orders.yaml not passed: {required}" in done.out


PARTLY = """\
subject: desk:answer
cases:
  - input: When will it arrive?
    contains: Friday
    rubric: It is polite.
"""


def test_what_only_a_model_can_judge_does_not_make_a_run_without_a_judge_red(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(PARTLY.replace("rubric: It is polite.", "rubric: [Polite., Short., Kind.]"))
    done = evalmeta("run", "orders.yaml")
    assert done.code == 0
    assert done.err.startswith(
        "Only an LLM rater can judge 3 of 4 expectations (75 %); without one they are undecided."
    )
    assert "1 case: 0 passed, 1 partly judged, 0 failed, 0 errors, 0 undecided" in done.out
    assert "rubric, 3 results: only an LLM rater can judge this, and this run has none" in done.out
    assert evalmeta("run", "orders.yaml", "--min-decided", "0.5").code == 100


@pytest.mark.parametrize(("name", "adapter", "is_told"), [("offline", "rules", True), ("rules", "llm", False)])
def test_what_only_a_model_can_judge_is_told_by_the_adapter_of_the_rater_and_not_by_its_name(
    evalmeta: Program, folder: Path, name: str, adapter: str, *, is_told: bool
) -> None:
    (folder / "orders.yaml").write_text(PARTLY)
    model = 'model = "test"\n' * (adapter == "llm")
    (folder / "evalmeta.toml").write_text(f'[score]\nrater = "{name}"\n[raters.{name}]\nadapter = "{adapter}"\n{model}')
    assert ("Only an LLM rater can judge" in evalmeta("run", "orders.yaml").err) is is_told


@pytest.mark.parametrize("place", ["option", "settings"])
def test_a_run_that_judges_too_little_fails_and_says_what_to_do(evalmeta: Program, folder: Path, place: str) -> None:
    (folder / "orders.yaml").write_text(MIXED)
    if place == "settings":
        (folder / "evalmeta.toml").write_text("[run]\nmin_decided = 0.8\n")
    done = evalmeta(*RUN, *(["--min-decided", "0.8"] if place == "option" else []))
    assert done.code == 100
    required = "only 1 of 3 results were judged (33.33 %; required: at least 80 %)"
    assert f"orders.yaml not passed: {required}" in done.out
    assert "    bot_response_rating, 1 result: the expectation describes the answer" in done.out
    assert "    topic_sequence_match, 1 result: the agent does not report its topic" in done.out
    lines = '    [score]\n    rater = "judge"\n\n    [raters.judge]\n    adapter = "llm"\n'
    assert (
        f"  Add an LLM rater to evalmeta.toml, which needs evalmeta[llm] and the model's API key:\n\n{lines}"
        in done.out
    )


def test_a_rescored_run_needs_the_coverage_that_is_asked_for(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(MIXED)
    run_id = json.loads(evalmeta(*RUN, "--min-decided", "0.2", "--json").out)["result"][0]["evalmeta"]["runId"]
    assert evalmeta("test", "resume", "--job-id", run_id).code == 0
    assert evalmeta("test", "rescore", run_id).code == 0
    assert evalmeta("test", "rescore", run_id, "--min-decided", "0.8").code == 100


def test_a_baseline_does_not_excuse_a_run_that_judges_too_little(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(MIXED)
    run_id = json.loads(evalmeta(*RUN, "--json").out)["result"][0]["evalmeta"]["runId"]
    assert evalmeta(*RUN, "--baseline", run_id, "--min-decided", "0.2").code == 0
    assert evalmeta(*RUN, "--baseline", run_id, "--min-decided", "0.8").code == 100


def test_a_share_above_one_is_wrong_usage(evalmeta: Program) -> None:
    assert evalmeta(*RUN, "--min-decided", "80").code == 2


def test_a_run_that_judged_nothing_says_why_and_what_to_do(evalmeta: Program) -> None:
    done = evalmeta(*RUN)
    assert "orders.yaml not passed: no case was judged: the expectation describes the answer" in done.out
    assert "  Add an LLM rater to evalmeta.toml" in done.out
    assert "  Or correct the expectations that are listed as undecided.\n" in done.out


def test_a_run_that_lacks_what_the_agent_does_not_report_says_so(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(ROUTED)
    done = evalmeta(*RUN)
    assert "  Let the agent report what the undecided results lack, or correct the expectations" in done.out


def test_cases_to_review_are_named_as_what_to_do(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(ROUTED + "    review: true\n")
    (folder / "reporting.py").write_text(REPORTING)
    done = evalmeta(*RUN[:3], "--agent", "reporting:answer", "--wait")
    assert "  Review these test cases: correct what they expect, and remove review: true.\n" in done.out
    assert "Let the agent report" not in done.out


def test_progress_counts_cases_as_the_report_does(evalmeta: Program) -> None:
    done = evalmeta(*RUN, "--undecided", "fail")
    assert (done.code, "finished, 1 of 1 case, 1 not passed\n" in done.err) == (100, True)


def test_what_is_unknown_is_not_shown_as_empty(evalmeta: Program, folder: Path) -> None:
    (folder / "orders.yaml").write_text(ROUTED)
    assert "(empty)" not in evalmeta(*RUN).out
