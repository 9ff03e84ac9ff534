"""The embedded org of a project: the same application, in this process, on the project's state folder."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from evalmeta.org.app import create_app
from evalmeta.org.organization import Organization
from evalmeta.org.queue import JobQueue
from evalmeta.org.workers import DetachedWorker, InProcessWorkers
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.applications import Starlette

    from evalmeta.package.project import Project

__all__ = ["embedded_org"]


@asynccontextmanager
async def embedded_org(project: Project, *, detached: bool = False) -> AsyncIterator[tuple[Starlette, str]]:
    """Opens the project's org and gives its application and a token for it.

    Args:
        project: whose state folder and subjects it uses.
        detached: let runs go on in a process of their own; otherwise they stop, to be
            resumed, when the org is left.

    Raises:
        StoreError: the state folder's database cannot be used.
    """
    database = open_database(project.state_dir)
    workers = DetachedWorker(project.root, project.state_dir) if detached else InProcessWorkers()
    queue = JobQueue()
    settings = project.settings
    org = Organization(
        database, project.root, settings.subjects, workers.launch, queue.wake, raters=settings.raters, reads_files=True
    )
    queue.org = org
    if isinstance(workers, InProcessWorkers):
        workers.org = org
    try:
        if org.jobs.count_unfinished():
            queue.wake()
        yield create_app(org), org.token
    finally:
        try:
            queue.close()
            await workers.close()
        finally:
            database.close()
