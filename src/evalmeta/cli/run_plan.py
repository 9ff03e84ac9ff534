"""`evalmeta test run --dry-run`: print the cases that would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.orgs import connected
from evalmeta.cli.output import print_json
from evalmeta.cli.runs import check_choice, choose_tests
from evalmeta.report.text import count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.org_targets import Target
    from evalmeta.api.run_selection import PlannedRun
    from evalmeta.cli.runs import RunRequest
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project


async def make_plan(project: Project, target: Target | None, request: RunRequest) -> list[PlannedRun]:
    """Return what the runs would ask; raises the same errors as starting them."""
    if target is None:
        api.run_selection.check_rater(project, request.options)
    async with connected(project, target) as connection:
        check_choice(connection, request)
        tests = await choose_tests(connection, request)
        return await api.run_selection.plan_runs(connection, tests, request.choice, request.options)


def print_plan(
    project: Project, target: Target | None, planned: Sequence[PlannedRun], request: RunRequest, *, as_json: bool
) -> None:
    """Print what the runs would ask."""
    if as_json:
        print_json([_plan_json(each) for each in planned])
        return
    for each in planned:
        click.echo("\n".join(_lines(each, _adapter(project, target, each, request))))
    click.echo(_total(planned, request.options))


def _adapter(project: Project, target: Target | None, planned: PlannedRun, request: RunRequest) -> str:
    """Return the agent's adapter in parentheses; empty for agents in other orgs."""
    if target is not None or any(each.name == planned.definition and each.subject for each in request.files):
        return ""
    settings = project.settings.subjects.get(planned.subject_name)
    return f" (adapter {settings.adapter})" if settings else " (no adapter is bound to it)"


def _lines(planned: PlannedRun, adapter: str) -> Iterator[str]:
    if not planned.cases:
        yield one_line(f"{planned.definition}: none of its {count(planned.left_out, 'case')}\n", chars=200)
        return
    left_out = f", {planned.left_out:,} left out" if planned.left_out else ""
    subject = f"subject {planned.subject_name}{adapter}" if planned.subject_name else "no subject is named"
    yield one_line(f"{planned.definition}: {subject}", chars=200)
    yield f"  {count(len(planned.cases), 'case')}{left_out}"
    for case in planned.cases:
        label = f"{one_line(case.label)}: " if case.label else ""
        yield f"  {case.number:>4} {label}{one_line(' / '.join(turn.utterance for turn in case.turns))}"
    if planned.expectations:
        names = (f"{name} ({times:,})" if times > 1 else name for name, times in planned.expectations.items())
        yield f"  judged: {', '.join(names)}"
    yield ""


def _total(planned: Sequence[PlannedRun], options: RunOptions) -> str:
    cases = sum(len(each.cases) for each in planned)
    questions = sum(each.questions for each in planned)
    iterations = f" in {options.iterations:,} iterations" if options.iterations > 1 else ""
    scoring = f"scoring {options.scoring.profile}, rater {options.scoring.rater}"
    return (
        f"Would ask {count(cases, 'case')}{iterations}: {count(questions, 'question')}, {scoring}. Nothing was asked."
    )


def _plan_json(planned: PlannedRun) -> JsonObject:
    return {
        "definition": planned.definition,
        "type": planned.type,
        "subjectName": planned.subject_name,
        "iterations": planned.iterations,
        "questions": planned.questions,
        "cases": [
            {"number": case.number, "name": case.label, "utterances": [turn.utterance for turn in case.turns]}
            for case in planned.cases
        ],
        "leftOut": planned.left_out,
        "expectations": planned.expectations,
    }
