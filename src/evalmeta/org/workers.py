"""Workers for runs: tasks of this process, or processes that outlive it."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import EXIT_ORG, StoreError, StoreLocked, Suggestion
from evalmeta.model.redaction import child_environment
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import RunStatus
from evalmeta.org.lease import is_free, new_worker
from evalmeta.org.run_worker import SHARED, RunResources, work
from evalmeta.package.project import ON_VARIABLE
from evalmeta.package.trust import private_opener, state_file
from evalmeta.store.sqlite import make_state_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.model.store import Store
    from evalmeta.org.organization import Organization


_LOG: Final = logging.getLogger(__name__)
# The longest time before a waiting run starts after another has ended.
_POLL_SECONDS: Final = 0.25
# References are kept so that Python does not warn that a process is still running.
_DETACHED: Final[list[subprocess.Popen[bytes]]] = []


class InProcessWorkers:
    """Execute runs as tasks of this process; `close` stops them and keeps finished results.

    With `shares_places`, other processes share the concurrency of each agent. `on` is the cluster that asks the cases.
    """

    def __init__(self, *, shares_places: bool = False, on: str = "") -> None:
        self._tasks: dict[str, asyncio.Task[StoreError | None]] = {}
        self._stuck: dict[tuple[str, int], float] = {}
        self._resources = RunResources(shares_places=shares_places, on=on)
        self.org: Organization | None = None

    def launch(self, run_id: str) -> None:
        """Start to work on a run, unless this process already does.

        Raise StoreError if an earlier attempt failed because the database cannot be used, or was locked for too long.
        Another attempt would call the agent again without keeping results.
        """
        running = self._tasks.get(run_id)
        if self.org is None or (running is not None and not running.done()):
            return
        if running is not None and not running.cancelled() and (error := running.result()):
            self._refuse_broken(self.org, run_id, error)
        self._tasks[run_id] = asyncio.get_running_loop().create_task(_try_to_work(self.org, run_id, self._resources))

    def _refuse_broken(self, org: Organization, run_id: str, error: StoreError) -> None:
        # A lock is transient, unless the run has made no progress for too long.
        since = self._stuck.setdefault((run_id, org.runs.count(run_id).total()), time.monotonic())
        if isinstance(error, StoreLocked) and time.monotonic() - since < limits.LOCKED_SECONDS:
            return
        actions = [*error.actions, Suggestion("Resume it", "test", "resume", "--job-id", run_id)]
        raise StoreError(f"run {run_id} stopped: {error}", actions=actions)

    async def close(self) -> None:
        """Stop all work and wait a few seconds at most until results are kept."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=2 * limits.SHUTDOWN_SECONDS)
        await self._resources.close()


class DetachedWorker:
    """Collect runs and, on `close`, start one process that executes them in order and outlives this one."""

    def __init__(self, project_root: Path, store: Store, *, shares_places: bool = False, on: str = "") -> None:
        self._project_root = project_root
        self._store = store
        self._on = on
        self._options = (SHARED,) if shares_places else ()
        self._run_ids: list[str] = []

    def launch(self, run_id: str) -> None:
        """Add a run to the list."""
        if run_id not in self._run_ids:
            self._run_ids.append(run_id)

    async def close(self) -> None:
        """Start the process, which logs to the state folder; after StoreError, the runs can be resumed."""
        if not self._run_ids:
            return
        try:
            _DETACHED.append(_start(self._project_root, self._store, self._run_ids, *self._options, on=self._on))
        except OSError as error:
            raise StoreError(
                f"cannot start a worker for run {', '.join(self._run_ids)}: {error}",
                actions=[Suggestion("Resume it", "test", "resume", "--job-id", run_id) for run_id in self._run_ids],
            ) from None


class ServedWorkers:
    """Start a process for every run, which outlives this one; run at most ten at a time, others wait as NEW.

    Users take turns. All state comes from the database, so runs that another server or worker of the project has left
    are resumed.
    """

    def __init__(self, project_root: Path, store: Store) -> None:
        self._project_root = project_root
        self._store = store
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._deaths: Counter[tuple[str, int]] = Counter()
        self._not_before: dict[str, float] = {}
        self._wanted = asyncio.Event()

    def launch(self, _: str) -> None:
        """Wake the loop that reads waiting runs from the database."""
        self._wanted.set()

    async def watch(self, org: Organization) -> None:
        """Start waiting runs until this is cancelled; the processes keep running then."""
        try:
            while True:
                with suppress(StoreError):
                    self._start_waiting(org)
                self._wanted.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS):
                        await self._wanted.wait()
        finally:
            _DETACHED.extend(self._processes.values())

    def _start_waiting(self, org: Organization) -> None:
        self._count_deaths(org)
        unfinished, now = org.runs.queue(org.project), org.database.now()
        waiting = [run_id for run_id, lease in unfinished if run_id not in self._processes and is_free(lease, now=now)]
        due = [run_id for run_id in waiting if self._not_before.get(run_id, 0) <= time.monotonic()]
        room = limits.MAX_RUNS - (len(unfinished) - len(waiting))
        for run_id in due[: max(0, room)]:
            if self._deaths[run_id, org.runs.count(run_id).total()] >= limits.MAX_WORKER_DEATHS:
                _give_up(org, run_id)
                continue
            try:
                self._processes[run_id] = _start(self._project_root, self._store, [run_id], SHARED)
            except OSError as error:
                _LOG.warning("cannot start a worker for run %s: %s", run_id, error)

    def _count_deaths(self, org: Organization) -> None:
        """Remove processes that have ended, and count those that made no progress with their run."""
        for run_id in [run_id for run_id, process in self._processes.items() if process.poll() is not None]:
            code = self._processes.pop(run_id).returncode
            if code == EXIT_ORG:
                # An unusable database may be transient, such as a full disk, and does not count as a death.
                self._not_before[run_id] = time.monotonic() + limits.LOCKED_SECONDS
                continue
            run = org.runs.get(run_id)
            if run is not None and not run.status.is_over:
                self._deaths[run_id, org.runs.count(run_id).total()] += 1


def _give_up(org: Organization, run_id: str) -> None:
    worker, now = new_worker(), org.database.now()
    if org.runs.claim(run_id, worker, taken_from=org.runs.lease(run_id), until=now + limits.RUN_LEASE_SECONDS):
        error = f"{limits.MAX_WORKER_DEATHS} workers in a row died during this run; the agent may end its process"
        org.runs.finish(run_id, worker, RunStatus.ERROR, error=error, now=now)


def _start(
    project_root: Path, store: Store, run_ids: Sequence[str], *options: str, on: str = ""
) -> subprocess.Popen[bytes]:
    path = state_file(store.folder, "logs", f"{run_ids[0]}.log")
    make_state_folder(store.folder)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    sweep_run_logs(store.folder, kept=limits.MAX_RUN_LOGS)
    with open(path, "ab", opener=private_opener) as log:
        # -P: a file of the project must not replace a module of the standard library with the same name.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "evalmeta.org.run_worker", *options, str(project_root), *run_ids],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=project_root,
            env=child_environment(**store.variables, **({ON_VARIABLE: on} if on else {})),
        )


def sweep_run_logs(state_dir: Path, *, kept: int = 0) -> None:
    """Delete the logs of the workers of all runs but the newest ones."""
    folder = state_file(state_dir, "logs", "run.log").parent
    logs = (path for path in folder.glob("*.log") if type_of_run(path.stem))
    # Ids of one kind ascend; the log of a worker that still runs is among the newest.
    by_age = sorted(logs, key=lambda path: path.stem[3:], reverse=True)
    for path in by_age[kept:]:
        with suppress(OSError):
            path.unlink()


async def _try_to_work(org: Organization, run_id: str, resources: RunResources) -> StoreError | None:
    """Execute a run; return the error if the database cannot be used."""
    try:
        await work(org, run_id, resources)
    except StoreError as error:
        return error
    return None
