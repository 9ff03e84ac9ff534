"""Runs that are started without options, as the sf CLI and other clients of Salesforce's API do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.servers import make_token
from evalmeta.model.run_options import RunOptions, Scoring
from evalmeta.org.subjects import live_settings
from org.parts import definition, deploy, make_project, opened_of, package
from org.servers import get, send, served, wait_for
from org.test_handlers import RUNS, rest, rest_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.org.organization import Organization
    from evalmeta.package.project import Project

SETTINGS = """\
[subjects.Desk]
adapter = "python"
target = "desk:answer"

[run]
iterations = 3
concurrency = 2
retries = 7
case_timeout = 11
min_pass_rate = 0.25
undecided = "fail"
rate_limit = 500
max_errors = 9

[score]
profile = "testing-center"
actions = "subset"
topics = "contains"
matches = "all"
threshold = 4.5
rater = "strict"

[raters.strict]
adapter = "rules"
"""
CONFIGURED = RunOptions(
    iterations=3,
    concurrency=2,
    retries=7,
    case_timeout=11,
    min_pass_rate=0.25,
    undecided="fail",
    rate_limit=500,
    max_errors=9,
    scoring=Scoring("testing-center", "subset", "contains", "all", 4.5, "strict"),
)
BODY = b'{"aiEvaluationDefinitionName": "Orders"}'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project", settings=SETTINGS)


@pytest.fixture
def serving(project: Project) -> Iterator[Organization]:
    """The org of a project as its server has it."""
    with opened_of(project) as org:
        deploy(org, package({"Orders": definition("Orders", cases=2)}))
        yield replace(org, settings=live_settings(project.root), is_served=True)


def options_of_run(org: Organization, body: bytes) -> RunOptions:
    """Start a run with a request, and return its options, without the project that a shared store keeps."""
    started = rest(org, "POST", RUNS, body)
    assert started.status_code == 201, started.text
    options = org.runs.get(started.json()["runId"]).options
    return replace(options, origin=options.origin._replace(project=""))


@pytest.mark.slow
def test_a_run_without_options_has_those_of_the_served_project(serving: Organization) -> None:
    assert options_of_run(serving, BODY) == CONFIGURED


def test_options_of_the_request_win_key_by_key(serving: Organization) -> None:
    options = '{"iterations": 1, "rateLimit": null, "scoring": {"threshold": 2}}'
    found = options_of_run(serving, f'{{"aiEvaluationDefinitionName": "Orders", "runOptions": {options}}}'.encode())
    scoring = replace(CONFIGURED.scoring, threshold=2)
    assert found == replace(CONFIGURED, iterations=1, rate_limit=None, scoring=scoring)


@pytest.mark.slow
def test_changed_settings_apply_to_the_next_run(project: Project, serving: Organization) -> None:
    assert options_of_run(serving, BODY).iterations == 3
    file = project.root / "evalmeta.toml"
    file.write_text(SETTINGS.replace("iterations = 3", "iterations = 50"))
    assert options_of_run(serving, BODY).iterations == 50


def test_broken_settings_refuse_the_run_and_are_logged(
    project: Project, serving: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    (project.root / "evalmeta.toml").write_text("[run]\niterations = 0\n")
    status, code, message = rest_error(rest(serving, "POST", RUNS, BODY))
    assert (status, code) == (400, "INVALID_SUBJECT")
    assert message.startswith("the settings of the project that serves the org are not valid: evalmeta.toml:2:1: run.")
    assert str(project.root) not in message
    assert "evalmeta.toml:2:1: run.iterations" in caplog.text


@pytest.mark.slow
def test_a_rescored_run_has_the_options_of_the_first_where_the_request_has_none(serving: Organization) -> None:
    run_id = rest(serving, "POST", RUNS, BODY).json()["runId"]
    rest(serving, "POST", f"{RUNS}/{run_id}/cancel", b"{}")
    body = b'{"runOptions": {"scoring": {"threshold": 1}}}'
    again = rest(serving, "POST", f"{RUNS}/{run_id}/rescore", body).json()["runId"]
    found = serving.runs.get(again).options
    assert (found.iterations, found.min_pass_rate, found.scoring.threshold) == (3, 0.25, 1)


@pytest.mark.slow
def test_a_real_server_follows_its_projects_settings(project: Project) -> None:
    with opened_of(project) as org:
        deploy(org, package({"Orders": definition("Orders", cases=2)}))
    with served(project) as url:
        path = "/services/data/v63.0/einstein/ai-evaluations/runs"
        started = send("POST", url + path, BODY, authorization=f"Bearer {make_token(project)}")
        place = f"{path}/{started.json()['runId']}"
        wait_for(lambda: get(project, url, place).json()["status"] == "COMPLETED")
        results = get(project, url, f"{place}/results").json()
    assert len(results["testCases"]) == 2 * 3
    assert results["evalmeta"]["options"]["scoring"]["rater"] == "strict"
