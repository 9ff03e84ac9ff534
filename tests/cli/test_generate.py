from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

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
