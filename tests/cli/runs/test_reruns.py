"""`evalmeta test run --extend`, `test rescore`, and `test resume` of runs whose definition has changed."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from client.salesforce import Scene, case, done, salesforce
from evalmeta.api.runs.saved import history
from evalmeta.api.servers import make_token
from evalmeta.client.logins import user_logins
from evalmeta.model.login import Login, Secrets
from org.parts import asked, definition, make_project
from org.servers import served
from systems.run_eval.payloads import evaluator, message
from systems.run_eval.test_handler import post, session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome
    from evalmeta.package.project import Project

    Program = Callable[..., Outcome]

FIRST, SECOND = "4KB000000000001GAA", "4KB000000000002GAA"
SLOW = '[run]\nconcurrency = 1\n[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program) -> Project:
    """A test of two cases that is deployed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = make_project(tmp_path / "project", settings=SLOW)
    monkeypatch.chdir(made.root)
    write(made, cases=2)
    evalmeta("deploy")
    return made


def write(project: Project, *, cases: int) -> None:
    folder = project.root / "aiEvaluationDefinitions"
    folder.mkdir(exist_ok=True)
    (folder / "Orders.aiEvaluationDefinition").write_bytes(definition("Orders", cases=cases))


def results(outcome: Outcome) -> dict[str, object]:
    [found] = json.loads(outcome.out)["result"]
    return found


def test_an_extended_run_runs_only_new_iterations_and_is_one_run(evalmeta: Program, project: Project) -> None:
    evalmeta("test", "run", "--wait")
    extended = evalmeta("test", "run", "--extend", FIRST, "--iterations", "3", "--wait", "--json")
    assert (extended.code, len(asked(project))) == (0, 6)
    assert results(evalmeta("test", "results", "-r", "--json")) == results(extended)
    [past] = history(project)
    assert (past.id, past.total, past.summary.passed) == (FIRST, 6, 6)


@pytest.mark.usefixtures("project")
def test_an_org_of_evalmeta_says_that_it_judges_by_itself(evalmeta: Program) -> None:
    for words in (("test", "run", "--wait"), ("test", "results", "-r")):
        ran = evalmeta(*words, "--verdict", "local")
        assert (ran.code, "--verdict has no effect" in ran.err) == (0, True)


@pytest.mark.usefixtures("project")
def test_an_extended_run_can_continue_in_the_background(evalmeta: Program) -> None:
    evalmeta("test", "run", "--wait")
    extended = evalmeta("test", "run", "--extend", FIRST, "--iterations", "2")
    assert (extended.code, extended.out.split(".")[0]) == (0, f"Extended run {FIRST}")
    assert "4 passed" in evalmeta("test", "resume", "-i", FIRST).out
    more = evalmeta("test", "run", "--extend", FIRST, "--iterations", "3", "--json")
    assert json.loads(more.out)["result"] == [{"id": FIRST, "definition": "Orders", "status": "NEW"}]
    evalmeta("test", "resume", "-i", FIRST)


@pytest.mark.slow
def test_a_wait_for_more_iterations_can_time_out(evalmeta: Program, project: Project, program: list[str]) -> None:
    evalmeta("test", "run", "--wait")
    (project.root / "desk.py").write_text(
        "import time\ndef answer(utterance):\n    time.sleep(0.2)\n    return 'Done.'\n"
    )
    command = [*program, "test", "run", "--extend", FIRST, "--iterations", "9", "--wait", "0.001", "--mixed"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 69
    assert f"run {FIRST} is not done after 0.06 s; it continues in the org" in ran.stderr
    evalmeta("test", "cancel", "-i", FIRST)


def test_a_run_of_a_changed_definition_is_extended_only_with_ignore_changes(
    evalmeta: Program, project: Project
) -> None:
    evalmeta("test", "run", "--wait")
    write(project, cases=3)
    evalmeta("deploy")
    refused = evalmeta("test", "run", "--extend", FIRST, "--iterations", "2", "--wait")
    assert (refused.code, len(asked(project))) == (2, 2)
    assert "test case 3" in refused.err
    assert f"the definition of run {FIRST} has changed since the run started" in refused.err
    extended = evalmeta("test", "run", "--extend", FIRST, "--iterations", "2", "--wait", "--ignore-changes")
    assert (extended.code, len(asked(project))) == (0, 4)


@pytest.mark.slow
def test_a_killed_run_of_a_changed_definition_is_resumed_only_with_ignore_changes(
    evalmeta: Program, project: Project, program: list[str]
) -> None:
    agent = (project.root / "desk.py").read_text()
    (project.root / "desk.py").write_text(agent.replace("time.sleep(0)", "time.sleep(60)"))
    running = subprocess.Popen([*program, "test", "run", "--wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not asked(project) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.kill()
    running.communicate()
    (project.root / "desk.py").write_text(agent)
    write(project, cases=3)
    evalmeta("deploy")
    refused = evalmeta("test", "resume", "-i", FIRST, "--json")
    assert (refused.code, json.loads(refused.out)["name"]) == (2, "DefinitionChanged")
    assert "test case 3" in refused.err
    resumed = evalmeta("test", "resume", "-i", FIRST, "--ignore-changes")
    assert (resumed.code, "2 cases: 2 passed" in resumed.out) == (0, True)


def test_a_run_has_answers_of_two_agents_only_with_mixed(evalmeta: Program, project: Project) -> None:
    agent, other = project.root / "desk.py", project.root / "other.py"
    other.write_text(agent.read_text())
    evalmeta("test", "run", "--wait")
    (project.root / "evalmeta.toml").write_text(SLOW.replace("desk:answer", "other:answer"))
    words = ("test", "run", "--extend", FIRST, "--iterations", "2", "--wait")

    refused = evalmeta(*words)
    why = "python desk:answer answered before, and python other:answer would answer now"
    assert refused.code == 2
    assert f"run {FIRST} would have answers of two agents: {why}" in refused.err
    assert "add --mixed" in refused.err

    mixed = evalmeta(*words, "--mixed", "--json")
    assert mixed.code == 0
    options = results(mixed)["evalmeta"]["options"]
    assert options["setup"]["agent"] == "python desk:answer and python other:answer"


@pytest.mark.slow
def test_an_interrupted_run_is_resumed_with_another_version_of_its_agent_only_with_mixed(
    evalmeta: Program, project: Project, program: list[str]
) -> None:
    agent = project.root / "desk.py"
    source = agent.read_text()
    agent.write_text(source.replace("time.sleep(0)", "time.sleep(60 * utterance.endswith('2'))"))
    running = subprocess.Popen([*program, "test", "run", "--wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not any(past.done for past in history(project)) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.kill()
    running.communicate()
    agent.write_text(source)

    refused = evalmeta("test", "resume", "-i", FIRST, "--json")
    assert (refused.code, json.loads(refused.out)["name"]) == (2, "AgentChanged")
    assert "the source of python desk:answer has changed since it answered" in refused.out
    resumed = evalmeta("test", "resume", "-i", FIRST, "--mixed")
    assert (resumed.code, "2 cases: 2 passed" in resumed.out) == (0, True)


def test_a_run_whose_definition_is_gone_is_reported(evalmeta: Program, project: Project) -> None:
    evalmeta("test", "run", "--wait")
    (project.root / "aiEvaluationDefinitions/Orders.aiEvaluationDefinition").unlink()
    (project.root / "destructiveChanges.xml").write_text(
        '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><types><members>Orders</members>'
        "<name>AiEvaluationDefinition</name></types><version>66.0</version></Package>"
    )
    (project.root / "package.xml").write_text(
        '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><version>66.0</version></Package>'
    )
    removed = evalmeta("deploy", "-x", "package.xml", "--post-destructive-changes", "destructiveChanges.xml")
    assert removed.code == 0, removed.err
    refused = evalmeta("test", "run", "--extend", FIRST, "--iterations", "2", "--wait")
    assert (refused.code, f"the definition of run {FIRST} is not deployed any more" in refused.err) == (2, True)
    assert evalmeta("test", "rescore", FIRST, "--as-deployed").code == 2
    assert evalmeta("test", "rescore", FIRST).code == 0


def test_a_rescored_run_names_the_first_run(evalmeta: Program, project: Project) -> None:
    evalmeta("test", "run", "--wait")
    again = evalmeta("test", "rescore", FIRST, "--scoring", "testing-center", "--topics", "contains")
    assert (again.code, len(asked(project))) == (0, 2)
    assert f"run {SECOND}, answers of {FIRST} judged again" in again.out
    told = results(evalmeta("test", "results", "-i", SECOND, "--json"))["evalmeta"]
    assert (told["answersOf"], told["options"]["scoring"]["profile"]) == (FIRST, "testing-center")
    first = results(evalmeta("test", "results", "-i", FIRST, "--json"))["evalmeta"]
    assert told["options"]["origin"]["suite"] != first["options"]["origin"]["suite"]


@pytest.mark.usefixtures("project")
def test_a_rescored_run_keeps_the_policy_unless_options_change_it(evalmeta: Program) -> None:
    evalmeta("test", "run", "--wait", "--min-pass-rate", "0.5", "--undecided", "fail")
    again = results(evalmeta("test", "rescore", FIRST, "--json"))["evalmeta"]["options"]
    assert (again["minPassRate"], again["undecided"]) == (0.5, "fail")
    said = ("--min-pass-rate", "0.25", "--undecided", "ignore")
    other = results(evalmeta("test", "rescore", FIRST, *said, "--json"))["evalmeta"]["options"]
    assert (other["minPassRate"], other["undecided"]) == (0.25, "ignore")


@pytest.mark.usefixtures("project")
def test_a_run_is_compared_with_the_one_whose_answers_it_judges(evalmeta: Program) -> None:
    evalmeta("test", "run", "--wait")
    again = evalmeta("test", "rescore", FIRST, "--baseline", FIRST)
    assert (again.code, "0 broken, 0 suspect, 0 still failing, 2 still passing" in again.out) == (0, True)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["nothing"], "'nothing' is not a valid run id"),
        (["4KB000000000009GAA"], "It may be in another org"),
        ([FIRST, "--rater", "nobody"], "the rater 'nobody' is not configured"),
        ([FIRST, "--baseline", "missing.json"], "missing.json"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_run_that_cannot_be_rescored_is_refused(evalmeta: Program, said: list[str], told: str) -> None:
    evalmeta("test", "run", "--wait")
    ran = evalmeta("test", "rescore", *said)
    assert (ran.code, told in ran.err) == (2, True)


@pytest.mark.slow
def test_runs_of_another_org_of_ours_are_extended_and_rescored_there(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    theirs, ours = make_project(tmp_path / "theirs"), make_project(tmp_path / "ours", settings="")
    write(ours, cases=2)
    monkeypatch.chdir(ours.root)
    with served(theirs) as url:
        user_logins().save(Login("me@dev.example", url, alias="dev"), Secrets(make_token(theirs)))
        evalmeta("deploy", "-o", "dev")
        assert evalmeta("test", "run", "-o", "dev", "--wait").code == 0
        extended = evalmeta("test", "run", "--extend", FIRST, "--iterations", "2", "--wait", "--json")
        again = evalmeta("test", "rescore", FIRST, "--json")
    assert (extended.code, again.code, len(asked(theirs))) == (0, 0, 4)
    assert results(evalmeta("test", "results", "-i", FIRST, "--json")) == results(extended)
    assert results(evalmeta("test", "results", "-r", "--json")) == results(again)
    assert [(each.id, each.org_url, each.total) for each in history(ours)] == [(FIRST, url, 4), (SECOND, url, 4)]


@pytest.mark.usefixtures("project")
def test_a_salesforce_org_cannot_extend_runs(evalmeta: Program) -> None:
    with salesforce([Scene("COMPLETED", done(case(1)))]) as org:
        user_logins().save(Login("me@dev.example", org.url, alias="dev"), Secrets("token"))
        ran = evalmeta("test", "run", "--iterations", "2", "--wait", "--extend", "4KB5e0000000001AAA", "-o", "dev")
    assert (ran.code, org.starts) == (2, [])
    assert "a Salesforce org cannot extend runs" in ran.err
    assert "Start a run with iterations: evalmeta test run --iterations N" in ran.err


def test_a_run_of_a_payload_names_no_command_that_cannot_run_it_again(
    tmp_path: Path, evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = evaluator("string_assertion", actual="$.outputs[1].response", expected="Never")
    post(tmp_path, [session(), message("Where?"), wrong])
    monkeypatch.chdir(tmp_path / "project")

    shown = evalmeta("test", "results", "--job-id", FIRST)

    assert (shown.code, "test run" in shown.out + shown.err) == (100, False)
