"""What differs between two results of a case: expectations before and after, calls side by side, and the reasons."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.model.aggregation import named_results
from evalmeta.model.run import Verdict
from evalmeta.report.details import exchange_of, exchanges, why_not_passed
from evalmeta.report.report import VERDICT_WORDS
from evalmeta.report.results import label_of, plain_text
from evalmeta.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.report.details import Exchange


class ExpectationPair(NamedTuple):
    """The results of an expectation before and after; None where the case did not have it or was not judged.

    `is_same_check` says that the fingerprints of the case's expectations are known and equal.
    """

    name: str
    before: TestResult | None
    after: TestResult | None
    is_same_check: bool = False

    @property
    def result(self) -> TestResult | None:
        """Return the result after, or else the one before."""
        return self.after or self.before

    @property
    def has_changed(self) -> bool:
        """Return whether the verdict is another one, or what is expected."""
        before, after = self.before, self.after
        return before is None or after is None or before.verdict is not after.verdict or self.expects_another

    @property
    def expects_another(self) -> bool:
        """Return whether both expect something, and not the same."""
        # Scorers write the same calls in one line if they pass, and one to a line if they do not.
        if self.is_same_check:
            return False
        return bool(self.before and self.after and self.before.expected != self.after.expected)


class CallPair(NamedTuple):
    """A call before and the same call after; None where it was not made, or is not known if `is_known` is false."""

    before: Action | None
    after: Action | None
    is_known: bool = True

    @property
    def name(self) -> str:
        """Return the name of the action."""
        return next((action.name for action in (self.before, self.after) if action), "")

    @property
    def change(self) -> str:
        """Return `missing now`, `new`, `not known now`, or what differs; empty if the agent did the same."""
        if not self.is_known:
            return f"not known {'before' if self.before is None else 'now'}"
        if self.before is None or self.after is None:
            return "new" if self.before is None else "missing now"
        parts = ("input", "other inputs"), ("error", "another error"), ("output", "another output")
        return next((word for part, word in parts if getattr(self.before, part) != getattr(self.after, part)), "")


class TurnDifference(NamedTuple):
    """A turn before and after: the answers, None where there is none, the calls side by side, and the expectations."""

    turn: int
    utterance: str
    before: GeneratedData | None
    after: GeneratedData | None
    calls: tuple[CallPair, ...]
    expectations: tuple[ExpectationPair, ...]

    @property
    def is_same(self) -> bool:
        """Return whether nothing that people see of the turn differs."""
        has_same_calls = not any(pair.change for pair in self.calls)
        has_same_results = not any(pair.has_changed for pair in self.expectations)
        return has_same_calls and has_same_results and _shown(self.before) == _shown(self.after)


def turn_differences(before: CaseResult, after: CaseResult) -> list[TurnDifference]:
    """Return the turns of two results of a case side by side."""
    expectations = [*_expectations(before, after)]
    differences = []
    for turn, (old, new) in enumerate(zip_longest(exchanges(before), exchanges(after)), 1):
        known = new or old
        first, last = (exchange and exchange.generated for exchange in (old, new))
        own = tuple(pair for place, pair in expectations if place == turn)
        differences.append(TurnDifference(turn, known.utterance, first, last, tuple(_calls(old, new)), own))
    return differences


def score_change(before: CaseResult, after: CaseResult) -> float:
    """Return the largest difference of a score, as a share of the larger one; 1 if a verdict has changed without it."""
    pairs = [pair for _, pair in _expectations(before, after)]
    return max((_score_change(pair.before, pair.after) for pair in pairs if pair.before and pair.after), default=0.0)


def reasons(before: CaseResult | None, after: CaseResult) -> Iterator[str]:
    """Yield on one line each why a case is judged otherwise than before, expectations first."""
    if before is None:
        if after.verdict is not Verdict.PASS:
            yield why_not_passed(after)
        return
    if after.error and after.error != before.error:
        yield one_line(f"error now: {after.error}")
    elif before.error and not after.error:
        yield one_line(f"error before: {before.error}")
    turns = turn_differences(before, after)
    for turn in turns:
        yield from _verdict_reasons(turn, f" in turn {turn.turn}" if len(turns) > 1 else "", after)
    for turn in turns:
        yield from _answer_reasons(turn, f" in turn {turn.turn}" if len(turns) > 1 else "")
    is_same = before.error == after.error and before.verdict is after.verdict
    if is_same and all(turn.is_same for turn in turns):
        yield "the answers, calls and verdicts are the same"


def _verdict_reasons(turn: TurnDifference, place: str, after: CaseResult) -> Iterator[str]:
    for pair in turn.expectations:
        # After an error, nothing is judged.
        if pair.has_changed and not (after.error and pair.after is None):
            yield one_line(f"{_name(pair)}{place}: {_verdicts(pair)}", chars=300)


def _answer_reasons(turn: TurnDifference, place: str) -> Iterator[str]:
    if turn.after is None:
        return
    for call in turn.calls:
        if call.is_known and call.change:
            yield one_line(f"{call.name}{place}: {call.change}")
    if turn.before and turn.before.topic != turn.after.topic:
        yield one_line(f"topic{place}: {turn.before.topic} before, {turn.after.topic} now")


def _name(pair: ExpectationPair) -> str:
    result = pair.result
    return (label_of(result.name, result.label) if result else "") or pair.name


def _verdicts(pair: ExpectationPair) -> str:
    words = [VERDICT_WORDS[result.verdict] if result else "not judged" for result in (pair.before, pair.after)]
    why = (pair.after.explanation or pair.after.error or "") if pair.after else ""
    earlier = plain_text(pair.before, pair.before.expected) if pair.before and pair.expects_another else None
    expected = "" if earlier is None else f"expected {earlier!r} before"
    return "; ".join(filter(None, (f"{words[0]} before, {words[1]} now", expected, why)))


def _expectations(before: CaseResult, after: CaseResult) -> Iterator[tuple[int, ExpectationPair]]:
    """Yield the expectations of both results with the turn that they judge, those that the case has now first."""
    sides = [
        {
            (exchange_of(case, named.result).turn, named.name): named.result
            for named in named_results(case)
            if not named.result.is_measured
        }
        for case in (before, after)
    ]
    for turn, name in dict.fromkeys((*sides[1], *sides[0])):
        first, last = (side.get((turn, name)) for side in sides)
        yield (
            turn,
            ExpectationPair(name, first, last, is_same_check=bool(after.checks) and before.checks == after.checks),
        )


def _calls(before: Exchange | None, after: Exchange | None) -> Iterator[CallPair]:
    """Yield the calls of a turn side by side, in their order.

    If the agent did not answer or report its calls, nobody knows whether it made the other calls.
    """
    first, second = (_first_calls(exchange) for exchange in (before, after))
    knows_first, knows_second = (_has_all_calls(exchange) for exchange in (before, after))
    old, new = ([action.name for action in actions] for actions in (first, second))
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from map(CallPair, first[i1:i2], second[j1:j2])
            continue
        yield from (CallPair(action, None, knows_second) for action in first[i1:i2])
        yield from (CallPair(None, action, knows_first) for action in second[j1:j2])


def _first_calls(exchange: Exchange | None) -> Sequence[Action]:
    known = exchange and (exchange.generated or exchange.unanswered)
    return [*islice((known.actions if known else None) or (), limits.VIEW_STEPS)]


def _has_all_calls(exchange: Exchange | None) -> bool:
    return bool(exchange and exchange.generated and exchange.generated.actions is not None)


def _shown(answer: GeneratedData | None) -> object:
    return answer and (answer.outcome, answer.topic)


def _score_change(before: TestResult, after: TestResult) -> float:
    if before.score is None or after.score is None:
        return float(before.verdict is not after.verdict)
    largest = max(abs(before.score), abs(after.score))
    return abs(before.score - after.score) / largest if largest else 0.0
