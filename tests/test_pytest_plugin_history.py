"""Evaluations of pytest in the history of their project, and their page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import evalmeta
from evalmeta.api.runs.comparisons import compare_runs
from evalmeta.api.runs.saved import history
from evalmeta.model.run import Run, RunStatus, Verdict
from evalmeta.package.project import find_project
from evalmeta.pytest_plugin.results import EvaluationResults
from evalmeta.report.comparison import comparison_lines
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from evalmeta.pytest_plugin.notes import CaseNote

COMMAND = [sys.executable, "-m", "pytest", "-p", "evalmeta.pytest_plugin", "-p", "xdist.plugin"]
SOURCES = str(Path(evalmeta.__file__).parent.parent)
TESTS = """
import os

import evalmeta
import pytest


@evalmeta.evaluation(min_pass_rate=0.6, iterations=2, errors=os.environ.get("ERRORS", "error"))
@pytest.mark.parametrize("city", ["Paris", "Rome", "Oslo"])
def test_city(city):
    if os.environ.get("BAD"):
        assert city != "Rome", "no <b>way</b> with token sk-1a2b3c4d5e6f7g8h9i0j1k2l"
    if os.environ.get("DOWN") and city == "Oslo":
        raise ConnectionError("nobody answers")


@evalmeta.evaluation
def test_one():
    pass


def test_other():
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "evalmeta.toml").touch()
    (folder / "tests/test_city.py").write_text(TESTS)
    return folder


def session(folder: Path, *words: str, **variables: str) -> str:
    """Return what pytest prints about the tests of a project, run as a program of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "EVALMETA_"))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": SOURCES, **variables}
    command = [*COMMAND, "--rootdir", str(folder), *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def runs(folder: Path) -> list[Run]:
    """Return the runs of a project's history with their cases, the oldest first."""
    project = find_project(folder)
    with open_database(project.store) as database:
        stored = Runs(database)
        listed = [stored.get(run.id) for run in history(project)]
        return [replace(run, cases=stored.cases(run.id)) for run in listed if run]


@pytest.mark.parametrize("words", [[], pytest.param(["-n", "2"], marks=pytest.mark.slow)])
def test_a_session_in_a_project_has_a_run_of_each_evaluation_in_its_history(project: Path, words: list[str]) -> None:
    printed = session(project, *words, BAD="1", DOWN="1")

    assert "history: 2 runs in .evalmeta; see evalmeta test history" in printed
    city, one = sorted(runs(project), key=lambda run: run.definition)
    assert (city.definition, one.definition) == ("tests/test_city.py::test_city", "tests/test_city.py::test_one")
    assert [(case.iteration, case.number, case.utterance, case.verdict) for case in city.cases] == [
        (iteration, number, name, verdict)
        for iteration in (1, 2)
        for number, name, verdict in ((1, "Paris", "PASS"), (2, "Rome", "FAILURE"), (3, "Oslo", "ERROR"))
    ]
    assert city.cases[2].error == "ConnectionError: nobody answers"
    assert (city.status, city.options.min_pass_rate, city.options.iterations) == (RunStatus.COMPLETED, 0.6, 2)
    assert (one.total, [case.verdict for case in one.cases]) == (1, [Verdict.PASS])
    assert city.options.origin.suite == one.options.origin.suite != ""


@pytest.mark.slow
def test_sessions_can_be_compared_also_if_the_second_has_only_some_cases(project: Path) -> None:
    session(project)
    session(project, "-k", "Rome", BAD="1")
    before, after = (run for run in runs(project) if run.definition.endswith("::test_city"))

    assert after.options.cases == (2,)
    lines = [line.text for line in comparison_lines(compare_runs(before, after))]
    assert any("suspect" in line and "2/2 -> 0/2" in line and "Rome" in line for line in lines), lines
    assert "  2 cases were not run" in lines


@pytest.mark.slow
def test_a_session_that_was_stopped_is_not_a_complete_run(project: Path) -> None:
    printed = session(project, "-x", "-p", "no:randomly", DOWN="1")

    assert "STOPPED" in printed
    [run] = runs(project)
    assert (run.status, run.error) == (RunStatus.TERMINATED, "the session was stopped")


@pytest.mark.slow
def test_a_secret_in_a_reason_is_not_stored(project: Path) -> None:
    session(project, BAD="1")

    stored = b"".join(path.read_bytes() for path in (project / ".evalmeta").iterdir())
    assert b"no <b>way</b>" in stored
    assert b"sk-1a2b3c4d5e6f7g8h9i0j1k2l" not in stored


@pytest.mark.parametrize("words", [["--evalmeta-no-history"], ["-o", "evalmeta_history=false"]])
def test_a_project_can_do_without(project: Path, words: list[str]) -> None:
    assert "history:" not in session(project, *words)
    assert not (project / ".evalmeta").exists()


def test_a_folder_without_settings_has_no_history(project: Path) -> None:
    (project / "evalmeta.toml").unlink()

    assert "history:" not in session(project)
    assert not (project / ".evalmeta").exists()


def test_tests_that_are_no_evaluations_write_nothing(project: Path) -> None:
    session(project, "-k", "test_other")
    assert not (project / ".evalmeta").exists()


@pytest.mark.slow
def test_a_history_that_cannot_be_written_is_reported_and_fails_no_test(project: Path) -> None:
    (project / ".evalmeta").write_text("not a folder")
    printed = session(project)

    assert "no history: " in printed
    assert "10 passed" in printed


@pytest.mark.slow
def test_a_report_has_a_page_that_shows_the_evaluations(project: Path) -> None:
    printed = session(project, "--evalmeta-report-dir", "reports", BAD="1")

    [page] = (project / "reports").glob("*.html")
    text = page.read_text()
    assert f"page: {page}" in printed
    assert page.with_suffix(".json").exists()
    assert "tests/test_city.py::test_city" in text
    assert "no &lt;b&gt;way&lt;/b&gt;" in text
    assert "sk-1a2b3c4d5e6f7g8h9i0j1k2l" not in text


SECRETS = """
import evalmeta
import pytest


@evalmeta.evaluation
@pytest.mark.parametrize("login", [{"password": "hunter2hunter2", "of": ["sk-1a2b3c4d5e6f7g8h9i0j1k2l"]}])
@pytest.mark.parametrize("key", [b"-----BEGIN PRIVATE KEY-----", 7], ids=["bytes", "number"])
def test_login(login, key):
    assert not login, f"{'long ' * 57} sk-1a2b3c4d5e6f7g8h9i0j1k2l"
"""


LOGINS = """
import evalmeta
import pytest


@evalmeta.evaluation(iterations=2)
@pytest.mark.parametrize("key", ["sk-1a2b3c4d5e6f7g8h9i0j1k2l", "sk-9z8y7x6w5v4u3t2s1r0q9p8o", "none"])
def test_login(key):
    assert key.endswith("l")
"""


def test_cases_whose_ids_are_equal_without_their_secrets_stay_apart() -> None:
    known = {"case": "[secret]", "iteration": 1}
    notes = [
        cast("CaseNote", {**known, "nodeid": verdict, "number": number, "place": [number], "verdict": verdict})
        for number, verdict in enumerate(("PASS", "FAILURE"), 1)
    ]
    results = EvaluationResults(notes[0], {note["nodeid"]: note for note in notes})
    assert [(case.number, case.utterance, case.passed, case.failed) for case in results.case_counts()] == [
        (1, "[secret]", 1, 0),
        (2, "[secret]", 0, 1),
    ]


@pytest.mark.slow
def test_ids_with_secrets_are_hidden_and_their_cases_stay_apart(project: Path) -> None:
    (project / "tests/test_city.py").write_text(LOGINS)
    printed = session(project, "--evalmeta-report-dir", "reports", "--tb=no", "-p", "no:randomly", "-q", "-r", "")

    assert "[secret], failed in 2 of 2 iterations: " in printed
    [report] = (project / "reports").glob("*.json")
    stored = [path.read_text(errors="replace") for path in (project / ".evalmeta").iterdir()]
    texts = (printed, report.read_text(), report.with_suffix(".html").read_text(), *stored)
    assert [secret for secret in ("sk-1a", "sk-9z") for text in texts if secret in text] == []
    cases = json.loads(report.read_text())["tests"]["tests/test_city.py::test_login"]["cases"]
    judged = [(case["utterance"], case["passed"], case["failed"]) for case in cases.values()]
    assert judged == [("[secret]", 2, 0), ("[secret]", 0, 2), ("none", 0, 2)]


@pytest.mark.slow
def test_no_secret_of_an_evaluation_is_printed_or_written(project: Path) -> None:
    (project / "tests/test_city.py").write_text(SECRETS)
    printed = session(project, "--evalmeta-report-dir", "reports", "--junitxml", "junit.xml", "-rx", "-v")

    assert "1 failed, 2 xfailed" in printed
    [report] = (project / "reports").glob("*.json")
    for text in (printed, report.read_text(), (project / "junit.xml").read_text()):
        assert [secret for secret in ("hunter2", "sk-1a", "BEGIN") if secret in text] == []
    cases = json.loads(report.read_text())["tests"]["tests/test_city.py::test_login"]["cases"]
    login = {"password": "[secret]", "of": ["[secret]"]}
    assert cases["1"]["inputs"] == {"key": "b'[secret]", "login": login}
    assert cases["2"]["inputs"] == {"key": 7, "login": login}
