"""A project of google-adk with tests in pytest runs with another import only, and each test has the same outcome."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from journeys.adk.adk_project import ORIGINAL, OURS, copy_project, run_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OUTCOMES = {
    "test_folder": "PASSED",
    "test_conversation": "PASSED",
    "test_wrong_arguments": "FAILED",
    "test_criteria_beside_the_file": "PASSED",
    "test_state_of_the_session": "PASSED",
    "test_initial_session_of_a_legacy_file": "PASSED",
    "test_transfer_to_a_sub_agent": "PASSED",
    "test_sub_agent_by_name": "PASSED",
    "test_unknown_sub_agent": "FAILED",
    "test_agent_that_a_coroutine_function_makes": "PASSED",
    "test_app_with_a_plugin": "PASSED",
    "test_model_that_fails": "FAILED",
    "test_eval_set_object": "PASSED",
    "test_criteria_that_are_missed": "FAILED",
}


def pytest_in(project: Path) -> tuple[dict[str, str], str]:
    """Return the outcome of each test of the project, and what pytest printed."""
    done = run_in(project, "python", "-m", "pytest", "-rA", "-p", "no:cacheprovider")
    lines = re.findall(r"^(PASSED|FAILED|ERROR) tests/test_agents.py::(\w+)", done.stdout, re.MULTILINE)
    return {name: outcome for outcome, name in lines}, done.stdout


def test_with_the_import_changed_each_test_has_the_outcome_that_google_adk_gives(tmp_path: Path) -> None:
    project = copy_project(tmp_path)
    original, printed = pytest_in(project)
    assert original == OUTCOMES, printed[-5_000:]

    tests = project / "tests/test_agents.py"
    assert tests.read_text().count(ORIGINAL) == 1
    tests.write_text(tests.read_text().replace(ORIGINAL, OURS))
    ours, printed = pytest_in(project)

    assert ours == OUTCOMES, printed[-5_000:]
    # What fails says which case, what was expected and what happened.
    assert "tool_trajectory_avg_score for wrong-city failed: expected 1, got 0" in printed
    assert 'get_weather.input.city: expected "Tokyo", got "London"' in printed
    assert "broken could not be evaluated: weather_agent/agent.py:" in printed
    assert "RuntimeError: the model is down" in printed
    assert "the agent has no sub-agent 'billing'" in printed
    assert not (project / "weather_agent/.adk").exists()
