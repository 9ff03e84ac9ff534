"""Which org a run is in: the one that was named, or the one that is known to have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.api.org_targets import EMBEDDED_URL, address_of, choose_target, find_target, is_named
from evalmeta.errors import NotFound
from evalmeta.org.server import read_server
from evalmeta.store.database import open_database
from evalmeta.store.history import open_remote_runs
from evalmeta.store.runs import Runs
from evalmeta.store.tracking import open_receipts

if TYPE_CHECKING:
    from evalmeta.api.org_targets import Target
    from evalmeta.package.project import Project
    from evalmeta.store.history import RemoteRun


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a run is, as far as it is known here.

    Attributes:
        org_url: the org's address.
        target: the org, when its login was found on the way; None for the embedded one.
        remote: what is kept of a run of another org.
    """

    run_id: str
    org_url: str
    target: Target | None = None
    remote: RemoteRun | None = None


def is_elsewhere(project: Project, target: Target | None) -> bool:
    """Tells whether an org is another than the project's own, embedded or served."""
    if target is None:
        return False
    server = read_server(project.state_dir)
    return server is None or server.url != target.login.url


def locate(project: Project, run_id: str | None, *, named: str | None = None) -> Whereabouts:
    """Finds out where a run is: in the org that was asked for by name, or else in the one that has it.

    Args:
        project: where runs are remembered.
        run_id: the run; None is the most recent one there, or anywhere when no org is named.
        named: the name that was given for the org, as in `choose_target`.

    Raises:
        NotFound: nothing is remembered, or as in `choose_target`.
        StoreError: the project's database cannot be used.
    """
    if is_named(named):
        target = choose_target(project, named)
        url = address_of(target)
        return _at(project, url, run_id or _latest(project, url), target)
    if run_id is None:
        url, run_id = _latest_anywhere(project)
        # What the project's own server began is in the project's own org.
        urls = _urls_of(project, run_id)
        return _at(project, EMBEDDED_URL if EMBEDDED_URL in urls and url not in urls else url, run_id)
    target = choose_target(project)
    urls = _urls_of(project, run_id)
    if not urls or address_of(target) in urls:
        return _at(project, address_of(target), run_id, target)
    return _at(project, urls[0], run_id)


def target_of(place: Whereabouts) -> Target | None:
    """Gives the org to ask about a run, None for the embedded one; raises like `find_target`."""
    if place.target is not None or place.org_url == EMBEDDED_URL:
        return place.target
    return find_target(place.org_url, place.remote.org_name if place.remote else "")


def _at(project: Project, url: str, run_id: str, target: Target | None = None) -> Whereabouts:
    with open_remote_runs(project.state_dir) as runs:
        found = runs.find(run_id, org_url=url)
    return Whereabouts(found[0].run.id if found else run_id, url, target, found[0] if found else None)


def _urls_of(project: Project, run_id: str) -> list[str]:
    """Gives the addresses of the orgs that are known to have a run, the project's own first."""
    with open_database(project.state_dir) as database:
        is_own = Runs(database).get(run_id) is not None
    with open_remote_runs(project.state_dir) as runs:
        found = [each.org_url for each in runs.find(run_id)]
    return [EMBEDDED_URL, *found] if is_own else found


def _latest(project: Project, url: str) -> str:
    with open_receipts(project.state_dir, root=project.root, org_url=url) as receipts:
        run_id = receipts.latest("test")
    if run_id is None:
        raise NotFound("no run of this project in this org is remembered", actions=["Name it: --job-id"])
    return run_id


def _latest_anywhere(project: Project) -> tuple[str, str]:
    with open_receipts(project.state_dir, root=project.root, org_url="") as receipts:
        latest = receipts.latest_anywhere("test")
    if latest is None:
        raise NotFound("no run of this project is remembered", actions=["Name it: --job-id"])
    return latest
