"""The pages of the project's own org: its components, and deployments with their problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.api.sync import states_in_own_org
from evalmeta.errors import NotFound
from evalmeta.model.component import SyncState
from evalmeta.model.registry import TYPES
from evalmeta.protocol.metadata_api import DeployResult
from evalmeta.protocol.soap import read_results
from evalmeta.store.components import Components
from evalmeta.store.jobs import Jobs
from evalmeta.store.users import Users
from evalmeta.viewer.pages import Page, text_of

if TYPE_CHECKING:
    from evalmeta.store.jobs import Job
    from evalmeta.viewer.pages import Query, Source


def org_page(source: Source, query: Query) -> Page:
    """Return the components of the org, and its latest deployments."""
    components = [each for kind in TYPES for each in Components(source.database).list(kind.name)]
    wanted = text_of(query, "text").casefold()
    shown = [component for component in components if wanted in component.full_name.casefold()]
    user_id = None if source.user.is_admin else source.user.id
    jobs, count = Jobs(source.database).latest(limit=limits.VIEW_ROWS, user_id=user_id)
    states = {
        kind.name: states_in_own_org(source.project, source.database, kind, with_files=source.user.is_admin)
        for kind in TYPES
    }
    values = {
        "components": shown[: limits.VIEW_COMPONENTS],
        "left": max(0, len(shown) - limits.VIEW_COMPONENTS),
        "total": len(components),
        "text": text_of(query, "text"),
        "users": {user.id: user.name for user in Users(source.database).all_users()},
        "states": states,
        "local_only": [
            name for found in states.values() for name, state in found.items() if state is SyncState.ONLY_LOCAL
        ],
        "jobs": jobs,
        "jobs_left": count - len(jobs),
    }
    return Page("org.html.j2", "Org", values, command="evalmeta status")


def job_page(source: Source, query: Query) -> Page:
    """Return a deployment with its components and their problems."""
    job = Jobs(source.database).get("deploy", query["job"])
    reply = Jobs(source.database).reply(query["job"])
    if job is None or not _may_see(source, job):
        raise NotFound(f"deployment {query['job']!r} cannot be found")
    result = next(iter(read_results(DeployResult, reply)), None) if reply else None
    return Page(
        "job.html.j2",
        f"Deployment {job.id}",
        {"job": job, "result": result},
        command=f"evalmeta deploy report --job-id {job.id}",
    )


def _may_see(source: Source, job: Job) -> bool:
    return source.user.is_admin or job.user_id == source.user.id
