"""The page of a run, or of all runs of one command: the summary, and the cases with filters and search."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run
from evalmeta.errors import NotFound
from evalmeta.model.aggregation import coverage_of
from evalmeta.model.run import WORST_FIRST, CaseResult, Verdict
from evalmeta.report.details import all_utterances, why_not_passed
from evalmeta.report.report import PARTLY
from evalmeta.report.text import count
from evalmeta.store.case_lists import (
    CaseFilter,
    CasePage,
    ListedCase,
    Place,
    case_history,
    case_page,
    count_verdicts,
    listed_page,
)
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.run_lists import ListedRun, RunFilter, find_listed, run_page, runs_without_tags
from evalmeta.viewer.case_orders import GROUPS, SORTABLE, can_be_ordered, groups_of, heading_of, order_of, ordered_page
from evalmeta.viewer.digests import Digest, digest_of
from evalmeta.viewer.matrix import is_matrix
from evalmeta.viewer.pages import Page, Query, Source, number_of, text_of
from evalmeta.viewer.runs import COUNTS, RATE, RESULT, TOOK, VERDICTS
from evalmeta.viewer.tables import LAYOUT, Column, Layout, Table, layout_of, second_layout, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Groups that a page names above its table.
_SHOWN_GROUPS: Final = 12


class RunRow(NamedTuple):
    """A run with its numbers; None if they are not known."""

    run: ListedRun
    digest: Digest | None


class CaseRow(NamedTuple):
    """A case result in a list, with what the address of the list says of it, and the heading of its group.

    It `has_iterations` if its address names the iteration.
    """

    case: CaseResult
    run: ListedRun
    filters: Mapping[str, str]
    has_iterations: bool
    group: str = ""


def _run_of(row: RunRow) -> ListedRun:
    return row.run


SUITE_COLUMNS: Final[tuple[Column[RunRow], ...]] = (
    RESULT.of(_run_of),
    Column("Test", "run_link", _run_of, plain=lambda row: row.run.definition),
    *(column.of(_run_of) for column in (RATE, VERDICTS, *COUNTS)),
    Column("p95", "milliseconds", lambda row: row.digest and row.digest["p95"], "number"),
    TOOK.of(_run_of),
)


def _state(row: CaseRow) -> str:
    return PARTLY if row.case.verdict is Verdict.PASS and coverage_of(row.case).share < 1 else row.case.verdict


def _why(row: CaseRow) -> str:
    return "" if _state(row) == Verdict.PASS else why_not_passed(row.case)


def _answer(row: CaseRow) -> str:
    return row.case.generated.outcome if row.case.generated else ""


_RUNS: Final = "runs_"
"""What the parameters of a suite's table of runs begin with."""
CASE_TEST: Final[Column[CaseRow]] = Column("Test", "path", lambda row: row.run.definition)
CASE_COLUMNS: Final[tuple[Column[CaseRow], ...]] = (
    Column("Result", "case_state", lambda row: row.case, plain=_state),
    Column("Case", "case_number", lambda row: row, "number", plain=lambda row: row.case.number),
    CASE_TEST,
    Column("Utterance", "case_utterance", lambda row: row.case, "wide", plain=lambda row: all_utterances(row.case)),
    Column("Why", "case_why", lambda row: row.case, "wide dim", plain=_why),
    Column("Latency", "milliseconds", lambda row: row.case.generated and row.case.generated.latency_ms, "number"),
    Column("Label", "text", lambda row: row.case.label, is_extra=True),
    Column("Iteration", "number", lambda row: row.case.iteration, "number", is_extra=True),
    Column("Answer", "long_text", _answer, "wide", plain=_answer, is_extra=True),
)


class Shown(NamedTuple):
    """The runs of a page, their title, the page's name and the parameters of its address, and its command."""

    runs: Sequence[ListedRun]
    title: str
    page: str
    address: Mapping[str, str]
    command: str


def one_run_page(source: Source, query: Query) -> Page:
    """Return the page of one run."""
    return _page(source, query, _one_run(source, query))


def suite_page(source: Source, query: Query) -> Page:
    """Return the page of all runs of one command."""
    return _page(source, query, _suite(source, query))


def run_cases(source: Source, query: Query, limit: int) -> Table[CaseRow]:
    """Return a part of the cases of one run."""
    return _cases(source, query, _one_run(source, query), limit)


def suite_cases(source: Source, query: Query, limit: int) -> Table[CaseRow]:
    """Return a part of the cases of all runs of one command."""
    return _cases(source, query, _suite(source, query), limit)


def _one_run(source: Source, query: Query) -> Shown:
    run = run_in(source, query)
    address = {"run": run.id, **({"org": run.org_url} if run.org_url else {})}
    return Shown([run], run.definition, "run", address, f"evalmeta test results --job-id {run.id}")


def _suite(source: Source, query: Query) -> Shown:
    wanted = RunFilter(suite=query["suite"], user=source.user)
    listed = run_page(source.database, wanted, limit=limits.MAX_SUITE_RUNS).runs
    if not listed:
        raise NotFound(f"suite {query['suite']!r} cannot be found")
    # Answers of suspect cases that were asked again would count these cases several times.
    own = [run for run in listed if not run.confirms]
    runs = sorted(own or listed, key=lambda run: (run.started, run.id))
    others = len(listed) - len(runs)
    again = f", and {others:,} that asked suspect cases again" if others else ""
    command = shlex.join(["evalmeta", "test", "results", *(word for run in runs for word in ("--job-id", run.id))])
    # The table of cases and its filters keep the order and the columns of the table of runs.
    order = second_layout(query, "suite", {}, SUITE_COLUMNS, prefix=_RUNS).chosen
    title = f"{count(len(runs), 'run')} of one command{again}"
    return Shown(runs, title, "suite", {"suite": query["suite"], **order}, command)


def run_in(source: Source, query: Query) -> ListedRun:
    """Return the run that a query names, if the user may see it."""
    run = find_listed(source.database, query["run"], org_url=text_of(query, "org"), user=source.user)
    if run is None:
        raise NotFound(f"run {query['run']!r} cannot be found")
    return run


def filter_of(query: Query) -> CaseFilter:
    """Return the filter of cases in a query; values that do not exist are ignored."""
    verdict = text_of(query, "verdict").upper()
    known = Verdict(verdict) if verdict in {*Verdict} else None
    return CaseFilter(known, *(text_of(query, name) for name in ("name", "text", "tag")))


def filters_in(query: Query) -> dict[str, str]:
    """Return the filters of cases in a query as the parameters of an address."""
    return {name: value for name in ("verdict", "name", "text", "tag", "test") if (value := text_of(query, name))}


def list_in(query: Query) -> dict[str, str]:
    """Return what an address says of a list of cases: the filters, and how it is shown."""
    return filters_in(query) | {name: value for name in LAYOUT if (value := text_of(query, name))}


def layout_in(query: Query, page: str, given: Mapping[str, object]) -> Layout:
    """Return how an address shows a list of cases."""
    return layout_of(query, page, given, CASE_COLUMNS, sheet=f"{page}.csv", sortable=SORTABLE, groups=GROUPS)


def cases_of(
    source: Source, runs: Sequence[ListedRun], wanted: CaseFilter, *, limit: int, after: Place | None = None
) -> CasePage:
    """Return a page of the case results of runs in any org."""
    remote = [run for run in runs if run.org_url]
    if not remote:
        return case_page(source.database, [run.id for run in runs], wanted, limit=limit, after=after)
    loaded = [find_run(source.project, run.id, org_url=run.org_url) for run in runs]
    return listed_page(
        [ListedCase(run.id, case) for run in loaded for case in run.cases], wanted, limit=limit, after=after
    )


def iterations_of(source: Source, run: ListedRun, number: int) -> list[CaseResult]:
    """Return the results of a case of a run in any org; NotFound if there are none."""
    if run.org_url:
        loaded = find_run(source.project, run.id, org_url=run.org_url)
        iterations = [case for case in loaded.cases if case.number == number]
    else:
        iterations = [listed_case.case for listed_case in case_history(source.database, [run.id], number)]
    if not iterations:
        raise NotFound(f"run {run.id} has no result of case {number}")
    return iterations


def place_text(place: Place | None) -> str:
    """Return a place as the parameter of an address."""
    return ".".join(map(str, place)) if place else ""


def place_in(query: Query) -> Place | None:
    """Return the place after which a query begins; None for the first page."""
    numbers = text_of(query, "after").split(".")
    if len(numbers) != len(Place._fields) or not all(number.isascii() and number.isdecimal() for number in numbers):
        return None
    return Place(*(min(int(number), 2**53) for number in numbers))


def _page(source: Source, query: Query, shown: Shown) -> Page:
    runs, address = shown.runs, shown.address
    chosen, wanted, given = _chosen(query, runs), filter_of(query), filters_in(query)
    rows = [RunRow(run, digest_of(source, run)) for run in runs]
    cases = _cases(source, query, shown, limits.VIEW_ROWS)
    layout, can_order = layout_in(query, shown.page, {}), can_be_ordered(chosen)
    about = {name: value for name, value in address.items() if not name.startswith(_RUNS)}
    of_runs = second_layout(query, shown.page, {**given, **about, **layout.chosen}, SUITE_COLUMNS, prefix=_RUNS)
    needs_tags = bool(wanted.tag) or layout.group == "tag"
    groups = groups_of(order_of(source, chosen, layout), wanted, layout.group) if layout.group and can_order else []
    values = {
        "rows": rows,
        "suite": Table(SUITE_COLUMNS, sorted_rows(rows, SUITE_COLUMNS, of_runs), has_keys=False, layout=of_runs),
        "first": rows[0],
        "is_suite": shown.page == "suite",
        "is_matrix": shown.page == "suite" and is_matrix(runs),
        "page_name": shown.page,
        "address": address,
        "given": given,
        "here": {**given, **address, **layout.chosen},
        "wanted": wanted,
        "counts": _counts(source, chosen, rows),
        "total": sum(run.done for run in runs),
        "verdicts": WORST_FIRST,
        "names": _names(rows),
        "tags": sorted({tag for row in rows if row.digest for tag in row.digest.get("tags", ())}),
        "untagged": len(runs_without_tags(source.database, [run.id for run in chosen])) if needs_tags else 0,
        "cases": cases,
        "groups": groups[:_SHOWN_GROUPS],
        "more_groups": max(0, len(groups) - _SHOWN_GROUPS),
        "cannot_order": bool(layout.sort or layout.group) and not can_order,
        "is_first": not text_of(query, "after"),
        "answers_org": _org_of(source, runs[0].answers_of),
        "partly": any(run.summary.partly_judged for run in runs),
        "several": any(run.options.is_repeated for run in runs),
    }
    is_live = any(not run.status.is_over for run in runs)
    return Page("run.html.j2", shown.title, values, command=shown.command, live=is_live)


def _chosen(query: Query, runs: Sequence[ListedRun]) -> list[ListedRun]:
    return [run for run in runs if text_of(query, "test") in {"", run.definition}]


def _cases(source: Source, query: Query, shown: Shown, limit: int) -> Table[CaseRow]:
    runs, chosen, wanted = shown.runs, _chosen(query, shown.runs), filter_of(query)
    layout = layout_in(query, shown.page, {**filters_in(query), **shown.address})
    has_iterations, is_suite = any(run.options.is_repeated for run in runs), shown.page == "suite"
    if (layout.sort or layout.group) and can_be_ordered(chosen):
        order = order_of(source, chosen, layout)
        start = number_of(query, "after", otherwise=0)
        part = ordered_page(source, chosen, wanted, order, limit=limit, start=start)
        listed = [(heading_of(name, layout.group) if layout.group else "", case) for name, case in part.cases]
        after, is_whole = "" if part.after is None else str(part.after), part.is_whole
    else:
        page = cases_of(source, chosen, wanted, limit=limit, after=place_in(query))
        listed = [("", case) for case in page.cases]
        after, is_whole = place_text(page.after), page.is_whole
    filters, by_id = filters_in(query) | layout.chosen, {run.id: run for run in runs}
    return Table(
        tuple(column for column in CASE_COLUMNS if is_suite or column is not CASE_TEST),
        [CaseRow(known.case, by_id[known.run_id], filters, has_iterations, group) for group, known in listed],
        id_of=lambda row: f"{row.run.id}-{row.case.number}-{row.case.iteration}",
        layout=layout,
        after=after,
        is_whole=is_whole,
        group_of=lambda row: row.group,
    )


def _org_of(source: Source, run_id: str | None) -> str | None:
    """Return the address of the org that has a run, empty for the project's own; None if the run cannot be seen."""
    if run_id is None or find_listed(source.database, run_id, org_url="", user=source.user):
        return None if run_id is None else ""
    return next((run.org_url for run in RemoteRuns(source.database).find(run_id)), None)


def _counts(source: Source, chosen: Sequence[ListedRun], rows: Sequence[RunRow]) -> dict[Verdict, int]:
    """Return the number of cases by verdict; of undecided ones the number of results, which other cases have too."""
    own = count_verdicts(source.database, [run.id for run in chosen if not run.org_url])
    for run in chosen:
        if run.org_url:
            summary = run.summary
            own.update({Verdict.PASS: summary.passed + summary.partly_judged, Verdict.FAILURE: summary.failed})
            own.update({Verdict.ERROR: summary.errors, Verdict.UNDECIDED: summary.undecided})
    ids = {run.id for run in chosen}
    undecided = sum(
        expectation["verdicts"].get(Verdict.UNDECIDED, 0)
        for row in rows
        if row.digest and row.run.id in ids
        for expectation in row.digest["expectations"]
    )
    return {**own, Verdict.UNDECIDED: max(own[Verdict.UNDECIDED], undecided)}


def _names(rows: Sequence[RunRow]) -> dict[str, str]:
    """Return the labels of all expectations by name."""
    return {
        expectation["name"]: expectation["label"]
        for row in rows
        if row.digest
        for expectation in row.digest["expectations"]
    }
