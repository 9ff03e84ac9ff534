"""`evalmeta test` with orgs that are not the project's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from client.salesforce import RETRY, Scene, case, done, result, salesforce, studio_case
from client.servers import TOKEN
from evalmeta.api.runs.saved import history
from evalmeta.api.servers import make_token
from evalmeta.client.logins import user_logins
from evalmeta.model.definition import Definition
from evalmeta.model.evaluation import today
from evalmeta.model.login import Login, Secrets
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.package.project import find_project
from evalmeta.xmlio.definitions import write_definition
from org.parts import definition, make_project
from org.servers import served

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome
    from evalmeta.package.project import Project

    Program = Callable[..., Outcome]

ID = "4KB5e0000000001AAA"
FAILED = case(2, result("FAILURE", actualValue="Returns"))
GOING = Scene("IN_PROGRESS", done(case(1), case(2, status="IN_PROGRESS"), status="IN_PROGRESS"))
PASSED = Scene("COMPLETED", done(case(1), case(2)))
HALF = Scene("COMPLETED", done(case(1), FAILED))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with nothing in it: no subject is bound."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "evalmeta.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return find_project(tmp_path)


def log_in(url: str, *, token: str = TOKEN) -> None:
    user_logins().save(Login("me@dev.example", url, alias="dev"), Secrets(token))


def results_of(outcome: Outcome) -> dict[str, object]:
    [found] = json.loads(outcome.out)["result"]
    return found


@pytest.mark.usefixtures("project")
def test_a_run_is_followed_reported_and_judged_without_a_subject_here(evalmeta: Program) -> None:
    with salesforce([Scene("NEW"), GOING, HALF]) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait")
    assert ran.code == 100
    assert "1 passed, 1 failed" in ran.out
    assert f"Orders (run {ID}): started\n" in ran.err
    assert f"Orders (run {ID}): finished, 2 of 2 cases, 1 not passed\n" in ran.err


@pytest.mark.usefixtures("project")
def test_a_run_that_the_org_lacks_may_be_in_another_org(evalmeta: Program) -> None:
    for command in ("resume", "results", "cancel"):
        done = evalmeta("test", command, "--job-id", ID)
        assert done.code == 2
        assert "It may be in another org: name it with --target-org" in done.err


@pytest.mark.usefixtures("project")
def test_suggestions_about_a_run_name_its_org(evalmeta: Program) -> None:
    with salesforce([GOING]) as org:
        log_in(org.url)
        begun = evalmeta("test", "run", "-o", "dev")
        late = evalmeta("test", "resume", "-o", "dev", "--job-id", ID, "--wait", "0.001")
    assert f"Wait for it: evalmeta test resume --job-id {ID} --target-org dev\n" in begun.out
    assert f"Resume it: evalmeta test resume --job-id {ID} --target-org dev\n" in late.err


@pytest.mark.parametrize(
    ("scene", "code"),
    [
        (PASSED, 0),
        (HALF, 100),
        (Scene("COMPLETED", done(case(1), case(2, status="ERROR", errorMessage="Agent call failed"))), 1),
        (Scene("ERROR", RETRY), 1),
        (Scene("TERMINATED", done(case(1), status="TERMINATED")), 1),
    ],
)
@pytest.mark.usefixtures("project")
def test_exit_codes_are_those_of_runs_here(evalmeta: Program, scene: Scene, code: int) -> None:
    with salesforce([scene]) as org:
        log_in(org.url)
        assert evalmeta("test", "run", "-o", "dev", "--wait").code == code


@pytest.mark.usefixtures("project")
def test_what_passes_is_decided_here(evalmeta: Program) -> None:
    with salesforce([HALF]) as org:
        log_in(org.url)
        assert evalmeta("test", "run", "-o", "dev", "--wait", "--min-pass-rate", "0.5").code == 0
        assert org.starts == [{"aiEvaluationDefinitionName": "Orders"}]


@pytest.mark.usefixtures("project")
def test_undecided_results_can_be_made_to_fail(evalmeta: Program) -> None:
    with salesforce([Scene("COMPLETED", done(case(1, result(), result(None, name="factuality"))))]) as org:
        log_in(org.url)
        assert evalmeta("test", "run", "-o", "dev", "--wait").code == 0
        assert evalmeta("test", "run", "-o", "dev", "--wait", "--undecided", "fail").code == 100


@pytest.mark.usefixtures("project")
def test_options_that_only_our_orgs_support_are_reported(evalmeta: Program) -> None:
    with salesforce([PASSED]) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait", "--concurrency", "3", "--max-errors", "9")
    assert "Warning: this org ignores concurrency and max-errors" in ran.err


@pytest.mark.usefixtures("project")
def test_every_option_that_only_our_orgs_support_is_named(evalmeta: Program) -> None:
    with salesforce([PASSED]) as org:
        log_in(org.url)
        said = ("--rate-limit", "5", "--retries", "0", "--topics", "contains")
        ran = evalmeta("test", "run", "-o", "dev", "--wait", *said)
        unchecked = evalmeta("test", "run", "-o", "dev", "--wait", "--no-verify", *said)
    assert ran.code == 0
    assert "Warning: this org ignores rate-limit and retries\n" in ran.err
    assert "Warning: this org ignores rate-limit, retries and scoring" in unchecked.err


@pytest.mark.usefixtures("project")
def test_iterations_are_runs_one_after_the_other_with_one_result(evalmeta: Program) -> None:
    with salesforce([PASSED], [HALF], [PASSED]) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait", "--iterations", "3", "--min-pass-rate", "0.8", "--json")
        assert len(org.starts) == 3
    found = results_of(ran)
    assert (ran.code, found["status"], found["evalmeta"]["runId"]) == (0, "COMPLETED", ID)
    assert [each["iteration"] for each in found["testCases"]] == [1, 1, 2, 2, 3, 3]
    assert "finished, 6 of 6 case results, 1 not passed" in ran.err


@pytest.mark.usefixtures("project")
def test_an_iteration_that_broke_is_the_last_one(evalmeta: Program) -> None:
    with salesforce([PASSED], [Scene("ERROR", done(status="ERROR", errorMessage="out of requests"))]) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait", "--iterations", "3")
        assert (ran.code, len(org.starts)) == (1, 2)
    assert "out of requests" in ran.out


@pytest.mark.usefixtures("project")
def test_iterations_that_are_missing_are_started_by_a_resume(evalmeta: Program) -> None:
    with salesforce([PASSED]) as org:
        log_in(org.url)
        started = evalmeta("test", "run", "-o", "dev", "--iterations", "2")
        assert evalmeta("test", "results", "-r").code == 69
        resumed = evalmeta("test", "resume", "--job-id", ID, "--json")
        assert len(org.starts) == 2
    assert "This is the first of 2 iterations" in started.err
    assert (resumed.code, len(results_of(resumed)["testCases"])) == (0, 4)


@pytest.mark.usefixtures("project")
def test_a_timed_out_wait_names_the_run_and_resume_finds_its_org(evalmeta: Program) -> None:
    with salesforce([*[GOING] * 6, PASSED]) as org:
        log_in(org.url)
        over = evalmeta("test", "run", "-o", "dev", "--wait", "0.001")
        resumed = evalmeta("test", "resume", "--job-id", ID)
    assert (over.code, f"evalmeta test resume --job-id {ID}" in over.err) == (69, True)
    assert (resumed.code, "2 passed" in resumed.out) == (0, True)


@pytest.mark.parametrize("words", [["-i", ID], ["-i", ID[:15]], ["-r"], ["-r", "-o", "dev"]])
@pytest.mark.parametrize("command", ["results", "resume"])
@pytest.mark.usefixtures("project")
def test_a_run_that_is_over_is_shown_without_its_org(evalmeta: Program, command: str, words: list[str]) -> None:
    with salesforce([HALF]) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait", "--min-pass-rate", "0.5", "--json")
    shown = evalmeta("test", command, *words, "--json")
    assert (shown.code, results_of(shown)) == (0, results_of(ran))


@pytest.mark.usefixtures("project")
def test_what_is_over_can_be_shown_without_the_login(evalmeta: Program) -> None:
    with salesforce([PASSED]) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev", "--wait")
    user_logins().delete(user_logins().find("dev"))
    shown = evalmeta("test", "results", "-i", ID)
    assert (shown.code, f"Saved here: run {ID}, which is over at {org.url}" in shown.err) == (0, True)


@pytest.mark.usefixtures("project")
def test_a_run_in_progress_needs_a_login_and_says_so(evalmeta: Program) -> None:
    with salesforce([GOING]) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev")
    user_logins().delete(user_logins().find("dev"))
    shown = evalmeta("test", "results", "-i", ID)
    assert shown.code == 2
    assert f"evalmeta org login --instance-url {org.url}" in shown.err


@pytest.mark.usefixtures("project")
def test_results_of_a_run_in_progress_are_those_so_far(evalmeta: Program) -> None:
    with salesforce([GOING]) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev")
        shown = evalmeta("test", "results", "-r", "--json")
    assert (shown.code, len(results_of(shown)["testCases"])) == (69, 1)
    assert "ago and is not finished" in shown.err


@pytest.mark.usefixtures("project")
def test_a_run_that_others_started_is_fetched_and_saved(evalmeta: Program, project: Project) -> None:
    with salesforce([PASSED]) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev")
        (project.state_dir / "org.sqlite3").unlink()
        assert evalmeta("test", "results", "-i", ID, "-o", "dev").code == 0
    assert [(each.definition, each.summary.passed) for each in history(project)] == [("Orders", 2)]


@pytest.mark.usefixtures("project")
def test_a_cancel_finds_the_org_and_begins_no_more_iterations(evalmeta: Program) -> None:
    with salesforce([GOING]) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev", "--iterations", "3")
        canceled = evalmeta("test", "cancel", "--job-id", ID)
        again = evalmeta("test", "cancel", "--job-id", ID)
        assert (org.canceled, len(org.starts)) == ([ID], 1)
    assert (canceled.code, canceled.out) == (0, f"Canceled run {ID}; 1 of 2 case results are kept.\n")
    assert (again.code, "has already finished" in again.err) == (1, True)


@pytest.mark.usefixtures("project")
def test_agentforce_studios_runs_are_kept_likewise(evalmeta: Program) -> None:
    over = Scene("SUCCESS", {"status": "SUCCESS", "testCases": [studio_case(1), studio_case(2, "FAIL")]})
    with salesforce([Scene("CREATED"), over], definition="Visits") as org:
        log_in(org.url)
        assert evalmeta("test", "run", "-o", "dev", "--wait").code == 100
        assert org.starts == [{"testDefinitionName": "Visits"}]
    shown = results_of(evalmeta("test", "results", "-r", "--json"))
    assert [each["generatedData"]["outcome"] for each in shown["testCases"]] == ["Hello", "Hello"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("option", ["--verify", "--no-verify"])
def test_agentforce_studios_runs_show_their_agent(evalmeta: Program, option: str) -> None:
    content = write_definition(Definition("Visits", "Desk", type=TESTING_DEFINITION))
    over = Scene("SUCCESS", {"status": "SUCCESS", "testCases": [studio_case(1)]})
    with salesforce([Scene("CREATED"), over], definition="Visits", content=content) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait", option)
    assert "Visits: subject Desk, run 3A2" in ran.out


def test_history_spans_runs_here_and_elsewhere_in_order_of_time(
    evalmeta: Program, copy_samples: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = find_project(copy_samples("failing"))
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")
    late = {**HALF.results, "startTime": "2099-01-01T00:00:00.000Z"}
    with salesforce([Scene("COMPLETED", late)]) as org:
        log_in(org.url)
        evalmeta("test", "run", "-o", "dev", "--wait")
    here, there = history(project)
    assert (here.org_url, here.definition, here.total, here.summary.pass_rate) == ("", "Returns_Desk_Checks", 4, 0.25)
    assert (there.org_url, there.org_name, there.status) == (org.url, "dev", "COMPLETED")
    assert (there.definition, there.summary.passed, there.summary.failed, there.summary.pass_rate) == (
        "Orders",
        1,
        1,
        0.5,
    )


@pytest.mark.slow
def test_our_orgs_receive_the_options_and_repeat_the_run_themselves(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    theirs, ours = make_project(tmp_path / "theirs"), make_project(tmp_path / "ours", settings="")
    _write_definition(ours)
    monkeypatch.chdir(ours.root)
    with served(theirs) as url:
        log_in(url, token=make_token(theirs))
        evalmeta("deploy", "-o", "dev")
        ran = evalmeta("test", "run", "-o", "dev", "--wait", "--iterations", "2", "--concurrency", "3", "--json")
    found = results_of(ran)
    assert (ran.code, found["evalmeta"]["options"]["concurrency"]) == (0, 3)
    assert [each["iteration"] for each in found["testCases"]] == [1, 2]
    assert results_of(evalmeta("test", "results", "-r", "--json")) == found
    assert [(each.org_url, each.total) for each in history(ours)] == [(url, 2)]


@pytest.mark.slow
def test_runs_of_the_projects_own_server_are_listed_once(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = make_project(tmp_path / "mine")
    _write_definition(project)
    monkeypatch.chdir(project.root)
    with served(project) as url:
        log_in(url, token=make_token(project))
        evalmeta("deploy", "-o", "dev")
        assert evalmeta("test", "run", "-o", "dev", "--wait").code == 0
    assert evalmeta("test", "results", "-r").code == 0
    assert [each.org_url for each in history(project)] == [""]


def _write_definition(project: Project) -> None:
    folder = project.root / "aiEvaluationDefinitions"
    folder.mkdir()
    (folder / "Orders.aiEvaluationDefinition").write_bytes(definition("Orders"))


def test_results_of_an_orgs_run_have_the_quarantines_of_the_project(evalmeta: Program, project: Project) -> None:
    entry = f'[[quarantine]]\ntest = "Orders"\ncase = 2\nreason = "flaky"\nuntil = {today()}\n'
    (project.root / "evalmeta.toml").write_text(entry)
    with salesforce([HALF]) as org:
        log_in(org.url)
        ran = evalmeta("test", "run", "-o", "dev", "--wait", "--json")
        first, second = results_of(ran)["testCases"]
        assert ("quarantine" in first, second["quarantine"]["reason"]) == (False, "flaky")
        (project.root / "evalmeta.toml").write_text("")
        again = evalmeta("test", "results", "--job-id", ID, "--json")
    assert results_of(again)["testCases"][1]["quarantine"] == second["quarantine"]
