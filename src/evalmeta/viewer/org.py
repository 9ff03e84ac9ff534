"""The pages of the project's own org: its components, and deployments with their problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from evalmeta import limits
from evalmeta.api.sync import states_in_own_org
from evalmeta.errors import NotFound
from evalmeta.model.registry import TYPES, SyncState
from evalmeta.protocol.metadata_api import DeployMessage, DeployResult
from evalmeta.protocol.soap import read_results
from evalmeta.store.components import Components, StoredComponent
from evalmeta.store.jobs import Job, Jobs
from evalmeta.store.users import Users
from evalmeta.viewer.pages import Page, Query, Source, text_of
from evalmeta.viewer.tables import Column, Table, layout_of, second_layout, sorted_rows


class ComponentRow(NamedTuple):
    """A component of the org: how the project's differs, and who changed it last."""

    component: StoredComponent
    state: SyncState | None
    user: str


COLUMNS: Final[tuple[Column[ComponentRow], ...]] = (
    Column("Name", "component_name", lambda row: row.component.full_name, plain=lambda row: row.component.full_name),
    Column("Type", "text", lambda row: row.component.type),
    Column("State", "text", lambda row: row.state.value if row.state else ""),
    Column("Changed", "time", lambda row: row.component.modified),
    Column("By", "text", lambda row: row.user),
)
JOB_COLUMNS: Final[tuple[Column[Job], ...]] = (
    Column("Status", "job_status", lambda job: job, plain=lambda job: job.status),
    Column("Job", "job_id", lambda job: job, plain=lambda job: job.id),
    Column("Started", "time", lambda job: job.created),
    Column("By", "text", lambda job: job.user_name),
    Column("Took", "milliseconds", lambda job: 1000 * (job.ended - job.created) if job.ended else None, "number"),
)
MESSAGE_COLUMNS: Final[tuple[Column[DeployMessage], ...]] = (
    Column("Result", "deployed_state", lambda message: message),
    Column("Component", "deployed_name", lambda message: message),
    Column("Problem", "deployed_problem", lambda message: message, "wide"),
    Column("Place", "deployed_place", lambda message: message),
)


def org_page(source: Source, query: Query) -> Page:
    """Return the components of the org, and its latest deployments."""
    components = [component for kind in TYPES for component in Components(source.database).list(kind.name)]
    wanted = text_of(query, "text")
    shown = [component for component in components if wanted.casefold() in component.full_name.casefold()]
    user_id = None if source.user.is_admin else source.user.id
    jobs, count = Jobs(source.database).latest(limit=limits.VIEW_ROWS, user_id=user_id)
    states = {
        kind.name: states_in_own_org(source.project, source.database, kind, with_files=source.user.is_admin)
        for kind in TYPES
    }
    users = {user.id: user.name for user in Users(source.database).all_users()}
    rows = [
        ComponentRow(
            component,
            states[component.type].get(component.full_name),
            users.get(component.modified_by, component.modified_by),
        )
        for component in shown
    ]
    given = {"text": wanted} if wanted else {}
    by_component = layout_of(query, "org", given, COLUMNS)
    by_job = second_layout(query, "org", {**given, **by_component.chosen}, JOB_COLUMNS, prefix="jobs_")
    by_component = replace(by_component, given={**given, **by_job.chosen})
    rows = sorted_rows(rows, COLUMNS, by_component)[: limits.VIEW_COMPONENTS]
    values = {
        "components": Table(COLUMNS, rows, layout=by_component),
        "left": max(0, len(shown) - limits.VIEW_COMPONENTS),
        "total": len(components),
        "text": wanted,
        "local_only": [
            name for by_name in states.values() for name, state in by_name.items() if state is SyncState.ONLY_LOCAL
        ],
        "jobs": Table(JOB_COLUMNS, sorted_rows(jobs, JOB_COLUMNS, by_job), layout=by_job),
        "jobs_left": count - len(jobs),
    }
    return Page("org.html.j2", "Org", values, command="evalmeta status")


def job_page(source: Source, query: Query) -> Page:
    """Return a deployment with its components and their problems."""
    job = Jobs(source.database).get("deploy", query["job"])
    reply = Jobs(source.database).reply(query["job"])
    if job is None or not (source.user.is_admin or job.user_id == source.user.id):
        raise NotFound(f"deployment {query['job']!r} cannot be found")
    result = next(iter(read_results(DeployResult, reply)), None) if reply else None
    details = result.details if result else None
    messages = (
        [*details.component_failures, *(message for message in details.component_successes if message.component_type)]
        if details
        else []
    )
    return Page(
        "job.html.j2",
        f"Deployment {job.id}",
        {"job": job, "result": result, "messages": Table(MESSAGE_COLUMNS, messages)},
        command=f"evalmeta deploy report --job-id {job.id}",
    )
