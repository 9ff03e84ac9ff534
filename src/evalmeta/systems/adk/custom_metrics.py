"""Custom functions as scorers, called with the positional arguments and the objects of ADK's custom metrics.

Source: google-adk 2.13, custom_metric_evaluator.py, eval_case.py and eval_metrics.py. The objects are mappings whose
keys are attributes too, so that ADK's models accept them: `PerInvocationResult(actual_invocation=...)`. If a function's
module has imported google-adk, the function receives ADK's own objects.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from evalmeta.engine.project_code import find_function, function_threads, functions_root
from evalmeta.engine.scorers.results import averaged, broken, measured, threshold_of, undecided
from evalmeta.engine.subjects.calls import Calls
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.redaction import error_text
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonObject, JsonValue


# Terms that are not part of the criterion.
_OWN_TERMS: Final = frozenset({"function", "invocations", "conversation", "calls"})
_STATUSES: Final = {1: "PASSED", 2: "FAILED", 3: "NOT_EVALUATED", 4: "INFORMATIONAL"}
_VERDICTS: Final = {"PASSED": Verdict.PASS, "FAILED": Verdict.FAILURE}


class _Judgement(NamedTuple):
    """What a function returned: a score, a verdict, both or neither; a score that is only reported is informational."""

    score: float | None
    verdict: Verdict | None = None
    is_informational: bool = False


async def score_by_function(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Judge by the function that the terms name (`"function": "package.module.function"`).

    Without `invocations` in the terms, it judges only this turn, by the expectedValue and the `calls` of the terms. It
    returns a number, a truth value, or an object or mapping with `overall_score`, such as ADK's EvaluationResult, whose
    status PASSED or FAILED decides; INFORMATIONAL only reports the number. Otherwise the terms' threshold decides.
    """
    name, actual = expectation.terms["function"], exchange.generated.outcome
    criterion = {key: value for key, value in expectation.terms.items() if key not in _OWN_TERMS}
    try:
        invocations = _actual(expectation, exchange), _expected(expectation, exchange)
        call = partial(_call, str(name), adk_metric(expectation.name, criterion), *invocations)
        with function_threads() as threads:
            judgement = _judgement(await Calls(functions_root() or Path.cwd(), threads=threads).call(call))
    except EvalmetaError as error:
        why = " ".join((error_text(error), *error.actions))
        if exchange.generated.actions is None:
            why += " (the agent does not report its actions, so intermediate_data is None)"
        return broken(expectation, f"the function {name!r:.200} cannot judge: {why}", actual=actual)
    return _result(expectation, actual, judgement, str(name))


def _call(name: str, metric: AdkObject, *invocations: list[AdkObject]) -> object:
    """Find the function and call it; both can block, so both run in the thread."""
    function = find_function(name, functions_root())
    return function(*as_adk_has_them(metric, *invocations), None)


def _actual(expectation: Expectation, exchange: Exchange) -> list[AdkObject]:
    turns = [(exchange.utterance, exchange.generated)]
    if "invocations" in expectation.terms:
        turns = [*exchange.earlier, *turns]
    invocations = []
    for number, (utterance, generated) in enumerate(turns, 1):
        actions = generated.actions
        calls = None if actions is None else [(action.name, action.input) for action in actions]
        invocations.append(adk_invocation(number, utterance, generated.outcome, calls))
    return invocations


def _expected(expectation: Expectation, exchange: Exchange) -> list[AdkObject]:
    calls = expectation.terms.get("calls")
    this_turn = {"utterance": exchange.utterance, "reference": expectation.expected_value, "calls": calls}
    turns = expectation.terms.get("invocations", [this_turn])
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise SettingsError("the invocations of the terms are not a list.")
    return [_expected_turn(number, turn if isinstance(turn, Mapping) else {}) for number, turn in enumerate(turns, 1)]


def _expected_turn(number: int, turn: JsonObject) -> AdkObject:
    utterance, reference, calls = (turn.get(name) for name in ("utterance", "reference", "calls"))
    uses = [
        (str(call.get("name", "")), args if isinstance(args := call.get("args"), Mapping) else {})
        for call in (calls if isinstance(calls, Sequence) else ())
        if isinstance(call, Mapping)
    ]
    return adk_invocation(
        number,
        utterance if isinstance(utterance, str) else "",
        reference if isinstance(reference, str) else None,
        uses if isinstance(calls, Sequence) else None,
    )


def _judgement(returned: object) -> _Judgement:
    """Read what a function returned; raise SettingsError if it is not a score or a verdict."""
    if isinstance(returned, bool):
        return _Judgement(float(returned), Verdict.PASS if returned else Verdict.FAILURE)
    if isinstance(returned, int | float):
        return _Judgement(_number(returned))
    if not (isinstance(returned, Mapping) or hasattr(returned, "overall_score")):
        way_out = "Return a number, a truth value, or an object with overall_score."
        raise SettingsError(f"it returned {type(returned).__name__}.", actions=(way_out,))
    score = _number(_part(returned, "overall_score"))
    if score is None:
        results = _part(returned, "per_invocation_results")
        scores = [_number(_part(result, "score")) for result in results] if isinstance(results, list | tuple) else []
        known = [number for number in scores if number is not None]
        score = sum(known) / len(known) if known else None
    # A status is an enumeration member, ADK's number, or a text.
    status = _part(returned, "overall_eval_status")
    name = str(getattr(status, "name", _STATUSES.get(status) if isinstance(status, int) else status)).upper()
    return _Judgement(score, _VERDICTS.get(name), is_informational=name == "INFORMATIONAL")


def _part(whole: object, name: str) -> object:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _number(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"its score is {value!r:.50}.", actions=("Return a finite number.",))
    return float(value)


def _result(expectation: Expectation, actual: str, judgement: _Judgement, function: str) -> TestResult:
    expected, threshold = expectation.expected_value or "", threshold_of(expectation)
    score, verdict, is_informational = judgement
    explanation = f"{function} returned {'no score' if score is None else f'{score:g}'}"
    if is_informational:
        return measured(expectation, score, f"{explanation}: informational", expected=expected, actual=actual)
    if verdict:
        explanation += f": {verdict.lower()}"
    if threshold is not None:
        explanation += f"; the threshold is {threshold:g}"
    if verdict is not None:
        result = TestResult(expectation.name, verdict, expected, actual, score, explanation, expectation.label)
        return result if score is None else result._replace(threshold=threshold)
    if score is None:
        return undecided(expectation, explanation, expected=expected, actual=actual)._replace(threshold=threshold)
    return averaged(expectation, score=score, expected=expected, actual=actual, explanation=explanation)


class AdkObject(dict[str, "JsonValue"]):
    """A mapping whose keys are attributes too."""

    def __getattr__(self, name: str) -> JsonValue:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def adk_metric(name: str, criterion: JsonObject) -> AdkObject:
    """Return the metric to compute; the threshold is in the criterion, as in ADK."""
    return AdkObject(metric_name=name, threshold=None, criterion=AdkObject(criterion))


def adk_invocation(
    number: int, utterance: str, response: str | None, calls: Iterable[tuple[str, JsonObject]] | None
) -> AdkObject:
    """Return one turn; None stands for an answer or calls that are unknown or not expected."""
    uses: list[JsonValue] = [AdkObject(id=None, name=name, args=dict(args)) for name, args in calls or ()]
    data = AdkObject(tool_uses=uses, tool_responses=[], intermediate_responses=[])
    return AdkObject(
        invocation_id=str(number),
        user_content=_content(utterance, "user"),
        final_response=None if response is None else _content(response, "model"),
        intermediate_data=None if calls is None else data,
    )


def _content(text: str, role: str) -> AdkObject:
    return AdkObject(parts=[AdkObject(text=text)], role=role)


_METRICS: Final = "google.adk.evaluation.eval_metrics"
_CASES: Final = "google.adk.evaluation.eval_case"


class _Model(Protocol):
    """A model of pydantic."""

    def model_validate(self, value: object) -> object:
        """Return an instance of the model."""


def as_adk_has_them(metric: AdkObject, *invocations: Sequence[AdkObject]) -> tuple[object, ...]:
    """Return the arguments as ADK's own objects if google-adk is imported, else as they are; never import it."""
    if _METRICS not in sys.modules or _CASES not in sys.modules:
        return metric, *invocations
    models = getattr(sys.modules[_METRICS], "EvalMetric", None), getattr(sys.modules[_CASES], "Invocation", None)
    metric_model, turn_model = (cast("_Model", model) for model in models)
    try:
        turns = ([turn_model.model_validate(turn) for turn in part] for part in invocations)
        return (metric_model.model_validate(metric), *turns)
    except (AttributeError, ValueError):
        # Another version of google-adk has other keys; its models may still accept the mappings.
        return metric, *invocations
