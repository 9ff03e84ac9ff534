"""The page of all runs: filters, search, and the runs in progress."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.run import WORST_FIRST, RunStatus
from evalmeta.store.run_lists import OUTCOMES, ListedRun, RunFilter, distinct_values, run_page
from evalmeta.store.run_orders import ORDERS, RunOrder, RunPlace
from evalmeta.viewer.pages import Page, Query, Source, text_of
from evalmeta.viewer.tables import Column, Table, layout_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def state_of(run: ListedRun) -> str:
    """Return the verdict on a run, or what it does."""
    return run.verdict or ("waiting" if run.status is RunStatus.NEW else "running")


def rank_of(run: ListedRun) -> int | None:
    """Return the place of the verdict among all, the worst first; None while the run is in progress."""
    return WORST_FIRST.index(run.verdict) if run.verdict else None


RESULT: Final[Column[ListedRun]] = Column("Result", "run_state", lambda run: run, plain=state_of, rank=rank_of)
RATE: Final[Column[ListedRun]] = Column(
    "Pass rate", "run_rate", lambda run: run, "number", plain=lambda run: run.summary.pass_rate
)
RUN: Final[Column[ListedRun]] = Column("Run", "run_id", lambda run: run, plain=lambda run: run.id)
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
    Column("Test", "run_test", lambda run: run, plain=lambda run: run.definition),
    RATE,
    VERDICTS,
    *COUNTS,
    Column("Agent", "run_agent", lambda run: run, plain=lambda run: run.subject),
    STARTED,
    TOOK,
    replace(RUN, is_extra=True),
    Column("Branch", "text", lambda run: run.branch, is_extra=True),
    Column("Commit", "text", lambda run: run.options.origin.revision, is_extra=True),
    Column("Choose", "run_choice", lambda run: run, "bars"),
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
    """Return the runs that match the filters, by default the newest first."""
    table, wanted = run_table(source, query, source.rows), _wanted(query)
    given = {name: value for name, value in wanted.items() if value}
    values = {
        "runs": table,
        "is_first": not query.get("after"),
        "given": given,
        "wanted": wanted,
        "choices": [(choice, _values(source, choice)) for choice in CHOICES],
    }
    name = f" {wanted['test']}" if wanted["test"] else ""
    return Page("runs.html.j2", "Runs", values, command=f"evalmeta test history{name}", live=True)


def run_table(source: Source, query: Query, limit: int) -> Table[ListedRun]:
    """Return a part of the list of runs."""
    wanted = _wanted(query)
    outcome = wanted["outcome"] if wanted["outcome"] in OUTCOMES else ""
    texts = {name: value for name, value in wanted.items() if name not in {"outcome", "since", "until"}}
    shown = RunFilter(
        **texts, outcome=outcome, since=_day(wanted["since"]), until=_day(wanted["until"], days=1), user=source.user
    )
    given = {name: value for name, value in wanted.items() if value}
    layout = layout_of(query, "runs", given, COLUMNS, sheet="runs.csv", sortable=ORDERS)
    order = RunOrder(layout.sort, layout.is_descending)
    after = RunPlace.read(query.get("after", ""), order)
    page = run_page(source.database, shown, limit=limit, after=after, order=order)
    return Table(
        COLUMNS,
        page.runs,
        id_of=lambda run: f"{run.id}{run.org_url}",
        layout=layout,
        after=page.after.text if page.after else "",
    )


def _wanted(query: Query) -> dict[str, str]:
    """Return the filters of a query."""
    return {name: text_of(query, name) for name in (*(choice.name for choice in CHOICES), *_OTHER_FIELDS)}


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
