"""Eval sets of google-adk with the agent that a folder of the project has, as `adk eval FOLDER FILE` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from systems.adk.adkfiles import GREETING, case, eval_set, turn
from systems.adk.google_stand_in import AGENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "agents/weather_desk").mkdir(parents=True)
    (tmp_path / "agents/weather_desk/agent.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").touch()
    criteria = '{"criteria": {"response_match_score": 0.8}}'
    (tmp_path / "test_config.json").write_text(criteria)
    cases = (GREETING, case("second", turn("Hi", "Hello! How can I help you today?")), case("third", turn("Hi", "Bye")))
    (tmp_path / "greetings.evalset.json").write_bytes(eval_set(*cases))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_an_eval_set_is_run_by_the_folder_of_the_agent(evalmeta: Evalmeta) -> None:
    run = evalmeta("run", "greetings.evalset.json", "--agent", "agents/weather_desk")

    assert run.code == 100
    assert "greetings.evalset.json: subject agents/weather_desk" in run.out
    assert "FAILED greetings.evalset.json:1  case 3 third  response_match_score: 0, expected 0.8" in run.out
    assert "3 cases: 2 passed, 1 failed" in run.out


def test_the_cases_in_a_path_are_the_only_ones_that_run(project: Path, evalmeta: Evalmeta) -> None:
    assert (project / "greetings.evalset.json").exists()
    run = evalmeta("run", "greetings.evalset.json:greeting-test,second", "--agent", "agents/weather_desk")

    assert (run.code, "2 cases: 2 passed" in run.out) == (0, True)
    unknown = evalmeta("run", "greetings.evalset.json:secnd", "--agent", "agents/weather_desk")
    assert (unknown.code, "Did you mean 'second'?" in unknown.err) == (2, True)


def test_a_file_without_cases_is_not_left_out_silently(project: Path, evalmeta: Evalmeta) -> None:
    (project / "other.evalset.json").write_bytes(eval_set(GREETING))
    both = evalmeta("run", "greetings.evalset.json:second", "other.evalset.json", "--agent", "agents/weather_desk")

    assert both.code == 2
    assert "greetings.evalset.json is named with cases, and other.evalset.json without" in both.err


def test_the_app_of_an_eval_set_finds_its_agent(project: Path, evalmeta: Evalmeta) -> None:
    (project / "agents/weather_desk").rename(project / "weather_desk")
    session = {"appName": "weather_desk", "userId": "u"}
    hello = turn("Hi", "Hello! How can I help you today?")
    (project / "greetings.evalset.json").write_bytes(eval_set(case("one", hello, sessionInput=session)))

    assert evalmeta("run", "greetings.evalset.json").code == 0
