"""Cases of several turns: what was asked and answered in each, and which results belong to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.run import CaseResult, TestResult

__all__ = ["Exchange", "asked", "exchange_of", "exchanges", "results_of"]


class Exchange(NamedTuple):
    """One turn of a case: its number from 1, what was asked, and what came back, None for nothing."""

    turn: int
    utterance: str
    generated: GeneratedData | None


def exchanges(case: CaseResult) -> list[Exchange]:
    """Gives the turns of a case that were asked, in their order."""
    earlier = [Exchange(turn, each.utterance, each.generated) for turn, each in enumerate(case.earlier, 1)]
    return [*earlier, Exchange(len(earlier) + 1, case.utterance, case.generated)]


def exchange_of(case: CaseResult, result: TestResult) -> Exchange:
    """Gives the turn that a result judges: the last for one that says none, because it judges the whole."""
    found = exchanges(case)
    return found[result.turn - 1] if 0 < result.turn < len(found) else found[-1]


def results_of(exchange: Exchange, case: CaseResult, results: Iterable[TestResult]) -> list[TestResult]:
    """Gives those of a case's results that judge a turn, and with the last turn's those of the whole case."""
    return [result for result in results if exchange_of(case, result).turn == exchange.turn]


def asked(case: CaseResult) -> str:
    """Gives everything that was asked, in one text; of one turn its utterance as it is."""
    return " / ".join(each.utterance for each in exchanges(case)) if case.earlier else case.utterance
