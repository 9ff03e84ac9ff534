from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from formats.specs import SPEC, STUDIO_SPEC

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

TABLE = "Utterance,Expected Topic\nWhere is it?,Orders\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path


def test_a_spec_becomes_a_definition_and_comes_back(evalmeta: Program, folder: Path) -> None:
    there = evalmeta("convert", "spec.yaml", "--to", "definition", "-o", "d.xml")
    back = evalmeta("convert", "--to", "testspec", "d.xml")
    (folder / "again.yaml").write_text(back.out)

    assert (there.code, there.out, back.err) == (0, "Created d.xml\n", "")
    assert evalmeta("convert", "again.yaml", "--to", "definition").out == (folder / "d.xml").read_text()


@pytest.mark.parametrize("name", ["made/", "."])
def test_a_folder_is_not_a_file_to_write(evalmeta: Program, folder: Path, name: str) -> None:
    done = evalmeta("convert", "spec.yaml", "--to", "definition", "-o", name)

    assert (done.code, done.out) == (2, "")
    assert "is a folder; add the name of the file" in done.err or "is a directory" in done.err
    assert not (folder / "made").exists()


def test_a_table_becomes_a_definition_and_comes_back(evalmeta: Program) -> None:
    evalmeta("convert", "table.csv", "--to", "definition", "-o", "d.xml", "--subject-name", "Desk")
    back = evalmeta("convert", "file", "d.xml", "--to", "csv", "--strict")

    assert back.out == "Utterance,Expected Topic,Expected Actions,Expected Response\r\nWhere is it?,Orders,,\r\n"


def test_what_is_lost_is_listed(evalmeta: Program) -> None:
    done = evalmeta("convert", "spec.yaml", "--to", "csv")

    assert done.code == 0
    assert "Lost: test case 1: the expectation 'string_comparison'; " in done.err
    assert "Where's my order 7?" in done.out


def test_the_report_is_json_too(evalmeta: Program) -> None:
    printed = json.loads(evalmeta("convert", "spec.yaml", "--to", "csv", "--json").out)["result"]
    written = json.loads(evalmeta("convert", "spec.yaml", "--to", "csv", "-o", "x.csv", "--json").out)["result"]

    assert printed["contents"].startswith("Conversation History,Utterance,")
    assert written == {"losses": printed["losses"], "file": "x.csv", "state": "Created"}
    assert {"where", "what"} == set(written["losses"][0])


def test_strict_writes_nothing_when_something_would_be_lost(evalmeta: Program, folder: Path) -> None:
    done = evalmeta("convert", "spec.yaml", "--to", "csv", "--strict", "-o", "x.csv")

    assert (done.code, (folder / "x.csv").exists()) == (2, False)
    assert "test case 1: the expectation 'factuality'" in done.err


def test_other_content_is_overwritten_only_by_force(evalmeta: Program, folder: Path) -> None:
    (folder / "d.xml").write_text("mine")

    refused = evalmeta("convert", "spec.yaml", "--to", "definition", "-o", "d.xml")
    forced = evalmeta("convert", "spec.yaml", "--to", "definition", "-o", "d.xml", "--force")

    assert (refused.code, "d.xml has different content" in refused.err) == (2, True)
    assert (forced.code, forced.out) == (0, "Changed d.xml\n")


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("a.yaml", "name: x\ntestCase: y\n", (), "  2:1 error a test spec has no key"),
        ("a.yaml", SPEC, ("--subject-name", "X"), "a.yaml contains its own name and agent"),
        ("a.csv", TABLE, (), "a.csv does not name an agent"),
        ("a.csv", TABLE.replace("ance,", "ance,x,"), ("--subject-name", "X"), "a.csv\n  1 error column 2"),
        ("a.xml", "<x/>", (), "a.xml\n  1:1 error"),
        ("b.xml", "", (), "the file 'a' cannot be found"),
    ],
)
def test_an_unreadable_file_is_one_error(
    evalmeta: Program, folder: Path, name: str, content: str, arguments: tuple[str, ...], message: str
) -> None:
    (folder / name).write_text(content)
    source = name if content else "a"

    done = evalmeta("convert", source, "--to", "definition", "-o", "out", *arguments)

    assert (done.code, message in done.err, (folder / "out").exists()) == (2, True, False)


def test_a_spec_of_agentforce_studio_becomes_an_aitestingdefinition(evalmeta: Program, folder: Path) -> None:
    (folder / "studio.yaml").write_text(STUDIO_SPEC)

    assert "<AiTestingDefinition " in evalmeta("convert", "studio.yaml", "--to", "definition").out


ACTIONS_SPEC = """\
name: Orders
subjectType: AGENT
subjectName: Desk
testCases:
  - utterance: Where is it?
    expectedActions: [find]
"""


def test_an_eval_set_gets_the_criteria_that_it_needs_beside_it(evalmeta: Program, folder: Path) -> None:
    (folder / "actions.yaml").write_text(ACTIONS_SPEC)
    done = evalmeta("convert", "actions.yaml", "--to", "adk", "-o", "a.test.json")
    assert (done.code, "Created test_config.json" in done.err) == (0, True)
    config = {"criteria": {"tool_trajectory_avg_score": {"threshold": 1.0, "ignore_args": True}}}
    assert json.loads((folder / "test_config.json").read_text()) == config

    (folder / "test_config.json").write_text("{}")
    kept = evalmeta("convert", "actions.yaml", "--to", "adk", "-o", "a.test.json")
    assert (kept.code, (folder / "test_config.json").read_text()) == (0, "{}")
    assert "Kept test_config.json, which has different content" in kept.err


THREADS = """{"id": "desk", "name": "Desk", "description": "", "threads": [{"id": "t", "description": "", "traces": [
{"id": "1", "userMessage": {"role": "user", "content": "Where is it?"}, "iterations": [], "tools": [],
 "output": {"role": "assistant", "content": "Here."}, "startTime": [0, 0], "endTime": [1, 0]}]}]}"""


def test_a_scenario_is_lost_by_its_name_and_no_empty_test_is_written(evalmeta: Program, folder: Path) -> None:
    sim = {"evalId": "sim", "conversationScenario": {"startingPrompt": "Hi"}}
    said = {"evalId": "said", "conversation": [{"userContent": {"parts": [{"text": "Hello"}]}}]}
    for name, cases in (("one", [sim]), ("both", [sim, said])):
        (folder / f"{name}.evalset.json").write_text(json.dumps({"evalSetId": name, "evalCases": cases}))
    convert = ("convert", "--to", "testspec", "--subject-name", "Desk")

    both = evalmeta(*convert, "both.evalset.json")
    assert (both.code, both.out.count("utterance")) == (0, 1)
    assert "Lost: case 'sim': the whole case: it has a conversation scenario" in both.err
    one = evalmeta(*convert, "one.evalset.json")
    assert (one.code, one.out) == (2, "")
    assert "one has no case that can be converted: case 'sim': the whole case" in one.err


def test_a_set_of_another_system_becomes_a_definition_and_says_what_is_lost(evalmeta: Program, folder: Path) -> None:
    (folder / "desk.evalset.json").write_text(THREADS)
    nameless = evalmeta("convert", "desk.evalset.json", "--to", "definition")
    assert (nameless.code, "does not name an agent" in nameless.err) == (2, True)

    done = evalmeta("convert", "desk.evalset.json", "--to", "definition", "--subject-name", "Desk", "-o", "d.xml")
    assert (done.code, "Lost: test case 1: its name" in done.err) == (0, True)
    back = evalmeta("convert", "d.xml", "--to", "adk", "--dialect", "typescript")
    [case] = json.loads(back.out)["evalCases"]
    assert case["conversation"][0]["finalResponse"]["parts"] == [{"text": "Here."}]
    strict = evalmeta("convert", "desk.evalset.json", "--to", "adk", "--strict")
    assert (strict.code, strict.out) == (2, "")


def test_a_file_that_has_the_format_already_keeps_all_that_it_says(evalmeta: Program, folder: Path) -> None:
    (folder / "set.csv").write_text('request,response,guidelines\nHi,Hello,"[""Be kind""]"\n')

    done = evalmeta("convert", "set.csv", "--to", "databricks", "--strict")
    named = evalmeta("convert", "set.csv", "--to", "databricks", "--subject-name", "Desk")

    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {"request": "Hi", "response": "Hello", "guidelines": ["Be kind"]}
    assert (named.code, "a file of databricks already" in named.err) == (2, True)


def test_rows_become_a_definition_that_the_check_accepts(evalmeta: Program, folder: Path) -> None:
    said = [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    row = {"request": {"messages": [*said, {"role": "user", "content": "c"}]}, "expected_response": "d"}
    (folder / "rows.jsonl").write_text(json.dumps(row))
    name = "rows.aiEvaluationDefinition-meta.xml"

    done = evalmeta("convert", "rows.jsonl", "--to", "definition", "--subject-name", "Desk", "-o", name)
    to_adk = evalmeta("convert", "rows.jsonl", "--to", "adk")

    assert "the system message 's' of the history" in done.err
    assert evalmeta("validate", name).code == 0
    assert "Lost: test case 1: the system messages of the history" in to_adk.err
    assert '"s"' not in to_adk.out


ORDERS = """\
name: Order_Desk
subjectType: AGENT
subjectName: Desk
testCases:
  - utterance: Where is it?
    expectedTopic: Orders
    metrics: [coherence]
"""


def test_a_spec_becomes_a_payload_of_run_eval_and_a_definition_again(evalmeta: Program, folder: Path) -> None:
    (folder / "desk.yaml").write_text(ORDERS)
    done = evalmeta("convert", "desk.yaml", "--to", "run-eval", "-o", "desk.json")
    same = evalmeta("convert", "desk.json", "--to", "run-eval", "--strict")
    back = evalmeta("convert", "desk.json", "--to", "definition", "--name", "Order_Desk")

    assert (done.code, "Lost: test case 1: the expectation 'coherence'" in done.err) == (0, True)
    assert (same.code, same.out) == (0, (folder / "desk.json").read_text())
    assert (back.code, "<subjectName>Desk</subjectName>" in back.out) == (0, True)
    assert "<expectedValue>Orders</expectedValue>" in back.out
