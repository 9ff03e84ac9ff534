"""The page of a run, or of all runs of one command: the summary, and the cases with filters and search."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run
from evalmeta.errors import NotFound
from evalmeta.model.run import WORST_FIRST, CaseResult, Verdict
from evalmeta.store.case_lists import CaseFilter, CasePage, ListedCase, Place, case_page, count_verdicts, listed_page
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.run_lists import ListedRun, RunFilter, find_listed, run_page
from evalmeta.viewer.digests import Digest, digest_of
from evalmeta.viewer.pages import Column, Page, Query, Source, Table, text_of
from evalmeta.viewer.runs import COUNTS, RATE, RESULT, TOOK, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RunRow(NamedTuple):
    """A run with its numbers; None if they are not known."""

    run: ListedRun
    digest: Digest | None


class CaseRow(NamedTuple):
    """A case result in a list, with the filters of the list; `has_iterations` if its address names the iteration."""

    case: CaseResult
    run: ListedRun
    filters: Mapping[str, str]
    has_iterations: bool


def _run_of(row: RunRow) -> ListedRun:
    return row.run


SUITE_COLUMNS: Final[tuple[Column[RunRow], ...]] = (
    RESULT.of(_run_of),
    Column("Test", "run_link", _run_of),
    *(column.of(_run_of) for column in (RATE, VERDICTS, *COUNTS)),
    Column("p95", "milliseconds", lambda row: row.digest and row.digest["p95"], "number"),
    TOOK.of(_run_of),
)
CASE_TEST: Final[Column[CaseRow]] = Column("Test", "text", lambda row: row.run.definition)
CASE_COLUMNS: Final[tuple[Column[CaseRow], ...]] = (
    Column("Result", "case_state", lambda row: row.case),
    Column("Case", "case_number", lambda row: row, "number"),
    CASE_TEST,
    Column("Utterance", "case_utterance", lambda row: row.case, "wide"),
    Column("Why", "case_why", lambda row: row.case, "wide dim"),
    Column("Latency", "milliseconds", lambda row: row.case.generated and row.case.generated.latency_ms, "number"),
)


def one_run_page(source: Source, query: Query) -> Page:
    """Return the page of one run."""
    run = run_in(source, query)
    address = {"run": run.id, **({"org": run.org_url} if run.org_url else {})}
    command = f"evalmeta test results --job-id {run.id}"
    return _page(source, query, [run], title=run.definition, address=address, command=command)


def suite_page(source: Source, query: Query) -> Page:
    """Return the page of all runs of one command."""
    wanted = RunFilter(suite=query["suite"], user=source.user)
    listed = run_page(source.database, wanted, limit=limits.MAX_SUITE_RUNS).runs
    if not listed:
        raise NotFound(f"suite {query['suite']!r} cannot be found")
    runs = sorted(listed, key=lambda run: (run.started, run.id))
    command = shlex.join(["evalmeta", "test", "results", *(word for run in runs for word in ("--job-id", run.id))])
    title = f"{len(runs)} runs of one command"
    return _page(source, query, runs, title=title, address={"suite": query["suite"]}, command=command)


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
    return CaseFilter(known, text_of(query, "name"), text_of(query, "text"))


def filters_in(query: Query) -> dict[str, str]:
    """Return the filters of cases in a query as the parameters of an address."""
    return {name: value for name in ("verdict", "name", "text", "test") if (value := text_of(query, name))}


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


def place_text(place: Place | None) -> str:
    """Return a place as the parameter of an address."""
    return ".".join(map(str, place)) if place else ""


def place_in(query: Query) -> Place | None:
    """Return the place after which a query begins; None for the first page."""
    numbers = text_of(query, "after").split(".")
    if len(numbers) != len(Place._fields) or not all(number.isascii() and number.isdecimal() for number in numbers):
        return None
    return Place(*(min(int(number), 2**53) for number in numbers))


def _page(
    source: Source, query: Query, runs: Sequence[ListedRun], *, title: str, address: Mapping[str, str], command: str
) -> Page:
    chosen = [run for run in runs if text_of(query, "test") in {"", run.definition}]
    wanted, rows = filter_of(query), [RunRow(run, digest_of(source, run)) for run in runs]
    page = cases_of(source, chosen, wanted, limit=limits.VIEW_ROWS, after=place_in(query))
    given, by_id = filters_in(query), {run.id: run for run in runs}
    is_suite, has_iterations = "suite" in address, any(run.options.iterations > 1 for run in runs)
    values = {
        "rows": rows,
        "suite": Table(SUITE_COLUMNS, rows, has_keys=False),
        "first": rows[0],
        "is_suite": is_suite,
        "page_name": "suite" if is_suite else "run",
        "address": address,
        "given": given,
        "here": {**given, **address},
        "wanted": wanted,
        "counts": _counts(source, chosen, rows),
        "total": sum(run.done for run in runs),
        "verdicts": WORST_FIRST,
        "names": _names(rows),
        "cases": Table(
            tuple(column for column in CASE_COLUMNS if is_suite or column is not CASE_TEST),
            [CaseRow(listed.case, by_id[listed.run_id], given, has_iterations) for listed in page.cases],
            id_of=lambda row: f"{row.run.id}-{row.case.number}-{row.case.iteration}",
        ),
        "after": place_text(page.after),
        "is_whole": page.is_whole,
        "is_first": not text_of(query, "after"),
        "answers_org": _org_of(source, runs[0].answers_of),
        "partly": any(run.summary.partly_judged for run in runs),
        "several": has_iterations,
    }
    return Page("run.html.j2", title, values, command=command, live=any(not run.status.is_over for run in runs))


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
