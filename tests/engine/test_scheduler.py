from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from engine.builders import Agent, MemoryJournal, answer_orders, evaluation
from engine.simulated import run_simulated
from evalmeta import limits
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.runner import execute
from evalmeta.engine.scheduler import Scheduler
from evalmeta.errors import StoreError, StoreLocked, SubjectBusy
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalmeta.engine.interfaces import SharedPace


class Suite:
    """Runs of one definition size that share an agent, which counts what is in flight."""

    def __init__(self, *, runs: int, cases: int, answer: Callable[[str], Awaitable[None]], **options: object) -> None:
        self.options = RunOptions(**options)
        self.answer = answer
        self.in_flight = self.most = 0
        self.asked: list[tuple[float, str]] = []
        self.ended: dict[int, float] = {}
        self.journals = [MemoryJournal() for _ in range(runs)]
        self.evaluations = [Evaluation(f"Test_{run}", "Agent", evaluation(cases).cases) for run in range(runs)]
        self.tasks: list[asyncio.Task[None]] = []
        self.agent = Agent(self._answer)
        self.scheduler = Scheduler()
        self.shared: SharedPace | None = None

    async def _answer(self, utterance: str) -> GeneratedData:
        self.asked.append((now(), utterance))
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await self.answer(utterance)
        finally:
            self.in_flight -= 1
        return GeneratedData("x", "Orders")

    async def run(self) -> None:
        self.tasks = [asyncio.ensure_future(self._run(run, self.scheduler)) for run in range(len(self.journals))]
        await asyncio.wait(self.tasks)

    async def _run(self, run: int, scheduler: Scheduler) -> None:
        async with scheduler.pool("Agent", self.options, shared=self.shared).open_run() as places:
            journal = self.journals[run]
            await execute(self.evaluations[run], self.agent, journal, options=self.options, places=places)
            self.ended[run] = now()

    @property
    def results(self) -> list[int]:
        return [len(journal.results) for journal in self.journals]


def now() -> float:
    return asyncio.get_running_loop().time()


async def take_a_second(_utterance: str) -> None:
    await asyncio.sleep(1)


@pytest.mark.parametrize(("runs", "cases"), [(20, 3), (3, 20), (60, 1), (1, 60)])
def test_all_runs_together_use_the_whole_concurrency_and_no_more(runs: int, cases: int) -> None:
    suite = Suite(runs=runs, cases=cases, answer=take_a_second, concurrency=10)
    run_simulated(suite.run())
    assert suite.most == 10
    assert max(suite.ended.values()) == pytest.approx(6, abs=0.1)
    assert suite.results == [cases] * runs


def test_cases_are_asked_in_the_order_of_their_runs_and_each_run_ends_with_its_last_case() -> None:
    suite = Suite(runs=4, cases=5, answer=take_a_second, concurrency=5)
    run_simulated(suite.run())
    assert [when for when, _ in suite.asked] == pytest.approx([each // 5 for each in range(20)], abs=0.1)
    assert list(suite.ended.values()) == pytest.approx([1, 2, 3, 4], abs=0.1)


def test_a_slow_case_delays_only_its_own_run() -> None:
    async def answer(_utterance: str) -> None:
        await asyncio.sleep(100 if len(suite.asked) == 1 else 1)

    suite = Suite(runs=3, cases=4, answer=answer, concurrency=2)
    run_simulated(suite.run())
    assert suite.ended[0] == pytest.approx(100, abs=0.1)
    assert [suite.ended[1], suite.ended[2]] == pytest.approx([7, 11], abs=0.1)


def test_runs_together_never_exceed_the_rate() -> None:
    suite = Suite(runs=20, cases=3, answer=take_a_second, concurrency=10, rate_limit=2)
    run_simulated(suite.run())
    times = [when for when, _ in suite.asked]
    assert all(later - earlier >= 0.5 - 1e-6 for earlier, later in pairwise(times))
    assert times[-1] == pytest.approx(59 / 2, abs=0.1)


def test_a_busy_agent_makes_all_runs_wait() -> None:
    async def answer(_utterance: str) -> None:
        if len(suite.asked) == 1:
            raise SubjectBusy("too many requests", after=30)
        await asyncio.sleep(1)

    suite = Suite(runs=4, cases=1, answer=answer, concurrency=1, retries=3)
    run_simulated(suite.run())
    assert [when for when, _ in suite.asked] == pytest.approx([0, 30, 31, 32, 33], abs=0.1)
    assert suite.results == [1] * 4


@pytest.mark.parametrize("when", [0.0, 0.5, 1.5, 2.5])
@pytest.mark.parametrize("cancelled", [0, 1, 2])
def test_a_cancelled_run_does_not_stop_the_others(cancelled: int, when: float) -> None:
    async def cancel_one() -> None:
        running = asyncio.ensure_future(suite.run())
        await asyncio.sleep(when)
        suite.tasks[cancelled].cancel()
        await running

    suite = Suite(runs=4, cases=4, answer=take_a_second, concurrency=4)
    run_simulated(cancel_one())
    others = [count for run, count in enumerate(suite.results) if run != cancelled]
    assert others == [4, 4, 4]
    assert (suite.most, suite.in_flight) == (4, 0)


def test_only_the_runs_that_are_needed_are_open() -> None:
    async def answer(_utterance: str) -> None:
        opened.append(suite.agent.opened)
        await asyncio.sleep(1)

    opened: list[int] = []
    suite = Suite(runs=50, cases=2, answer=answer, concurrency=4)
    first_results = []

    async def count_open_runs() -> None:
        running = asyncio.ensure_future(suite.run())
        await asyncio.sleep(0.5)
        first_results.append(sum(1 for _, utterance in suite.asked))
        await running

    run_simulated(count_open_runs())
    assert first_results == [4]
    assert max(suite.ended.values()) == pytest.approx(25, abs=0.1)


def test_agents_do_not_share_their_places() -> None:
    scheduler, options = Scheduler(), RunOptions(concurrency=2)
    assert scheduler.pool("A", options) is scheduler.pool("A", options)
    assert scheduler.pool("A", options) is not scheduler.pool("B", options)


def test_the_lowest_rate_and_the_highest_concurrency_of_an_agents_runs_apply() -> None:
    suite = Suite(runs=2, cases=3, answer=take_a_second, concurrency=3)

    async def with_other_options() -> None:
        scheduler = Scheduler()
        scheduler.pool("Agent", RunOptions(rate_limit=5, concurrency=1))
        scheduler.pool("Agent", RunOptions(rate_limit=0.5))
        await suite._run(0, scheduler)  # noqa: SLF001 - one run of the suite

    run_simulated(with_other_options())
    assert [when for when, _ in suite.asked] == pytest.approx([0, 2, 4], abs=0.1)


class _Clocked:
    """The rate of an agent that two schedulers share, as two processes do."""

    def __init__(self) -> None:
        self.next_slot = self.paused_until = 0.0
        self.reserved: list[float] = []
        self.looks = 0

    def reserve(self, *, interval: float, amount: float = 1.0) -> float:
        slot = max(now(), self.next_slot, self.paused_until)
        self.next_slot = slot + interval * amount
        self.reserved.append(amount)
        return slot - now()

    def pause(self, seconds: float) -> None:
        self.paused_until = now() + seconds

    def pause_left(self) -> float:
        self.looks += 1
        return max(0.0, self.paused_until - now())


def test_processes_that_share_a_high_rate_reserve_slices_of_it_and_keep_to_it() -> None:
    async def run_all() -> None:
        for suite in suites:
            suite.shared = shared
        await asyncio.gather(*(suite.run() for suite in suites))

    async def answer(utterance: str) -> None:
        asked.append(now())
        await take_a_second(utterance)

    asked: list[float] = []
    shared, rate = _Clocked(), 100
    suites = [Suite(runs=2, cases=200, answer=answer, rate_limit=rate, concurrency=100) for _ in range(3)]
    run_simulated(run_all())
    assert len(asked) == sum(shared.reserved) == 1_200
    assert asked[-1] == pytest.approx(1_199 / rate, rel=0.05)
    in_a_second = [sum(begun <= when < begun + 1 - 1e-6 for when in asked) for begun in asked]
    assert max(in_a_second) <= rate + rate * limits.PACE_SLICE_SECONDS
    assert max(shared.reserved) == rate * limits.PACE_SLICE_SECONDS
    assert len(shared.reserved) < 1_200 / 5


def test_no_more_slots_are_reserved_than_requests_wait_for() -> None:
    shared = _Clocked()
    suite = Suite(runs=1, cases=40, answer=take_a_second, rate_limit=1_000, concurrency=4)
    suite.shared = shared
    run_simulated(suite.run())
    assert sum(shared.reserved) == 40
    assert 1 < max(shared.reserved) <= 4


def test_slots_before_the_end_of_a_back_off_are_given_up() -> None:
    async def answer(_utterance: str) -> None:
        asked.append(now())
        if len(asked) == 3:
            raise SubjectBusy("too many requests", after=60)

    asked: list[float] = []
    shared = _Clocked()
    suite = Suite(runs=1, cases=30, answer=answer, rate_limit=100, concurrency=20, retries=3)
    suite.shared = shared
    run_simulated(suite.run())
    later = [when for when in asked if when >= asked[2] + 60]
    assert len(asked) == 31
    assert len(later) == 28
    assert all(second - first >= 0.01 - 1e-6 for first, second in pairwise(later))


@pytest.mark.parametrize("watches", [True, False])
def test_without_a_rate_the_back_off_of_another_process_is_seen_within_a_slice_of_time(*, watches: bool) -> None:
    async def send_all() -> None:
        shared = _Clocked()
        mine, other = (Pacer(concurrency=1, shared=shared, watches=watches) for _ in range(2))
        assert mine.is_free != watches
        await mine.enter()
        mine.leave()
        other.back_off(SubjectBusy("too many requests", after=60), attempt=1)
        for _ in range(50):
            await mine.enter()
            sent.append(now())
            await asyncio.sleep(0.1)
            mine.leave()
        looks.append(shared.looks)

    sent: list[float] = []
    looks: list[int] = []
    run_simulated(send_all())
    assert len([when for when in sent if when < 60]) == (2 if watches else 50)
    assert looks[0] <= (30 if watches else 0)


def test_processes_that_share_a_rate_never_exceed_it_together() -> None:
    async def answer(_utterance: str) -> None:
        asked.append(now())
        if len(asked) == 10:
            raise SubjectBusy("too many requests", after=60)

    async def run_both() -> None:
        shared = _Clocked()
        for suite in suites:
            suite.shared = shared
        await asyncio.gather(*(suite.run() for suite in suites))

    asked: list[float] = []
    suites = [Suite(runs=3, cases=3, answer=answer, rate_limit=2, retries=3) for _ in range(2)]
    run_simulated(run_both())
    assert len(asked) == 19
    assert all(later - earlier >= 0.5 - 1e-6 for earlier, later in pairwise(asked))
    assert asked[10] >= asked[9] + 60


class _Locked:
    def reserve(self, *, interval: float, amount: float = 1.0) -> float:
        raise StoreError(f"locked for {interval} and {amount}")

    def pause(self, seconds: float) -> None:
        raise StoreError(f"locked for {seconds}")

    def pause_left(self) -> float:
        raise StoreError("locked")


def test_a_locked_database_is_not_an_error_of_the_agent_and_the_rate_is_kept() -> None:
    suite = Suite(runs=2, cases=3, answer=take_a_second, rate_limit=2)
    suite.shared = _Locked()
    run_simulated(suite.run())
    times = [when for when, _ in suite.asked]
    assert {result.verdict for journal in suite.journals for result in journal.results} == {Verdict.PASS}
    assert all(later - earlier >= 0.5 - 1e-6 for earlier, later in pairwise(times))


def test_a_run_that_is_stopped_leaves_at_most_one_reserved_slot() -> None:
    async def stop() -> None:
        running = asyncio.ensure_future(suite.run())
        await asyncio.sleep(1)
        for task in suite.tasks:
            task.cancel()
        await running
        assert shared.next_slot <= now() + 20

    shared = _Clocked()
    suite = Suite(runs=1, cases=30, answer=take_a_second, rate_limit=0.1, concurrency=10)
    suite.shared = shared
    run_simulated(stop())


class _SharedPlaces:
    """The places that processes share; the errors of each kind come first."""

    def __init__(self, *, take: list[StoreError], leave: list[StoreError]) -> None:
        self.errors = {"take": take, "leave": leave}
        self.taken = 0

    def take(self, wanted: int, *, size: int) -> int:
        self._raise("take")
        granted = min(wanted, size - self.taken)
        self.taken += granted
        return granted

    def leave(self, count: int) -> None:
        self._raise("leave")
        self.taken -= count

    def _raise(self, kind: str) -> None:
        if self.errors[kind]:
            raise self.errors[kind].pop(0)


async def run_sharing(shared: _SharedPlaces) -> MemoryJournal:
    options, journal = RunOptions(concurrency=1), MemoryJournal()
    async with Scheduler().pool("Agent", options).open_run() as places:
        places.shared = shared
        await execute(evaluation(2), Agent(answer_orders), journal, options=options, places=places)
        await asyncio.sleep(1)
    return journal


def test_places_that_cannot_be_given_back_at_once_are_given_back_later() -> None:
    shared = _SharedPlaces(take=[StoreLocked("locked")], leave=[StoreLocked("locked"), StoreError("the disk is full")])
    assert len(run_simulated(run_sharing(shared)).results) == 2
    assert (shared.taken, shared.errors["leave"]) == (0, [])


def test_a_run_that_can_get_no_more_places_ends() -> None:
    with pytest.raises(StoreError, match="taken over"):
        run_simulated(run_sharing(_SharedPlaces(take=[StoreError("taken over")], leave=[])))
