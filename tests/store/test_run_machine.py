"""The run queue and its journal in any order of calls, with reopened databases, against plain dictionaries."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from evalmeta.errors import StoreError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, RunJournal, Runs
from examples import at_most

WORKERS = st.sampled_from(["first", "second"])
OVER = {"COMPLETED", "ERROR", "TERMINATED"}


@dataclass
class Expected:
    """What a run must be."""

    user: str
    created: float
    total: int = 2
    status: str = "NEW"
    worker: str | None = None
    until: float | None = None
    results: set[tuple[int, int]] = field(default_factory=set)


class RunQueue(RuleBasedStateMachine):
    """Runs of two users that two workers claim, work on, lose and end, while others cancel and extend them."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runs: dict[str, Expected] = {}
        self.now = 1.0
        self.open()
        self.users = {"admin": ADMIN, "desk": User("005000000000009AAA", "desk@evalmeta.local", "Desk")}

    def open(self) -> None:
        self.database = open_database(Path(self.folder.name))
        self.store = Runs(self.database)

    def teardown(self) -> None:
        self.database.close()
        self.folder.cleanup()

    @rule(target=ids, user=st.sampled_from(["admin", "desk"]))
    def start(self, user: str) -> str:
        self.now += 1
        tested = Evaluation("Orders", "Desk", ())
        run_id = self.store.start(
            EVALUATION_DEFINITION,
            tested,
            RunContent(b"<x/>"),
            RunOptions(),
            total=2,
            now=self.now,
            user=self.users[user],
        )
        self.runs[run_id] = Expected(user, self.now)
        return run_id

    @rule(run_id=ids, worker=WORKERS, is_outdated=st.booleans())
    def claim(self, run_id: str, worker: str, *, is_outdated: bool) -> None:
        """Claim a run with the lease that it has, or with one that another worker has changed meanwhile."""
        expected, until = self.runs[run_id], self.now + 100 + len(self.runs)
        lease = Lease("nobody", 1.0) if is_outdated else self.store.lease(run_id)
        may = expected.status not in OVER and not is_outdated
        assert self.store.claim(run_id, worker, taken_from=lease, until=until, now=self.now) is may
        if may:
            expected.status, expected.worker, expected.until = "IN_PROGRESS", worker, until

    @rule(run_id=ids, worker=WORKERS)
    def renew(self, run_id: str, worker: str) -> None:
        expected = self.runs[run_id]
        is_owner = expected.worker == worker
        self.now += 1
        assert self.store.renew(run_id, worker, until=self.now + 50) is is_owner
        if is_owner:
            expected.until = self.now + 50

    @rule(run_id=ids, worker=WORKERS, number=st.integers(1, 3))
    def append(self, run_id: str, worker: str, number: int) -> None:
        """Only the owner can add a result, and a case that has one keeps it."""
        expected, case = self.runs[run_id], CaseResult(number, 1, "Hi", Verdict.PASS, 1.0, 2.0, ())
        journal = RunJournal(self.database, run_id, worker)
        if expected.worker == worker:
            journal.append([case])
            expected.results.add((1, number))
        else:
            with pytest.raises(StoreError):
                journal.append([case])

    @rule(run_id=ids, worker=WORKERS)
    def release(self, run_id: str, worker: str) -> None:
        expected = self.runs[run_id]
        is_owner = expected.worker == worker
        assert self.store.release(run_id, worker) is is_owner
        if is_owner:
            expected.worker = expected.until = None

    @rule(run_id=ids, worker=WORKERS, status=st.sampled_from([RunStatus.COMPLETED, RunStatus.ERROR]))
    def finish(self, run_id: str, worker: str, status: RunStatus) -> None:
        expected = self.runs[run_id]
        self.store.finish(run_id, worker, status, error=None, now=self.now)
        if expected.worker == worker:
            expected.status, expected.worker, expected.until = status.value, None, None

    @rule(run_id=ids)
    def cancel(self, run_id: str) -> None:
        expected = self.runs[run_id]
        may = expected.status not in OVER
        assert self.store.cancel(run_id, error="canceled", now=self.now) is may
        if may:
            expected.status, expected.worker, expected.until = "TERMINATED", None, None

    @rule(run_id=ids, total=st.integers(1, 6))
    def extend(self, run_id: str, total: int) -> None:
        expected = self.runs[run_id]
        may = expected.status in OVER and (total, expected.status == "ERROR") > (expected.total, False)
        assert self.store.extend(run_id, RunOptions(iterations=3), total=total) is may
        if may:
            expected.status, expected.total = "NEW", total

    @rule()
    def reopen(self) -> None:
        self.database.close()
        self.open()

    @invariant()
    def runs_are_as_expected(self) -> None:
        for run_id, expected in self.runs.items():
            run = self.store.get(run_id)
            assert run is not None
            assert (run.status.value, run.total) == (expected.status, expected.total)
            assert self.store.lease(run_id) == Lease(expected.worker, expected.until)
            assert RunJournal(self.database, run_id, "").finished() == expected.results

    def _created(self, run_id: str) -> float:
        return self.runs[run_id].created

    @invariant()
    def users_take_turns(self) -> None:
        waiting: dict[str, list[str]] = {"admin": [], "desk": []}
        for run_id, each in sorted(self.runs.items(), key=lambda pair: (pair[1].created, pair[0])):
            if each.status not in OVER:
                waiting[each.user].append(run_id)
        rounds = [
            sorted(
                (runs[turn] for runs in waiting.values() if turn < len(runs)), key=lambda run: self.runs[run].created
            )
            for turn in range(max(map(len, waiting.values())))
        ]
        assert [run_id for run_id, _ in self.store.queue()] == [run_id for turn in rounds for run_id in turn]


# Each example needs a store of its own.
TestRunQueue = pytest.mark.sqlite(RunQueue.TestCase)
TestRunQueue.settings = settings(max_examples=at_most(200), stateful_step_count=30, deadline=None)
