"""Functions of the project's own that judge: called as ADK calls its custom metrics, by position.

The objects that they are given have ADK's attributes, as far as there is something to tell.
"""

from __future__ import annotations

import importlib
import math
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta.engine.reasons import reason
from evalmeta.engine.scorers.results import averaged, broken, threshold_of, undecided
from evalmeta.engine.subjects.python import Calls
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from types import ModuleType

    from evalmeta.engine.scorer import Exchange
    from evalmeta.engine.subjects.python import Function
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue


_OURS: Final = frozenset({"function", "invocations", "conversation", "calls"})
_STATUSES: Final = {1: "PASSED", 2: "FAILED", 3: "NOT_EVALUATED"}
_VERDICTS: Final = {"PASSED": Verdict.PASS, "FAILED": Verdict.FAILURE}
_lock: Final = threading.Lock()


class Criterion(dict[str, "JsonValue"]):
    """What the terms say of how to judge, such as the threshold, by key or as attributes."""

    def __getattr__(self, name: str) -> JsonValue:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(slots=True)
class Metric:
    """What is measured; the threshold stands in the criterion."""

    metric_name: str
    criterion: Criterion
    threshold: float | None = None


@dataclass(slots=True)
class Part:
    """A text."""

    text: str


@dataclass(slots=True)
class Content:
    """What one side said."""

    parts: list[Part]
    role: str


@dataclass(slots=True)
class ToolUse:
    """A call that was made, or is expected; calls have no ids here."""

    name: str
    args: JsonObject
    id: str | None = None


@dataclass(slots=True)
class IntermediateData:
    """What the agent did before it answered."""

    tool_uses: list[ToolUse]
    tool_responses: list[JsonValue] = field(default_factory=list)
    intermediate_responses: list[JsonValue] = field(default_factory=list)


@dataclass(slots=True)
class Invocation:
    """One turn: None stands for what is not known or not expected."""

    invocation_id: str
    user_content: Content
    final_response: Content | None = None
    intermediate_data: IntermediateData | None = None


class _Opinion(NamedTuple):
    """What a function gave: a score, a verdict, both or neither."""

    score: float | None
    verdict: Verdict | None = None


async def score_by_function(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Judges by the function that the terms name (`"function": "package.module.function"`).

    It is called with a `Metric`, the `Invocation`s that were made and those that were
    expected, and None. Where the terms have `invocations` these are all turns of the case
    up to this one, or else this one alone, expected with the expectedValue and the `calls`
    of the terms. Functions that are not coroutine functions run in a thread.

    It gives a number, a truth value, or an object or mapping with `overall_score`, and
    perhaps `overall_eval_status` and `per_invocation_results`. A status decides; without
    one the threshold of the terms does; without that a number is measured. A function
    that cannot be found, raises, or gives anything else makes the result ERROR.
    """
    name, actual = expectation.terms["function"], exchange.generated.outcome
    try:
        given = await _give(str(name), expectation, exchange)
        opinion = _opinion(given)
    except EvalmetaError as error:
        told = " ".join((reason(error), *error.actions))
        return broken(expectation, f"the function {name!r:.200} cannot judge: {told}", actual=actual)
    return _result(expectation, actual, opinion, f"{name} gave {_shown(opinion)}")


def _give(name: str, expectation: Expectation, exchange: Exchange) -> Awaitable[object]:
    criterion = Criterion({key: value for key, value in expectation.terms.items() if key not in _OURS})
    made, expected = _made(exchange, expectation), _expected(expectation, exchange)
    return Calls(Path.cwd()).call(partial(_call, name), Metric(expectation.name, criterion), made, expected, None)


def _call(name: str, *arguments: object) -> object:
    """Finds the function and calls it: both may take their time."""
    return _function(name)(*arguments)


@lru_cache(maxsize=256)
def _function(name: str) -> Function:
    module_name, _, attribute = name.rpartition(".")
    if not module_name or not attribute:
        raise SettingsError("it has no module.", actions=("Name it as package.module.function.",))
    function = getattr(_module(module_name), attribute, None)
    if function is None:
        raise SettingsError(
            f"the module {module_name!r} has no {attribute!r}.", actions=("Correct the name, or define it there.",)
        )
    if not callable(function):
        raise SettingsError(f"it is {type(function).__name__}, which cannot be called.", actions=("Name a function.",))
    return cast("Function", function)


def _module(name: str) -> ModuleType:
    try:
        with _lock, _current_directory():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise SettingsError(
                f"there is no module {error.name!r}.",
                actions=("Correct the name, or run evalmeta in the folder where `import` finds it.",),
            ) from error
        raise _unloadable(name, error) from error
    except (Exception, SystemExit) as error:
        raise _unloadable(name, error) from error


def _unloadable(name: str, error: BaseException) -> SettingsError:
    return SettingsError(
        f"the module {name!r} does not load: {reason(error)}.", actions=(f'Make `python -c "import {name}"` work.',)
    )


@contextmanager
def _current_directory() -> Iterator[None]:
    """Lets modules be found in the current directory, as `python -m` does."""
    directory = str(Path.cwd())
    sys.path.insert(0, directory)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(directory)


def _made(exchange: Exchange, expectation: Expectation) -> list[Invocation]:
    turns = [(exchange.utterance, exchange.generated)]
    if "invocations" in expectation.terms:
        turns = [*exchange.earlier, *turns]
    return [_invocation(place, *turn) for place, turn in enumerate(turns, 1)]


def _invocation(place: int, utterance: str, generated: GeneratedData) -> Invocation:
    uses = [ToolUse(action.name, action.input) for action in generated.actions]
    return Invocation(str(place), _said(utterance, "user"), _said(generated.outcome, "model"), IntermediateData(uses))


def _expected(expectation: Expectation, exchange: Exchange) -> list[Invocation]:
    terms = expectation.terms
    single = {
        "utterance": exchange.utterance, "reference": expectation.expected_value, "calls": terms.get("calls")
    }  # fmt: skip
    turns = terms.get("invocations", [single])
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise SettingsError("the invocations of the terms are no list.")
    return [_expected_turn(place, turn) for place, turn in enumerate(turns, 1)]


def _expected_turn(place: int, turn: JsonValue) -> Invocation:
    told = turn if isinstance(turn, Mapping) else {}
    utterance, reference, calls = (told.get(name) for name in ("utterance", "reference", "calls"))
    return Invocation(
        str(place),
        _said(utterance if isinstance(utterance, str) else "", "user"),
        _said(reference, "model") if isinstance(reference, str) else None,
        IntermediateData(list(_uses(calls))) if isinstance(calls, Sequence) else None,
    )


def _uses(calls: Sequence[JsonValue]) -> Iterator[ToolUse]:
    for call in calls:
        if isinstance(call, Mapping):
            args = call.get("args")
            yield ToolUse(str(call.get("name", "")), args if isinstance(args, Mapping) else {})


def _said(text: str, role: str) -> Content:
    return Content([Part(text)], role)


def _opinion(given: object) -> _Opinion:
    """Reads what a function gave.

    Raises:
        SettingsError: it is nothing that says how good an answer is.
    """
    if isinstance(given, bool):
        return _Opinion(float(given), Verdict.PASS if given else Verdict.FAILURE)
    if isinstance(given, int | float):
        return _Opinion(_number(given))
    if given is None or not (isinstance(given, Mapping) or hasattr(given, "overall_score")):
        raise SettingsError(
            f"it gave {type(given).__name__}.",
            actions=("Let it give a number, a truth value, or an object with overall_score.",),
        )
    score = _number(_part(given, "overall_score"))
    if score is None:
        results = _part(given, "per_invocation_results")
        scores = [_number(_part(each, "score")) for each in results] if isinstance(results, list | tuple) else []
        known = [each for each in scores if each is not None]
        score = sum(known) / len(known) if known else None
    return _Opinion(score, _VERDICTS.get(_status(_part(given, "overall_eval_status"))))


def _part(whole: object, name: str) -> object:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _number(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"its score is {value!r:.50}.", actions=("Let it give a finite number.",))
    return float(value)


def _status(value: object) -> str:
    """Gives a status by its name: as an enumeration, by ADK's number, or in words."""
    name = getattr(value, "name", _STATUSES.get(value) if isinstance(value, int) else value)
    return str(name).upper()


def _shown(opinion: _Opinion) -> str:
    score = "no score" if opinion.score is None else f"{opinion.score:g}"
    return f"{score}: {opinion.verdict.lower()}" if opinion.verdict else score


def _result(expectation: Expectation, actual: str, opinion: _Opinion, explanation: str) -> TestResult:
    expected, threshold = expectation.expected_value or "", threshold_of(expectation)
    if threshold is not None:
        explanation = f"{explanation}; the threshold is {threshold:g}"
    score, verdict = opinion
    if verdict is not None:
        result = TestResult(expectation.name, verdict, expected, actual, score, explanation, expectation.label)
        return result if score is None else result._replace(threshold=threshold)
    if score is None:
        return undecided(expectation, explanation, expected=expected, actual=actual)._replace(threshold=threshold)
    return averaged(expectation, score=score, expected=expected, actual=actual, explanation=explanation)
