from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.workspace import new_name
from evalmeta.formats.testspec import read_testspec
from evalmeta.formats.testspec_writer import write_testspec
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.expectations import parse_actions, render_actions
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import read_xml
from formats.specs import SPEC, STUDIO_SPEC

if TYPE_CHECKING:
    from clients_elsewhere.workspace import Workspace
    from evalmeta.model.definition import Definition, Expectation
    from evalmeta.model.evaluation import Evaluation

WHOLE = SPEC.split("  - utterance: Refund me")[0]
AGENTS = STUDIO_SPEC.split("  - inputs:\n      - promptInput")[0]
CREATE = "agent test create --json --preview --spec spec.yaml --test-runner"


def evaluation(definition: Definition) -> Evaluation:
    """Return what the engine runs, with actions in one spelling."""
    cases = tuple(
        replace(case, expectations=tuple(map(one_spelling, case.expectations))) for case in definition.test_cases
    )
    found = evaluation_of(replace(definition, test_cases=cases), name="N")
    return replace(found, cases=tuple(found.cases))


def one_spelling(expectation: Expectation) -> Expectation:
    actions = parse_actions(expectation.expected_value or "")
    return expectation if actions is None else replace(expectation, expected_value=render_actions(actions))


@pytest.mark.parametrize(("spec", "runner"), [(WHOLE, "testing-center"), (AGENTS, "agentforce-studio")])
def test_what_sf_writes_of_a_spec_is_read_to_the_same_evaluation(workspace: Workspace, spec: str, runner: str) -> None:
    (workspace.folder / "spec.yaml").write_text(spec)

    made = workspace.sf(f"{CREATE} {runner} --api-name", new_name("Spec"))
    theirs = read_definition(read_xml(made.reply.result.contents.encode(), label="theirs"))

    ours = read_testspec(spec.encode(), label="spec.yaml")
    assert (theirs.type, evaluation(theirs)) == (ours.type, evaluation(ours))


def test_sf_reads_what_we_write(workspace: Workspace) -> None:
    ours = read_testspec(WHOLE.encode(), label="spec.yaml")
    (workspace.folder / "spec.yaml").write_bytes(write_testspec(ours).content)

    made = workspace.sf(f"{CREATE} testing-center --api-name", new_name("Spec"))

    assert evaluation(read_definition(read_xml(made.reply.result.contents.encode(), label="t"))) == evaluation(ours)


def test_sf_expects_what_a_spec_leaves_out(workspace: Workspace) -> None:
    spec = WHOLE.partition("    expectedTopic")[0]
    (workspace.folder / "spec.yaml").write_text(spec)

    made = workspace.sf(f"{CREATE} testing-center --api-name", new_name("Spec"))
    [case] = read_definition(read_xml(made.reply.result.contents.encode(), label="t")).test_cases

    assert read_testspec(spec.encode(), label="spec.yaml").test_cases[0].expectations == ()
    assert [(expectation.name, expectation.expected_value) for expectation in case.expectations] == [
        ("topic_sequence_match", None),
        ("action_sequence_match", "[]"),
        ("bot_response_rating", None),
    ]
