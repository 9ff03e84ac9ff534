"""Names for runs instead of their ids: `latest` and `previous`, of one test with `latest:TEST` and `previous:TEST`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.errors import NotFound, Suggestion
from evalmeta.model.registry import type_of_run
from evalmeta.store.database import open_database
from evalmeta.store.remote_runs import newest_runs, only_asks_again

if TYPE_CHECKING:
    from evalmeta.package.project import Project
    from evalmeta.store.remote_runs import KnownRun


_NAME: Final = re.compile(r"(latest|previous)(?::(.+))?", re.DOTALL)


def is_run_name(text: str) -> bool:
    """Return whether a text is a name for a run instead of its id."""
    return _NAME.fullmatch(text) is not None


def run_id_of(project: Project, text: str, *, org_url: str | None = None) -> str:
    """Return the id of a run.

    Args:
        project: the project that remembers its runs.
        text: an id, which is returned as it is; `latest` for the newest run, in any state; `previous` for the run of
            the same test before it; or one of these with the name of a test, such as `latest:Order_Desk`. Runs that
            only asked suspect cases again are left out.
        org_url: the address of the only org to look in, empty for the project's own; None for all orgs.

    Raises:
        NotFound: there is no such run.
        StoreError: the project's database cannot be used.
    """
    name = _NAME.fullmatch(text)
    if name is None:
        return text
    word, test = name.groups()
    with open_database(project.state_dir) as database:
        newest = newest_runs(database, definition=test, org_url=org_url)
        runs = (each for each in newest if not only_asks_again(database, each))
        latest = next(runs, None)
        same = (run for run in runs if latest and _is_same_test(run, latest))
        found = next(same, None) if word == "previous" else latest
    where, list_all = "here" if org_url is None else "in this org", Suggestion("List all runs", "test", "history")
    if latest is None:
        of_test = f" of {test}" if test else ""
        raise NotFound(f"there is no run{of_test} {where}", actions=[list_all])
    if found is None:
        message = f"there is no run of {latest.definition} {where} before the latest one, {latest.id}"
        raise NotFound(message, actions=[list_all])
    return found.id


def _is_same_test(run: KnownRun, other: KnownRun) -> bool:
    one, two = ((type_of_run(each.id), each.definition.casefold()) for each in (run, other))
    return one == two
