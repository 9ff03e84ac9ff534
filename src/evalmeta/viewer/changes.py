"""What people change with forms: judgements of results, and expectations in the files of tests."""

from __future__ import annotations

import hashlib
import shlex
from typing import TYPE_CHECKING, Final

from evalmeta.api.judging.acceptance import propose, write
from evalmeta.api.judging.marks import mark_result
from evalmeta.errors import NotFound, UsageError
from evalmeta.package.files import shown
from evalmeta.store.marks import ResultPlace
from evalmeta.viewer.pages import Page, Target, number_of, text_of
from evalmeta.viewer.run import run_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.api.judging.acceptance import Proposal
    from evalmeta.store.marks import Judgement
    from evalmeta.viewer.pages import Query, Source

_JUDGEMENTS: Final[Mapping[str, Judgement | None]] = {
    "right": "right",
    "wrong": "wrong",
    "pass": "pass",
    "fail": "fail",
    "none": None,
}


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
