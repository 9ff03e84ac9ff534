"""Functions of users that judge answers: which parameters they declare, what they return, and how they are called."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta import limits
from evalmeta.engine.answers import context_of, history_of, turn_messages
from evalmeta.engine.project_code import Function, find_function, function_threads, functions_root, given_function
from evalmeta.engine.scorers.results import broken, judged, measured
from evalmeta.engine.subjects.calls import Calls, check_call
from evalmeta.errors import EvalmetaError, SettingsError, SubjectError, UsageError
from evalmeta.model.evaluation import Evaluation, select_cases
from evalmeta.model.expectations import OUTCOME, canonical_name
from evalmeta.model.generated_data import actions_json
from evalmeta.model.redaction import error_text, hide_secrets
from evalmeta.model.steps import trace_with_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from evalmeta.engine.interfaces import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class Check:
    """What a check of your own returns: its verdict, a score, or both, and the reason; a list has a result for each.

    It is true if the check passed.

    Attributes:
        passed: whether the answer passed; None reports the score, which is not judged.
        score: a number of your own scale; reports show its mean.
        reason: why, for people.
        name: the name of the result, if a check returns several.
        label: a word for the answer, such as `formal`, that is reported and not judged.
        error: why nothing can be said; the result is then an ERROR.
    """

    passed: bool | None = None
    score: float | None = None
    reason: str = ""
    name: str = ""
    label: str | None = None
    error: str = ""

    def __bool__(self) -> bool:
        return self.passed is True


def _expected(exchange: Exchange) -> JsonValue:
    """Return the `expected` of the turn, or else what it expects of the whole answer; None if it says neither."""
    turn = exchange.case.turns[len(exchange.earlier)]
    if turn.expected is not None:
        return turn.expected
    for expectation in turn.expectations:
        terms = expectation.terms
        if expectation.name == "json" and terms.get("path") == "$" and terms.get("operator") != "schema":
            return expectation.terms.get("expected")
        if expectation.name == "equals" or canonical_name(expectation.name) == OUTCOME:
            return expectation.expected_value
    return None


def _history(exchange: Exchange) -> object:
    turns = (message for turn in exchange.earlier for message in turn_messages(turn.utterance, turn.generated))
    return [*history_of(exchange.case), *turns]


_INPUTS: Final[Mapping[str, Callable[[Exchange], object]]] = {
    "answer": lambda exchange: exchange.generated.value,
    "expected": _expected,
    "case": lambda exchange: exchange.case,
    "actions": lambda exchange: actions_json(exchange.generated.actions),
    "trace": lambda exchange: trace_with_actions(exchange.generated),
    "utterance": lambda exchange: exchange.utterance,
    "history": _history,
    "context": lambda exchange: context_of(exchange.case),
    "topic": lambda exchange: exchange.generated.topic,
    "generated": lambda exchange: exchange.generated,
}
"""What a function can receive, by the names of its parameters; a first parameter of another name gets the answer."""
_RETURNS: Final = "Return True or False, a number, evalmeta.Check(passed, score, reason), or a mapping with these keys."
NOT_JUDGED: Final = "; reported, not judged"
"""How the explanation of a result ends that is only reported."""
_EXAMPLE: Final = f"check({', '.join(_INPUTS)}) with any of these parameters"


def check_function(name: str, *, root: Path) -> None:
    """Check without a call that a function can be imported and called; raise SettingsError if not."""
    called = f"the scoring function {name!r}"
    try:
        function = find_function(name, root)
    except SettingsError as error:
        raise SettingsError(f"{called} cannot be used: {str(error).rstrip('.')}", actions=error.actions) from None
    if ":" in name:
        check_signature(function, called=called, root=root)
        return
    example = "score(metric, actual_invocations, expected_invocations, conversation_scenario)"
    check_call(function, (None,) * 4, {}, called=called, root=root, example=example)


def check_signature(function: Function, *, called: str, root: Path) -> None:
    """Check that a function only needs parameters that it can receive, and returns something; raise SettingsError."""
    declared = _declared(function)
    arguments = ("",) if declared.takes_answer else ()
    check_call(function, arguments, dict.fromkeys(declared.names), called=called, root=root, example=_EXAMPLE)
    annotations = getattr(function, "__annotations__", {})
    if "return" in annotations and annotations["return"] in {None, "None"}:
        raise SettingsError(f"{called} returns nothing: its result is annotated as None", actions=(_RETURNS,))


class GivenFunction(NamedTuple):
    """A function that judges: the name by which it is found, and that of its figures in reports."""

    name: str
    label: str


class GivenFunctions:
    """The functions that one call of `evaluate` was given as objects.

    Several with the same name get a number. Those of one `lambda` or `def`, such as one for each case, share a label.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Function] = {}
        self.judge_all = False  # whether some of them judge all answers
        self._known: dict[int, GivenFunction] = {}
        self._labels: dict[tuple[object, str], str] = {}
        self._counts = Counter[str]()

    def add(self, check: object) -> GivenFunction:
        """Return the names of a check: `module:function`, or a function, which is kept; raise UsageError otherwise."""
        if isinstance(check, str) and ":" in check:
            return GivenFunction(check, check)
        if known := self._known.get(id(check)):
            return known
        if not callable(check) or isinstance(check, type):
            kind = f"the class {check.__name__}" if isinstance(check, type) else repr(check)[:_SHOWN_CHARS]
            raise UsageError(
                f"{kind} is not a check", actions=["Pass a function, or a text such as 'checks:is_polite'."]
            )
        plain = check.func if isinstance(check, partial) else check
        own = str(getattr(plain, "__name__", type(plain).__name__))
        self._counts[own] += 1
        name = own if self._counts[own] == 1 else f"{own} {self._counts[own]}"
        label = self._labels.setdefault((getattr(plain, "__code__", name), own), name)
        self.by_name[name] = check
        self._known[id(check)] = GivenFunction(name, label)
        return self._known[id(check)]


_SHOWN_CHARS: Final = 100


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


class _Declared(NamedTuple):
    """The parameters of a function that it receives: the answer by position, and others by their names."""

    takes_answer: bool
    names: tuple[str, ...]


def _declared(function: Function) -> _Declared:
    try:
        return _examined(cast("Hashable", function))
    except TypeError:
        # Instances of dataclasses, for example, cannot be hashed.
        return _examined.__wrapped__(function)


@lru_cache(maxsize=256)
def _examined(function: object) -> _Declared:
    try:
        parameters = [*inspect.signature(cast("Function", function)).parameters.values()]
    except (TypeError, ValueError):
        return _Declared(takes_answer=True, names=())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes_answer = bool(parameters) and (
        parameters[0].kind in {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}
        or (parameters[0].kind in positional and (parameters[0].name == "answer" or parameters[0].name not in _INPUTS))
    )
    others = parameters[1:] if takes_answer else parameters
    if any(other.kind is inspect.Parameter.VAR_KEYWORD for other in others):
        return _Declared(takes_answer, tuple(name for name in _INPUTS if name != "answer" or not takes_answer))
    return _Declared(takes_answer, tuple(other.name for other in others if other.name in _INPUTS))


async def score_by_check(expectation: Expectation, exchange: Exchange) -> TestResult | list[TestResult]:
    """Judge by the function that the terms name (`"function": "module:name"`).

    It receives those of `_INPUTS` that it declares. True passes and False fails, and so does an AssertionError. A
    number is reported and not judged. A `Check`, or a mapping with the same keys, has a verdict, a score or both. A
    list of `Check` makes a result of each, with its name. Anything else, None included, and other exceptions are
    ERRORs. Functions that are not coroutine functions run in a thread.
    """
    name, answer = str(expectation.terms["function"]), exchange.generated.outcome
    try:
        outcomes = _outcomes(await _called(name, exchange))
    except EvalmetaError as error:
        why = " ".join((error_text(error), *error.actions))
        return broken(expectation, f"the function {name!r:.200} cannot judge: {why}", actual=answer)
    results = [_result(expectation, check, name, answer) for check in outcomes]
    return results if len(results) > 1 else results[0]


def _result(expectation: Expectation, check: Check, name: str, answer: str) -> TestResult:
    if check.name:
        expectation = replace(expectation, label=check_label(check.name))
    if check.error:
        return broken(expectation, check.error, actual=answer)
    passed, score = check.passed, check.score
    if passed is None:
        explanation = check.reason or f"{name} returned {check.label if score is None else score}"
        return measured(expectation, score, f"{explanation}{NOT_JUDGED}", actual=answer)
    explanation = check.reason or f"{name} returned {passed}"
    expected = f"{name} passes"
    return judged(expectation, passed=passed, expected=expected, actual=answer, explanation=explanation, score=score)


def check_label(name: str) -> str:
    """Return the label of the results of a check in reports."""
    return f"function {name}"


async def _called(name: str, exchange: Exchange) -> object:
    root = functions_root()
    function = given_function(name) or find_function(name, root)
    declared = _declared(function)
    arguments = (exchange.generated.value,) if declared.takes_answer else ()
    call = partial(function, *arguments, **{parameter: _INPUTS[parameter](exchange) for parameter in declared.names})
    try:
        # A partial of a coroutine function is one too.
        with function_threads() as threads:
            return await Calls(root or Path.cwd(), threads=threads).call(call)
    except SubjectError as error:
        if isinstance(error.__cause__, AssertionError):
            return Check(passed=False, reason=hide_secrets(str(error.__cause__)).partition("\n")[0] or str(error))
        raise


def _outcomes(returned: object) -> list[Check]:
    """Return the results of a function, one or those of a list of checks; raise SettingsError if there are none."""
    if isinstance(returned, list) and returned and all(isinstance(check, Check) for check in returned):
        if len(returned) > limits.MAX_JUDGED_PARTS:
            raise SettingsError(
                f"it returned {len(returned):,} results; at most {limits.MAX_JUDGED_PARTS} are allowed."
            )
        return [_outcome(check) for check in returned]
    return [_outcome(returned)]


def _outcome(returned: object) -> Check:
    """Return the result of a function, without secrets; raise SettingsError if there is none."""
    value = _plain(returned)
    if isinstance(value, bool):
        return Check(value)
    if isinstance(value, int | float):
        return Check(score=_number(value))
    is_word = isinstance(value, Check) and value.label is not None and value.passed is None and value.score is None
    if isinstance(value, Check) and (value.error or is_word):
        texts = [hide_secrets(str(text)) for text in (value.reason, value.label, value.error)]
        return Check(reason=texts[0], name=value.name, label=texts[1], error=texts[2])
    named = value.name if isinstance(value, Check) else ""
    members = asdict(value) if isinstance(value, Check) else value
    if isinstance(members, Mapping):
        passed, score, reason = (_plain(members.get(key)) for key in ("passed", "score", "reason"))
        if (passed is None or isinstance(passed, bool)) and (passed is not None or score is not None):
            number = None if score is None else _number(score)
            return Check(passed, number, "" if reason is None else hide_secrets(str(reason)), named)
    shown = "nothing (None)" if returned is None else hide_secrets(repr(returned))[:_SHOWN_CHARS]
    raise SettingsError(f"it returned {shown}.", actions=(_RETURNS,))


def _plain(value: object) -> object:
    """Return a number or a Boolean of numpy as Python's, and anything else unchanged."""
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) and getattr(value, "shape", None) == () else value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"its score is {hide_secrets(repr(value)):.50}.", actions=("Return a finite number.",))
    return float(value)
