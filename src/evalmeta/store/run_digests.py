"""Numbers of runs that take long to compute, kept as JSON until the run gets other results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject
    from evalmeta.store.database import Database


def find_digest(database: Database, run_id: str, stamp: str, *, org_url: str = "") -> JsonObject | None:
    """Return what was kept for a run with this stamp; None if there is nothing."""
    sql = "SELECT body FROM run_digest WHERE org_url = ? AND run_id = ? AND stamp = ?"
    rows = database.query(sql, (org_url, run_id, stamp))
    digest: JsonObject | None = orjson.loads(rows[0][0]) if rows else None
    return digest


def keep_digest(database: Database, run_id: str, stamp: str, digest: JsonObject, *, org_url: str = "") -> None:
    """Keep the numbers of a run; `stamp` must change when the run gets other results."""
    sql = "INSERT OR REPLACE INTO run_digest VALUES (?, ?, ?, ?)"
    database.execute(sql, (org_url, run_id, stamp, orjson.dumps(digest).decode()))
