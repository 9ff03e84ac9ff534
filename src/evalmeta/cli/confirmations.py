"""`--confirm N`: run suspect cases again before they count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalmeta import api
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import note
from evalmeta.cli.runs import run_tests
from evalmeta.engine.confirmation import answers_needed
from evalmeta.errors import EvalmetaError, Suggestion
from evalmeta.model.evaluation import CaseList
from evalmeta.model.registry import type_of_run
from evalmeta.model.statistics import Standing
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.org_targets import Target
    from evalmeta.cli.baselines import Comparator
    from evalmeta.cli.runs import RunRequest, RunsOutcome
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project


def confirm_suspects(
    project: Project, target: Target | None, request: RunRequest, outcome: RunsOutcome, comparator: Comparator
) -> None:
    """Ask the suspect cases of finished runs again, as runs of their own that comparisons then find.

    Cases that fail most of their `confirm` new answers are asked as often as is needed to show that they broke. What
    cannot be run is added to the errors of `outcome`.
    """
    for finished, first in comparator.compare(outcome.finished):
        suspects = [each.number for each in first.of(Standing.SUSPECT)] if first else []
        answers, decided = comparator.confirm or 0, 0
        while first and suspects and answers > 0:
            try:
                errors = _ask(project, target, _request(request, finished.run, suspects, answers), finished.run)
            except EvalmetaError as error:
                errors = [error]
            if errors:
                outcome.errors.extend(errors)
                return
            again = api.comparisons.new_answers(project, finished.run)
            suspects = [number for number in suspects if number in again and again[number].passes is False]
            before, decided = decided, max((again[each].decided for each in suspects), default=0)
            if decided <= before:
                # More questions would end in errors, too.
                break
            answers = answers_needed(first, suspects) - decided


def _ask(project: Project, target: Target | None, request: RunRequest, run: Run) -> list[EvalmetaError]:
    """Run suspect cases again, and return what went wrong."""
    cases = request.choice.lists[0][0].numbers or ()
    times = count(request.options.iterations, "more time")
    note(f"Running {count(len(cases), 'suspect case')} of {run.definition} {times}.")
    asked = run_async(run_tests(project, target, request))
    if asked.errors:
        note(Suggestion("When the new answers are complete, compare again", "test", "results", "--job-id", run.id))
    return asked.errors


def _request(request: RunRequest, run: Run, numbers: Sequence[int], iterations: int) -> RunRequest:
    """Return a request that runs some cases of a run again, with the same options."""
    kind = type_of_run(run.id)
    files = tuple(_repeated(each) for each in request.files if (each.type, each.name) == (kind, run.definition))
    names = () if files else (f"{kind.name}:{run.definition}" if kind else run.definition,)
    choice = api.run_selection.CaseChoice(names, ((CaseList("", frozenset(numbers)),),))
    options = replace(request.options, iterations=iterations, shard=None, seed=None, confirms=run.id)
    options = replace(options, origin=run.options.origin)
    return request._replace(choice=choice, options=options, files=files)


def _repeated(file: FileTest) -> FileTest:
    return replace(file, document=replace(file.document, iterations=None))
