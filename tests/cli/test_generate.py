from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from evalmeta.formats.testspec import read_testspec
from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase
from evalmeta.model.registry import TESTING_DEFINITION
from formats.specs import SPEC

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

HEAD = ("generate", "spec", "--name", "T", "--subject-name", "A")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_spec_is_made_of_options(evalmeta: Program) -> None:
    done = evalmeta(
        *HEAD,
        *("--utterance", "Hi", "--utterance", "And?", "--topic", "T", "--action", "A", "--action", "B"),
        *("--outcome", "O", "--metric", "coherence", "--description", "D", "--subject-version", "v2"),
    )
    expected = (
        Expectation("topic_sequence_match", "T"),
        Expectation("action_sequence_match", "['A', 'B']"),
        Expectation("bot_response_rating", "O"),
        Expectation("coherence"),
    )
    cases = (TestCase(Inputs("Hi"), expected, 1), TestCase(Inputs("And?"), expected, 2))

    assert read_testspec(done.out.encode(), label="t") == Definition(
        "T", "A", subject_version="v2", description="D", test_cases=cases
    )


def test_a_spec_for_agentforce_studio_is_made_of_options(evalmeta: Program) -> None:
    done = evalmeta(*HEAD, "--utterance", "Hi", "--metric", "task_resolution", "--test-runner", "agentforce-studio")

    assert read_testspec(done.out.encode(), label="t") == Definition(
        "T", "A", test_cases=(TestCase(Inputs("Hi"), (Expectation("task_resolution"),), 1),), type=TESTING_DEFINITION
    )


def test_a_spec_is_made_of_a_definition(evalmeta: Program, folder: Path) -> None:
    (folder / "spec.yaml").write_text(SPEC)
    evalmeta("convert", "spec.yaml", "--to", "definition", "-o", "d.xml")
    (folder / "d.xml").write_text((folder / "d.xml").read_text().replace("<number>2<", "<number>7<"))

    done = evalmeta("generate", "spec", "--from-definition", "d.xml", "-o", "specs/a.yaml")

    assert (done.code, done.out) == (0, "Created specs/a.yaml\n")
    assert done.err == "Lost: test case 7: the number 7; the test case gets the number 2 from its position\n"
    assert read_testspec((folder / "specs/a.yaml").read_bytes(), label="t") == read_testspec(SPEC.encode(), label="t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (HEAD, "a spec requires a name, a subject and an utterance"),
        ((*HEAD, "--utterance", "u", "--metric", "coherense"), "Did you mean 'coherence'?"),
        (
            (*HEAD, "--utterance", "u", "--metric", "instruction_following", "--test-runner", "agentforce-studio"),
            "'instruction_following' is not a metric of AiTestingDefinition",
        ),
    ],
)
def test_a_spec_without_what_it_needs_is_refused(evalmeta: Program, arguments: tuple[str, ...], message: str) -> None:
    done = evalmeta(*arguments)

    assert (done.code, message in done.err) == (2, True)


def test_the_schema_is_printed_and_written(evalmeta: Program, folder: Path) -> None:
    printed = evalmeta("generate", "schema").out
    as_json = json.loads(evalmeta("generate", "schema", "--json").out)
    written = json.loads(evalmeta("generate", "schema", "-o", "s.json", "--json").out)

    assert json.loads(printed)["title"] == "Test spec"
    assert as_json["result"] == {"contents": printed}
    assert written["result"] == {"file": "s.json", "state": "Created"}
    assert (folder / "s.json").read_text() == printed


SCRIPT = """\
start_agent router:
    reasoning:
        actions:
            go: @utils.transition to @subagent.LoanDesk
subagent LoanDesk:
    description: "Tells which books a reader has"
    actions:
        Find_Loans:
            target: "flow://Find_Loans"
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives a project with an agent in Agent Script."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "app/aiAuthoringBundles/Desk/Desk.agent"
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT)
    (tmp_path / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "app"}]}')
    return tmp_path


def test_a_spec_from_an_agent_has_a_case_to_review_for_each_topic_and_action(desk: Path, evalmeta: Program) -> None:
    written = evalmeta("generate", "spec", "--from-agent", "Desk", "-o", "specs/Desk.yaml")
    assert written.code == 0
    assert "2 test cases to review: replace each input with what users say, then remove review." in written.err
    assert yaml.safe_load((desk / "specs/Desk.yaml").read_text()) == {
        "subject": "Desk",
        "testCases": [
            {"name": "topic LoanDesk", "input": "Tells which books a reader has", "topic": "LoanDesk", "review": True},
            {
                "name": "action LoanDesk.Find_Loans",
                "input": "Find loans",
                "topic": "LoanDesk",
                "actions": ["Find_Loans"],
                "action_match": "superset",
                "review": True,
            },
        ],
    }
    found = json.loads(evalmeta("validate", "specs", "--result-format", "json").out)["problems"]
    assert {problem["code"] for problem in found} == {"review-pending"}
    assert json.loads(evalmeta("coverage", "--result-format", "json").out)["agents"][0]["coverage"] == 0


def test_a_spec_from_an_agent_replaces_no_other_file(desk: Path, evalmeta: Program) -> None:
    (desk / "Desk.yaml").write_text("subject: Desk\n")
    refused = evalmeta("generate", "spec", "--from-agent", "Desk", "-o", "Desk.yaml")
    assert refused.code == 2
    assert "Overwrite it with --force." in refused.err
    assert (desk / "Desk.yaml").read_text() == "subject: Desk\n"


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--from-agent", "Dek"), "Did you mean Desk?"),
        (("--from-agent", "Desk", "--name", "A"), "--from-agent cannot be combined"),
        (("--from-agent", "Desk", "--from-definition", "a.xml"), "--from-agent cannot be combined"),
    ],
)
def test_a_spec_from_an_agent_that_is_not_there_or_with_other_options_is_refused(
    evalmeta: Program, options: tuple[str, ...], says: str
) -> None:
    refused = evalmeta("generate", "spec", *options)
    assert refused.code == 2
    assert says in refused.err
