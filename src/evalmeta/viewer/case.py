"""The page of a case: its conversation, why it did not pass, its iterations, its history, and what people say of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.agent_tests import place_of_run
from evalmeta.api.runs.comparisons import find_run
from evalmeta.errors import NotFound
from evalmeta.model.named_results import named_results
from evalmeta.model.tally import summarise
from evalmeta.package.files import shown
from evalmeta.report.details import exchanges
from evalmeta.store.case_lists import ListedCase, case_before, case_history, place_of
from evalmeta.store.marks import ResultPlace, marks_of_case
from evalmeta.store.run_lists import recent_runs
from evalmeta.viewer.pages import Column, Page, Table, number_of, text_of
from evalmeta.viewer.run import cases_of, filter_of, filters_in, run_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.pages import Query, Source


class AnswerGroup(NamedTuple):
    """Iterations of a case with the same answer and verdict."""

    case: CaseResult
    iterations: tuple[int, ...]


class PastCase(NamedTuple):
    """A case in a run; `has_changed` if its utterance is not that of the page's case."""

    run: ListedRun
    case: CaseResult
    has_changed: bool


HISTORY: Final[tuple[Column[PastCase], ...]] = (
    Column("Result", "past_verdict", lambda past: past),
    Column("Run", "past_run", lambda past: past),
    Column("Started", "time", lambda past: past.case.started),
    Column("Answer", "past_answer", lambda past: past, "wide"),
    Column("Latency", "milliseconds", lambda past: past.case.generated and past.case.generated.latency_ms, "number"),
)


def case_page(source: Source, query: Query) -> Page:
    """Return the page of one case in one run."""
    run, number = run_in(source, query), number_of(query, "number")
    iterations = _iterations(source, run, number)
    if not iterations:
        raise NotFound(f"run {run.id} has no result of case {number}")
    groups = _groups(iterations)
    iteration = number_of(query, "iteration", otherwise=groups[0].case.iteration)
    case = next((result for result in iterations if result.iteration == iteration), groups[0].case)
    marks = marks_of_case(source.database, ResultPlace(run.org_url, run.id, case.iteration, number))
    file, line = _location(source, run, number)
    before, following = _neighbours(source, run, query, case)
    values = {
        "run": run,
        "case": case,
        "groups": groups,
        "iterations": iterations,
        "history": Table(
            HISTORY,
            _history(source, run, case),
            is_here=lambda past: (past.run.id, past.case.iteration) == (run.id, case.iteration),
        ),
        "given": filters_in(query),
        "accepted": text_of(query, "accepted"),
        "marks": marks,
        "file": file,
        "line": line,
        "previous": before,
        "next": following,
        "averages": summarise(iterations, run.options).averages,
        "trace": case.generated.trace if case.generated else None,
        "turns": exchanges(case),
        "results": named_results(case),
    }
    return Page(
        "case.html.j2",
        f"Case {number} of {run.definition}",
        values,
        command=_command(run, number, file),
        command_title="Run this case again",
    )


def _iterations(source: Source, run: ListedRun, number: int) -> list[CaseResult]:
    if run.org_url:
        loaded = find_run(source.project, run.id, org_url=run.org_url)
        return [case for case in loaded.cases if case.number == number]
    return [listed_case.case for listed_case in case_history(source.database, [run.id], number)]


def _groups(cases: Sequence[CaseResult]) -> list[AnswerGroup]:
    """Group the iterations with the same answer and verdict, those that did not pass first."""
    alike: dict[object, list[CaseResult]] = {}
    for case in cases:
        answers = tuple(
            exchange.generated.outcome if exchange.generated else case.error for exchange in exchanges(case)
        )
        alike.setdefault((case.verdict, answers), []).append(case)
    groups = [AnswerGroup(same[0], tuple(case.iteration for case in same)) for same in alike.values()]
    return sorted(groups, key=lambda group: place_of(ListedCase("", group.case), [""]))


def _history(source: Source, run: ListedRun, case: CaseResult) -> list[PastCase]:
    """Return the results of the case in the latest runs of its test in the project's own org, the newest first."""
    recent = recent_runs(source.database, of_each=limits.VIEW_HISTORY, test=run.definition, user=source.user)
    runs = {run.id: run for run in recent.get(run.definition, []) if not run.org_url}
    past = [
        PastCase(runs[listed.run_id], listed.case, has_changed=listed.case.utterance != case.utterance)
        for listed in case_history(source.database, [*runs], case.number)
    ]
    return past[::-1]


def _neighbours(
    source: Source, run: ListedRun, query: Query, case: CaseResult
) -> tuple[ListedCase | None, ListedCase | None]:
    """Return the cases before and after this one in the list from which the page was opened."""
    place, wanted = place_of(ListedCase(run.id, case), [run.id]), filter_of(query)
    following = cases_of(source, [run], wanted, limit=1, after=place).cases
    before = None if run.org_url else case_before(source.database, [run.id], wanted, place)
    return before, next(iter(following), None)


def _location(source: Source, run: ListedRun, number: int) -> tuple[str, int | None]:
    place = None if run.org_url else place_of_run(source.project, run.id)
    if place is None:
        return "", None
    path, places = place
    return places.files.get(number, shown(path)), places.lines.get(number)


def _command(run: ListedRun, number: int, file: str) -> str:
    """Return the command that runs this case again."""
    words = ["evalmeta", "run", file] if file else ["evalmeta", "test", "run", run.definition]
    return shlex.join([*words, "--case", str(number), *([] if file else ["--wait"])])
