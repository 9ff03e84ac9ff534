"""Finding the run that is meant, by its id or a name such as `latest`, and the org that it is in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.api.org_targets import EMBEDDED_URL, address_of, choose_target, find_target, is_named
from evalmeta.errors import NotFound, Suggestion
from evalmeta.model.registry import type_of_run
from evalmeta.org.serving.server_file import read_server
from evalmeta.store.components import open_receipts
from evalmeta.store.database import open_database
from evalmeta.store.remote_runs import RemoteRuns, open_remote_runs
from evalmeta.store.run_lists import RunFilter, newest_names
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from evalmeta.api.org_targets import Target
    from evalmeta.package.project import Project
    from evalmeta.store.remote_runs import RemoteRun


_NAME: Final = re.compile(r"(latest|previous)(?::(.+))?", re.DOTALL)


def is_run_name(text: str) -> bool:
    """Return whether a text is a name for a run instead of its id."""
    return _NAME.fullmatch(text) is not None


def run_id_of(project: Project, text: str, *, org_url: str | None = None) -> str:
    """Return the id of a run.

    `text` is an id, which is returned as it is; `latest` for the newest run, in any state; `previous` for the run of
    the same test before it; or one of these with the name of a test, such as `latest:Order_Desk`. Runs that only
    asked suspect cases again are left out. `org_url` is the address of the only org to look in, empty for the
    project's own; None for all orgs.
    """
    name = _NAME.fullmatch(text)
    if name is None:
        return text
    word, test = name.groups()
    with open_database(project.state_dir) as database:
        runs = newest_names(database, RunFilter(test=test or "", org_url=org_url))
        latest = next(runs, None)
        same = (run for run in runs if latest and _is_same_test(run, latest))
        found = next(same, None) if word == "previous" else latest
    where, list_all = "here" if org_url is None else "in this org", Suggestion("List all runs", "test", "history")
    if latest is None:
        of_test = f" of {test}" if test else ""
        raise NotFound(f"there is no run{of_test} {where}", actions=[list_all])
    if found is None:
        message = f"there is no run of {latest[1]} {where} before the latest one, {latest[0]}"
        raise NotFound(message, actions=[list_all])
    return found[0]


def _is_same_test(run: tuple[str, str], other: tuple[str, str]) -> bool:
    one, two = ((type_of_run(run_id), definition.casefold()) for run_id, definition in (run, other))
    return one == two


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run that was started, now or by an earlier command, and where it is.

    Attributes:
        org_url: the org's address.
        target: the org, if its login is known already; None for the embedded org.
        remote: what is saved of a run of another org than the project's own.
        definition: the name of its test; empty if it is not known.
    """

    project: Project
    id: str
    org_url: str = EMBEDDED_URL
    target: Target | None = None
    remote: RemoteRun | None = None
    definition: str = ""
    iterations: int = 1


def is_elsewhere(project: Project, target: Target | None) -> bool:
    """Return whether an org is not the project's own, embedded or served."""
    if target is None:
        return False
    server = read_server(project.state_dir)
    return server is None or server.url != target.login.url


def locate(project: Project, run_id: str | None, *, named: str | None = None) -> RunHandle:
    """Find the org that a run is in: the named one, or else the one that has the run.

    `run_id` is the run, or its name as for `run_id_of`; None is the most recent one in the named org, or in any.
    `named` is the name that was given for the org, as in `choose_target`.
    """
    if is_named(named):
        target = choose_target(project, named)
        url = address_of(target)
        if run_id is not None:
            run_id = run_id_of(project, run_id, org_url=url if is_elsewhere(project, target) else "")
        return _at(project, url, run_id or _most_recent(project, url)[1], target)
    if run_id is None:
        url, run_id = _most_recent(project)
        # Runs that the project's own server started are in the project's own org.
        urls = _urls_of(project, run_id)
        return _at(project, EMBEDDED_URL if EMBEDDED_URL in urls and url not in urls else url, run_id)
    run_id = run_id_of(project, run_id)
    target = choose_target(project)
    urls = _urls_of(project, run_id)
    if not urls or address_of(target) in urls:
        return _at(project, address_of(target), run_id, target)
    return _at(project, urls[0], run_id)


def is_here(project: Project, run_id: str) -> bool:
    """Return whether a run is in the project's own org."""
    return EMBEDDED_URL in _urls_of(project, run_id)


def target_of(run: RunHandle) -> Target | None:
    """Return the org of a run, None for the embedded one; raises like `find_target`."""
    if run.target is not None or run.org_url == EMBEDDED_URL:
        return run.target
    return find_target(run.org_url, run.remote.org_name if run.remote else "")


def _at(project: Project, url: str, run_id: str, target: Target | None = None) -> RunHandle:
    with open_remote_runs(project.state_dir) as runs:
        remote = next(iter(runs.find(run_id, org_url=url)), None)
    return RunHandle(project, remote.run.id if remote else run_id, url, target, remote)


def _urls_of(project: Project, run_id: str) -> list[str]:
    """Return the addresses of the orgs that are known to have a run, the project's own first."""
    with open_database(project.state_dir) as database:
        own = [EMBEDDED_URL] if Runs(database).get(run_id) else []
        return [*own, *(run.org_url for run in RemoteRuns(database).find(run_id))]


def _most_recent(project: Project, url: str = "") -> tuple[str, str]:
    """Return the address and id of the project's most recent run in an org, or in any org."""
    with open_receipts(project.state_dir, root=project.root, org_url=url) as receipts:
        if not url:
            found = receipts.latest_anywhere("test")
        else:
            run_id = receipts.latest("test")
            found = (url, run_id) if run_id else None
    if found is None:
        where = " in this org" if url else ""
        raise NotFound(f"no run of this project{where} is known", actions=["Name it: --job-id"])
    return found
