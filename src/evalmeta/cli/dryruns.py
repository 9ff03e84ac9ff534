"""`evalmeta test run --dry-run`: what would be asked, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta.cli.output import print_json
from evalmeta.cli.runs import check_selection, chosen_tests
from evalmeta.cli.targets import connected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.dry_runs import PlannedRun
    from evalmeta.api.targets import Target
    from evalmeta.cli.runs import Order
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project

__all__ = ["make_plan", "print_plan"]


def print_plan(
    project: Project, target: Target | None, planned: Sequence[PlannedRun], order: Order, *, as_json: bool
) -> None:
    """Prints what a run would ask."""
    if as_json:
        print_json([_json(each) for each in planned])
        return
    for each in planned:
        click.echo("\n".join(_lines(each, _bound(project, target, each, order))))
    click.echo(_total(planned, order.options))


async def make_plan(project: Project, target: Target | None, order: Order) -> list[PlannedRun]:
    """Gives what a run would ask; raises what a run that is started would."""
    from evalmeta.api import dry_runs  # noqa: PLC0415 - not needed for --help
    from evalmeta.org.bindings import rater_settings  # noqa: PLC0415 - likewise

    if target is None:
        rater_settings(project.settings.raters, order.options.scoring.rater)
    async with connected(project, target) as connection:
        check_selection(connection, order)
        chosen = await chosen_tests(connection, order)
        return await dry_runs.plan_runs(connection, chosen, order.choice, order.options)


def _bound(project: Project, target: Target | None, planned: PlannedRun, order: Order) -> str:
    """Says by what an agent would be asked; of agents in other orgs nothing is known."""
    if target is not None or any(each.name == planned.definition and each.subject for each in order.files):
        return ""
    settings = project.settings.subjects.get(planned.subject_name)
    return f" (adapter {settings.adapter})" if settings else " (no adapter is bound to it)"


def _lines(planned: PlannedRun, bound: str) -> Iterator[str]:
    from evalmeta.report.plain import one_line  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.words import count  # noqa: PLC0415 - likewise

    if not planned.cases:
        yield one_line(f"{planned.definition}: none of its {count(planned.left_out, 'case')}\n", chars=200)
        return
    left_out = f", {planned.left_out:,} left out" if planned.left_out else ""
    asked = f"subject {planned.subject_name}{bound}" if planned.subject_name else "no agent is named"
    yield one_line(f"{planned.definition}: {asked}", chars=200)
    yield f"  {count(len(planned.cases), 'case')}{left_out}"
    for case in planned.cases:
        label = f"{one_line(case.label)}: " if case.label else ""
        yield f"  {case.number:>4} {label}{one_line(' / '.join(turn.utterance for turn in case.turns))}"
    if planned.expectations:
        names = (f"{name} ({times:,})" if times > 1 else name for name, times in planned.expectations.items())
        yield f"  judged: {', '.join(names)}"
    yield ""


def _total(planned: Sequence[PlannedRun], options: RunOptions) -> str:
    from evalmeta.report.words import count  # noqa: PLC0415 - not needed for --help

    questions = sum(each.questions for each in planned)
    cases = sum(len(each.cases) for each in planned)
    rounds = f" in {options.iterations:,} iterations" if options.iterations > 1 else ""
    how = f"scoring {options.scoring.profile}, rater {options.scoring.rater}"
    return f"Would ask {count(cases, 'case')}{rounds}: {count(questions, 'question')}, {how}. Nothing was asked."


def _json(planned: PlannedRun) -> JsonObject:
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
