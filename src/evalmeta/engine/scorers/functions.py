"""Custom functions as scorers, called with the positional arguments and the objects of ADK's custom metrics."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta.engine.scorers import adk_objects
from evalmeta.engine.scorers.results import averaged, broken, measured, threshold_of, undecided
from evalmeta.engine.subjects.python import Calls, check_call, import_from, own_modules
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.redaction import error_text
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from evalmeta.engine.interfaces import Exchange
    from evalmeta.engine.scorers.adk_objects import AdkObject
    from evalmeta.engine.subjects.python import Function
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject


# Terms that are not part of the criterion.
_OWN_TERMS: Final = frozenset({"function", "invocations", "conversation", "calls"})
_STATUSES: Final = {1: "PASSED", 2: "FAILED", 3: "NOT_EVALUATED", 4: "INFORMATIONAL"}
_VERDICTS: Final = {"PASSED": Verdict.PASS, "FAILED": Verdict.FAILURE}
CHECK_INPUTS: Final = ("utterance", "history", "context", "topic", "actions", "generated")
"""What a function can receive besides the answer, by the names of its parameters."""
_lock: Final = threading.Lock()
_root: Final[ContextVar[Path | None]] = ContextVar("root", default=None)


class _Judgement(NamedTuple):
    """What a function returned: a score, a verdict, both or neither; a score that is only reported is informational."""

    score: float | None
    verdict: Verdict | None = None
    is_informational: bool = False


async def score_by_function(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Judge by the function that the terms name (`"function": "package.module.function"`).

    evalmeta calls it with the metric, the actual invocations, the expected ones, and None: ADK's
    own objects if the function's module imports google-adk, else mappings that ADK's models
    accept. If the terms have `invocations`, these are all turns of the case up to this one; otherwise
    only this turn, expected with the expectedValue and the `calls` of the terms. Functions
    that are not coroutine functions run in a thread.

    The function returns a number, a truth value, or an object or mapping with `overall_score`
    and optionally `overall_eval_status` and `per_invocation_results`, such as ADK's
    EvaluationResult. The status PASSED or FAILED decides; INFORMATIONAL only reports the number;
    with any other, the threshold of the terms decides; without both, the number is reported. A
    function that cannot be found, raises, or returns something else makes the result ERROR.
    """
    name, actual = expectation.terms["function"], exchange.generated.outcome
    criterion = {key: value for key, value in expectation.terms.items() if key not in _OWN_TERMS}
    try:
        invocations = _actual(expectation, exchange), _expected(expectation, exchange)
        call = partial(_call, str(name), adk_objects.metric(expectation.name, criterion), *invocations)
        with closing(Calls(_root.get() or Path.cwd())) as calls:
            judgement = _judgement(await calls.call(call))
    except EvalmetaError as error:
        why = " ".join((error_text(error), *error.actions))
        if exchange.generated.actions is None:
            why += " (the agent does not report its actions, so intermediate_data is None)"
        return broken(expectation, f"the function {name!r:.200} cannot judge: {why}", actual=actual)
    return _result(expectation, actual, judgement, str(name))


def _call(name: str, metric: AdkObject, *invocations: list[AdkObject]) -> object:
    """Find the function and call it; both can block, so both run in the thread."""
    function = find_function(name, _root.get())
    return function(*adk_objects.as_adk_has_them(metric, *invocations), None)


@contextmanager
def functions_of(root: Path) -> Iterator[None]:
    """Let functions be found in a project's folder too, wherever the process runs."""
    token = _root.set(root)
    try:
        yield
    finally:
        _root.reset(token)


def check_function(name: str, *, root: Path) -> None:
    """Check without a call that a function can be imported and called; raise SettingsError if not."""
    called = f"the scoring function {name!r}"
    try:
        function = find_function(name, root)
    except SettingsError as error:
        raise SettingsError(f"{called} cannot be used: {str(error).rstrip('.')}", actions=error.actions) from None
    if ":" in name:
        inputs = dict.fromkeys(accepted_inputs(function))
        example = "check(answer, *, utterance, context), where all but the answer are optional"
        check_call(function, ("",), inputs, called=called, root=root, example=example)
        return
    example = "score(metric, actual_invocations, expected_invocations, conversation_scenario)"
    check_call(function, (None,) * 4, {}, called=called, root=root, example=example)


def accepted_inputs(function: Function) -> frozenset[str]:
    """Return the names of `CHECK_INPUTS` that a function declares as parameters after the first."""
    try:
        _, *others = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in others):
        return frozenset(CHECK_INPUTS)
    return frozenset(each.name for each in others).intersection(CHECK_INPUTS)


def functions_root() -> Path | None:
    """Return the project's folder, in which functions are found too; None outside of a run."""
    return _root.get()


@lru_cache(maxsize=256)
def find_function(name: str, root: Path | None) -> Function:
    """Import a function by `package.module.function` or `package.module:function`; raise SettingsError if it fails."""
    module_name, _, attribute = name.rpartition(":" if ":" in name else ".")
    if not module_name or not attribute:
        example = "module:function" if ":" in name else "package.module.function"
        raise SettingsError("it has no module.", actions=(f"Write {example}.",))
    function = getattr(_module(module_name, root), attribute, None)
    if function is None:
        raise SettingsError(
            f"the module {module_name!r} has no {attribute!r}.", actions=("Correct the name, or define it there.",)
        )
    if not callable(function):
        raise SettingsError(f"it is {type(function).__name__}, not a function.", actions=("Name a function.",))
    return cast("Function", function)


def _module(name: str, root: Path | None) -> ModuleType:
    if root is not None and name.partition(".")[0] in own_modules(root):
        # Another project may have a module of this name too.
        return import_from(root, name, called=f"its module {name!r}")
    try:
        with _lock, _search_path(root):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise SettingsError(
                f"the module {error.name!r} cannot be found.",
                actions=("Correct the name, or create it in the project's folder or the current one.",),
            ) from error
        raise SettingsError(
            f"the module {name!r} cannot be imported: {error_text(error)}.",
            actions=(f'Make `python -c "import {name}"` work.',),
        ) from error


@contextmanager
def _search_path(root: Path | None) -> Iterator[None]:
    """Let imports find modules in the project's folder and, as `python -m` does, in the current one."""
    added = [str(each) for each in (root, Path.cwd()) if each is not None]
    sys.path[:0] = added
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for each in added:
            sys.path.remove(each)


def _actual(expectation: Expectation, exchange: Exchange) -> list[AdkObject]:
    turns = [(exchange.utterance, exchange.generated)]
    if "invocations" in expectation.terms:
        turns = [*exchange.earlier, *turns]
    return [
        adk_objects.invocation(number, utterance, generated.outcome, _calls(generated.actions))
        for number, (utterance, generated) in enumerate(turns, 1)
    ]


def _calls(actions: Sequence[Action] | None) -> list[tuple[str, JsonObject]] | None:
    """Return actions as calls; None if the agent does not report them."""
    return None if actions is None else [(action.name, action.input) for action in actions]


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
    return adk_objects.invocation(
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
    if returned is None or not (isinstance(returned, Mapping) or hasattr(returned, "overall_score")):
        raise SettingsError(
            f"it returned {type(returned).__name__}.",
            actions=("Return a number, a truth value, or an object with overall_score.",),
        )
    score = _number(_part(returned, "overall_score"))
    if score is None:
        results = _part(returned, "per_invocation_results")
        scores = [_number(_part(each, "score")) for each in results] if isinstance(results, list | tuple) else []
        known = [each for each in scores if each is not None]
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
