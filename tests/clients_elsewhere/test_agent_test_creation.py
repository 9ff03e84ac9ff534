from __future__ import annotations

from typing import TYPE_CHECKING

from clients_elsewhere.workspace import new_name

if TYPE_CHECKING:
    from clients_elsewhere.workspace import Workspace

SPEC = """\
name: Desk Test
subjectType: AGENT
subjectName: Desk
testCases:
  - utterance: "Where's my order 7?"
    expectedTopic: Orders
    expectedActions: [FindOrder]
    expectedOutcome: Your order is on its way.
    contextVariables:
      - {name: CaseId, value: "500000000000001"}
    conversationHistory:
      - {role: user, message: Hi}
      - {role: agent, message: Hello, topic: Orders}
    customEvaluations:
      - label: Order id used
        name: string_comparison
        parameters:
          - {name: operator, value: equals, isReference: false}
          - name: actual
            value: $.generatedData.invokedActions[*][?(@.function.name == 'FindOrder')].function.input.id
            isReference: true
          - {name: expected, value: "7", isReference: false}
    metrics: [output_latency_milliseconds]
"""
STUDIO_SPEC = """\
name: Studio Test
subjectType: AGENT
subjectName: Desk
testCases:
  - inputs:
      - utterance: Where's my "order" 7?
    scorers:
      - {name: topic_sequence_match, expected: Orders}
  - inputs:
      - utterance: I return it
    scorers:
      - {name: topic_sequence_match, expected: Orders}
"""
CREATE = "agent test create --force-overwrite --test-runner"


def test_a_test_of_the_testing_center_is_created_and_passes(workspace: Workspace) -> None:
    name = new_name("Desk")
    (workspace.folder / "spec.yaml").write_text(SPEC)

    made = workspace.sf(f"{CREATE} testing-center --json --spec spec.yaml --api-name", name)
    assert (made.code, workspace.path(name).read_text()) == (0, made.reply.result.contents), made

    done = workspace.sf("agent test run --json --wait 5 --api-name", name)
    [case] = done.reply.result.testCases
    assert {result.name: result.result for result in case.testResults} == {
        "string_comparison": "PASS",
        "topic_sequence_match": "PASS",
        "action_sequence_match": "PASS",
        "bot_response_rating": "PASS",
        "output_latency_milliseconds": None,
    }


def test_a_test_of_agentforce_studio_is_created_listed_and_run(workspace: Workspace) -> None:
    name = new_name("Studio")
    (workspace.folder / "spec.yaml").write_text(STUDIO_SPEC)

    made = workspace.sf(f"{CREATE} agentforce-studio --json --spec spec.yaml --api-name", name)
    assert made.code == 0, made

    listed = workspace.sf("agent test list")
    [row] = [line.split() for line in listed.out.splitlines() if name in line]
    assert row[2] == "agentforce-studio"

    done = workspace.sf("agent test run --wait 5 --test-runner agentforce-studio --result-format tap --api-name", name)
    assert (done.code, "ok 1 1.topic_sequence_match\nnot ok 2 2.topic_sequence_match\n" in done.out) == (0, True), done


def test_a_spec_that_the_org_refuses_creates_nothing(workspace: Workspace) -> None:
    name = new_name("Refused")
    (workspace.folder / "spec.yaml").write_text(SPEC.replace("value: equals", "value: resembles"))

    done = workspace.sf(f"{CREATE} testing-center --json --spec spec.yaml --api-name", name)

    assert (done.code, "resembles" in done.reply.message) == (1, True), done
