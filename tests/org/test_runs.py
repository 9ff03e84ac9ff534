from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta import __version__, limits
from evalmeta.client.metadata import deploy
from evalmeta.client.runs import Progress, fetch_results, poll_run, start_run
from evalmeta.errors import NotFound, OrgBusy, OrgFault, SettingsError, SubjectNotBound
from evalmeta.model.run import Run, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.run_worker import work
from evalmeta.org.runs import is_abandoned
from evalmeta.protocol.json_fields import object_at
from evalmeta.protocol.runs import write_options
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, RunJournal
from org.parts import asked, definition, embedded, follow_up, make_project, numbers, opened_of, package, started

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import CaseResult
    from evalmeta.org.organization import Organization
    from evalmeta.package.project import Project

HOLDERS: list[asyncio.Task[None]] = []
MOODY = """\
def answer(utterance):
    if utterance.endswith("2"):
        raise OSError("no line")
    return {"outcome": "Done.", "topic": "Orders"}
"""
HESITANT = """\
import pathlib, time
GO = pathlib.Path(__file__).parent / "go"
ASKED = pathlib.Path(__file__).parent / "asked.txt"

def answer(utterance):
    with ASKED.open("a") as file:
        file.write(utterance + "\\n")
    while utterance > "Orders 3" and not GO.exists():
        time.sleep(0.005)
    return {"outcome": "Done.", "topic": "Orders"}
"""
BLOCKING = """\
import contextlib, pathlib, sqlite3, time
STORE = pathlib.Path(__file__).parent / ".evalmeta" / "org.sqlite3"

def lease():
    with contextlib.closing(sqlite3.connect(STORE)) as store:
        return store.execute("SELECT lease_until FROM run").fetchone()

async def answer(utterance):
    before, deadline = lease(), time.monotonic() + 60
    while lease() == before and time.monotonic() < deadline:
        time.sleep(0.01)
    return {"outcome": "Done.", "topic": "Orders" if lease() != before else "stopped"}
"""
NAMES = [f"Orders {number}" for number in range(1, 9)]


async def deploy_and_start(connection: Connection, options: RunOptions | None = None, *, subject: str = "Desk") -> str:
    content = definition("Orders", cases=len(NAMES), subject=subject)
    await deploy(connection, package({"Orders": content}))
    return await start_run(connection, "Orders", options=options)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


@pytest.fixture
def slow(tmp_path: Path) -> Project:
    return make_project(tmp_path / "slow", seconds=0.03)


def test_a_run_is_started_followed_and_returns_its_results(project: Project) -> None:
    seen: list[Progress] = []

    async def run(connection: Connection) -> Run:
        run_id = await deploy_and_start(connection)
        last = await poll_run(connection, run_id, wait=120, on_progress=seen.append)
        assert (last.done, last.total, last.not_passed, last.is_over) == (8, 8, 0, True)
        return await fetch_results(connection, run_id)

    done = embedded(project, run)
    assert (done.status, done.subject_name, done.definition) == (RunStatus.COMPLETED, "Desk", "Orders")
    assert {case.verdict for case in done.cases} == {Verdict.PASS}
    assert [case.utterance for case in done.cases] == NAMES
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)


@pytest.mark.parametrize("size", [1, 3, 16, 100])
def test_results_come_whole_however_many_pages_they_have(
    project: Project, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(limits, "MAX_PAGE_CASES", size)

    async def run(connection: Connection) -> tuple[Run, Run]:
        done = await follow_up(connection, await deploy_and_start(connection, RunOptions(iterations=2)))
        connection.is_ours = False
        return done, await fetch_results(connection, done.id)

    paged, whole = embedded(project, run)
    assert paged == whole
    assert len(paged.cases) == 16


def test_only_complete_results_escape_their_text_because_pages_are_for_evalmeta(project: Project) -> None:
    async def run(connection: Connection) -> list[JsonValue]:
        path = f"/einstein/ai-evaluations/runs/{await deploy_and_start(connection)}/results"
        return [
            object_at(await connection.get(address), "evalmeta")["plainText"] for address in (path, f"{path}?after=0-0")
        ]

    assert embedded(project, run) == [False, True]


def test_options_of_a_run_are_those_of_its_starter(project: Project) -> None:
    options = RunOptions(iterations=2, min_pass_rate=0.5, undecided="fail", concurrency=1, case_timeout=5)

    async def run(connection: Connection) -> Run:
        return await follow_up(connection, await deploy_and_start(connection, options))

    done = embedded(project, run)
    # A shared store also keeps which project started it.
    assert (replace(done.options, origin=options.origin), done.total) == (options, 16)
    assert numbers(done) == [(iteration, number) for iteration in (1, 2) for number in range(1, 9)]
    assert asked(project) == NAMES * 2


def test_a_run_records_what_answered_what_judged_and_what_each_case_expected(project: Project) -> None:
    async def run(connection: Connection) -> Run:
        return await follow_up(connection, await deploy_and_start(connection))

    done = embedded(project, run)
    setup = done.options.setup
    assert (setup.agent, setup.rater, setup.evalmeta) == ("python desk:answer", "rules", __version__)
    assert setup.agent_version
    assert {len(case.checks) for case in done.cases} == {8}
    assert len({case.checks for case in done.cases}) == 1


def test_a_run_asks_what_was_deployed_when_it_was_started(project: Project) -> None:
    run_id = started(project, cases=2)

    async def run(connection: Connection) -> Run:
        await deploy(connection, package({"Orders": definition("Orders", cases=5)}))
        return await follow_up(connection, run_id)

    assert numbers(embedded(project, run)) == [(1, 1), (1, 2)]


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(iterations=0),
        RunOptions(iterations=10**15),
        RunOptions(concurrency=limits.MAX_CONCURRENCY + 1),
        RunOptions(min_pass_rate=1.5),
        RunOptions(min_decided=1.5),
        RunOptions(case_timeout=-1),
        RunOptions(seed=2**63),
        RunOptions(max_errors=0),
    ],
)
def test_an_option_beyond_its_limit_is_refused(project: Project, options: RunOptions) -> None:
    async def post(connection: Connection) -> None:
        await deploy(connection, package({"Orders": definition("Orders")}))
        body: JsonObject = {"aiEvaluationDefinitionName": "Orders", "runOptions": write_options(options)}
        await connection.post("/einstein/ai-evaluations/runs", body)

    with pytest.raises(OrgFault, match=r"runOptions\.\w+ is .* are allowed"):
        embedded(project, post)


def test_a_definition_that_is_not_deployed_is_not_found(project: Project) -> None:
    with pytest.raises(NotFound, match="Invalid AiEvalDefinitionVersion identifier: Nope"):
        embedded(project, lambda connection: start_run(connection, "Nope"))


@pytest.mark.parametrize("get", [fetch_results, follow_up])
def test_a_run_that_does_not_exist_is_not_found(project: Project, get: object) -> None:
    with pytest.raises(NotFound, match="Run not found: 4KB9"):
        embedded(project, lambda connection: get(connection, "4KB9"))


def test_an_unbound_subject_is_reported_with_the_lines_to_add(project: Project) -> None:
    with pytest.raises(SubjectNotBound, match="no adapter is bound to the agent 'Nobody'") as raised:
        embedded(project, lambda connection: deploy_and_start(connection, subject="Nobody"))
    assert "[subjects.Nobody]\nadapter = " in raised.value.actions[0]


@pytest.mark.parametrize("agent", ["def answer(:", "raise RuntimeError('no key')", "import nowhere_to_be_found", ""])
def test_a_broken_adapter_is_reported_without_its_path(tmp_path: Path, agent: str) -> None:
    project = make_project(tmp_path / "project", agent=agent)
    with pytest.raises(SettingsError) as raised:
        embedded(project, deploy_and_start)
    told = "\n".join((str(raised.value), *raised.value.actions))
    assert "'desk:answer'" in told
    assert str(tmp_path) not in told


def test_an_adapter_that_broke_after_the_start_makes_every_case_an_error(project: Project) -> None:
    run_id = started(project, cases=2)
    (project.root / "desk.py").unlink()
    done = embedded(project, lambda connection: follow_up(connection, run_id))
    assert [case.verdict for case in done.cases] == [Verdict.ERROR, Verdict.ERROR]
    assert "desk.py" in done.cases[0].error
    assert str(project.root) not in done.cases[0].error


def test_an_agent_that_raises_spoils_its_case_only(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", agent=MOODY)
    run_id = started(project, cases=3)
    done = embedded(project, lambda connection: follow_up(connection, run_id))
    assert [case.verdict for case in done.cases] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS]
    assert done.status is RunStatus.COMPLETED


@pytest.mark.sqlite
def test_a_run_whose_definition_cannot_be_read_ends_as_an_error(project: Project) -> None:
    run_id = started(project, cases=2)
    with opened_of(project) as org:
        org.database.execute("UPDATE content SET data = x'00'")
    done = embedded(project, lambda connection: follow_up(connection, run_id))
    assert (done.status, done.cases) == (RunStatus.ERROR, ())
    assert done.error


def test_a_broken_installation_ends_a_run_as_an_error(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = started(project, cases=2)
    monkeypatch.setitem(sys.modules, "evalmeta.engine.runner", None)
    with opened_of(project) as org:
        asyncio.run(work(org, run_id))
        run = org.runs.get(run_id)
    assert run.status is RunStatus.ERROR
    assert "evalmeta.engine.runner" in run.error


def test_closing_the_org_keeps_results_and_releases_the_run(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", agent=HESITANT)

    async def leave_early(connection: Connection) -> str:
        run_id = await deploy_and_start(connection, RunOptions(concurrency=1))
        while len((await fetch_results(connection, run_id)).cases) < 3:
            await asyncio.sleep(0.005)
        return run_id

    run_id = embedded(project, leave_early)
    with opened_of(project) as org:
        run = org.runs.get(run_id)
        assert (run.status, org.runs.lease(run_id)) == (RunStatus.IN_PROGRESS, Lease(None, None))
        assert is_abandoned(org, run)
    (project.root / "go").touch()
    before = len(asked(project))
    done = embedded(project, lambda connection: follow_up(connection, run_id))
    assert sorted(asked(project)[before:]) == NAMES[3:]
    assert numbers(done) == [(1, number) for number in range(1, 9)]


def test_a_run_that_another_worker_has_is_left_to_it(slow: Project) -> None:
    run_id = started(slow, cases=8)

    async def work_twice() -> None:
        with opened_of(slow) as one, opened_of(slow) as other:
            await asyncio.gather(work(one, run_id), work(other, run_id))

    asyncio.run(work_twice())
    assert sorted(asked(slow)) == NAMES


def test_a_worker_that_lost_its_run_can_no_longer_append(slow: Project) -> None:
    run_id = started(slow, cases=8, options=RunOptions(concurrency=1))

    async def take_over() -> None:
        with opened_of(slow) as one, opened_of(slow) as other:
            first = asyncio.create_task(work(one, run_id))
            while one.runs.count(run_id).total() < 2:
                await asyncio.sleep(0.005)
            other.database.execute("UPDATE run SET worker = 'elsewhere:1:1:ab', lease_until = 0")
            await asyncio.gather(first, work(other, run_id))

    asyncio.run(take_over())
    with opened_of(slow) as org:
        run, cases = org.runs.get(run_id), org.runs.cases(run_id)
    assert (run.status, run.error, [case.number for case in cases]) == (RunStatus.COMPLETED, None, list(range(1, 9)))
    assert max(Counter(asked(slow)).values()) <= 2


def test_a_worker_renews_its_lease(slow: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RUN_LEASE_SECONDS", 0.3)
    run_id = started(slow, cases=20, options=RunOptions(concurrency=1))

    async def wait_for_run() -> list[float]:
        with opened_of(slow) as org:
            working = asyncio.create_task(work(org, run_id))
            seen = []
            while not working.done():
                await asyncio.sleep(0.01)
                seen.append(org.runs.lease(run_id).until)
            return [until for until in seen if until]

    assert len(set(asyncio.run(wait_for_run()))) > 1


def test_a_database_that_is_locked_for_a_while_costs_no_case(slow: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    # The one that locks is opened before waits get short: it must get the database while the run writes to it.
    with open_database(slow.store) as holder:
        monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.01)
        monkeypatch.setattr(limits, "RUN_LEASE_SECONDS", 0.3)

        async def run(connection: Connection) -> Run:
            run_id = await deploy_and_start(connection, RunOptions(concurrency=2))
            await asyncio.sleep(0.02)
            with holder.transaction():
                await asyncio.sleep(0.4)
            return await follow_up(connection, run_id)

        done = embedded(slow, run)
    assert (done.status, numbers(done)) == (RunStatus.COMPLETED, [(1, number) for number in range(1, 9)])


@pytest.mark.sqlite
def test_a_locked_database_starts_no_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    started(project, cases=1)
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.01)

    async def run(connection: Connection) -> str:
        with open_database(project.store) as holder, holder.transaction():
            return await start_run(connection, "Orders")

    with pytest.raises(OrgBusy, match=r"org\.sqlite3 is locked by another program") as raised:
        embedded(project, run)
    assert raised.value.actions == ("Try again later.",)
    assert str(project.root) not in str(raised.value)


@pytest.mark.parametrize("worker", ["elsewhere:1:1:ab", "elsewhere:99999999::ab"])
def test_of_a_worker_on_another_machine_only_the_lease_is_known(project: Project, worker: str) -> None:
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        now = time.time()
        org.runs.claim(run_id, worker, taken_from=Lease(None, None), until=now + limits.RUN_LEASE_SECONDS)
        assert not is_abandoned(org, org.runs.get(run_id))
        # The last is from before the clock was set back.
        for until in (now - 1, now + 3600):
            org.runs.renew(run_id, worker, until=until)
            assert is_abandoned(org, org.runs.get(run_id))


def test_a_worker_with_an_expired_lease_keeps_its_run_while_it_is_alive(slow: Project) -> None:
    run_id = started(slow, cases=8)

    async def work_twice() -> None:
        with opened_of(slow) as one, opened_of(slow) as other:
            first = asyncio.create_task(work(one, run_id))
            await asyncio.sleep(0.01)
            other.database.execute("UPDATE run SET lease_until = 0")
            assert not is_abandoned(other, other.runs.get(run_id))
            await asyncio.gather(first, work(other, run_id))

    asyncio.run(work_twice())
    assert sorted(asked(slow)) == NAMES


@pytest.mark.sqlite
def test_an_agent_that_blocks_does_not_stop_the_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RUN_LEASE_SECONDS", 0.06)
    project = make_project(tmp_path / "project", agent=BLOCKING)
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        asyncio.run(work(org, run_id))
        [case] = org.runs.cases(run_id)
    assert case.verdict is Verdict.PASS, case.error


def hold_store(project: Project) -> None:
    """Lock the store until the event loop has gone on for a while."""
    store = sqlite3.connect(project.state_dir / "org.sqlite3", isolation_level=None)
    store.execute("BEGIN IMMEDIATE")

    async def go_on() -> None:
        for _ in range(50):
            await asyncio.sleep(0)
        store.close()

    HOLDERS.append(asyncio.get_running_loop().create_task(go_on()))


@pytest.mark.sqlite
def test_a_worker_that_claims_a_run_does_not_stop_the_event_loop_while_the_store_is_locked(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=1)

    async def work_on(org: Organization) -> None:
        hold_store(project)
        await work(org, run_id)

    with opened_of(project) as org:
        asyncio.run(work_on(org))
        assert org.runs.get(run_id).status is RunStatus.COMPLETED


@pytest.mark.sqlite
@pytest.mark.parametrize(("defects", "status"), [([], RunStatus.COMPLETED), ([OSError], RunStatus.ERROR)])
def test_a_worker_that_ends_a_run_does_not_stop_the_event_loop_while_the_store_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defects: list[type[Exception]], status: RunStatus
) -> None:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=1)
    append = RunJournal.append

    def append_and_hold(journal: RunJournal, results: Sequence[CaseResult]) -> None:
        append(journal, results)
        hold_store(project)
        for defect in defects:
            raise defect

    monkeypatch.setattr(RunJournal, "append", append_and_hold)
    with opened_of(project) as org:
        asyncio.run(work(org, run_id))
        assert org.runs.get(run_id).status is status


def test_a_run_that_is_over_is_not_abandoned(project: Project) -> None:
    run_id = started(project, cases=1)
    embedded(project, lambda connection: follow_up(connection, run_id))
    with opened_of(project) as org:
        assert not is_abandoned(org, org.runs.get(run_id))
