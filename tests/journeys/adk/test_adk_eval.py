"""`evalmeta run FILE --agent FOLDER` has the verdicts of `adk eval FOLDER FILE`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from journeys.adk.adk_project import copy_project, run_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

WEATHER, WRONG = "tests/fixture/weather/weather.test.json", "tests/fixture/wrong/wrong.test.json"
STRICT = '{"criteria": {"response_match_score": 1, "tool_trajectory_avg_score": {"threshold": 1, "match_type": 2}}}'
LENIENT = '{"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "ignore_args": true}}}'


def of_adk(project: Path, *words: str) -> tuple[int, int]:
    """Return how many cases passed and failed in `adk eval`."""
    done = run_in(project, "adk", "eval", *words)
    passed, failed = (sum(map(int, re.findall(rf"Tests {name}: (\d+)", done.stdout))) for name in ("passed", "failed"))
    assert passed + failed, done.stdout + done.stderr
    return passed, failed


def of_evalmeta(project: Path, *words: str) -> tuple[int, int]:
    done = run_in(project, "evalmeta", "run", *(word.replace("--config_file_path", "--config") for word in words))
    found = re.search(r"(\d+) passed, (\d+) failed, 0 errors, 0 undecided; took", done.stdout)
    assert found, done.stdout + done.stderr
    assert done.returncode == (100 if int(found[2]) else 0)
    return int(found[1]), int(found[2])


def test_files_have_the_verdicts_of_adk_eval_with_and_without_criteria(tmp_path: Path) -> None:
    project = copy_project(tmp_path)
    (project / "strict.json").write_text(STRICT)
    (project / "lenient.json").write_text(LENIENT)
    expected = {
        (WEATHER,): (2, 0),
        (WRONG,): (0, 1),
        ("tests/fixture/lenient/lenient.test.json",): (1, 0),
        ("tests/fixture/conversation/conversation.test.json", "--config_file_path", "strict.json"): (1, 0),
        (WRONG, "--config_file_path", "lenient.json"): (1, 0),
        (f"{WEATHER}:unknown",): (1, 0),
    }

    for words, counts in expected.items():
        assert of_adk(project, "weather_agent", *words) == counts, words
        assert of_evalmeta(project, *words, "--agent", "weather_agent") == counts, words
    failed = run_in(project, "evalmeta", "run", WRONG, "--agent", "weather_agent").stdout
    assert 'get_weather.input.city: expected "Tokyo", got "London"' in failed


def test_a_project_is_recognised_examined_and_run(tmp_path: Path) -> None:
    project = copy_project(tmp_path)
    (project / "weather_agent/.env").write_text("WEATHER_KEY=from-env\n")
    begun = run_in(project, "evalmeta", "init")
    assert begun.returncode == 0, begun.stdout + begun.stderr
    assert 'adapter = "adk"' in (project / "evalmeta.toml").read_text()

    examined = run_in(project, "evalmeta", "doctor")
    assert "Hello! How can I help you?" in examined.stdout, examined.stdout + examined.stderr
    # The app of the file is the name that the settings bind.
    assert of_evalmeta(project, "tests/fixture/account/account.test.json") == (1, 0)
