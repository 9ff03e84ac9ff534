"""The pages of the project's own org: its components, and deployments with their problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.model.registry import TYPES
from evalmeta.protocol.metadata_api import DeployResult
from evalmeta.protocol.soap import read_results
from evalmeta.store.components import Components
from evalmeta.store.jobs import Jobs
from evalmeta.store.users import Users
from evalmeta.viewer.pages import Page, text_of
from evalmeta.viewer.standings import SyncWord, standings_of

if TYPE_CHECKING:
    from evalmeta.store.jobs import Job
    from evalmeta.viewer.pages import Query, Source


def org_page(source: Source, query: Query) -> Page:
    """Return the components of the org, and its latest deployments."""
    components = [each for kind in TYPES for each in Components(source.database).list(kind.name)]
    wanted = text_of(query, "text").casefold()
    shown = [each for each in components if wanted in each.full_name.casefold()]
    jobs = _jobs(source)
    values = {
        "components": shown[: limits.VIEW_COMPONENTS],
        "left": max(0, len(shown) - limits.VIEW_COMPONENTS),
        "total": len(components),
        "text": text_of(query, "text"),
        "users": {user.id: user.name for user in Users(source.database).all_users()},
        "states": standings_of(source),
        "local_only": sorted(name for name, word in standings_of(source).items() if word is SyncWord.LOCAL),
        "jobs": jobs[: limits.VIEW_ROWS],
        "jobs_left": max(0, len(jobs) - limits.VIEW_ROWS),
    }
    return Page("org.html.j2", "Org", values, command="evalmeta status")


def job_page(source: Source, query: Query) -> Page:
    """Return a deployment with its components and their problems."""
    job = Jobs(source.database).get("deploy", query["job"])
    reply = Jobs(source.database).reply(query["job"])
    if job is None or not _may_see(source, job):
        raise NotFound(f"there is no deployment {query['job']!r}")
    result = next(iter(read_results(DeployResult, reply)), None) if reply else None
    return Page(
        "job.html.j2",
        f"Deployment {job.id}",
        {"job": job, "result": result},
        command=f"evalmeta deploy report --job-id {job.id}",
    )


def _jobs(source: Source) -> list[Job]:
    """Return the deployments that the user may see, the newest first."""
    return [job for job in reversed(Jobs(source.database).history()) if _may_see(source, job)]


def _may_see(source: Source, job: Job) -> bool:
    return source.user.is_admin or job.user_id == source.user.id
