"""Scorers: functions with `@scorer`, classes, and MLflow's own objects; what they return becomes results of checks."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median, pvariance
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast, overload

from pydantic import BaseModel, ConfigDict, PrivateAttr

from evalmeta import limits
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.scorers.functions import NOT_JUDGED, Check
from evalmeta.errors import UsageError, did_you_mean
from evalmeta.model.json_value import plain_value
from evalmeta.systems.mlflow.assessments import DEFAULT_NAME, Feedback
from evalmeta.systems.mlflow.tracking import notice

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.project_code import Function
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult

Aggregation: TypeAlias = str | Callable[[list[float]], float]
_PassIf: TypeAlias = Callable[[object], bool]
_RETURNS: Final = "Return a number, a bool, a text, a Feedback or a list of Feedback."


class _Called(Protocol):
    def __call__(self, *args: object, **inputs: object) -> object: ...


class Scorer(BaseModel):
    """A scorer: a subclass defines `__call__` with any of inputs, outputs, expectations and trace."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    description: str | None = None
    aggregations: list[Aggregation] | None = None
    timeout: float | None = None
    _pass_if: _PassIf | None = PrivateAttr(default=None)

    @property
    def pass_if(self) -> _PassIf | None:
        """Return what decides whether a value passes; None lets yes and True pass."""
        return self._pass_if

    @property
    def is_session_level_scorer(self) -> bool:
        """Return whether the scorer reads whole sessions, and not single answers."""
        return "session" in self.accepted_names()

    def run(self, **given: object) -> object:
        """Call the scorer with those of the arguments that it declares."""
        call = cast("Function", self)
        accepted = self.accepted_names()
        return call(**{name: value for name, value in given.items() if name in accepted})

    def accepted_names(self) -> frozenset[str]:
        """Return the names of the parameters."""
        return _names_of(cast("_Called", type(self)).__call__)

    def register(self, **_: object) -> Scorer:
        """Refuse: scorers live in your code."""
        raise UsageError(
            f"the scorer {self.name!r} cannot be registered: evalmeta has no tracking server",
            actions=["Keep the scorer in your code, and pass it to evaluate."],
        )

    def start(self, **_: object) -> Scorer:
        """Refuse, as `register` does."""
        return self.register()


class _FunctionScorer(Scorer):
    _function: object = PrivateAttr(default=None)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return cast("Function", self._function)(*args, **kwargs)

    def accepted_names(self) -> frozenset[str]:
        return _names_of(self._function)


@overload
def scorer(func: object) -> Scorer: ...
@overload
def scorer(
    func: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    aggregations: list[Aggregation] | None = None,
    pass_if: _PassIf | None = None,
    timeout: float | None = None,
) -> Callable[[object], Scorer]: ...
def scorer(
    func: object = None,
    *,
    name: str | None = None,
    description: str | None = None,
    aggregations: list[Aggregation] | None = None,
    pass_if: _PassIf | None = None,
    timeout: float | None = None,
) -> Scorer | Callable[[object], Scorer]:
    """Make a scorer of a function with any of the parameters inputs, outputs, expectations and trace."""

    def scorer_of(function: object) -> Scorer:
        called = name or str(getattr(function, "__name__", "scorer"))
        made = _FunctionScorer(name=called, description=description, aggregations=aggregations, timeout=timeout)
        made._function = function  # noqa: SLF001 - its own
        made._pass_if = pass_if  # noqa: SLF001 - its own
        return made

    return scorer_of if func is None else scorer_of(func)


def _names_of(function: object) -> frozenset[str]:
    return frozenset(inspect.signature(cast("Function", function)).parameters)


_INPUTS: Final = ("inputs", "outputs", "expectations", "trace", "session")


def check_scorers(scorers: object) -> list[Scorer]:
    """Return scorers that can be used; raise UsageError, before the first question, if one cannot."""
    if isinstance(scorers, str | Mapping) or not isinstance(scorers, Sequence):
        raise UsageError(f"scorers is of type {type(scorers).__name__}, not a list", actions=["Write scorers=[...]."])
    return [_usable(given) for given in scorers]


def _usable(given: object) -> Scorer:
    if isinstance(given, type):
        raise UsageError(f"{given.__name__} is a class, not a scorer", actions=[f"Write {given.__name__}()."])
    if not (callable(getattr(given, "run", None)) and isinstance(getattr(given, "name", None), str)):
        raise UsageError(
            f"{given!r:.100} is not a scorer",
            actions=["Write @scorer above the function, or pass an instance of a subclass of Scorer."],
        )
    checked = cast("Scorer", given)
    if getattr(checked, "timeout", None):
        notice("the timeout of a scorer", "case_timeout of the options limits the whole case")
    for aggregation in getattr(checked, "aggregations", None) or ():
        if isinstance(aggregation, str) and aggregation not in _AGGREGATIONS:
            hint = did_you_mean(aggregation, _AGGREGATIONS)
            raise UsageError(f"{checked.name}: {aggregation!r} is not an aggregation", actions=[hint])
    if isinstance(checked, Scorer):
        names = checked.accepted_names()
        unknown = sorted(names - {*_INPUTS, "self", "args", "kwargs"})
        if unknown and isinstance(checked, _FunctionScorer):
            allowed = ", ".join(_INPUTS)
            raise UsageError(
                f"the scorer {checked.name!r} has the parameter {unknown[0]!r}", actions=[f"It can have: {allowed}."]
            )
    return checked


def checks_of(given: Scorer, returned: object) -> list[Check]:
    """Return the results of what a scorer returned: one for each feedback, or one that says that there is none."""
    if inspect.isawaitable(returned):
        returned = run_to_end(_awaited(cast("Awaitable[object]", returned)))
    pass_if = getattr(given, "pass_if", None)
    return [_check(feedback, pass_if) for feedback in _feedbacks(given.name, returned)]


async def _awaited(returned: Awaitable[object]) -> object:
    return await returned


def _feedbacks(name: str, returned: object) -> list[Feedback]:
    returned = _plain(returned)
    if returned is None or returned == []:
        return [Feedback(name, None, rationale=f"{name} returned nothing")]
    if isinstance(returned, bool | int | float | str):
        return [Feedback(name, returned)]
    # A Feedback of MLflow can be iterated over.
    if _is_feedback(returned):
        return [_feedback(name, returned)]
    if isinstance(returned, Iterable) and not isinstance(returned, Mapping):
        return [_feedback(name, part) if _is_feedback(part) else Feedback(name, part) for part in returned]
    return [Feedback(name, error=f"{name} returned {type(returned).__name__}. {_RETURNS}")]


def _is_feedback(value: object) -> bool:
    return all(hasattr(value, member) for member in ("name", "value", "rationale"))


def _feedback(name: str, given: object) -> Feedback:
    """Return a feedback of evalmeta or MLflow under its own name, or that of its scorer."""
    own, error, rationale = (getattr(given, member, None) for member in ("name", "error", "rationale"))
    named = name if own in {None, DEFAULT_NAME} else str(own)
    if error is not None and not isinstance(error, str):
        error = str(getattr(error, "error_message", None) or error)
    return Feedback(
        named, getattr(given, "value", None), error=error, rationale=None if rationale is None else str(rationale)
    )


def _plain(value: object) -> object:
    """Return a number or a Boolean of numpy as Python's."""
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) and getattr(value, "shape", None) == () else value


def _check(feedback: Feedback, pass_if: _PassIf | None) -> Check:
    name, value = feedback.name, _plain(feedback.value)
    if feedback.error_message is not None:
        return Check(name=name, error=feedback.error_message)
    if isinstance(value, float) and not math.isfinite(value):
        return Check(name=name, error=f"{name} returned {value}, which is not a number")
    reason = _written(value, feedback.rationale)
    passed, number = _passed(value), None
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if pass_if is not None:
        passed = bool(pass_if(feedback.value))
    if passed is None and number is None:
        return Check(name=name, label=str(value), reason=reason)
    return Check(passed, number, reason, name)


def _passed(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"yes": True, "no": False}.get(value.strip().lower()) if isinstance(value, str) else None


def _written(value: object, rationale: str | None) -> str:
    """Return the explanation of a result: the value as JSON, and why."""
    text = json.dumps(plain_value(value), ensure_ascii=False)
    if len(text) > limits.MAX_ERROR_CHARS // 2:
        text = json.dumps(f"{text[: limits.MAX_ERROR_CHARS // 4]}…", ensure_ascii=False)
    return f"{text}: {rationale}" if rationale else text


def read_value(result: TestResult) -> tuple[JsonValue, str | None]:
    """Return the value and the rationale of a result of a scorer."""
    text = result.explanation.removesuffix(NOT_JUDGED)
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return result.score, text or None
    return value, text[end:].removeprefix(": ") or None


def _percentile_90(values: Sequence[float]) -> float:
    place = 0.9 * (len(values) - 1)
    ordered, low = sorted(values), int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


_AGGREGATIONS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "min": min,
    "max": max,
    "mean": fmean,
    "median": median,
    "variance": pvariance,
    "p90": _percentile_90,
}


def aggregated(values: list[float], aggregation: Aggregation) -> tuple[str, float]:
    """Return the name and the value of an aggregation; NaN if there is no value."""
    name = aggregation if isinstance(aggregation, str) else getattr(aggregation, "__name__", "aggregation")
    function = _AGGREGATIONS[aggregation] if isinstance(aggregation, str) else aggregation
    return name, float(function(values)) if values else math.nan
