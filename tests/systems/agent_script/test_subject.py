"""The adapter agent_script: its models, and what it refuses before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import SettingsError
from evalmeta.org.subjects import described_agent
from evalmeta.systems.agent_script.subject import AgentScriptSubject
from systems.agent_script.projects import SHOP, converse, write_project

if TYPE_CHECKING:
    from pathlib import Path

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
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_of_the_project_chooses_the_steps(project: Path) -> None:
    chooser = """\
def choose(request):
    names = [tool["name"] for tool in request["tools"]]
    if "to_repairs" in names:
        return {"call": "to_repairs"}
    if request["variables"]["price"] == 0:
        return {"call": "look_up", "with": {"number": "7"}}
    return f"{request['subagent']}: {request['variables']['price']} after {len(request['messages'])} messages"
"""
    (project / "chooser.py").write_text(chooser)
    [answer] = converse(project, "7", context=CUSTOMER, target="chooser:choose")
    assert answer.outcome == "repairs: 120 after 5 messages"


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"bundle": "Bike_Shp"}, "neither the project nor its org has an Agent Script of 'Bike_Shp'"),
        ({"target": "nowhere:choose"}, "the target 'nowhere:choose' cannot be used"),
        ({"target": "a:b", "model": "m"}, "has model and target, which all choose its steps"),
        ({"functions": "nowhere"}, "the subject's functions"),
        ({"url": "http://example.com", "model": "m", "headers": {"X-Key": "${NO_SUCH_KEY}"}}, "NO_SUCH_KEY"),
    ],
)
def test_settings_that_cannot_work_are_refused(project: Path, settings: dict[str, object], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        converse(project, "a", **settings)
    assert fault in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("@subagent.repairs", "@subagent.repair", "@subagent.repair refers to nothing"),
        ("    before_reasoning:", "    before_reasonings:", "has an unknown key 'before_reasonings'"),
    ],
)
def test_a_script_with_errors_is_refused_before_the_first_question(
    project: Path, old: str, new: str, fault: str
) -> None:
    assert old in SHOP
    next(project.rglob("*.agent")).write_text(SHOP.replace(old, new))
    with pytest.raises(SettingsError, match=fault):
        converse(project, "a")


def test_a_script_without_start_agent_is_refused(project: Path) -> None:
    next(project.rglob("*.agent")).write_text(SHOP.replace("start_agent reception", "subagent reception"))
    with pytest.raises(SettingsError, match="has no start_agent"):
        converse(project, "a")


@pytest.mark.parametrize("file", ["actions/notify.yaml", "rules/Bike_Shop.yaml"])
def test_the_version_of_an_agent_changes_with_its_rules_and_doubles(project: Path, file: str) -> None:
    settings = AgentScriptSubject(adapter="agent_script", bundle="Bike_Shop")
    text, first = described_agent(settings, project)
    assert (text, bool(first)) == ("agent_script Bike_Shop", True)
    (project / file).write_text("# changed\n")
    assert described_agent(settings, project)[1] != first
