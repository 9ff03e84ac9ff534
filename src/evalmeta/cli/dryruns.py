"""`evalmeta test run --dry-run`: what would be asked, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta.cli.loop import run_async
from evalmeta.cli.output import print_json
from evalmeta.cli.targets import connected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.dry_runs import PlannedRun
    from evalmeta.api.targets import Target
    from evalmeta.cli.runs import Order
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.package.project import Project

__all__ = ["print_plan"]


def print_plan(project: Project, target: Target | None, order: Order, *, as_json: bool) -> int:
    """Prints what a run would ask, and gives exit code 0."""
    planned = run_async(_plan(project, target, order))
    if as_json:
        print_json([_json(each) for each in planned])
        return 0
    adapters = {name: each.adapter for name, each in project.settings.subjects.items()} if target is None else {}
    for each in planned:
        click.echo("\n".join(_lines(each, adapters.get(each.subject_name, ""))))
    click.echo(_total(planned, order))
    return 0


async def _plan(project: Project, target: Target | None, order: Order) -> list[PlannedRun]:
    from evalmeta.api import dry_runs, tests  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        chosen = await tests.select_tests(connection, order.choice.names)
        return await dry_runs.plan_runs(connection, chosen, order.choice, order.options)


def _lines(planned: PlannedRun, adapter: str) -> Iterator[str]:
    from evalmeta.report.plain import one_line  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.words import count  # noqa: PLC0415 - likewise

    bound = f" (adapter {adapter})" if adapter else ""
    left_out = f", {planned.left_out:,} left out" if planned.left_out else ""
    yield one_line(f"{planned.definition}: subject {planned.subject_name}{bound}", chars=200)
    yield f"  {count(len(planned.cases), 'case')}{left_out}"
    for case in planned.cases:
        yield f"  {case.number:>4} {one_line(' / '.join(turn.utterance for turn in case.turns))}"
    if planned.expectations:
        names = (f"{name} ({times:,})" if times > 1 else name for name, times in planned.expectations.items())
        yield f"  judged: {', '.join(names)}"
    yield ""


def _total(planned: Sequence[PlannedRun], order: Order) -> str:
    from evalmeta.report.words import count  # noqa: PLC0415 - not needed for --help

    options = order.options
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
            {"number": case.number, "utterances": [turn.utterance for turn in case.turns]} for case in planned.cases
        ],
        "leftOut": planned.left_out,
        "expectations": planned.expectations,
    }
