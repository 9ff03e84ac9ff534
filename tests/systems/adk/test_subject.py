"""The adapter adk, and agents that are named by their folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.subjects import bind
from evalmeta.errors import SettingsError
from evalmeta.package.settings import load_settings
from evalmeta.systems.adk.subject import AdkSubject, adk_settings, load_environment
from systems.adk.google_stand_in import AGENT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "agents/weather_desk").mkdir(parents=True)
    (tmp_path / "agents/weather_desk/agent.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        *("agents/weather_desk", "agents/weather_desk/", "agents.weather_desk"),
        *("agents/weather_desk/agent.py", "agents.weather_desk.agent"),
    ],
)
def test_an_agent_is_named_by_its_folder_or_package(project: Path, name: str) -> None:
    assert adk_settings(project, name) == {"adapter": "adk", "target": "agents.weather_desk"}


def test_a_folder_is_also_found_from_the_current_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "agents")

    assert adk_settings(project, "weather_desk") == {"adapter": "adk", "target": "agents.weather_desk"}


def test_an_agent_may_be_in_a_module_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "agents/weather_desk")

    assert adk_settings(project / "agents/weather_desk", "agent") == {"adapter": "adk", "target": "agent"}


@pytest.mark.parametrize("name", ["agents", "missing", "..", ".", "/", "my-agent"])
def test_other_folders_are_not_agents(project: Path, name: str) -> None:
    (project / "my-agent").mkdir()
    (project / "my-agent/agent.py").write_text("root_agent = None\n")

    assert adk_settings(project, name) is None


def test_settings_bind_the_agent_or_say_what_is_missing(project: Path) -> None:
    (project / "evalmeta.toml").write_text('[subjects.desk]\nadapter = "adk"\ntarget = "agents.weather_desk"\n')
    settings = load_settings(project / "evalmeta.toml").subjects["desk"]

    assert bind(settings, root=project)
    assert settings.identity(project) == (
        "adk agents.weather_desk",
        [project / "agents/weather_desk" / name for name in ("agent.py", "__init__.py")]
        + [project / "agents/weather_desk.py"],
    )
    (project / "agents/weather_desk/agent.py").write_text("root_agent = print\n")
    with pytest.raises(SettingsError, match=r"'agents.weather_desk' has no agent of google-adk") as caught:
        AdkSubject(adapter="adk", target="agents.weather_desk").bind(root=project)
    assert caught.value.actions == ("Define root_agent in it, or get_agent_async, or app.",)


def test_an_env_file_of_the_project_is_not_read_from_folders_above(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALMETA_SECRET_OF_A_TEST", raising=False)
    (project / ".env").write_text("EVALMETA_SECRET_OF_A_TEST=1\n")

    load_environment(project / "agents/weather_desk", project / "agents")

    assert "EVALMETA_SECRET_OF_A_TEST" not in os.environ
