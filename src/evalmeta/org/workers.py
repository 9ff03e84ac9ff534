"""Where runs are carried out: in this process, or in one of their own that outlives it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.org.evaluations import work

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.org.organization import Organization

__all__ = ["DetachedWorker", "InProcessWorkers"]


# Held so that nobody takes a process that goes on for one that was forgotten.
_DETACHED: Final[list[subprocess.Popen[bytes]]] = []


class InProcessWorkers:
    """Carries runs out as tasks of this process; `close` stops them, and what is done stays done."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.org: Organization | None = None

    def launch(self, run_id: str) -> None:
        """Begins to work on a run, unless this process already does."""
        running = self._tasks.get(run_id)
        if self.org is not None and (running is None or running.done()):
            self._tasks[run_id] = asyncio.get_running_loop().create_task(_try_to_work(self.org, run_id))

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
            self._start(self._state_dir / "logs")
        except OSError as error:
            raise StoreError(
                f"no worker could be started for run {', '.join(self._run_ids)}: {error}",
                actions=[f"Go on with: evalmeta test resume --job-id {run_id}" for run_id in self._run_ids],
            ) from None

    def _start(self, logs: Path) -> None:
        logs.mkdir(exist_ok=True)
        with (logs / f"{self._run_ids[0]}.log").open("ab") as log:
            # -P: a file of the project that is named like a module of Python's must not take its place.
            started = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-P", "-m", "evalmeta.org.worker", str(self._project_root), *self._run_ids],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self._project_root,
                env={**os.environ, "EVALMETA_HOME": str(self._state_dir)},
            )
        _DETACHED.append(started)


async def _try_to_work(org: Organization, run_id: str) -> None:
    # Whoever asks about the run is told what is wrong with the database, and starts the work again.
    with suppress(StoreError):
        await work(org, run_id)
