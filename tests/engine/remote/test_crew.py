from __future__ import annotations

import asyncio
import pickle
import threading
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.builders import Agent, MemoryJournal, answer_orders, evaluation, run
from evalmeta import limits
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.project_code import function_threads
from evalmeta.engine.remote.crew import Crew, WorkerLost
from evalmeta.engine.remote.worker import RemoteWorker
from evalmeta.engine.runner import execute_elsewhere
from evalmeta.engine.scheduler import Places, Pool
from evalmeta.engine.scorers import SCORERS
from evalmeta.errors import ClusterError, SettingsError, SubjectBusy
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from evalmeta.engine.interfaces import Scorer, SharedPace, Subject
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.generated_data import GeneratedData

AGENTS: list[Agent] = []
THREADS: list[threading.Thread] = []


@dataclass(frozen=True)
class Recipe:
    """Binds an agent that answers with a function of this module, and keeps it in `AGENTS`."""

    answer: Callable[[str], Awaitable[GeneratedData]]

    def bind(self, _root: Path) -> tuple[Subject, Mapping[str, Scorer]]:
        agent = Agent(self.answer)
        AGENTS.append(agent)
        return agent, SCORERS


@dataclass(frozen=True)
class Unusable:
    error: Exception

    def bind(self, _root: Path) -> tuple[Subject, Mapping[str, Scorer]]:
        raise self.error


@dataclass
class Process:
    """A worker's process: it can die, or be cut off while it goes on; then another one takes its place."""

    name: str = "there"
    comes_back: bool = True
    worker: RemoteWorker | None = field(default_factory=lambda: RemoteWorker(Path.cwd()))
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def die(self) -> None:
        self.worker = None
        self.cut()

    def cut(self) -> None:
        self.died.set()

    async def greet(self, session: str) -> None:
        self.died.clear()
        if self.worker is None:
            if not self.comes_back:
                raise WorkerLost
            self.worker = RemoteWorker(Path.cwd())
        await self.worker.greet(session)

    async def put(self, session: str, orders: bytes) -> None:
        if self.worker is None:
            raise WorkerLost
        PROCESS.set(self)
        await self.worker.put(session, orders)

    async def take(self, session: str, seconds: float) -> bytes:
        if self.worker is None:
            raise WorkerLost
        taking = asyncio.ensure_future(self.worker.take(session, seconds))
        died = asyncio.ensure_future(self.died.wait())
        await asyncio.wait((taking, died), return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            taking.cancel()
            raise WorkerLost
        died.cancel()
        return taking.result()


PROCESS: ContextVar[Process] = ContextVar("PROCESS")


async def work(
    processes: list[Process],
    cases: Evaluation,
    recipe: object,
    journal: MemoryJournal,
    shared: SharedPace | None = None,
    **given: object,
) -> None:
    options = replace(RunOptions(), **given)
    crew = Crew(processes)
    await crew.open()
    try:
        places = Places(Pool(options, shared=shared))
        async with crew.run(pickle.dumps(recipe), options, places.pacer) as there:
            await execute_elsewhere(cases, there.ask, journal, options=options, places=places)
    finally:
        await crew.close()


def results_of(
    cases: Evaluation, recipe: object, *processes: Process, shared: SharedPace | None = None, **given: object
) -> list[CaseResult]:
    journal = MemoryJournal()
    asyncio.run(work([*processes] or [Process(), Process()], cases, recipe, journal, shared, **given))
    return sorted(journal.results, key=lambda result: (result.iteration, result.number))


def plain(result: CaseResult) -> CaseResult:
    """Return a result without what depends on the moment."""
    generated = result.generated and replace(result.generated, latency_ms=None)
    return result._replace(started=0, ended=0, generated=generated)


async def wait_and_answer(utterance: str) -> GeneratedData:
    await asyncio.sleep(0.001)
    return await answer_orders(utterance)


def test_results_are_those_of_a_run_in_this_process() -> None:
    here = run(Agent(answer_orders), evaluation(300), iterations=2, concurrency=20)
    there = results_of(evaluation(300), Recipe(answer_orders), iterations=2, concurrency=20)

    assert [plain(result) for result in there] == [plain(result) for result in here]
    assert len(there) == 600


def test_a_case_is_asked_as_often_as_it_says() -> None:
    cases = tuple(replace(case, iterations=case.number % 3 + 1) for case in evaluation(30).cases)
    results = results_of(replace(evaluation(30), cases=cases), Recipe(answer_orders), concurrency=5)
    expected = sorted((n, case.number) for case in cases for n in range(1, case.number % 3 + 2))
    assert [(result.iteration, result.number) for result in results] == expected


async def answer_in_a_thread(utterance: str) -> GeneratedData:
    with function_threads() as threads:
        THREADS.append(await threads.call(threading.current_thread))
    return await answer_orders(utterance)


def test_functions_that_judge_use_the_threads_of_their_run_again() -> None:
    THREADS.clear()
    results = results_of(evaluation(200), Recipe(answer_in_a_thread), Process(), concurrency=5)

    assert not [result.error for result in results if result.error]
    assert len(THREADS) == 200
    assert len(set(THREADS)) < 20


def test_all_workers_ask_cases_and_their_agents_are_closed_at_the_end() -> None:
    AGENTS.clear()
    results_of(evaluation(100), Recipe(wait_and_answer), concurrency=10)

    assert all(40 <= len(agent.asked) <= 60 for agent in AGENTS)
    assert [(agent.opened, agent.closed) for agent in AGENTS] == [(len(agent.asked), 1) for agent in AGENTS]
    assert len(AGENTS) == 2


@pytest.mark.parametrize("ending", [Process.die, Process.cut])
def test_cases_under_way_in_a_worker_that_is_lost_are_asked_again_and_counted(
    ending: Callable[[Process], None],
) -> None:
    AGENTS.clear()
    lost = Process()

    class KillingJournal(MemoryJournal):
        def append(self, results: list[CaseResult]) -> None:
            before = len(self.results)
            super().append(results)
            if before < 100 <= len(self.results):
                ending(lost)

    journal = KillingJournal()
    asyncio.run(work([lost, Process()], evaluation(400), Recipe(wait_and_answer), journal, concurrency=20))

    assert Counter(result.number for result in journal.results) == Counter(range(1, 401))
    again = sum(result.asked_again for result in journal.results)
    assert 0 < again <= 20
    assert sum(len(agent.asked) for agent in AGENTS) <= 400 + again
    assert all(result.verdict is Verdict.PASS for result in journal.results)


async def end_process_of_seven(utterance: str) -> GeneratedData:
    if utterance == "question 7":
        PROCESS.get().die()
    return await wait_and_answer(utterance)


def test_a_case_that_ends_every_worker_becomes_an_error_and_the_others_are_judged() -> None:
    found = results_of(evaluation(30), Recipe(end_process_of_seven), concurrency=4)

    assert [result.number for result in found] == list(range(1, 31))
    [lethal] = [result for result in found if result.verdict is not Verdict.PASS]
    assert (lethal.number, lethal.verdict, lethal.asked_again) == (7, Verdict.ERROR, limits.MAX_WORKER_DEATHS - 1)
    assert lethal.error == "5 workers died while this case was asked; the agent may end its process"


class Slots:
    """A shared pace that counts the slots that are reserved."""

    def __init__(self) -> None:
        self.reserved = 0.0

    def reserve(self, *, interval: float, amount: float = 1.0) -> float:
        self.reserved += amount
        return interval / 1000

    def pause(self, seconds: float) -> None:
        raise NotImplementedError

    def pause_left(self) -> float:
        return 0.0


@pytest.mark.parametrize("dies", [False, True])
def test_every_question_of_any_worker_takes_one_slot_of_the_shared_rate(*, dies: bool) -> None:
    AGENTS.clear()
    slots, lost = Slots(), Process()

    class KillingJournal(MemoryJournal):
        def append(self, results: list[CaseResult]) -> None:
            super().append(results)
            if dies and len(AGENTS) == 2:
                lost.die()

    journal = KillingJournal()
    asyncio.run(work([lost, Process()], evaluation(60), Recipe(wait_and_answer), journal, slots, rate_limit=900.0))

    asked = sum(len(agent.asked) for agent in AGENTS)
    assert len({result.number for result in journal.results}) == len(journal.results) == 60
    assert asked <= slots.reserved <= asked + (10 if dies else 0)


BUSY = [0]


async def be_busy_at_first(utterance: str) -> GeneratedData:
    BUSY[0] += 1
    if BUSY[0] <= 8:
        raise SubjectBusy("too many requests", after=0.01)
    return await wait_and_answer(utterance)


def test_an_agent_that_is_busy_in_one_worker_slows_all_workers_down(monkeypatch: pytest.MonkeyPatch) -> None:
    BUSY[0], backed_off = 0, []
    back_off = Pacer.back_off

    def note(self: Pacer, busy: SubjectBusy, *, attempt: int) -> None:
        backed_off.append((attempt, busy.after))
        back_off(self, busy, attempt=attempt)

    monkeypatch.setattr(Pacer, "back_off", note)
    found = results_of(evaluation(100), Recipe(be_busy_at_first), concurrency=8, retries=9)

    assert {result.verdict for result in found} == {Verdict.PASS}
    assert len(backed_off) == 8
    assert {after for _, after in backed_off} == {0.01}


def test_without_a_worker_for_too_long_the_run_stops_and_keeps_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WORKERS_LOST_SECONDS", 0.3)
    lost = Process(comes_back=False)

    class KillingJournal(MemoryJournal):
        def append(self, results: list[CaseResult]) -> None:
            super().append(results)
            lost.die()

    journal = KillingJournal()
    with pytest.raises(ClusterError, match=r"none of 1 workers could be used for 0\.3 s"):
        asyncio.run(work([lost], evaluation(500), Recipe(wait_and_answer), journal, concurrency=4))
    assert 0 < len(journal.results) < 500


def test_a_cluster_without_any_worker_is_an_error_within_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WORKERS_LOST_SECONDS", 0.2)
    lost = Process(comes_back=False, worker=None)
    with pytest.raises(ClusterError, match="none of 1 workers could be used"):
        results_of(evaluation(5), Recipe(answer_orders), lost)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModuleNotFoundError("No module named 'shop'", name="shop"), "the module 'shop' is not installed there"),
        (SettingsError("the model cannot be found"), "the model cannot be found"),
        (ValueError("broken"), "ValueError: broken"),
    ],
)
def test_what_is_missing_where_a_worker_runs_is_named_with_the_machine(error: Exception, told: str) -> None:
    with pytest.raises(ClusterError, match=f"the worker on there cannot run the cases: {told}"):
        results_of(evaluation(5), Unusable(error), Process())
