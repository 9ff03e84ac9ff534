"""Agents in Agent Script that are in the project run without an org and without settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from client.servers import replying_with
from engine.subjects.conversations import says
from systems.agent_script.projects import SHOP, write_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

SPEC = """\
subject: Bike_Shop
testCases:
- input: My repair 7
  contextVariables: [{name: customer_id, value: C1}]
  topic: repairs
  actions: [check_customer, find_ticket, notify]
  contains: "120"
"""
RULES = """\
rules:
  - {subagent: reception, call: to_repairs}
  - {call: look_up, with: {number: "7"}}
  - {answer: "It costs {!@variables.price}."}
"""
CUSTOMER = {"CustomerId": "C1"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path, rules=RULES)
    (tmp_path / "shop.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_agent_of_the_project_needs_no_settings(project: Path, evalmeta: Evalmeta) -> None:
    assert not (project / "evalmeta.toml").exists()
    run = evalmeta("run", "shop.yaml")
    assert (run.code, "1 passed" in run.out) == (0, True), run


@pytest.mark.parametrize("command", ["validate .", "run .", "coverage"])
def test_rules_and_doubles_of_agents_are_no_other_files_and_those_of_nothing_are(
    project: Path, evalmeta: Evalmeta, command: str
) -> None:
    (project / "actions/Bike_Shop").mkdir()
    (project / "actions/Bike_Shop/notify.yaml").write_text((project / "actions/notify.yaml").read_text())
    assert "not tests" not in evalmeta(*command.split()).err
    assert "was not a test" not in evalmeta(*command.split()).err
    # The last has the name of an action, but of another agent.
    for name in ("rules/Bike_Shops.yaml", "actions/notifi.yaml", "actions/Car_Shop/notify.yaml"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("- {outputs: {}}\n")
    told = evalmeta(*command.split()).err
    assert "3 files were not tests: actions/Car_Shop/notify.yaml, actions/notifi.yaml, rules/Bike_Shops.yaml" in told


def test_settings_that_are_not_valid_below_a_folder_do_not_keep_its_tests_from_being_checked(
    project: Path, evalmeta: Evalmeta
) -> None:
    (project / "below/rules").mkdir(parents=True)
    (project / "below/rules/Desk.yaml").write_text("rules: []\n")
    (project / "below/evalmeta.toml").write_text("a = [\n")
    checked = evalmeta("validate", ".")
    assert (checked.code, "below/rules/Desk.yaml" in checked.err) == (0, True), checked.err


def test_settings_of_the_name_come_before_the_agent_of_the_project(project: Path, evalmeta: Evalmeta) -> None:
    (project / "evalmeta.toml").write_text('[subjects.Bike_Shop]\nadapter = "python"\ntarget = "other:answer"\n')
    (project / "other.py").write_text('def answer(question):\n    return "I am another agent"\n')
    run = evalmeta("run", "shop.yaml")
    assert (run.code, "I am another agent" in run.out) == (100, True)


def test_without_a_model_the_run_is_refused_with_the_lines_to_add(project: Path, evalmeta: Evalmeta) -> None:
    (project / "rules/Bike_Shop.yaml").unlink()
    run = evalmeta("run", "shop.yaml")
    assert run.code == 2
    assert "the agent Bike_Shop has no model and no rules, which choose its steps" in run.err
    assert "[subjects.Bike_Shop]\n" in run.err
    assert "rules/Bike_Shop.yaml" in run.err


def test_an_agent_that_forceignore_hides_is_named_with_the_line_that_hides_it(
    project: Path, evalmeta: Evalmeta
) -> None:
    (project / ".forceignore").write_text("# Later\n**/Bike_Shop/**\n")
    script = "force-app/main/default/aiAuthoringBundles/Bike_Shop/Bike_Shop.agent"
    for command in (("run", "shop.yaml"), ("coverage", "Bike_Shop"), ("agent", "chat", "Bike_Shop")):
        refused = evalmeta(*command)
        said = f"{script} is ignored by '**/Bike_Shop/**' (.forceignore:2)."
        assert (refused.code, said in refused.err) == (2, True), refused


def test_a_damaged_script_is_refused_before_the_first_question(project: Path, evalmeta: Evalmeta) -> None:
    script = next(project.rglob("*.agent"))
    script.write_text(SHOP + "subagent broken\n    reasoning:\n")
    run = evalmeta("run", "shop.yaml")
    assert run.code == 2
    assert "Bike_Shop.agent:87:1" in run.err


def test_a_recorded_run_is_repeated_without_model_and_doubles(project: Path, evalmeta: Evalmeta) -> None:
    assert evalmeta("run", "shop.yaml", "--result-format", "jsonl", "--output-dir", "out").code == 0
    [recording] = (project / "out").glob("*.jsonl")
    (project / "rules/Bike_Shop.yaml").unlink()
    for double in (project / "actions").iterdir():
        double.unlink()
    lines = f'[subjects.Bike_Shop]\nadapter = "agent_script"\nbundle = "Bike_Shop"\nrecording = "{recording}"\n'
    (project / "evalmeta.toml").write_text(lines)
    run = evalmeta("run", "shop.yaml")
    assert (run.code, "1 passed" in run.out) == (0, True), run

    (project / "shop.yaml").write_text(SPEC.replace("My repair 7", "Another question"))
    other = evalmeta("run", "shop.yaml")
    assert (other.code, "has no answer to 'Another question'" in other.out) == (1, True), other


def test_until_proposed_outputs_are_reviewed_a_case_is_judged_by_its_topic_and_actions_only(
    project: Path, evalmeta: Evalmeta
) -> None:
    rows = project / "actions/find_ticket.yaml"
    rows.write_text("- outputs: {cost: 120, state: new}\n  review: true\n")
    run = evalmeta("run", "shop.yaml", "-v")
    assert "1 case: 0 passed, 1 partly judged, 0 failed" in run.out, run
    assert "the double at actions/find_ticket.yaml:1 is marked for review: it would pass" in run.out
    again = evalmeta("test", "rescore", "latest")
    assert "0 passed" in again.out, again

    (project / "shop.yaml").write_text(
        SPEC.replace("  topic: repairs\n  actions: [check_customer, find_ticket, notify]\n", "")
    )
    unjudged = evalmeta("run", "shop.yaml")
    assert "Replace the example outputs of the doubles with what the actions return" in unjudged.out, unjudged

    (project / "shop.yaml").write_text(SPEC)
    rows.write_text("- outputs: {cost: 120, state: new}\n")
    assert "1 passed" in evalmeta("run", "shop.yaml").out


def test_example_outputs_make_an_agent_answer_without_an_edit(project: Path, evalmeta: Evalmeta) -> None:
    for double in (project / "actions").iterdir():
        double.unlink()
    (project / "shop.yaml").write_text(SPEC.replace('  contains: "120"\n', ""))
    error = evalmeta("run", "shop.yaml")
    assert "evalmeta generate doubles Bike_Shop" in error.out, error
    written = evalmeta("generate", "doubles", "Bike_Shop")
    assert "Created  actions/check_customer.yaml\nCreated  actions/find_ticket.yaml\n" in written.out
    assert evalmeta("run", "shop.yaml").code == 0
    assert evalmeta("generate", "doubles").out == "All actions have answers already.\n"
    unknown = evalmeta("generate", "doubles", "Bike_Shp")
    assert (unknown.code, "Did you mean 'Bike_Shop'?" in unknown.err) == (2, True), unknown


def test_doctor_names_actions_without_an_answer_and_agents_that_need_no_settings(
    project: Path, evalmeta: Evalmeta
) -> None:
    assert "agents in files: Bike_Shop: can be run, without settings" in evalmeta("doctor").out
    (project / "actions/notify.yaml").unlink()
    found = evalmeta("doctor")
    assert "warning  agents in files: Bike_Shop: nothing answers the actions Bike_Shop.notify" in found.out
    assert "evalmeta generate doubles" in found.out
    (project / "rules/Bike_Shop.yaml").unlink()
    assert "1 of 1 agent cannot be run here (Bike_Shop): the agent Bike_Shop has no model" in evalmeta("doctor").out

    (project / "evalmeta.toml").write_text('[subjects.Bike_Shop]\nadapter = "agent_script"\nbundle = "Bike_Shop"\n')
    (project / "rules/Bike_Shop.yaml").write_text(RULES)
    bound = evalmeta("doctor").out
    assert "agents in files" not in bound
    assert "they answer tests only, but nothing answers its actions notify" in bound


def test_init_binds_each_agent_in_agent_script_to_a_model_and_its_tests_run(project: Path, evalmeta: Evalmeta) -> None:
    (project / "shop.yaml").unlink()
    (project / "actions/notify.yaml").unlink()
    reply = says({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})
    with replying_with(reply, reply) as server:
        made = evalmeta("init", "--model", f"{server.url}/v1")
        assert made.code == 0, made
        table = f'[subjects.Bike_Shop]\nadapter = "agent_script"\nbundle = "Bike_Shop"\nurl = "{server.url}/v1"\n'
        assert table in (project / "evalmeta.toml").read_text()
        assert (project / "actions/notify.yaml").read_text().endswith("review: true\n")
        assert "1 action will answer with example outputs" in made.err
        assert evalmeta("deploy").code == 0
        run = evalmeta("test", "run", "--wait")
    assert (run.code, "2 cases: 0 passed, 2 failed, 0 errors" in run.out) == (100, True), run
    assert "expected the topic repairs, got reception" in run.out


def test_a_model_alone_is_refused_without_agents_in_agent_script(project: Path, evalmeta: Evalmeta) -> None:
    next(project.rglob("*.agent")).unlink()
    refused = evalmeta("init", "--model", "http://127.0.0.1:1/v1")
    assert (refused.code, "is for agents in Agent Script, and the project has none" in refused.err) == (2, True)
