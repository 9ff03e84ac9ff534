from __future__ import annotations

import subprocess
import sys
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import Run, RunContent, RunStatus
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.store.agent_limits import Pace, RunPlaces, RunSpending
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, Runs
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.store.database import Database


TESTS = Path(__file__).parent.parent
# As the pacer does, a process tries again later if others have locked the database for a second.
RESERVE = """
import sys
from pathlib import Path
from evalmeta.errors import StoreLocked
from evalmeta.store.database import open_database
from evalmeta.store.agent_limits import Pace
from stores import store_in
with open_database(store_in(Path(sys.argv[1]))) as database:
    pace = Pace(database, "Agent", clock=lambda: 1000.0)
    left = [int(number) for number in sys.argv[2:]]
    while left:
        try:
            print(pace.reserve(interval=0.5, amount=left[-1]), left[-1])
        except StoreLocked:
            continue
        left.pop()
"""


def reserve_together(folder: Path, slots: list[int], *, processes: int) -> list[float]:
    """Return the slots that processes reserve, each of them these numbers of slots at a time."""
    with open_database(store_in(folder)):
        command = [sys.executable, "-c", RESERVE, str(folder), *map(str, slots)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS) for _ in range(processes)]
        lines = [line.split() for process in running for line in process.communicate()[0].splitlines()]
    return sorted(float(first) + 0.5 * place for first, count in lines for place in range(int(count)))


@pytest.mark.slow
@pytest.mark.parametrize("slots", [[1] * 50, [*range(1, 21)]], ids=["one by one", "slices"])
def test_slots_of_several_processes_neither_overlap_nor_leave_gaps(tmp_path: Path, slots: list[int]) -> None:
    reserved = reserve_together(tmp_path, slots, processes=4)
    assert reserved == [0.5 * place for place in range(4 * sum(slots))]


SEND = """
import asyncio, sys, time
from pathlib import Path
from evalmeta.engine.pacer import Pacer
from evalmeta.store.database import open_database
from evalmeta.store.agent_limits import Pace
from stores import store_in

class Recorded(Pace):
    def reserve(self, *, interval, amount):
        first = super().reserve(interval=interval, amount=amount)
        print("slots", read[-1] + first, amount)
        return first

async def send(pacer):
    await pacer.enter()
    print("sent", time.time(), 1)
    pacer.leave()

async def send_all(database, rate):
    pace = Recorded(database, "Agent", clock=lambda: read.append(time.time()) or read[-1])
    pacer = Pacer(rate=rate, concurrency=200, shared=pace)
    await asyncio.gather(*(send(pacer) for _ in range(200)))

read = []
with open_database(store_in(Path(sys.argv[1]))) as database:
    asyncio.run(send_all(database, float(sys.argv[2])))
"""


@pytest.mark.slow
def test_requests_of_several_processes_are_at_most_a_slice_above_the_rate_in_any_second(tmp_path: Path) -> None:
    rate, processes, requests = 400, 3, 600
    with open_database(store_in(tmp_path)):
        command = [sys.executable, "-c", SEND, str(tmp_path), str(rate)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS) for _ in range(processes)]
        lines = [line.split() for process in running for line in process.communicate()[0].splitlines()]
    sent = sorted(float(when) for what, when, _ in lines if what == "sent")
    reserved = [(float(when), int(count)) for what, when, count in lines if what == "slots"]
    slots = sorted(when + place / rate for when, count in reserved for place in range(count))
    assert len(sent) == requests <= len(slots)
    assert all(later - earlier >= 1 / rate - 1e-5 for earlier, later in pairwise(slots))
    in_a_second = [bisect_left(sent, begun + 1) - place for place, begun in enumerate(sent)]
    # A process that is late for a slot sends a request between those of the others.
    assert max(in_a_second) <= rate + rate * limits.PACE_SLICE_SECONDS + processes
    # One for each request before; the first is reserved when nothing else waits yet, and slots may be too late to use.
    assert len(reserved) < requests / 10


@pytest.mark.sqlite
def test_each_change_is_one_statement(tmp_path: Path) -> None:
    with open_database(tmp_path) as database:
        statements: list[str] = []
        database._connection.set_trace_callback(statements.append)  # type: ignore[attr-defined]  # noqa: SLF001
        pace = Pace(database, "A", clock=lambda: 1000.0)
        pace.reserve(interval=1, amount=3)
        pace.pause(3)
        assert [text.split()[0] for text in statements if "PRAGMA" not in text] == ["BEGIN", "INSERT", "COMMIT"] * 2


def test_amounts_need_not_be_whole(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        pace = Pace(database, "dollars", clock=lambda: 1000.0)
        assert [pace.reserve(interval=60, amount=amount) for amount in (0.25, 1.5, 1)] == [0, 15, 105]


def test_a_process_that_waited_for_the_lock_gets_no_slot_of_another(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        assert Pace(database, "A", clock=lambda: 1000.9).reserve(interval=0.1, amount=2) == 0
        late = Pace(database, "A", clock=lambda: 1000.0)
        assert [late.reserve(interval=0.1) for _ in range(2)] == pytest.approx([1.1, 1.2])


def test_a_pause_moves_the_next_slot_and_agents_have_slots_of_their_own(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        pace = Pace(database, "A", clock=lambda: 1000.0)
        pace.pause(30)
        pace.pause(10)
        assert pace.pause_left() == 30
        assert [pace.reserve(interval=2) for _ in range(2)] == [30, 32]
        assert Pace(database, "B", clock=lambda: 1000.0).reserve(interval=2) == 0


@pytest.mark.parametrize("back", [10, 3_600, 1_000_000])
@pytest.mark.parametrize("interval", [0.1, 6])
def test_a_clock_that_is_set_back_changes_neither_the_pause_nor_the_interval(
    tmp_path: Path, back: float, interval: float
) -> None:
    with open_database(store_in(tmp_path)) as database:
        before = Pace(database, "A", clock=lambda: 2_000_000.0)
        before.pause(30)
        before.reserve(interval=interval)
        after = Pace(database, "A", clock=lambda: 2_000_000.0 - back)
        assert after.pause_left() == 30
        assert [after.reserve(interval=interval) for _ in range(2)] == pytest.approx([30 + interval, 30 + 2 * interval])


def test_a_clock_that_is_set_forward_ends_a_pause_and_keeps_the_interval(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        Pace(database, "A", clock=lambda: 1000.0).pause(30)
        after = Pace(database, "A", clock=lambda: 4600.0)
        assert [after.reserve(interval=2) for _ in range(2)] == [0, 2]


def test_slots_after_a_pause_keep_the_interval(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        pace = Pace(database, "A", clock=lambda: 1000.0)
        pace.pause(60)
        assert [round(pace.reserve(interval=0.001), 3) for _ in range(3)] == [60, 60.001, 60.002]


class Org:
    """Runs of one agent, whose workers are named after them, and a clock."""

    def __init__(self, database: Database, runs: int) -> None:
        self.database, self.runs, self.now = database, Runs(database), 1000.0
        evaluation = Evaluation("Test", "Agent", ())
        self.ids = [
            self.runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b""), RunOptions(), total=3, now=self.now)
            for _ in range(runs)
        ]
        self.dead: set[str] = set()

    def claim(self, run: int) -> RunPlaces:
        worker = f"worker {run}"
        lease = self.runs.lease(self.ids[run])
        assert self.runs.claim(self.ids[run], worker, taken_from=lease, until=self.now + 1000, now=self.now)
        found = self.runs.get(self.ids[run])
        assert found
        return RunPlaces(self.database, found, worker, is_free=self._is_free, clock=lambda: self.now)

    def _is_free(self, lease: Lease) -> bool:
        return lease.worker is None or lease.worker in self.dead


@pytest.fixture
def org(tmp_path: Path) -> Iterator[Org]:
    """An org with three runs."""
    with open_database(store_in(tmp_path)) as database:
        yield Org(database, 3)


def test_runs_share_the_places_in_the_order_in_which_they_were_created(org: Org) -> None:
    first, second, third = (org.claim(run) for run in range(3))
    # The first run has a worker, which has not asked for places yet.
    assert second.take(5, size=10) == 0
    assert first.take(6, size=10) == 6
    assert third.take(5, size=10) == 0
    assert second.take(5, size=10) == 4
    assert third.take(5, size=10) == 0
    first.leave(2)
    # The second run still wants a place.
    assert third.take(5, size=10) == 0
    assert second.take(1, size=10) == 1
    assert third.take(5, size=10) == 1


def test_the_places_of_a_worker_that_died_become_free(org: Org) -> None:
    first, second, _ = (org.claim(run) for run in range(3))
    assert (first.take(10, size=10), second.take(1, size=10)) == (10, 0)
    org.dead.add("worker 0")
    # Its next worker is expected to start soon.
    assert second.take(1, size=10) == 0
    org.now += 6
    assert second.take(1, size=10) == 1


def test_the_places_of_a_run_that_is_over_become_free(org: Org) -> None:
    first, second, _ = (org.claim(run) for run in range(3))
    assert (first.take(10, size=10), second.take(1, size=10)) == (10, 0)
    org.runs.finish(org.ids[0], "worker 0", RunStatus.COMPLETED, error=None, now=org.now)
    assert second.take(1, size=10) == 1


def test_a_run_whose_worker_gives_no_sign_does_not_keep_free_places_from_others(org: Org) -> None:
    first, second, _ = (org.claim(run) for run in range(3))
    assert (first.take(10, size=5), second.take(1, size=5)) == (5, 0)
    first.take(5, size=5)
    org.now += 6
    assert second.take(1, size=6) == 1


def test_the_highest_concurrency_of_the_runs_applies(org: Org) -> None:
    first, second, _ = (org.claim(run) for run in range(3))
    assert (first.take(10, size=10), second.take(5, size=2)) == (10, 0)
    first.leave(4)
    assert second.take(5, size=2) == 4


def test_a_run_that_was_canceled_or_taken_over_gets_no_places(org: Org) -> None:
    first, second, _ = (org.claim(run) for run in range(3))
    org.runs.cancel(org.ids[0], error="canceled", now=org.now)
    org.runs.release(org.ids[1], "worker 1")
    for places in (first, second):
        with pytest.raises(StoreError, match="is over, or was taken over"):
            places.take(1, size=10)


def test_a_clock_that_was_set_back_makes_no_run_wait(org: Org) -> None:
    second = org.claim(1)
    org.now -= 3600
    assert second.take(1, size=10) == 1


def test_an_earlier_run_that_wants_places_still_comes_first_after_the_clock_was_set_back(org: Org) -> None:
    first, second = org.claim(0), org.claim(1)
    assert first.take(10, size=10) == 10
    assert first.take(5, size=10) == 0
    org.now -= 3600
    assert first.take(5, size=10) == 0
    assert second.take(1, size=11) == 0


TAKE = """
import sys
from pathlib import Path
from evalmeta.store.database import open_database
from evalmeta.store.agent_limits import RunPlaces
from evalmeta.store.runs import Runs
from stores import store_in
with open_database(store_in(Path(sys.argv[1]))) as database:
    run = Runs(database).get(sys.argv[2])
    places, taken = RunPlaces(database, run, sys.argv[3], is_free=lambda _: False, clock=lambda: 2000.0), 0
    for _ in range(100):
        taken += places.take(3, size=200)
    print(taken)
"""


@pytest.mark.slow
def test_several_processes_never_take_more_places_than_there_are(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        org = Org(database, 3)
        for run in range(3):
            org.claim(run)
        commands = [[sys.executable, "-c", TAKE, str(tmp_path), org.ids[run], f"worker {run}"] for run in range(3)]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS) for command in commands]
        taken = [int(process.communicate()[0]) for process in processes]
    assert sum(taken) == 200


def test_the_runs_of_a_command_know_what_those_of_other_processes_have_spent(tmp_path: Path) -> None:
    with open_database(store_in(tmp_path)) as database:
        runs = Runs(database)

        def created(suite: str) -> Run:
            options = RunOptions(origin=Origin(suite))
            content = RunContent(b"<AiEvaluationDefinition/>")
            run_id = runs.start(EVALUATION_DEFINITION, Evaluation("T", "A", ()), content, options, total=1, now=1_000.0)
            run = runs.get(run_id)
            assert run is not None
            return run

        mine, neighbour, other, stranger = map(created, ("one", "one", "one", "two"))
        here = {mine.id: 0, neighbour.id: 0}
        shared = RunSpending(database, mine, here)
        for run, amount in ((neighbour, 5), (other, 6 * 10**15), (stranger, 7)):
            RunSpending(database, run, {run.id: 0}).exchange(amount)

        # The sums of this process are known here, and each exchange replaces what a run said before.
        assert [shared.exchange(spent) for spent in (0, 9, 9)] == [6 * 10**15] * 3
        assert RunSpending(database, other, {other.id: 0}).exchange(8) == 9 + 5
        assert shared.exchange(9) == 8

        # A run that continues here counts here, also while the store is locked.
        with open_database(store_in(tmp_path)) as holder, holder.transaction():
            holder.execute("DELETE FROM pace")
            here[other.id] = 8
            assert shared.exchange(10) == 0


def test_a_store_that_is_locked_does_not_stop_a_run_with_a_cost_limit(tmp_path: Path) -> None:
    with open_database(tmp_path) as database, open_database(tmp_path) as holder:
        run = Run("4KB000000000001GAA", "T", "A", RunStatus.IN_PROGRESS, 0.0, 1)
        shared = RunSpending(database, run, {})
        with holder.transaction():
            holder.execute("DELETE FROM pace")
            assert shared.exchange(1) == 0
