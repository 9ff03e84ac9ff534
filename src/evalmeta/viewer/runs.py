"""The page of all runs: filters, search, and the runs in progress."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.store.run_lists import OUTCOMES, RunFilter, distinct_values, run_page
from evalmeta.viewer.pages import Page, text_of

if TYPE_CHECKING:
    from evalmeta.viewer.pages import Query, Source

_FIELDS: Final = ("text", "test", "subject", "outcome", "branch", "tag", "suite", "since", "until")
# Their values are the choices of filters.
_COLUMNS: Final = ("definition", "subject", "branch", "tag")


def runs_page(source: Source, query: Query) -> Page:
    """Return the runs that match the filters, the newest first."""
    wanted = {name: text_of(query, name) for name in _FIELDS}
    outcome = wanted["outcome"] if wanted["outcome"] in OUTCOMES else ""
    shown = RunFilter(
        text=wanted["text"],
        test=wanted["test"],
        subject=wanted["subject"],
        outcome=outcome,
        branch=wanted["branch"],
        tag=wanted["tag"],
        suite=wanted["suite"],
        since=_day(wanted["since"]),
        until=_day(wanted["until"], days=1),
        user=source.user,
    )
    page = run_page(source.database, shown, limit=limits.VIEW_ROWS, after=_place(text_of(query, "after")))
    given = {name: value for name, value in wanted.items() if value}
    choices = {name: distinct_values(source.database, name, user=source.user) for name in _COLUMNS}
    values = {
        "runs": page.runs,
        "after": f"{page.after[0]!r}_{page.after[1]}" if page.after else "",
        "is_first": not text_of(query, "after"),
        "given": given,
        "wanted": wanted,
        "choices": choices,
        "outcomes": OUTCOMES,
    }
    name = f" {wanted['test']}" if wanted["test"] else ""
    return Page("runs.html.j2", "Runs", values, command=f"evalmeta test history{name}", live=True)


def _day(text: str, *, days: int = 0) -> float | None:
    """Return the start of a day such as 2026-03-01, in seconds since the epoch; None if it is not a day."""
    try:
        return (datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=days)).timestamp()
    except (ValueError, OverflowError):
        return None


def _place(text: str) -> tuple[float, str] | None:
    started, _, run_id = text.partition("_")
    try:
        return (float(started), run_id) if run_id else None
    except ValueError:
        return None
