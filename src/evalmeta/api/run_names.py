"""Names for runs instead of their ids: `latest` and `previous`, of one test with `latest:TEST` and `previous:TEST`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.errors import NotFound, Suggestion
from evalmeta.model.registry import type_of_run
from evalmeta.store.database import open_database
from evalmeta.store.history import newest_runs

if TYPE_CHECKING:
    from evalmeta.package.project import Project


_NAME: Final = re.compile(r"(latest|previous)(?::(.+))?", re.DOTALL)


def is_run_name(text: str) -> bool:
    """Return whether a text is a name for a run instead of its id."""
    return _NAME.fullmatch(text) is not None


def run_id_of(project: Project, text: str, *, org_url: str | None = None) -> str:
    """Return the id of a run.

    Args:
        project: the project that remembers its runs.
        text: an id, which is returned as it is; `latest` for the newest run, in any state; `previous` for the run of
            the same test before it; or one of these with the name of a test, such as `latest:Order_Desk`.
        org_url: the address of the only org to look in, empty for the project's own; None for all orgs.

    Raises:
        NotFound: there is no such run.
        StoreError: the project's database cannot be used.
    """
    found = _NAME.fullmatch(text)
    if found is None:
        return text
    word, test = found.groups()
    with open_database(project.state_dir) as database:
        runs = newest_runs(database, definition=test, org_url=org_url)
    where, list_all = "here" if org_url is None else "in this org", Suggestion("List all runs", "test", "history")
    if not runs:
        of_test = f" of {test}" if test else ""
        raise NotFound(f"there is no run{of_test} {where}", actions=[list_all])
    latest = runs[0]
    if word == "latest":
        return latest.id
    key = type_of_run(latest.id), latest.definition.casefold()
    for each in runs[1:]:
        if (type_of_run(each.id), each.definition.casefold()) == key:
            return each.id
    message = f"there is no run of {latest.definition} {where} before the latest one, {latest.id}"
    raise NotFound(message, actions=[list_all])
