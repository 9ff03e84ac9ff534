"""The page of all runs: filters, search, and the runs in progress."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.store.run_lists import OUTCOMES, ListedRun, RunFilter, distinct_values, run_page
from evalmeta.viewer.pages import Column, Page, Query, Source, Table, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence


RESULT: Final[Column[ListedRun]] = Column("Result", "run_state", lambda run: run)
RATE: Final[Column[ListedRun]] = Column("Pass rate", "run_rate", lambda run: run, "number")
VERDICTS: Final[Column[ListedRun]] = Column("Verdicts", "run_verdicts", lambda run: run, "bars")
# The page of a suite has them, too.
COUNTS: Final[tuple[Column[ListedRun], ...]] = (
    Column("Partly", "number", lambda run: run.summary.partly_judged, "number"),
    Column("Failed", "number", lambda run: run.summary.failed, "number"),
    Column("Errors", "number", lambda run: run.summary.errors, "number"),
    Column("Undecided", "number", lambda run: run.summary.undecided, "number"),
)
STARTED: Final[Column[ListedRun]] = Column("Started", "time", lambda run: run.started)
TOOK: Final[Column[ListedRun]] = Column(
    "Took", "milliseconds", lambda run: None if run.ended is None else 1000 * (run.ended - run.started), "number"
)
COLUMNS: Final[tuple[Column[ListedRun], ...]] = (
    RESULT,
    Column("Test", "run_test", lambda run: run),
    RATE,
    VERDICTS,
    *COUNTS,
    Column("Agent", "run_agent", lambda run: run),
    STARTED,
    TOOK,
)


class Choice(NamedTuple):
    """A filter with a list of values.

    Attributes:
        name: the parameter of the address, and the field of `RunFilter`.
        title: the label of the list.
        all: the words for no choice.
        values: the values; those that the runs have in a column of the store if it is a name.
    """

    name: str
    title: str
    all: str
    values: str | tuple[str, ...]


CHOICES: Final = (
    Choice("test", "Test", "all tests", "definition"),
    Choice("subject", "Agent", "all agents", "subject"),
    Choice("outcome", "Result", "all results", OUTCOMES),
    Choice("branch", "Branch", "all branches", "branch"),
    Choice("tag", "Tag", "all tags", "tag"),
)
_OTHER_FIELDS: Final = ("text", "suite", "since", "until")


def runs_page(source: Source, query: Query) -> Page:
    """Return the runs that match the filters, the newest first."""
    names = [*(choice.name for choice in CHOICES), *_OTHER_FIELDS]
    wanted = {name: text_of(query, name) for name in names}
    outcome = wanted["outcome"] if wanted["outcome"] in OUTCOMES else ""
    texts = {name: value for name, value in wanted.items() if name not in {"outcome", "since", "until"}}
    shown = RunFilter(
        **texts, outcome=outcome, since=_day(wanted["since"]), until=_day(wanted["until"], days=1), user=source.user
    )
    page = run_page(source.database, shown, limit=limits.VIEW_ROWS, after=_place(text_of(query, "after")))
    given = {name: value for name, value in wanted.items() if value}
    values = {
        "runs": Table(COLUMNS, page.runs, id_of=lambda run: f"{run.id}{run.org_url}"),
        "after": f"{page.after[0]!r}_{page.after[1]}" if page.after else "",
        "is_first": not text_of(query, "after"),
        "given": given,
        "wanted": wanted,
        "choices": [(choice, _values(source, choice)) for choice in CHOICES],
    }
    name = f" {wanted['test']}" if wanted["test"] else ""
    return Page("runs.html.j2", "Runs", values, command=f"evalmeta test history{name}", live=True)


def _values(source: Source, choice: Choice) -> Sequence[str]:
    if isinstance(choice.values, str):
        return distinct_values(source.database, choice.values, user=source.user)
    return choice.values


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
