"""Silence: an empty answer without actions proves nothing, so checks that it would pass are undecided."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Final, cast

from evalmeta.engine.scorers.results import undecided
from evalmeta.model.plain_text import is_blank
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import GeneratedData


_NOTHING: Final = (
    "the agent returned an empty answer and took no action, so nothing can be judged; "
    "if an empty answer is valid, write empty: true in the test case of a spec"
)


def not_passing_silence(scorer: Scorer) -> Scorer:
    """Return a scorer whose PASS is UNDECIDED if the agent returned nothing, unless the terms set `empty`.

    Nothing is an answer without text and without actions. A comparison with the topic that the agent chose counts.
    """

    def score(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        result: object = scorer(expectation, exchange)
        generated = exchange.generated
        if not generated.actions and _has_no_text(generated) and not _may_be_silent(expectation, generated):
            result = _awaited(expectation, result) if isawaitable(result) else _without_pass(expectation, result)
        return cast("TestResult", result)

    return score


async def _awaited(expectation: Expectation, result: Awaitable[object]) -> TestResult:
    return cast("TestResult", _without_pass(expectation, await result))


def _without_pass(expectation: Expectation, result: object) -> object:
    """Return UNDECIDED instead of PASS; scorers of packages may return anything, which the caller checks."""
    if not isinstance(result, TestResult) or result.verdict is not Verdict.PASS:
        return result
    silent = undecided(expectation, _NOTHING, expected=result.expected, actual=result.actual)
    return silent._replace(rater=result.rater, threshold=result.threshold)


def _has_no_text(generated: GeneratedData) -> bool:
    return is_blank(generated.outcome or "")


def _may_be_silent(expectation: Expectation, generated: GeneratedData) -> bool:
    if expectation.terms and expectation.terms.get("empty") is True:
        return True
    references = [parameter.value for parameter in expectation.parameters if parameter.is_reference]
    return bool(generated.topic) and any(
        "topic" in reference for reference in (*references, str(expectation.terms.get("path")))
    )
