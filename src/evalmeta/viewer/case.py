"""The page of a case, and what people change there with forms: judgements of results, and expectations in files."""

from __future__ import annotations

import hashlib
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.agent_tests import place_of_run
from evalmeta.api.judging.acceptance import Proposal, propose, write
from evalmeta.api.judging.marks import mark_result
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.run import WORST_FIRST, Verdict
from evalmeta.model.steps import step_tree
from evalmeta.model.tally import summarise
from evalmeta.package.files import shown
from evalmeta.report.details import all_utterances, exchanges, metadata_text
from evalmeta.store.case_lists import ListedCase, case_before, case_history, place_of
from evalmeta.store.judgements import Judgement, Mark, ResultPlace, marks_of_case
from evalmeta.store.run_lists import ListedRun, recent_runs
from evalmeta.viewer.case_orders import can_be_ordered, neighbours_in, order_of
from evalmeta.viewer.case_results import result_page
from evalmeta.viewer.changes import change_of
from evalmeta.viewer.pages import Page, Query, Source, Target, number_of, text_of
from evalmeta.viewer.run import cases_of, filter_of, iterations_of, layout_in, list_in, run_in
from evalmeta.viewer.waterfall import waterfall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.json_value import JsonValue
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


class PastRun(NamedTuple):
    """A case in a run; `has_changed` if its utterance is not that of the page's case.

    `case` is the first of its iterations with the worst verdict, which `alike` of `total` have.
    """

    run: ListedRun
    case: CaseResult
    alike: int
    total: int
    has_changed: bool


def case_page(source: Source, query: Query) -> Page:
    """Return the page of one case in one run."""
    run, number = run_in(source, query), number_of(query, "number")
    iterations = iterations_of(source, run, number)
    groups = _groups(iterations)
    iteration = number_of(query, "iteration", otherwise=groups[0].case.iteration)
    case = next((result for result in iterations if result.iteration == iteration), groups[0].case)
    marks = marks_of_case(source.database, ResultPlace(run.org_url, run.id, case.iteration, number))
    file, line = _location(source, run, number)
    before, following = _neighbours(source, run, query, case)
    past = _past(source, run, number)
    # If cases were added or removed, another case had the number.
    utterances = all_utterances(case)
    earlier = [
        (past_run, past_case)
        for past_run, past_case in past
        if past_case.started < case.started and all_utterances(past_case) == utterances
    ]
    passed = next((past_run.id for past_run, past_case in earlier if past_case.verdict is Verdict.PASS), "")
    # As squares, the answers to a suspect case that was asked again look like more days of failures.
    whole = [(past_run, past_case) for past_run, past_case in past if not past_run.confirms or past_run.id == run.id]
    here = {"run": run.id, "org": run.org_url, "number": number}
    values = {
        "run": run,
        "case": case,
        "groups": groups,
        "change": None if case.verdict is Verdict.PASS else change_of(source, run, number, passed),
        "iterations": iterations,
        "history": _history(whole, case),
        "again": [past_case for past_run, past_case in past if past_run.confirms == run.id],
        "here": {**here, "iteration": case.iteration} if run.options.is_repeated else here,
        "given": list_in(query),
        "accepted": text_of(query, "accepted"),
        "marks": marks,
        "file": file,
        "line": line,
        "previous": before,
        "next": following,
        "averages": summarise(iterations, run.options).averages,
        "trace": own_trace(case),
        "waterfall": waterfall(case, [past_case for _, past_case in earlier]),
        "results": result_page(case, earlier, query),
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
    own = _own_mark(source, place)
    if form.get("seen", "") != (str(own.at) if own else ""):
        said = f"your judgement is already: {own.words}" if own else "your judgement has been removed"
        raise UsageError(
            f"this result was judged in another tab, {said}", actions=["Go back, load the page again, and judge again."]
        )
    saved, note = _JUDGEMENTS[judgement], form.get("note", "")
    mark_result(source.project, source.database, place, source.user, saved, note=note)
    if "review" in form:
        # The result has left the list, so that the next one is in its place.
        return Target("review", {"skip": number_of(form, "review", otherwise=0) or None})
    several = iteration if run.options.is_repeated else ""
    return Target("case", {"run": run.id, "number": number, "iteration": several, "org": text_of(form, "org")})


def _own_mark(source: Source, place: ResultPlace) -> Mark | None:
    """Return what the user has said of a result, perhaps in another tab."""
    marks = marks_of_case(source.database, place)
    return next((mark for mark in marks if mark.place == place and mark.user_id == source.user.id), None)


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


def _past(source: Source, run: ListedRun, number: int) -> list[tuple[ListedRun, CaseResult]]:
    """Return the results of a case in the latest runs of its test in the project's own org, the newest first."""
    recent = recent_runs(source.database, of_each=limits.VIEW_HISTORY, test=run.definition, user=source.user)
    runs = {run.id: run for run in recent.get(run.definition, []) if not run.org_url}
    return [(runs[listed.run_id], listed.case) for listed in case_history(source.database, [*runs], number)][::-1]


def _history(past: Sequence[tuple[ListedRun, CaseResult]], case: CaseResult) -> list[PastRun]:
    """Return the runs with the case, the oldest first."""
    runs: dict[str, ListedRun] = {}
    cases: dict[str, list[CaseResult]] = {}
    for run, past_case in reversed(past):
        runs[run.id] = run
        cases.setdefault(run.id, []).append(past_case)
    history = []
    for run_id, iterations in cases.items():
        shown = min(iterations, key=lambda iteration: WORST_FIRST.index(iteration.verdict))
        alike = sum(iteration.verdict is shown.verdict for iteration in iterations)
        has_changed = all_utterances(shown) != all_utterances(case)
        history.append(PastRun(runs[run_id], shown, alike, len(iterations), has_changed))
    return history


def own_trace(case: CaseResult) -> JsonValue:
    """Return the trace of the last answer if it is not a tree of steps, which the waterfall has."""
    known = case.generated or case.unanswered
    return known.trace if known and step_tree(known) is None else None


def _neighbours(
    source: Source, run: ListedRun, query: Query, case: CaseResult
) -> tuple[ListedCase | None, ListedCase | None]:
    """Return the cases before and after this one in the list from which the page was opened."""
    place, wanted = place_of(ListedCase(run.id, case), [run.id]), filter_of(query)
    layout = layout_in(query, "run", {})
    if (layout.sort or layout.group) and can_be_ordered([run]):
        return neighbours_in(source, run, wanted, order_of(source, [run], layout), case)
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
