"""?"""

from __future__ import annotations

import asyncio
import math
from difflib import get_close_matches
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, cast

from evalmeta.engine.raters.rules.judge import Rules
from evalmeta.engine.reasons import reason
from evalmeta.engine.scorers.actions import action_scorer
from evalmeta.engine.scorers.functions import score_by_function
from evalmeta.engine.scorers.judged import judge_scorers
from evalmeta.engine.scorers.measures import (
    input_tokens,
    latency_scorer,
    latency_seconds,
    measure_scorer,
    output_tokens,
    score_document_recall,
    tool_calls,
    total_tokens,
)
from evalmeta.engine.scorers.rated import rated_by
from evalmeta.engine.scorers.results import broken, undecided
from evalmeta.engine.scorers.routing import score_handoff, topic_scorer
from evalmeta.engine.scorers.text import comparison_scorer, score_response_match
from evalmeta.engine.scorers.trajectories import score_trajectory
from evalmeta.errors import RaterError, SettingsError
from evalmeta.model.expectations import canonical_name, expectation_kind, known_names
from evalmeta.model.run import Scoring, TestResult, Verdict
from evalmeta.plugins import load_plugin, plugin_names

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from evalmeta.engine.raters.judge import Rater
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation


# What orjson can write.
_MOST: Final = 2**63


def make_scorers(scoring: Scoring, rater: Rater) -> Mapping[str, Scorer]:
    """Gives the scorer of every canonical expectation name, as a project or a run has chosen to judge.

    Scorers that installed packages add under the entry points `evalmeta.scorers` come beside ours, or in their place.

    Raises:
        SettingsError: one of theirs does not load, or cannot be called.
    """
    return {**_own_scorers(scoring, rater), **{canonical_name(name): _added(name) for name in plugin_names("scorers")}}


def _own_scorers(scoring: Scoring, rater: Rater) -> Mapping[str, Scorer]:
    as_orgs = scoring.profile == "testing-center"
    rated = rated_by(rater, threshold=scoring.threshold)
    compared = comparison_scorer(scoring.matches)
    return {
        "topic_sequence_match": topic_scorer(scoring.topics, aliases=not as_orgs),
        "action_sequence_match": action_scorer(scoring.action_match),
        "bot_response_rating": rated,
        "coherence": rated,
        "completeness": rated,
        "conciseness": rated,
        "instruction_following": rated,
        "factuality": rated,
        "output_latency_milliseconds": latency_scorer(judges=not as_orgs),
        "string_comparison": compared,
        "numeric_comparison": compared,
        "agent_handoff_match": score_handoff,
        "response_match": rated,
        "task_resolution": rated,
        **judge_scorers(rater, threshold=scoring.threshold),
        "tool_trajectory_avg_score": score_trajectory,
        "response_match_score": score_response_match,
        "retrieval/ground_truth/document_recall": score_document_recall,
        "agent/total_token_count": measure_scorer(total_tokens, unit="tokens"),
        "agent/input_token_count": measure_scorer(input_tokens, unit="tokens"),
        "agent/output_token_count": measure_scorer(output_tokens, unit="tokens"),
        "agent/latency_seconds": measure_scorer(latency_seconds, unit="s", digits=3),
        "token_usage_v1": measure_scorer(total_tokens, unit="tokens"),
        "tool_call_count_v1": measure_scorer(tool_calls, unit="calls"),
        "invocation_duration_v1": measure_scorer(latency_seconds, unit="s", digits=3),
    }


def _added(name: str) -> Scorer:
    plugin = load_plugin("scorers", name)
    if not callable(plugin):
        raise SettingsError(
            f"{name!r} of the entry points evalmeta.scorers is {type(plugin).__name__}, which cannot be called",
            actions=("A scorer is a function of an expectation and an exchange that gives a TestResult.",),
        )
    return cast("Scorer", plugin)


SCORERS: Final = _own_scorers(Scoring(), Rules())


def score(
    expectation: Expectation, exchange: Exchange, *, scorers: Mapping[str, Scorer] = SCORERS
) -> TestResult | Awaitable[TestResult]:
    """Judges one expectation and never raises: a scorer that breaks gives an ERROR result with the reason.

    The result comes at once unless the scorer has to wait; every scorer in `SCORERS`
    answers at once. `scorers` holds one scorer for each canonical expectation name. A
    scorer of the org's own is judged by the one that a package adds under its name, or
    else is UNDECIDED. An expectation whose terms name a function is judged by that.
    """
    if expectation.terms and "function" in expectation.terms:
        return _awaited(expectation, exchange, score_by_function(expectation, exchange))
    name = canonical_name(expectation.name)
    scorer = scorers.get(name)
    if expectation.is_custom and (scorer is None or expectation_kind(name) is not None):
        explanation = f"{expectation.name!r} is a scorer of the org's own; nothing here can judge by it"
        return undecided(expectation, explanation, actual=exchange.generated.outcome)
    if scorer is None:
        return broken(expectation, _unknown(expectation.name))
    try:
        result = scorer(expectation, exchange)
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - a broken scorer spoils one result
        return _failed(expectation, exchange, error)
    # Most results come at once, and asking whether something can be awaited takes longer than judging.
    if not isinstance(result, TestResult) and isawaitable(result):
        return _awaited(expectation, exchange, result)
    return _sound(expectation, result)


def _failed(expectation: Expectation, exchange: Exchange, error: BaseException) -> TestResult:
    """Tells a rater's trouble from a defect of the scorer; the answer is shown beside it."""
    what = "not rated" if isinstance(error, RaterError) else "the scorer broke"
    return broken(expectation, f"{what}: {reason(error)}", actual=exchange.generated.outcome)


async def _awaited(expectation: Expectation, exchange: Exchange, result: Awaitable[TestResult]) -> TestResult:
    try:
        return _sound(expectation, await result)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return broken(expectation, "the scorer broke: it cancelled itself")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as in `score`
        return _failed(expectation, exchange, error)


def _sound(expectation: Expectation, result: object) -> TestResult:
    """Lets nothing through that cannot be kept, or that would be kept as something else."""
    if not isinstance(result, TestResult):
        return broken(expectation, f"the scorer broke: it gave {type(result).__name__}, which is no TestResult")
    if _is_plain(result):
        return result
    fault = _fault(result)
    return broken(expectation, f"the scorer broke: {fault}") if fault else result


def _is_plain(result: TestResult) -> bool:
    """Tells quickly, of nearly every result, that `_fault` finds none."""
    name, verdict, expected, actual, score, explanation, label, detail, rater, error, threshold, _, _ = result
    try:
        texts = f"{label or ''}".join((name, expected, actual, explanation))
    except TypeError:
        return False
    are_numbers = (score is None or type(score) is float) and (detail is None or type(detail) is float)
    is_known = type(verdict) is Verdict and rater is None and error is None and (label is None or type(label) is str)
    return (
        is_known
        and threshold is None
        and are_numbers
        and texts.isascii()
        and math.isfinite((score or 0) + (detail or 0))
    )


def _fault(result: TestResult) -> str | None:
    if type(result.verdict) is not Verdict:
        return f"its verdict is {result.verdict!r:.50}"
    for number in (result.score, result.detail, result.threshold):
        if number is not None and not _is_number(number):
            return f"its score is {number!r:.50}"
    for text in (result.name, result.expected, result.actual, result.explanation):
        if not _is_text(text):
            return f"its result holds {text!r:.50}"
    for told in (result.label, result.rater, result.error):
        if told is not None and not _is_text(told):
            return f"its result holds {told!r:.50}"
    return None


def _is_number(number: object) -> bool:
    if type(number) is float:
        return math.isfinite(number)
    return type(number) is int and abs(number) < _MOST


def _is_text(text: object) -> bool:
    """Tells whether a text can be kept: a plain one, without lone surrogates."""
    if not isinstance(text, str):
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _unknown(name: str) -> str:
    nearest = get_close_matches(name, known_names(), n=1, cutoff=0)
    return f"{name!r} is no expectation; the nearest known name is {nearest[0]}"
