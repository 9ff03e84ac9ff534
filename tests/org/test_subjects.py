from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import evaluate
from evalmeta.engine.subjects.agentforce import AgentforceSubject
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.errors import SubjectNotBound
from evalmeta.org.subjects import bind_subject
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
