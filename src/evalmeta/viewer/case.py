"""The page of a case, and what people change there with forms: judgements of results, and expectations in files."""

from __future__ import annotations

import hashlib
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.agent_tests import place_of_run
from evalmeta.api.judging.acceptance import Proposal, propose, write
from evalmeta.api.judging.marks import mark_result
from evalmeta.api.runs.comparisons import find_run
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.aggregation import named_results
from evalmeta.model.tally import summarise
from evalmeta.package.files import shown
from evalmeta.report.details import exchanges, metadata_text
from evalmeta.store.case_lists import ListedCase, case_before, case_history, place_of
from evalmeta.store.judgements import Judgement, ResultPlace, marks_of_case
from evalmeta.store.run_lists import ListedRun, recent_runs
from evalmeta.viewer.pages import Column, Page, Query, Source, Table, Target, number_of, text_of
from evalmeta.viewer.run import cases_of, filter_of, filters_in, run_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.run import CaseResult


_JUDGEMENTS: Final[Mapping[str, Judgement | None]] = {
    "right": "right",
    "wrong": "wrong",
    "pass": "pass",
    "fail": "fail",
    "none": None,
}


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
        "metadata": metadata_text(case.metadata or {}),
    }
    return Page(
        "case.html.j2",
        f"Case {number} of {run.definition}",
        values,
        command=_command(run, number, file),
        command_title="Run this case again",
    )


def mark(source: Source, form: Query) -> Target:
    """Save whether the verdict of a result is right, or what it should be."""
    run, number, iteration = run_in(source, form), number_of(form, "number"), number_of(form, "iteration")
    judgement = form.get("judgement", "")
    if judgement not in _JUDGEMENTS:
        raise UsageError(f"{judgement!r} is not a valid judgement")
    place = ResultPlace(run.org_url, run.id, iteration, number, form.get("result", ""), number_of(form, "turn"))
    said, note = _JUDGEMENTS[judgement], form.get("note", "")
    mark_result(source.project, source.database, place, source.user, said, note=note)
    several = iteration if run.options.iterations > 1 else ""
    return Target("case", {"run": run.id, "number": number, "iteration": several, "org": text_of(form, "org")})


def acceptance_page(source: Source, query: Query) -> Page:
    """Return the page that shows what accepting an answer as the new expectation would change."""
    proposal = _proposal(source, query)
    values = {
        "proposal": proposal,
        "file": shown(proposal.path),
        "lines": [(_kind(line), line) for line in proposal.diff.splitlines()],
        "run": query["run"],
        "number": query["number"],
        "fields": {name: query.get(name, "") for name in ("iteration", "result", "turn", "several")},
        "digest": _digest(proposal),
    }
    words = ["evalmeta", "test", "accept", "--job-id", query["run"], "--case", query["number"]]
    words += ["--expectation", query.get("result", ""), "--iteration", query.get("iteration", "1")]
    turn = ["--turn", query["turn"]] if number_of(query, "turn", otherwise=0) else []
    command = shlex.join([*words, *turn])
    return Page("acceptance.html.j2", "Accept an answer", values, command=command)


def accept(source: Source, form: Query) -> Target:
    """Write an accepted answer into the file of its test, if the file is still as it was shown."""
    proposal = _proposal(source, form)
    if form.get("digest") != _digest(proposal):
        raise UsageError(f"{shown(proposal.path)} has changed since this was shown", actions=["Look at it again."])
    write(proposal)
    several = form.get("iteration", "") if form.get("several") else ""
    return Target("case", {"run": form["run"], "number": form["number"], "iteration": several, "accepted": 1})


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


def _proposal(source: Source, query: Query) -> Proposal:
    """Return the change of a file; only admins may change files, and not through pages that were written as files."""
    run, number = run_in(source, query), number_of(query, "number")
    if not source.user.is_admin or not source.can_change:
        raise NotFound("only the admin of this org can change files of the project")
    turn, iteration = number_of(query, "turn", otherwise=0), number_of(query, "iteration")
    return propose(
        source.project,
        run.id,
        number,
        expectation=query.get("result", ""),
        turn=turn or None,
        iteration=iteration,
        org_url=run.org_url,
    )


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "dim"
    return {"+": "added", "-": "removed"}.get(line[:1], "")


def _digest(proposal: Proposal) -> str:
    return hashlib.sha256(proposal.before + proposal.after).hexdigest()
