from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import TypeAdapter

from evalmeta import __version__, evaluate
from evalmeta.engine.subjects.agentforce import AgentforceSubject
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.engine.subjects.replay import RecordedSubject
from evalmeta.errors import SubjectNotBound
from evalmeta.model.run_options import Setup
from evalmeta.model.settings import RaterSettings, RaterTable, RulesRater, SubjectSettings, SubjectTable
from evalmeta.org.subjects import bind_subject, described_agent, rater_of, setup_of
from evalmeta.package.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path


AGENT = "def answer(utterance):\n    return 'Paris'\n"


def test_a_spec_that_names_a_function_needs_no_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "named_agent.py").write_text(AGENT)
    (tmp_path / "t.yaml").write_text("subject: named_agent:answer\ntestCases:\n- input: Hi\n  contains: Paris\n")
    (tmp_path / "evalmeta.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert evaluate("t.yaml").summary.passed == 1


def test_settings_come_before_a_function_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "other_agent.py").write_text(AGENT)
    settings = PythonSubject(adapter="python", target="other_agent:answer")
    bind_subject({"missing_agent:answer": settings}, "missing_agent:answer", root=tmp_path)


def test_the_agent_of_a_dx_project_can_be_in_its_org(tmp_path: Path) -> None:
    (tmp_path / "sfdx-project.json").write_text("{}")
    with pytest.raises(SubjectNotBound) as raised:
        bind_subject({}, "Desk", root=tmp_path)
    assert "evalmeta test run -o ORG --wait" in raised.value.actions[0]
    (tmp_path / "evalmeta.toml").write_text(raised.value.actions[1].rpartition("\n\n")[2])
    assert isinstance(load_settings(tmp_path / "evalmeta.toml").subjects["Desk"], AgentforceSubject)


@pytest.mark.parametrize("name", ["Desk", "http://127.0.0.1", "a:b:c", "7:a", "a:"])
def test_other_names_need_settings(tmp_path: Path, name: str) -> None:
    with pytest.raises(SubjectNotBound):
        bind_subject({}, name, root=tmp_path)


KEY = "sk-abcdefghijklmnopqrstuvwx"


def subject(**table: object) -> SubjectSettings:
    return TypeAdapter[SubjectSettings](SubjectTable).validate_python(table)


def rater(**table: object) -> RaterSettings:
    return TypeAdapter[RaterSettings](RaterTable).validate_python(table)


@pytest.mark.parametrize(
    ("table", "known"),
    [
        ({"adapter": "python", "target": "shop:answer"}, "python shop:answer"),
        ({"adapter": "http", "url": "https://me:pass@shop.example/v1?key=abc"}, "http POST https://shop.example/v1"),
        ({"adapter": "openai", "model": "m", "url": "http://127.0.0.1/v1"}, "openai m at http://127.0.0.1/v1"),
        ({"adapter": "replay", "file": "answers.jsonl"}, "replay answers.jsonl"),
        ({"adapter": "command", "command": ["/usr/bin/node", "{root}/agent.js"]}, "command node agent.js"),
        ({"adapter": "command", "command": ["agent", "--key", KEY]}, "command agent --key [secret]"),
        ({"adapter": "agentforce", "agent_id": "0Xx000000000001", "org": "dev"}, "agentforce 0Xx000000000001 in dev"),
        ({"adapter": "own", "password": "hidden"}, "own"),
    ],
)
def test_an_agent_is_known_by_its_adapter_and_target_without_secrets(
    tmp_path: Path, table: dict[str, object], known: str
) -> None:
    if table["adapter"] == "command":
        table = {**table, "command": [word.replace("{root}", str(tmp_path)) for word in table["command"]]}
    assert described_agent(subject(**table), tmp_path) == (known, "")


@pytest.mark.parametrize(
    ("table", "file"),
    [
        ({"adapter": "python", "target": "shop.desk:answer"}, "shop/desk.py"),
        ({"adapter": "python", "target": "shop:answer"}, "shop/__init__.py"),
        ({"adapter": "command", "command": ["node", "agent.js"]}, "agent.js"),
        ({"adapter": "replay", "file": "answers.jsonl"}, "answers.jsonl"),
    ],
)
def test_the_version_of_an_agent_changes_with_its_source(tmp_path: Path, table: dict[str, object], file: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("1")
    first = described_agent(subject(**table), tmp_path)[1]
    path.write_text("2")
    assert len({"", first, described_agent(subject(**table), tmp_path)[1]}) == 3


def test_a_rater_is_known_by_its_models_and_prompts(tmp_path: Path) -> None:
    plain = rater(adapter="llm", model="m", url="https://models.example/v1")
    own = rater(adapter="llm", models=["a", "b"], samples=3, temperature=1, instructions="Be strict.")
    assert rater_of(RulesRater(adapter="rules"), root=tmp_path) == ("rules", "")
    assert rater_of(plain, root=tmp_path) == ("llm m at https://models.example/v1", "v2")
    name, prompt = rater_of(own, root=tmp_path)
    assert name == "llm a+b with 3 samples at temperature 1.0"
    assert prompt.startswith("v2, rubric ")
    stricter = own.model_copy(update={"instructions": "Be very strict."})
    assert rater_of(stricter, root=tmp_path)[1] != prompt


def test_recorded_answers_are_an_agent_of_their_own(tmp_path: Path) -> None:
    assert described_agent(RecordedSubject(adapter="recorded"), tmp_path) == ("recorded answers", "")


def test_an_agent_without_settings_is_a_function_with_its_name(tmp_path: Path) -> None:
    found = setup_of({}, "shop:answer", RulesRater(adapter="rules"), root=tmp_path)
    assert found == Setup("python shop:answer", "", "rules", "", __version__)
