"""The results on the page of a case: failed ones first, at most as many as a page draws at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.model.aggregation import named_results
from evalmeta.model.run import WORST_FIRST, Verdict
from evalmeta.report.details import exchanges
from evalmeta.viewer.matches import earlier_answers, passed_answer, place_of_match
from evalmeta.viewer.pages import number_of, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.aggregation import NamedResult
    from evalmeta.model.run import CaseResult
    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.matches import PassedAnswer, Place
    from evalmeta.viewer.pages import Query


class ShownResult(NamedTuple):
    """A result of a page: its place from 1 in the case, what it matched, and an earlier answer that passed."""

    number: int
    named: NamedResult
    turn: int
    place: Place | None = None
    passed: PassedAnswer | None = None


class ResultPage(NamedTuple):
    """Some results of a case by turn, and how many there are of each verdict.

    Attributes:
        first: the first result that did not pass, on whatever page; None if all passed.
        wanted: the verdict that all results of the page have; None for all verdicts.
        total: the number of results with that verdict.
        start: the number of results on the pages before this one.
    """

    by_turn: Mapping[int, Sequence[ShownResult]]
    counts: Mapping[Verdict, int]
    first: ShownResult | None
    wanted: Verdict | None
    total: int
    start: int

    @property
    def end(self) -> int:
        """Return the number of results up to the end of this page."""
        return min(self.start + limits.VIEW_EXPECTATIONS, self.total)

    @property
    def is_cut(self) -> bool:
        """Return whether the case has more results than a page draws."""
        return sum(self.counts.values()) > limits.VIEW_EXPECTATIONS


def result_page(case: CaseResult, earlier: Sequence[tuple[ListedRun, CaseResult]], query: Query) -> ResultPage:
    """Return the results that a query asks for: those of a verdict (`show`), from one of them on (`from`).

    `earlier` are results of the case in earlier runs, the newest first.
    """
    turns = exchanges(case)
    everything = [
        ShownResult(number, named, named.turn if 0 < named.turn < len(turns) else len(turns))
        for number, named in enumerate(named_results(case), 1)
    ]
    everything.sort(key=lambda shown: (shown.named.result.is_measured, WORST_FIRST.index(shown.named.result.verdict)))
    verdict = text_of(query, "show").upper()
    wanted = Verdict(verdict) if verdict in {*Verdict} else None
    chosen = [shown for shown in everything if wanted in {None, shown.named.result.verdict}]
    start = number_of(query, "from", otherwise=0)
    start = start if start < len(chosen) else 0
    past = earlier_answers(earlier)

    def explained(shown: ShownResult) -> ShownResult:
        result, answer = shown.named.result, turns[shown.turn - 1].generated
        is_failed = result.verdict is Verdict.FAILURE and answer is not None and result.actual == answer.outcome
        passed = passed_answer(result, shown.turn, past) if is_failed else None
        return shown._replace(place=place_of_match(result), passed=passed)

    by_turn: dict[int, list[ShownResult]] = {}
    for shown in chosen[start : start + limits.VIEW_EXPECTATIONS]:
        by_turn.setdefault(shown.turn, []).append(explained(shown))
    worst = [shown for shown in everything[:1] if not shown.named.result.is_measured]
    first = next((explained(shown) for shown in worst if shown.named.result.verdict is not Verdict.PASS), None)
    counts = Counter(shown.named.result.verdict for shown in everything)
    return ResultPage(by_turn, counts, first, wanted, len(chosen), start)
