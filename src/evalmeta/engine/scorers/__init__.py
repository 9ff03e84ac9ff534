"""The scorer of every expectation name, and how one expectation is judged without raising."""

from __future__ import annotations

import asyncio
import math
from difflib import get_close_matches
from functools import cache, partial
from inspect import isawaitable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, cast

from evalmeta.engine.metrics import OWN
from evalmeta.engine.process import ProcessExit
from evalmeta.engine.raters import offline_rater
from evalmeta.engine.scorers.actions import score_handoff, topic_scorer
from evalmeta.engine.scorers.checks import latency_scorer, measure_scorers, score_document_recall, text_scorer
from evalmeta.engine.scorers.comparisons import comparison_scorer, json_scorer
from evalmeta.engine.scorers.functions import score_by_check
from evalmeta.engine.scorers.judged import custom_scorer, judge_scorers, no_scorer, prompt_scorer, rated_by
from evalmeta.engine.scorers.results import broken, not_passing_silence, score_unjudged
from evalmeta.engine.scorers.state import state_scorer
from evalmeta.engine.scorers.trajectories import calls_scorer, score_trajectory
from evalmeta.errors import RaterError, SettingsError
from evalmeta.model.checks import CHECKS, UNJUDGED, Check
from evalmeta.model.expectations import EVALUATORS, PROMPT, canonical_name, expectation_kind, known_names
from evalmeta.model.redaction import error_text
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import Scoring
from evalmeta.plugins import all_checks, load_plugin, plugin_names

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

    from evalmeta.engine.interfaces import Exchange, Rater, Scored, Scorer
    from evalmeta.model.agent_scorer import FindScorer
    from evalmeta.model.definition import Expectation


# A key that cannot be the name of an expectation.
_CUSTOM: Final = "custom scorers"
# orjson writes 64-bit integers only.
_MAX_INTEGER: Final = 2**63


def make_scorers(scoring: Scoring, rater: Rater, *, find_custom: FindScorer = no_scorer) -> Mapping[str, Scorer]:
    """Return the scorer of every canonical expectation name; scorers of installed packages replace built-in ones.

    `find_custom` finds the definitions of custom scorers by name.
    """
    checks = _check_scorers(check for name, check in all_checks().items() if name not in CHECKS)
    added = {canonical_name(name): _plugin_scorer(name) for name in plugin_names("scorers")}
    return {**_built_in_scorers(scoring, rater, find_custom), **checks, **added}


def _built_in_scorers(scoring: Scoring, rater: Rater, find_custom: FindScorer = no_scorer) -> Mapping[str, Scorer]:
    as_orgs = scoring.profile == "testing-center"
    compared = comparison_scorer(scoring.matches)
    of_orgs = {
        "action_sequence_match": calls_scorer(scoring.action_match),
        **dict.fromkeys(OWN, rated_by(rater, threshold=scoring.threshold)),
        "output_latency_milliseconds": latency_scorer(judges=not as_orgs),
        "string_comparison": compared,
        "numeric_comparison": compared,
        _CUSTOM: custom_scorer(rater, find_custom),
    }
    return {
        # Orgs let an empty answer pass these.
        **{name: scorer if as_orgs else not_passing_silence(scorer) for name, scorer in of_orgs.items()},
        **_check_scorers(CHECKS.values()),
        "json": not_passing_silence(json_scorer(scoring.matches)),
        "state": not_passing_silence(state_scorer(scoring.matches)),
        **judge_scorers(rater, threshold=scoring.threshold),
        PROMPT: not_passing_silence(prompt_scorer(rater)),
        "topic_sequence_match": topic_scorer(scoring.topics, aliases=not as_orgs),
        "agent_handoff_match": score_handoff,
        "tool_trajectory_avg_score": score_trajectory,
        "response_match_score": _of_wing("adk.response_match"),
        "retrieval/ground_truth/document_recall": score_document_recall,
        **measure_scorers(),
        **{f"evaluator.{name}": score_unjudged for name in EVALUATORS},
        UNJUDGED: score_unjudged,
    }


def _of_wing(name: str) -> Scorer:
    """Return a scorer of a wing, which is loaded when it judges for the first time."""
    load = cache(partial(load_plugin, "scorers", name))

    def score_loaded(expectation: Expectation, exchange: Exchange) -> Scored:
        return cast("Scorer", load())(expectation, exchange)

    return score_loaded


def _check_scorers(checks: Iterable[Check]) -> Mapping[str, Scorer]:
    """Return the scorers of the checks whose declaration says how to judge them; the others need settings."""
    return {
        check.name: not_passing_silence(text_scorer(check) if check.test else _declared_scorer(check))
        for check in checks
        if check.test or check.scorer
    }


def _declared_scorer(check: Check) -> Scorer:
    try:
        return cast("Scorer", resolve_name(check.scorer))
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"the scorer {check.scorer!r} of the check {check.name!r} cannot be found: {error}"
        ) from error


def _plugin_scorer(name: str) -> Scorer:
    plugin = load_plugin("scorers", name)
    if not callable(plugin):
        raise SettingsError(
            f"{name!r} of the entry points evalmeta.scorers is {type(plugin).__name__}, which cannot be called",
            actions=("A scorer is a function of an expectation and an exchange that returns a TestResult.",),
        )
    return not_passing_silence(cast("Scorer", plugin))


_score_by_function: Final = _of_wing("adk.custom_metric")
SCORERS: Final = _built_in_scorers(Scoring(), offline_rater())
"""The built-in scorers with the default settings."""


def score(expectation: Expectation, exchange: Exchange, *, scorers: Mapping[str, Scorer] = SCORERS) -> Scored:
    """Judge one expectation; never raise: a scorer that fails makes an ERROR result with the reason.

    The result is returned at once unless the scorer waits; no scorer in `SCORERS` does. A scorer that waits may return
    a list with several results. A custom scorer
    is judged by the plugin of its name, or else by its definition. An expectation whose terms name a function is
    judged by that function.
    """
    if expectation.terms and "function" in expectation.terms:
        by_function = not_passing_silence(score_by_check) if expectation.name == "function" else _score_by_function
        return _awaited(expectation, exchange, cast("Awaitable[TestResult]", by_function(expectation, exchange)))
    scorer = scorers.get(expectation.name) or scorers.get(canonical_name(expectation.name))
    if expectation.is_custom and (scorer is None or expectation_kind(expectation.name) is not None):
        scorer = scorers.get(_CUSTOM)
    if scorer is None:
        nearest = get_close_matches(expectation.name, known_names(), n=1, cutoff=0)[0]
        return broken(expectation, f"{expectation.name!r} is not a known expectation; the nearest name is {nearest}")
    try:
        result: object = scorer(expectation, exchange)
    except (Exception, SystemExit, ProcessExit, asyncio.CancelledError) as error:  # noqa: BLE001 - a failing scorer affects one result
        return _failed(expectation, exchange, error)
    # Most results are returned at once, and `isawaitable` takes longer than most scorers.
    if isinstance(result, TestResult):
        return result if _is_plain(result) else _checked(expectation, result)
    return _awaited(expectation, exchange, result) if isawaitable(result) else _checked(expectation, result)


def _failed(expectation: Expectation, exchange: Exchange, error: BaseException) -> TestResult:
    what = "not rated" if isinstance(error, RaterError) else "the scorer failed"
    return broken(expectation, f"{what}: {error_text(error)}", actual=exchange.generated.outcome)


async def _awaited(
    expectation: Expectation, exchange: Exchange, result: Awaitable[TestResult | list[TestResult]]
) -> TestResult | list[TestResult]:
    try:
        judged: object = await result
        if isinstance(judged, list) and judged:
            return [_checked(expectation, part) for part in judged]
        return _checked(expectation, judged)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return broken(expectation, "the scorer failed: it cancelled itself")
    except (Exception, SystemExit, ProcessExit) as error:  # noqa: BLE001 - as in `score`
        return _failed(expectation, exchange, error)


def _checked(expectation: Expectation, result: object) -> TestResult:
    """Return the result, or an ERROR if it cannot be stored unchanged."""
    if not isinstance(result, TestResult):
        reason = f"it returned {type(result).__name__}, which is not a TestResult"
        return broken(expectation, f"the scorer failed: {reason}")
    fault = _fault(result)
    return broken(expectation, f"the scorer failed: {fault}") if fault else result


def _is_plain(result: TestResult) -> bool:
    """Say whether a fast check shows that the result has no `_fault`; true for nearly every result."""
    name, verdict, expected, actual, score, explanation, label, detail, rater, error, threshold = result[:11]
    if rater is not None or error is not None or threshold is not None or type(verdict) is not Verdict:
        return False
    try:
        is_ascii = "".join((name, expected, actual, explanation, label or "")).isascii()
    except TypeError:
        return False
    if not is_ascii or (score is not None and (type(score) is not float or not math.isfinite(score))):
        return False
    return detail is None or (type(detail) is float and math.isfinite(detail))


def _fault(result: TestResult) -> str | None:
    if type(result.verdict) is not Verdict:
        return f"its verdict is {result.verdict!r:.50}"
    for number in (result.score, result.detail, result.threshold):
        if number is not None and not _is_number(number):
            return f"its score is {number!r:.50}"
    optional = [text for text in (result.label, result.rater, result.error) if text is not None]
    for text in (result.name, result.expected, result.actual, result.explanation, *optional):
        if not _is_text(text):
            return f"its result contains {text!r:.50}"
    return None


def _is_number(number: object) -> bool:
    return math.isfinite(number) if type(number) is float else type(number) is int and abs(number) < _MAX_INTEGER


def _is_text(text: object) -> bool:
    """Say whether a value is a text without lone surrogates."""
    if not isinstance(text, str):
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
