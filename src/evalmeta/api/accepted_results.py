"""The result whose answer is accepted as the new expectation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.api.result_names import named_results, results_called, shown_names
from evalmeta.errors import NotFound, Suggestion, UsageError
from evalmeta.model.expectations import ACTIONS, OPERATORS, OUTCOME, TOPIC, canonical_name
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.result_names import NamedResult
    from evalmeta.model.run import CaseResult, Run, TestResult


_NOUNS: Final = {TOPIC: "topic", ACTIONS: "actions", OUTCOME: "response", "agent_handoff_match": "agent"}
_HELD_AS_VALUE: Final = frozenset({*_NOUNS, "response_match", "equals"})
_SHOWN_ANSWERS: Final = 3
_SHOWN_CHARS: Final = 60


def choose_result(run: Run, cases: Sequence[CaseResult], *, name: str | None, turn: int | None) -> NamedResult:
    """Return the named result of a case, or else the only one that did not pass; all its iterations have its answer.

    Raises:
        NotFound: the case has no result with this name.
        UsageError: several results can be meant, or the answer of the result cannot be accepted.
    """
    chosen = _choose(run, cases, name, turn)
    found = ((case.iteration, result) for case in cases for result in named_results(case))
    return _agreed(
        run, {iteration: named_result for iteration, named_result in found if named_result.position == chosen.position}
    )


def is_acceptable(result: TestResult) -> bool:
    """Return whether a result compares the answer with a value that can be replaced."""
    name = canonical_name(result.name)
    return not result.is_measured and (name in _HELD_AS_VALUE or name in OPERATORS)


def noun_of(result: TestResult) -> str:
    """Return what a result compares, in a word."""
    return _NOUNS.get(canonical_name(result.name), "value")


def show_results(run: Run) -> Suggestion:
    """Return the suggestion to look at the results of a run."""
    return Suggestion("Show the results", "test", "results", "--job-id", run.id)


def _choose(run: Run, cases: Sequence[CaseResult], name: str | None, turn: int | None) -> NamedResult:
    number = cases[0].number
    all_results = [result for case in cases for result in named_results(case) if turn in {None, result.turn}]
    if not all_results:
        reason = next((f": {each.error}" for each in cases if each.error), "")
        message = f"nothing was judged in case {number} of run {run.id}{reason}"
        raise UsageError(message, actions=[show_results(run)])
    found = _failed(number, all_results) if name is None else _called(number, all_results, name)
    if len(found) > 1:
        turns = ", ".join(str(each) for each in sorted({turn for turn, _ in found}) if each)
        in_turns = f" in the turns {turns}" if turns else ""
        message = f"case {number} has several such results: {shown_names(found.values())}{in_turns}"
        raise UsageError(message, actions=[f"Choose one with --expectation NAME{' and --turn N' if turns else ''}."])
    [chosen] = found.values()
    if not is_acceptable(chosen.result):
        what = f"the expectation {chosen.result.label or chosen.name}"
        message = f"{what} has no expected value that an answer can replace"
        raise UsageError(message, actions=["Edit the test by hand."])
    return chosen


def _called(number: int, results: Sequence[NamedResult], name: str) -> dict[tuple[int, int], NamedResult]:
    """Return the results with a name, by position."""
    found = {named_result.position: named_result for named_result in results_called(results, name)}
    if not found:
        raise NotFound(f"case {number} has no result {name!r}", actions=[f"Its results: {shown_names(results)}."])
    return found


def _failed(number: int, results: Sequence[NamedResult]) -> dict[tuple[int, int], NamedResult]:
    """Return the acceptable results that did not pass in any iteration, by position."""
    acceptable = [result for result in results if is_acceptable(result.result)]
    found = {
        named_result.position: named_result
        for named_result in acceptable
        if named_result.result.verdict is not Verdict.PASS
    }
    if not found:
        names = " or ".join(dict.fromkeys(named_result.name for named_result in acceptable))
        way_out = f"Name one that passed: --expectation {names}" if names else "Edit the test by hand."
        message = f"no failed result of case {number} has an expected value to replace"
        raise UsageError(message, actions=[way_out])
    return found


def _agreed(run: Run, results: dict[int, NamedResult]) -> NamedResult:
    """Return one of the results of the iterations, which all have the same answer."""
    answers = Counter(named_result.result.actual for named_result in results.values())
    if len(answers) > 1:
        few = ", ".join(f"{_short(text)} ({times}x)" for text, times in answers.most_common(_SHOWN_ANSWERS))
        listed = " or ".join(map(str, sorted(results)[:_SHOWN_ANSWERS]))
        message = f"the iterations have different answers: {few}"
        raise UsageError(message, actions=[f"Choose one with --iteration, such as {listed}."])
    chosen = next(iter(results.values()))
    result = chosen.result
    if result.verdict is Verdict.ERROR:
        message = f"{result.name} ended in an error: {result.error or result.explanation}"
        raise UsageError(message, actions=[show_results(run)])
    if not result.actual.strip():
        message = f"the agent returned or reported nothing that {result.label or result.name} could expect"
        raise UsageError(message, actions=[show_results(run)])
    return chosen


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")
