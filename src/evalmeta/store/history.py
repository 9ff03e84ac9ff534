"""The history of runs, in the project's own org and in others, in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.model.run import RunStatus

if TYPE_CHECKING:
    from evalmeta.store.database import Database, Row

__all__ = ["PastRun", "list_runs"]

_ORDERED = """
    SELECT * FROM (
      SELECT '' AS org_url, '' AS org_name, run.id, definition, status, created_at AS started_at, ended_at, total,
        count(*) FILTER (WHERE verdict = 'PASS'), count(*) FILTER (WHERE verdict = 'FAILURE'),
        count(*) FILTER (WHERE verdict = 'ERROR'), count(*) FILTER (WHERE verdict = 'UNDECIDED')
      FROM run LEFT JOIN case_result ON run_id = run.id GROUP BY run.id
      UNION ALL
      SELECT org_url, org_name, id, definition, status, started_at, ended_at, total, passed, failed, errors, undecided
      FROM remote_run
    )
    WHERE ?1 IS NULL OR definition = ?1 COLLATE NOCASE
    ORDER BY started_at, id
"""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run in a list: where and when it was, and what its cases came to.

    Attributes:
        org_url: the org's address; empty for the project's own org.
        org_name: what people called the org then; empty for the project's own.
        total: how many case results the run has when it is complete.
        passed: cases by their own verdicts, before `undecided="fail"` makes some of them fail; so
            are `failed`, `errors` and `undecided`.
    """

    org_url: str
    org_name: str
    id: str
    definition: str
    status: RunStatus
    started: float
    ended: float | None
    total: int
    passed: int
    failed: int
    errors: int
    undecided: int

    @property
    def pass_rate(self) -> float | None:
        """Gives passed / (passed + failed), 0 to 1; None when no case was decided."""
        decided = self.passed + self.failed
        return self.passed / decided if decided else None


def list_runs(database: Database, *, definition: str | None = None) -> list[PastRun]:
    """Lists the runs of a definition, or all, in every org that a state folder knows; the oldest first."""
    return [_past_run(row) for row in database.query(_ORDERED, (definition,))]


def _past_run(row: Row) -> PastRun:
    url, name, run_id, definition, status, *others = row
    return PastRun(url, name, run_id, definition, RunStatus(status), *others)
