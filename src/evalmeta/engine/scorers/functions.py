"""Custom scoring functions of a project: which arguments they take, and checks that call them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.engine.answers import context_of, history_of, turn_messages
from evalmeta.engine.project_code import Function, find_function, functions_root
from evalmeta.engine.scorers.results import broken, judged, measured
from evalmeta.engine.subjects.objects import Calls, check_call
from evalmeta.errors import EvalmetaError, SettingsError, SubjectError
from evalmeta.model.evaluation import Evaluation, select_cases
from evalmeta.model.redaction import error_text

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import RunOptions


_CHECK_INPUTS: Final = ("utterance", "history", "context", "topic", "actions", "generated")
"""What a function can receive besides the answer, by the names of its parameters."""
_RETURNS: Final = "Return True or False, a number, or a mapping with passed, score and reason."


def check_function(name: str, *, root: Path) -> None:
    """Check without a call that a function can be imported and called; raise SettingsError if not."""
    called = f"the scoring function {name!r}"
    try:
        function = find_function(name, root)
    except SettingsError as error:
        raise SettingsError(f"{called} cannot be used: {str(error).rstrip('.')}", actions=error.actions) from None
    if ":" in name:
        inputs = dict.fromkeys(_accepted_inputs(function))
        example = "check(answer, *, utterance, context), where all but the answer are optional"
        check_call(function, ("",), inputs, called=called, root=root, example=example)
        return
    example = "score(metric, actual_invocations, expected_invocations, conversation_scenario)"
    check_call(function, (None,) * 4, {}, called=called, root=root, example=example)


def named_functions(evaluation: Evaluation, options: RunOptions) -> list[str]:
    """Return the names of the functions that the selected cases are scored by, each once."""
    return list(
        dict.fromkeys(
            str(expectation.terms["function"])
            for case in select_cases(evaluation, options)
            for turn in case.turns
            for expectation in turn.expectations
            if expectation.terms and "function" in expectation.terms
        )
    )


def _accepted_inputs(function: Function) -> frozenset[str]:
    """Return the names of `_CHECK_INPUTS` that a function declares as parameters after the first."""
    try:
        _, *others = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(other.kind is inspect.Parameter.VAR_KEYWORD for other in others):
        return frozenset(_CHECK_INPUTS)
    return frozenset(other.name for other in others).intersection(_CHECK_INPUTS)


async def score_by_check(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Judge by the function that the terms name (`"function": "module:name"`).

    evalmeta calls it with the answer, and with those of `_CHECK_INPUTS` that it declares: the question, the history as
    a list of mappings with role, message and topic, the context variables by name, the topic, the actions as a list of
    mappings with name, input and output (None if the agent does not report them), and the GeneratedData.

    True passes and False fails, and so does an AssertionError. A number is reported and not judged. A mapping has
    `passed`, `score` or both, and optionally `reason`. Anything else, None included, and other exceptions are ERRORs.
    Functions that are not coroutine functions run in a thread.
    """
    name, answer = str(expectation.terms["function"]), exchange.generated.outcome
    try:
        passed, score, reason = _outcome(await _called(name, exchange))
    except EvalmetaError as error:
        why = " ".join((error_text(error), *error.actions))
        return broken(expectation, f"the function {name!r:.200} cannot judge: {why}", actual=answer)
    explanation = reason or f"{name} returned {score if passed is None else passed}"
    if passed is None:
        return measured(expectation, score, f"{explanation}; reported, not judged", actual=answer)
    expected = f"{name} passes"
    return judged(expectation, passed=passed, expected=expected, actual=answer, explanation=explanation, score=score)


async def _called(name: str, exchange: Exchange) -> object:
    root = functions_root()
    function = find_function(name, root)
    call = partial(function, exchange.generated.outcome, **_inputs(function, exchange))
    try:
        # A partial of a coroutine function is one too.
        with closing(Calls(root or Path.cwd())) as calls:
            return await calls.call(call)
    except SubjectError as error:
        if isinstance(error.__cause__, AssertionError):
            return {"passed": False, "reason": str(error.__cause__).partition("\n")[0] or str(error)}
        raise


def _inputs(function: Function, exchange: Exchange) -> dict[str, object]:
    generated = exchange.generated
    turns = (message for turn in exchange.earlier for message in turn_messages(turn.utterance, turn.generated))
    actions = generated.actions
    calls = [{"name": action.name, "input": action.input, "output": action.output} for action in actions or ()]
    known: dict[str, object] = {
        "utterance": exchange.utterance,
        "history": [*history_of(exchange.case), *turns],
        "context": context_of(exchange.case),
        "topic": generated.topic,
        "actions": None if actions is None else calls,
        "generated": generated,
    }
    return {name: known[name] for name in _accepted_inputs(function)}


def _outcome(returned: object) -> tuple[bool | None, float | None, str]:
    """Return the verdict, score and reason that a function returned; raise SettingsError if there is none."""
    if isinstance(returned, Mapping):
        passed, score, reason = (returned.get(key) for key in ("passed", "score", "reason"))
        if (passed is None or isinstance(passed, bool)) and (passed is not None or score is not None):
            return passed, None if score is None else _number(score), "" if reason is None else str(reason)
    elif isinstance(returned, bool):
        return returned, None, ""
    elif isinstance(returned, int | float):
        return None, _number(returned), ""
    shown = repr(returned)[:100]
    raise SettingsError(f"it returned {shown}.", actions=(_RETURNS,))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"its score is {value!r:.50}.", actions=("Return a finite number.",))
    return float(value)
