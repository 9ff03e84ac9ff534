"""Everything that runs need is checked before the first question."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest

from evalmeta import limits
from evalmeta.client.runs import check_runs, run_request
from evalmeta.errors import SubjectNotBound
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.run_options import RunOptions
from evalmeta.model.settings import Settings
from evalmeta.org.readiness import Need, find_faults, needs_of
from org.parts import ask, asked, definition, deploy, make_project, opened_of, package
from org.test_handlers import RUNS, rest, rest_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.org.organization import Organization
    from evalmeta.package.project import Project
    from evalmeta.protocol.runs import RunFault

WRONG = '"""The desk."""\n\n\ndef answer(question, customer):\n    return "x"\n'
PROCESS = "import os, pathlib\npathlib.Path(__file__).with_name('process.txt').write_text(str(os.getpid()))\n"
DESK = Need("subject", "Desk")
BODY = b'{"aiEvaluationDefinitionName": "Orders"}'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


@pytest.fixture
def org(project: Project) -> Iterator[Organization]:
    with opened_of(project) as made:
        deploy(made, package({"Orders": definition("Orders"), "Returns": definition("Returns", subject="Shop")}))
        yield made


def served(org: Organization, root: Path) -> Organization:
    """Return an org as its server has it."""
    return replace(org, root=root, is_served=True)


def faults(org: Organization, *needs: Need) -> list[RunFault]:
    return find_faults(org, [needs])


def configured(org: Organization, **tables: object) -> Organization:
    settings = Settings.model_validate(tables)
    return replace(org, settings=lambda: settings)


def test_an_org_lists_all_faults_of_several_runs_and_starts_none(project: Project, org: Organization) -> None:
    (project.root / "desk.py").write_text(WRONG)
    options = RunOptions()
    names = ("Orders", "Returns", "Unknown")

    async def check(connection: Connection) -> list[RunFault]:
        return await check_runs(connection, [run_request(name, options=options) for name in names])

    found = {fault.runs: fault.error for fault in ask(org, check)}
    assert "desk.py:4: the subject's target 'desk:answer' cannot be called" in str(found[0,])
    assert "no adapter is bound to the agent 'Shop'" in str(found[1,])
    assert "Unknown not found" in str(found[2,])
    assert org.runs.unfinished() == []


def test_a_run_without_selected_cases_needs_nothing(org: Organization) -> None:
    async def check(connection: Connection) -> list[RunFault]:
        return await check_runs(connection, [run_request("Returns", options=RunOptions(cases=()))])

    assert ask(org, check) == []


@pytest.mark.parametrize(
    ("tables", "need", "reason"),
    [
        ({}, Need("subject", "Desk"), "no adapter is bound to the agent 'Desk'"),
        ({"subjects": {"Desk": {"adapter": "command", "command": ["no-such-program"]}}}, DESK, "cannot be found"),
        (
            {"subjects": {"Desk": {"adapter": "http", "url": "http://x", "headers": {"K": "${NO_SUCH_KEY}"}}}},
            DESK,
            "the environment variable NO_SUCH_KEY is not set",
        ),
        (
            {"subjects": {"Desk": {"adapter": "openai", "model": "m", "api_key_env": "NO_SUCH_KEY"}}},
            DESK,
            "the environment variable NO_SUCH_KEY is not set",
        ),
        ({"subjects": {"Desk": {"adapter": "replay", "file": "no.jsonl"}}}, DESK, "no.jsonl"),
        ({"subjects": {"Desk": {"adapter": "python", "target": "dsk:answer"}}}, DESK, "dsk.py does not exist"),
        (
            {"raters": {"judge": {"adapter": "llm", "model": "m", "url": "http://x", "api_key_env": "NO_SUCH_KEY"}}},
            Need("rater", "judge"),
            "the environment variable NO_SUCH_KEY is not set",
        ),
        (
            {"raters": {"near": {"adapter": "rules", "embed": "no_such_module:vectors"}}},
            Need("rater", "near"),
            "the module of the rater's embed 'no_such_module:vectors' cannot be found",
        ),
        ({}, Need("rater", "judge"), "the rater 'judge' is not configured"),
        ({}, Need("function", "desk.score"), "the module 'desk' has no 'score'"),
        ({}, Need("function", "desk.answer"), "desk.py:5: the scoring function 'desk.answer' cannot be called"),
    ],
)
def test_what_cannot_be_used_is_found_without_a_question(
    project: Project, org: Organization, tables: dict[str, object], need: Need, reason: str
) -> None:
    [fault] = faults(configured(org, **tables), need)
    assert reason in str(fault.error)
    assert fault.error.actions
    assert asked(project) == []


def test_a_scoring_function_is_found_in_the_projects_folder(org: Organization, project: Project) -> None:
    (project.root / "own_metrics.py").write_text("def score(metric, actual, expected, scenario): return 1\n")
    assert faults(org, Need("function", "own_metrics.score")) == []


def test_only_the_functions_of_selected_cases_are_needed() -> None:
    cases = [
        Case(number, (Turn("Hi", (Expectation("own", terms={"function": f"m.f{number}"}),)),)) for number in (1, 2)
    ]
    needs = needs_of(Evaluation("E", "Desk", cases), RunOptions(cases=(2,)))
    assert needs == [DESK, Need("rater", "rules"), Need("function", "m.f2")]


def test_a_misspelt_name_is_answered_with_the_nearest_one(org: Organization) -> None:
    [subject, rater] = faults(
        configured(
            org,
            subjects={"Order_Desk": {"adapter": "python", "target": "desk:answer"}},
            raters={"judge": {"adapter": "rules"}},
        ),
        Need("subject", "Ordr_Desk"),
        Need("rater", "jugde"),
    )
    assert isinstance(subject.error, SubjectNotBound)
    assert subject.error.actions[0] == "Did you mean 'Order_Desk' instead of 'Ordr_Desk'?"
    assert rater.error.actions[0] == "Did you mean 'judge' instead of 'jugde'?"


def test_an_agent_is_imported_once_for_all_runs_of_a_command(project: Project, org: Organization) -> None:
    (project.root / "desk.py").write_text(
        "import pathlib\nwith pathlib.Path(__file__).with_name('imports.txt').open('a') as file:\n    file.write('x')\n"
        "def answer(utterance): return 'x'\n"
    )
    for _ in range(2):
        assert find_faults(org, [[DESK], [DESK]]) == []
    assert (project.root / "imports.txt").read_text() == "x"


def test_what_an_agent_prints_while_it_is_imported_is_no_output(
    project: Project, org: Organization, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.root / "desk.py").write_text("print('importing')\ndef answer(utterance): return 'x'\n")
    assert faults(org, DESK) == []
    assert capsys.readouterr() == ("", "importing\n")


@pytest.mark.slow
def test_a_served_org_imports_agents_in_another_process(project: Project, org: Organization) -> None:
    (project.root / "desk.py").write_text(f"{PROCESS}print('x')\n{WRONG}")
    [fault] = faults(served(org, project.root), DESK)
    assert "cannot be called: missing a required argument: 'customer'" in str(fault.error)
    assert (project.root / "process.txt").read_text() != str(os.getpid())


@pytest.mark.slow
def test_an_agent_that_exits_while_it_is_imported_does_not_end_the_server(project: Project, org: Organization) -> None:
    (project.root / "desk.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    serving = served(org, project.root)
    status, code, message = rest_error(rest(serving, "POST", RUNS, BODY))
    assert (status, code) == (400, "INVALID_SUBJECT")
    assert "the process that imports it ended with exit code -9" in message
    assert serving.runs.unfinished() == []


def test_a_slow_import_is_left_to_the_run(project: Project, org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.root / "desk.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(limits, "READINESS_SECONDS", 0.1)
    assert faults(served(org, project.root), DESK) == []


def test_a_run_that_cannot_be_extended_stays_as_it_is(project: Project, org: Organization) -> None:
    run_id = rest(org, "POST", RUNS, BODY).json()["runId"]
    rest(org, "POST", f"{RUNS}/{run_id}/cancel", b"{}")
    (project.root / "desk.py").write_text(WRONG)
    org.usable.clear()
    status, code, message = rest_error(rest(org, "POST", f"{RUNS}/{run_id}/extend", b'{"iterations": 2}'))
    assert (status, code) == (400, "INVALID_SUBJECT")
    assert "desk.py:4" in message
    assert org.runs.get(run_id).options.iterations == 1


def test_a_rescored_run_needs_its_rater_and_no_agent(project: Project, org: Organization) -> None:
    run_id = rest(org, "POST", RUNS, BODY).json()["runId"]
    rest(org, "POST", f"{RUNS}/{run_id}/cancel", b"{}")
    (project.root / "desk.py").write_text(WRONG)
    org.usable.clear()
    body = b'{"runOptions": {"scoring": {"rater": "judge"}}}'
    assert "the rater 'judge' is not configured" in rest_error(rest(org, "POST", f"{RUNS}/{run_id}/rescore", body))[2]
    assert rest(org, "POST", f"{RUNS}/{run_id}/rescore", b"{}").status_code == 201


def test_a_run_is_checked_before_it_continues(project: Project, org: Organization) -> None:
    run_id = rest(org, "POST", RUNS, BODY).json()["runId"]
    (project.root / "desk.py").write_text(WRONG)
    org.usable.clear()

    async def check(connection: Connection) -> list[RunFault]:
        return await check_runs(connection, [{"runId": run_id}])

    [fault] = ask(org, check)
    assert "desk.py:4" in str(fault.error)


@pytest.mark.slow
def test_a_served_org_refuses_a_run_with_everything_that_is_missing(project: Project, org: Organization) -> None:
    (project.root / "desk.py").write_text(WRONG)
    body = orjson.dumps({**orjson.loads(BODY), "runOptions": {"scoring": {"rater": "judge"}}})
    _, code, message = rest_error(rest(served(org, project.root), "POST", RUNS, body))
    assert code == "INVALID_SUBJECT"
    assert "no test was run, for 2 reasons" in message
    assert "[raters.judge]" in message
