"""What the search over all runs reads of each run: its test, its commit and its branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.run import RunStatus

if TYPE_CHECKING:
    from evalmeta.model.login import User
    from evalmeta.store.database import Database

_RUNS: Final = """
    SELECT org_url, id, definition, title, status, started, branch,
      coalesce(json_extract(CAST(options AS TEXT), '$.origin.revision'), ''),
      coalesce(json_extract(CAST(options AS TEXT), '$.origin.subject'), '')
    FROM listed_run WHERE user_id = ?1 OR ?1 IS NULL ORDER BY started DESC, id DESC
"""


class SearchedRun(NamedTuple):
    """A run as the search knows it.

    The title is the name that the file of the test gives it, `subject` the first line of the commit's message. Texts
    that are not known are empty.
    """

    org_url: str
    id: str
    definition: str
    title: str
    status: RunStatus
    started: float
    branch: str
    revision: str
    subject: str

    @property
    def titles(self) -> str:
        """Return the names of the test."""
        return f"{self.definition} {self.title}".rstrip()

    @property
    def commit(self) -> str:
        """Return the commit with its branch and its message; empty if none of them is known."""
        return f"{self.revision} {self.branch} {self.subject}".strip()


def searched_runs(database: Database, *, user: User | None = None) -> list[SearchedRun]:
    """Return all runs that a user may see, the newest first."""
    only = None if user is None or user.is_admin else user.id
    return [SearchedRun(*row)._replace(status=RunStatus(row[4])) for row in database.query(_RUNS, (only,))]
