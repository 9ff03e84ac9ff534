from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.node import Sf
from clients_elsewhere.tunnel import org_behind_tunnel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clients_elsewhere.node import Outcome

SPEC = """\
name: Desk_Test
subjectType: AGENT
subjectName: Desk
testCases:
  - utterance: Where is my order 7?
    contextVariables:
      - name: CaseId
        value: "500"
    conversationHistory:
      - role: user
        message: Hi
      - role: agent
        message: Hello
        topic: Orders
    expectedTopic: Orders
    expectedActions: [FindOrder]
    expectedOutcome: Your order is on its way.
    customEvaluations:
      - label: id
        name: string_comparison
        parameters:
          - {name: operator, value: equals, isReference: false}
          - {name: actual, value: "$.generatedData.invokedActions[0][0].function.input.id", isReference: true}
          - {name: expected, value: "7", isReference: false}
  - utterance: I return it
    expectedTopic: Orders
"""
PAYLOAD = {
    "tests": [
        {
            "id": f"order-{number}",
            "steps": [
                {"type": "agent.create_session", "id": "cs"},
                {"type": "agent.send_message", "id": "sm", "sessionId": "{cs.session_id}", "text": text},
                {"type": "agent.get_state", "id": "gs", "session_id": "{cs.session_id}"},
                {
                    "type": "evaluator",
                    "evaluator_type": "planner_topic_assertion",
                    "id": "topic",
                    "field": "gs.planner_state.topic",
                    "expected": "Orders",
                    "operator": "equals",
                },
            ],
        }
        for number, text in enumerate(["Where?", "return", "And now?", "a", "b", "c", "d"], 1)
    ]
}


@dataclass(frozen=True, slots=True)
class RunEval:
    """The command of sf that sends run-eval, through a tunnel to a served org."""

    sf: Sf
    folder: Path
    env: dict[str, str]

    def __call__(self, spec: str, *options: str) -> Outcome:
        (self.folder / "spec").write_text(spec)
        words = ("agent", "test", "run-eval", "--spec", str(self.folder / "spec"), "--target-org", self.sf.org.token)
        return self.sf(*words, *options, env=self.env)


@pytest.fixture(scope="module")
def run_eval(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunEval]:
    folder = tmp_path_factory.mktemp("run-eval")
    with org_behind_tunnel(folder) as tunnelled:
        yield RunEval(Sf(folder, tunnelled.org), folder, tunnelled.env)


def test_a_test_spec_is_run(run_eval: RunEval) -> None:
    done = run_eval(SPEC, "--json")

    assert done.code == 0, done
    first, second = done.reply.result.tests
    assert (first.id, first.status, second.status) == ("Desk_Test_case_0", "passed", "failed"), done.out
    assert [(evaluation.id, evaluation.is_pass) for evaluation in first.evaluations] == [
        *(("check_topic", True), ("check_actions", True), ("check_outcome", True), ("custom_0", True))
    ]
    assert [output.type for output in first.outputs] == [
        *("agent.create_session", "agent.send_message", "agent.send_message", "agent.get_state")
    ]


def test_a_payload_is_run_in_batches(run_eval: RunEval) -> None:
    done = run_eval(json.dumps(PAYLOAD), "--api-name", "Desk", "--batch-size", "3", "--json")

    assert done.code == 0, done
    found = {test.id: test.status for test in done.reply.result.tests}
    assert list(found) == [f"order-{number}" for number in range(1, 8)]
    assert [name for name, status in found.items() if status == "failed"] == ["order-2"]


@pytest.mark.parametrize(
    ("style", "line"),
    [
        ("human", "| check_topic | 0.000 | FAIL | Returns | Orders |"),
        ("junit", '<failure message="Expected Orders but got Returns">Score: 0.000</failure>'),
        ("tap", "not ok 5 - Desk_Test_case_1.check_topic (score: 0.000)"),
    ],
)
def test_sf_shows_the_results(run_eval: RunEval, style: str, line: str) -> None:
    done = run_eval(SPEC, "--result-format", style)

    assert (done.code, line in done.out) == (0, True), done


def test_sf_exits_with_1_when_an_evaluator_cannot_be_judged_or_the_agent_fails(run_eval: RunEval) -> None:
    alignment = {"type": "evaluator.text_alignment", "id": "near", "actual": "{sm.response}", "expected": "On its way"}
    [first, *_] = PAYLOAD["tests"]
    payload = {"tests": [{"id": "near", "steps": [*first["steps"], alignment]}]}
    judged = run_eval(json.dumps(payload), "--api-name", "Desk")
    broken = run_eval(SPEC.replace("I return it", "break"))

    assert (judged.code, "**near**: evaluator.text_alignment cannot be judged" in judged.out) == (1, True), judged
    assert (broken.code, bool(re.search(r"\*\*sm\*\*: .*RuntimeError: the desk is closed", broken.out))) == (1, True)


def test_sf_reports_an_unknown_agent_and_a_payload_that_it_did_not_normalise(run_eval: RunEval) -> None:
    unknown = run_eval(SPEC, "--api-name", "Nobody", "--json")
    raw = run_eval(json.dumps(PAYLOAD), "--api-name", "Desk", "--no-normalize", "--json")

    assert (unknown.code, unknown.reply.name) == (2, "AgentNotFound"), unknown
    assert (raw.code, raw.reply.name) == (4, "TestExecutionFailed"), raw
    assert "a step needs 'utterance'" in raw.reply.message
