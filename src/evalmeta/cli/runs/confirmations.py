"""Ask the suspect cases of a command again, until it is known whether they broke."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import count as count_up
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import api, limits
from evalmeta.cli.orgs import connected, run_async
from evalmeta.cli.output import note
from evalmeta.cli.runs.starting import run_tests
from evalmeta.errors import EvalmetaError, Suggestion
from evalmeta.model.evaluation import CaseList
from evalmeta.model.registry import type_of_run
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.comparisons import ComparedRun
    from evalmeta.cli.runs.baselines import Comparator
    from evalmeta.cli.runs.starting import RunRequest, RunsOutcome
    from evalmeta.model.comparison import CaseComparison, Comparison
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project

# How often a suspect case has been asked again after each round. Most unchanged cases pass in the first ones.
_ROUNDS: Final = (1, 2, 6, 12, limits.MAX_ANSWERS_AGAIN)
_ROUNDS_FOR_ALL: Final = 2
# Later rounds ask at most this many cases, those that passed most often in the baseline first.
_MOST_SUSPECTS: Final = 10


class _Question(NamedTuple):
    """A case that is asked again, and how often."""

    run: Run
    number: int
    times: int


def confirm_suspects(
    project: Project, target: Target | None, request: RunRequest, outcome: RunsOutcome, comparator: Comparator
) -> Comparator:
    """Ask the suspect cases of finished runs again, as runs of their own that comparisons then find.

    A case is asked until it passes once, or has failed as often as is needed to show that it broke. At most twice the
    number of cases are asked, and 20 answers more for each of ten cases. What cannot be run is added to the errors of
    `outcome`. Return the comparator that decides: it fails the command if a case is suspect after so many questions.
    """
    runs = {finished.run.id: finished.run for finished in outcome.finished}
    if not comparator.most_answers:
        return comparator
    compared = api.runs.comparisons.runs_in(comparator.baseline, runs.values())
    if not any(_suspects(comparator, compared)) or not _can_choose(project, target):
        return comparator
    cases = {(run.id, case.number) for run in runs.values() for case in run.cases}
    asked, bound = 0, 2 * len(cases) + limits.MAX_ANSWERS_AGAIN * _MOST_SUSPECTS
    for place in count_up():
        limit = None if place < _ROUNDS_FOR_ALL else _MOST_SUSPECTS
        questions = [*islice(_questions(_suspects(comparator, compared), runs, comparator.most_answers), limit)]
        if not questions:
            break
        if asked >= bound:
            note(f"Asked {asked:,} further questions, which is the maximum: some cases are still suspect.")
            return comparator._replace(suspects_fail=True)
        asked += sum(question.times for question in questions)
        if not _ask(project, target, request, questions, outcome, called="suspect case"):
            return comparator
    tests = comparator.compare_again(compared).tests
    probes = [_Question(runs[test.after], number, times) for test in tests for number, times in test.probes]
    _ask(project, target, request, probes, outcome, called="passing case")
    return comparator


def _can_choose(project: Project, target: Target | None) -> bool:
    """Return whether the org can run single cases; print what that means if it cannot."""

    async def is_ours() -> bool:
        async with connected(project, target) as connection:
            return connection.is_ours

    if run_async(is_ours()):
        return True
    note("A Salesforce org runs whole definitions: suspect cases are not asked again.")
    return False


def _suspects(comparator: Comparator, compared: Sequence[ComparedRun]) -> Iterator[tuple[Comparison, CaseComparison]]:
    """Yield the suspect cases that more answers can decide, those that passed most often before first."""
    tests = comparator.compare_again(compared).tests
    found = [(test, case) for test in tests for case in test.suspects if case.left_to_ask and not case.has_only_errors]
    yield from sorted(found, key=lambda pair: -((pair[1].before.pass_rate if pair[1].before else 0) or 0))


def _questions(
    suspects: Iterable[tuple[Comparison, CaseComparison]], runs: Mapping[str, Run], most: int
) -> Iterator[_Question]:
    """Yield how often to ask each suspect case in the next round; nothing for one that was asked `most` times."""
    for test, case in suspects:
        asked = (case.needed or 0) - case.left_to_ask
        round_end = min(most, next((end for end in _ROUNDS if end > asked), most))
        if (times := min(case.left_to_ask, round_end - asked)) > 0:
            yield _Question(runs[test.after], case.number, times)


def _ask(
    project: Project,
    target: Target | None,
    request: RunRequest,
    questions: Sequence[_Question],
    outcome: RunsOutcome,
    *,
    called: str,
) -> bool:
    """Ask cases again; return False, and add what went wrong to the errors of the outcome, if that is not possible."""
    groups: defaultdict[int, list[_Question]] = defaultdict(list)
    for question in questions:
        groups[question.times].append(question)
    for times, group in groups.items():
        note(f"Asking {count(len(group), called)} again{f', {times:,} times' if times > 1 else ''}.")
        try:
            asked = run_async(run_tests(project, target, _request(request, group, times)))
        except EvalmetaError as error:
            outcome.errors.append(error)
            return False
        if asked.errors:
            outcome.errors.extend(asked.errors)
            ids = [word for run_id in {question.run.id for question in group} for word in ("--job-id", run_id)]
            note(Suggestion("When the new answers are complete, compare again", "test", "results", *ids))
            return False
    return True


def _request(request: RunRequest, group: Sequence[_Question], times: int) -> RunRequest:
    """Return a request that runs cases of several runs again, with the options of these."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for question in group:
        numbers[_key(question.run)].add(question.number)
    runs = {_key(question.run): question.run for question in group}
    files = tuple(_repeated(file) for file in request.files if f"{file.type.name}:{file.name}" in runs)
    lists = tuple(CaseList(name, frozenset(chosen)) for name, chosen in numbers.items())
    options = replace(request.options, iterations=times, shard=None, seed=None)
    choice = api.runs.selection.CaseChoice(() if files else tuple(runs), (lists,))
    return request._replace(choice=choice, options=options, files=files, confirms=runs)


def _key(run: Run) -> str:
    kind = type_of_run(run.id)
    return f"{kind.name}:{run.definition}" if kind else run.definition


def _repeated(file: FileTest) -> FileTest:
    return replace(file, document=replace(file.document, iterations=None))
