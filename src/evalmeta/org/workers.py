"""Where runs are carried out: in this process, or in others that outlive it.

The worker process: `python -m evalmeta.org.workers PROJECT RUN_ID...` carries runs to their ends, in order.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.event_loop import run_to_end
from evalmeta.errors import EXIT_ORG, EXIT_PASSED, StoreError, StoreLocked, Suggestion
from evalmeta.model.redaction import child_environment
from evalmeta.model.run import RunStatus
from evalmeta.org.lease import is_free, new_worker
from evalmeta.org.organization import Organization
from evalmeta.org.runs import work
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Sequence


_LOG: Final = logging.getLogger(__name__)
# How soon a run that waits is begun when another has ended.
_LOOK_SECONDS: Final = 0.25
# Held so that nobody takes a process that goes on for one that was forgotten.
_DETACHED: Final[list[subprocess.Popen[bytes]]] = []


class InProcessWorkers:
    """Carries runs out as tasks of this process; `close` stops them, and what is done stays done."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[StoreError | None]] = {}
        self._stuck: dict[tuple[str, int], float] = {}
        self.org: Organization | None = None

    def launch(self, run_id: str) -> None:
        """Begins to work on a run, unless this process already does.

        Raises:
            StoreError: it did, and the database could not be used, or was held by another
                program for long; to go on would ask the agent again and again for what
                cannot be kept.
        """
        running = self._tasks.get(run_id)
        if self.org is None or (running is not None and not running.done()):
            return
        if running is not None and not running.cancelled() and (error := running.result()):
            self._refuse_broken(self.org, run_id, error)
        self._tasks[run_id] = asyncio.get_running_loop().create_task(_try_to_work(self.org, run_id))

    def _refuse_broken(self, org: Organization, run_id: str, error: StoreError) -> None:
        # A lock passes, unless nothing came of the run for long.
        since = self._stuck.setdefault((run_id, org.runs.count(run_id)[0]), time.monotonic())
        if isinstance(error, StoreLocked) and time.monotonic() - since < limits.LOCKED_SECONDS:
            return
        actions = [*error.actions, Suggestion("Resume it", "test", "resume", "--job-id", run_id)]
        raise StoreError(f"run {run_id} stopped: {error}", actions=actions)

    async def close(self) -> None:
        """Stops all work and waits until results are kept, at most a few seconds."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=2 * limits.SHUTDOWN_SECONDS)


class DetachedWorker:
    """Collects runs and, on `close`, starts one process that carries them out in order and outlives this one."""

    def __init__(self, project_root: Path, state_dir: Path) -> None:
        self._project_root = project_root
        self._state_dir = state_dir
        self._run_ids: list[str] = []

    def launch(self, run_id: str) -> None:
        """Puts a run on the list."""
        if run_id not in self._run_ids:
            self._run_ids.append(run_id)

    async def close(self) -> None:
        """Starts the process; it logs to the state folder.

        Raises:
            StoreError: it cannot be started; the runs are kept for whoever resumes them.
        """
        if not self._run_ids:
            return
        try:
            _DETACHED.append(_start(self._project_root, self._state_dir, self._run_ids))
        except OSError as error:
            raise StoreError(
                f"no worker could be started for run {', '.join(self._run_ids)}: {error}",
                actions=[Suggestion("Resume it", "test", "resume", "--job-id", run_id) for run_id in self._run_ids],
            ) from None


class ServedWorkers:
    """Starts a process for every run, which outlives this one; at most ten runs are in progress, others wait as NEW.

    What it knows it reads from the database, so that runs which a server or a worker left
    behind are gone on with.
    """

    def __init__(self, project_root: Path, state_dir: Path) -> None:
        self._project_root = project_root
        self._state_dir = state_dir
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._deaths: Counter[tuple[str, int]] = Counter()
        self._not_before: dict[str, float] = {}
        self._wanted = asyncio.Event()

    def launch(self, run_id: str) -> None:  # noqa: ARG002 - what waits is read from the database
        """Says that a run waits."""
        self._wanted.set()

    async def watch(self, org: Organization) -> None:
        """Begins the runs that wait, without end; cancel it, and the processes go on."""
        try:
            while True:
                with suppress(StoreError):
                    self._begin(org)
                self._wanted.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), _LOOK_SECONDS)
        finally:
            _DETACHED.extend(self._processes.values())

    def _begin(self, org: Organization) -> None:
        self._count_deaths(org)
        unfinished = org.runs.unfinished()
        waiting = [run_id for run_id, lease in unfinished if run_id not in self._processes and is_free(lease)]
        due = [run_id for run_id in waiting if self._not_before.get(run_id, 0) <= time.monotonic()]
        room = limits.MAX_RUNS - (len(unfinished) - len(waiting))
        for run_id in due[: max(0, room)]:
            if self._deaths[run_id, org.runs.count(run_id)[0]] >= limits.MAX_WORKER_DEATHS:
                _give_up(org, run_id)
                continue
            try:
                self._processes[run_id] = _start(self._project_root, self._state_dir, [run_id])
            except OSError as error:
                _LOG.warning("no worker could be started for run %s: %s", run_id, error)

    def _count_deaths(self, org: Organization) -> None:
        """Lets go of processes that ended, and counts those that left their run as far as it was."""
        for run_id in [run_id for run_id, process in self._processes.items() if process.poll() is not None]:
            code = self._processes.pop(run_id).returncode
            if code == EXIT_ORG:
                # That the database cannot be used is nobody's death, and may pass: a disk has room again.
                self._not_before[run_id] = time.monotonic() + limits.LOCKED_SECONDS
                continue
            run = org.runs.get(run_id)
            if run is not None and not run.status.is_over:
                self._deaths[run_id, org.runs.count(run_id)[0]] += 1


def _give_up(org: Organization, run_id: str) -> None:
    worker, now = new_worker(), time.time()
    if org.runs.claim(run_id, worker, taken_from=org.runs.lease(run_id), until=now + limits.RUN_LEASE_SECONDS):
        error = f"{limits.MAX_WORKER_DEATHS} workers died on it, one after the other; the agent may end its process"
        org.runs.finish(run_id, worker, RunStatus.ERROR, error=error, now=now)


def _start(project_root: Path, state_dir: Path, run_ids: Sequence[str]) -> subprocess.Popen[bytes]:
    logs = state_dir / "logs"
    logs.mkdir(exist_ok=True)
    with (logs / f"{run_ids[0]}.log").open("ab") as log:
        # -P: a file of the project that is named like a module of Python's must not take its place.
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", "evalmeta.org.workers", str(project_root), *run_ids],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=project_root,
            env=child_environment(EVALMETA_HOME=str(state_dir)),
        )


async def _try_to_work(org: Organization, run_id: str) -> StoreError | None:
    """Gives what was wrong with the database, for whoever asks about the run."""
    try:
        await work(org, run_id)
    except StoreError as error:
        return error
    return None


def main(root: str, *run_ids: str) -> int:
    """Works on runs of the project in `root`; one that another worker has is passed over.

    Gives the process's exit code: 4 when the database could not be used for one of them.
    """
    project = find_project(Path(root))
    with open_database(project.state_dir) as database:
        org = Organization(
            database, project.root, project.settings.subjects, lambda _: None, raters=project.settings.raters
        )
        done = [_carry_out(org, run_id) for run_id in run_ids]
    return EXIT_PASSED if all(done) else EXIT_ORG


def _carry_out(org: Organization, run_id: str) -> bool:
    try:
        run_to_end(work(org, run_id))
    except StoreError as error:
        sys.stderr.write(f"run {run_id}: {error}\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
