"""Ask the suspect cases of a command again, until it is known whether they broke."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import count as count_up
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.org_targets import connect
from evalmeta.api.runs.comparisons import Comparator, ComparedRun, runs_in
from evalmeta.api.runs.selection import CaseChoice
from evalmeta.api.runs.starting import RunCall, run_tests
from evalmeta.errors import EvalmetaError, Suggestion
from evalmeta.model.evaluation import CaseList
from evalmeta.model.registry import type_of_run
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.api.runs.observer import Observer
    from evalmeta.api.runs.waiting import RunsOutcome
    from evalmeta.model.comparison import CaseComparison, Comparison
    from evalmeta.model.run import Run

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


def confirm_suspects(call: RunCall, outcome: RunsOutcome, comparator: Comparator, observer: Observer) -> Comparator:
    """Ask the suspect cases of finished runs again, as runs of their own that comparisons then find.

    A case is asked until it passes once, or has failed as often as is needed to show that it broke. At most twice the
    number of cases are asked, and 20 answers more for each of ten cases. What cannot be run is added to the errors of
    `outcome`. Return the comparator that decides: it fails the command if a case is suspect after so many questions.
    """
    runs = {finished.run.id: finished.run for finished in outcome.finished}
    if not comparator.most_answers:
        return comparator
    compared = runs_in(comparator.baseline, runs.values())
    if not any(_suspects(comparator, compared)) or not _can_choose(call, observer):
        return comparator
    cases = {(run.id, case.number) for run in runs.values() for case in run.cases}
    asked, bound = 0, 2 * len(cases) + limits.MAX_ANSWERS_AGAIN * _MOST_SUSPECTS
    for place in count_up():
        limit = None if place < _ROUNDS_FOR_ALL else _MOST_SUSPECTS
        questions = [*islice(_questions(_suspects(comparator, compared), runs, comparator.most_answers), limit)]
        if not questions:
            break
        if asked >= bound:
            observer.note(f"Asked {asked:,} further questions, which is the maximum: some cases are still suspect.")
            return comparator._replace(suspects_fail=True)
        asked += sum(question.times for question in questions)
        if not _ask(call, questions, outcome, observer, called="suspect case"):
            return comparator
    tests = comparator.compare_again(compared).tests
    probes = [_Question(runs[test.after], number, times) for test in tests for number, times in test.probes]
    _ask(call, probes, outcome, observer, called="passing case")
    return comparator


def _can_choose(call: RunCall, observer: Observer) -> bool:
    """Return whether the org can run single cases; say what that means if it cannot."""

    async def is_ours() -> bool:
        async with connect(call.project, call.target, remark=observer.warn) as connection:
            return connection.is_ours

    if observer.run(is_ours()):
        return True
    observer.note("A Salesforce org runs whole definitions: suspect cases are not asked again.")
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
    call: RunCall, questions: Sequence[_Question], outcome: RunsOutcome, observer: Observer, *, called: str
) -> bool:
    """Ask cases again; return False, and add what went wrong to the errors of the outcome, if that is not possible."""
    groups: defaultdict[int, list[_Question]] = defaultdict(list)
    for question in questions:
        groups[question.times].append(question)
    for times, group in groups.items():
        observer.note(f"Asking {count(len(group), called)} again{f', {times:,} times' if times > 1 else ''}.")
        try:
            asked = observer.run(run_tests(_call_again(call, group, times), observer))
        except EvalmetaError as error:
            outcome.errors.append(error)
            return False
        if asked.errors:
            outcome.errors.extend(asked.errors)
            ids = [word for run_id in {question.run.id for question in group} for word in ("--job-id", run_id)]
            observer.note(Suggestion("When the new answers are complete, compare again", "test", "results", *ids))
            return False
    return True


def _call_again(call: RunCall, group: Sequence[_Question], times: int) -> RunCall:
    """Return a call that runs cases of several runs again, with the options of these."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for question in group:
        numbers[_key(question.run)].add(question.number)
    runs = {_key(question.run): question.run for question in group}
    chosen = (file for file in call.files if f"{file.type.name}:{file.name}" in runs)
    files = tuple(replace(file, document=replace(file.document, iterations=None)) for file in chosen)
    lists = tuple(CaseList(name, frozenset(cases)) for name, cases in numbers.items())
    options = replace(call.options, iterations=times, iterations_by="run", shard=None, seed=None)
    choice = CaseChoice(() if files else tuple(runs), (lists,))
    return replace(call, choice=choice, options=options, files=files, confirms=runs)


def _key(run: Run) -> str:
    kind = type_of_run(run.id)
    return f"{kind.name}:{run.definition}" if kind else run.definition
