"""The test cases of Testing Center's test specs: the keys of sf, the short forms, several turns and defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Final, get_args

import orjson

from evalmeta.errors import FormatError, SettingsError
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.short_forms import SHAPES, Cell
from evalmeta.formats.yaml_source import LineSource, YamlRecord, json_value, record_value
from evalmeta.model.definition import ContextVariable, Expectation, HistoryMessage, Inputs, Parameter
from evalmeta.model.evaluation import Case, Quarantine, Turn, end_fault, iterations_fault, metadata_fault, parse_day
from evalmeta.model.expectations import ACTIONS, METRICS, OPERATORS, OUTCOME, TOPIC, render_actions
from evalmeta.model.json_value import plain_json
from evalmeta.model.run_options import ActionMatch
from evalmeta.plugins import all_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue

    Checks = Mapping[str, Sequence[Expectation]]


# The keys of a test case that sf knows, those that only evalmeta knows, and how their cells in tables are read.
_SF_KEYS: Final[Mapping[str, Cell]] = {
    "utterance": "text",
    "contextVariables": "object",
    "conversationHistory": "object",
    "expectedTopic": "text",
    "expectedActions": "names",
    "expectedOutcome": "text",
    "metrics": "names",
    "customEvaluations": "object",
}
_OWN_KEYS: Final[Mapping[str, Cell]] = {
    "name": "text",
    "tags": "names",
    "quarantine": "object",
    "review": "plain",
    "iterations": "plain",
    "approve": "names",
    "context": "object",
    "expected": "object",
    "turns": "object",
    "metadata": "object",
}
_ACTION_MATCH: Final = "action_match"
FLAGS: Final = ("exact", "empty", _ACTION_MATCH)
"""The keys of a test case, a turn and the defaults that say how its checks judge: flags, and the way of matching."""


@cache
def own_keys() -> tuple[str, ...]:
    """Return the keys of a test case that only evalmeta knows."""
    taken = {*_SF_KEYS, "input", *_OWN_KEYS, *FLAGS}
    for name in all_checks():
        if name in taken:
            raise SettingsError(f"the check {name!r} of a package has the name of a key of test cases")
    return ("input", *_OWN_KEYS, *all_checks(), *FLAGS)


@cache
def case_keys() -> tuple[str, ...]:
    """Return all keys of a test case."""
    return ("input", *_SF_KEYS, *own_keys()[1:])


@cache
def cells() -> Mapping[str, Cell]:
    """Return how the cells of keys are read."""
    checks = {name: SHAPES[check.shape].cell for name, check in all_checks().items()}
    return {"input": "text", **_SF_KEYS, **_OWN_KEYS, **dict.fromkeys(FLAGS, "plain"), **checks}


_PARAMETERS_HINT: Final = "Write a list of parameters: operator, actual (isReference: true) and expected."
_CUSTOM_HINTS: Final = dict.fromkeys(("JSONPath", "jsonPath", "operator", "expectedValue", "actual"), _PARAMETERS_HINT)
# How promptfoo, pydantic-evals, deepeval and MLflow call checks, the message to the agent, and expected answers.
ASSERTIONS: Final = ("assert", "asserts", "assertions", "evaluators", "expectations", "expect", "checks")
QUESTIONS: Final = ("prompt", "question", "query", "ask", "user", "message", "inputs", "vars")
ANSWERS: Final = (
    *("expected", "expected_output", "expectedOutput", "expected_answer", "expectedAnswer", "answer", "output"),
)
_REFERENCES: Final = ("response", "outcome", "reference", "reference_answer", "ground_truth", "golden", "ideal")
NAMES: Final = ("id", "label", "description")
"""What other tools call the name of a test case, or a text about it."""
_HINTS: Final = {
    **dict.fromkeys(ASSERTIONS, "Write each check as a key of the test case, such as contains: Paris."),
    **dict.fromkeys(QUESTIONS, "Use input for the message to the agent."),
    **dict.fromkeys((*ANSWERS, *_REFERENCES), "Use contains, equals, rubric or expectedOutcome."),
    **dict.fromkeys(("icontains", "contains_ignore_case"), "Use matches with (?i): matches: (?i)paris."),
    **dict.fromkeys(("allow_empty", "may_be_empty", "empty_answer"), "Use empty: true."),
    **dict.fromkeys(NAMES, "Use name."),
    **dict.fromkeys(("skip", "skipped", "xfail", "flaky", "disabled", "known_failure"), "Use quarantine."),
    **dict.fromkeys(("repeat", "num_runs"), "Use iterations."),
    "min_pass_rate": "Write it in a test spec, or use the option of the run.",
    "expectedSubagent": "Did you mean 'expectedTopic'?",
    "expectedResponse": "Did you mean 'expectedOutcome'?",
}


@cache
def case_hints() -> Mapping[str, str]:
    """Return what to use instead of words of other tools."""
    return _HINTS | {word: hint for check in all_checks().values() for word, hint in check.hints.items()}


@dataclass(frozen=True, slots=True)
class Defaults:
    """What test cases have that do not say otherwise; None for keys that the defaults do not have."""

    checks: Checks = field(default_factory=dict)
    flags: Mapping[str, bool | str] = field(default_factory=dict)
    variables: tuple[ContextVariable, ...] = ()
    history: tuple[HistoryMessage, ...] = ()
    tags: tuple[str, ...] = ()
    reads_expected: bool = False  # whether functions that are not named here judge the answers


def read_defaults(record: YamlRecord) -> Defaults:
    """Read the mapping `defaults` of a spec."""
    allowed = ("context", "contextVariables", "conversationHistory", "tags", *check_keys(), *FLAGS)
    hints = {**case_hints()} | dict.fromkeys(_ONLY_OF_CASES, _PER_CASE) | {"iterations": _BESIDE_DEFAULTS}
    record.check_keys(*allowed, hints=hints)
    _refuse_keys_without_effect(record, ())
    return Defaults(
        _checks(record),
        _flags(record),
        _variables(record) or (),
        read_history(record, numbers_messages=True),
        _tags(record),
    )


INPUT_HINT: Final = "Write input: and the message to the agent."
"""What to write instead of a test case or a turn that is only a text."""
_ONLY_OF_CASES: Final = (
    *("input", "utterance", "expected", "turns", "name", "quarantine", "review", "approve", "metadata", "iterations"),
)
_PYTHON: Final = LineSource(0)
_FINITE_HINT: Final = "Leave out keys without a value. A data frame may have missing values; pass it as it is."
_UNREAD: Final = "'expected' is read by functions only, and no function judges this answer"
_UNREAD_HINT: Final = "Add function, or use equals, json or expectedOutcome."
_PER_CASE: Final = "Write it in each test case."
_BESIDE_DEFAULTS: Final = "Write it in the test spec, beside defaults, or in a test case."
_NO_VALUE_HINT: Final = "Write what is expected, or remove the key."
_QUARANTINE_EXAMPLE: Final = "Write quarantine: {reason: why it fails, until: 2027-01-31}."
_QUARANTINE_HINTS: Final = {
    **dict.fromkeys(("why", "because", "issue", "ticket", "comment"), "Use reason."),
    **dict.fromkeys(("end", "ends", "expires", "date"), "Use until."),
}


def read_case(record: YamlRecord, number: int, defaults: Defaults, *, own_keys: bool) -> Case:
    """Read a test case; `own_keys` says whether it may have keys that sf does not know."""
    record.check_keys(*case_keys(), hints=case_hints())
    has = record.values.keys()
    return Case(
        number,
        _turns(record, defaults) if "turns" in has else (_turn(record, defaults, own_keys=own_keys),),
        read_history(record, numbers_messages=True) if "conversationHistory" in has else defaults.history,
        defaults.variables if (variables := _variables(record)) is None else variables,
        _tags(record) if "tags" in has else defaults.tags,
        record.text("name") or "" if own_keys else "",
        quarantine=_quarantine(record),
        metadata=_metadata(record) if "metadata" in has else {},
        approve=tuple(name for _, name in record.one_or_more("approve")) if "approve" in has else (),
        review=_review(record) if "review" in has else False,
        iterations=read_iterations(record) if "iterations" in has else None,
    )


def case_of(values: Mapping[str, object], number: int, *, reads_expected: bool = False) -> Case:
    """Return the test case that a mapping of Python describes with the keys of test cases; raise FormatError.

    `reads_expected` says whether functions judge its answers that the mapping does not name.
    """
    diagnostics = Diagnostics(f"case {number}")
    try:
        source = orjson.dumps(values, plain_json)
        # orjson writes null for NaN and infinity.
        if b"null" in source and (fault := _not_finite(values)):
            raise FormatError(f"case {number} is not valid: {fault}", actions=[_FINITE_HINT])
        value: JsonValue = orjson.loads(source)
    except (TypeError, ValueError) as error:
        # The cause is what `plain_json` said.
        raise FormatError(f"case {number} is not valid: {error.__cause__ or error}") from None
    record = YamlRecord(_PYTHON, (), record_value(value), diagnostics, called="a test case")
    case = read_case(record, number, Defaults(reads_expected=reads_expected), own_keys=True)
    diagnostics.check()
    return case


def _not_finite(value: object, path: str = "") -> str:
    """Return which value in a test case of Python is NaN or infinite, and that it must not be; empty if none is."""
    if value is None or isinstance(value, str | int):
        return ""
    if isinstance(value, float):
        return "" if isfinite(value) else f"{path!r} is {float(value)}; expected a finite number"
    if isinstance(value, Mapping):
        inner = ((f"{path}.{key}" if path else str(key), each) for key, each in value.items())
    elif isinstance(value, list | tuple):
        inner = ((f"{path}[{place}]", each) for place, each in enumerate(value))
    else:
        return _not_finite(plain_json(value), path)
    return next(filter(None, (_not_finite(each, place) for place, each in inner)), "")


def _turns(case: YamlRecord, defaults: Defaults) -> tuple[Turn, ...]:
    for key in ("input", "utterance", "expected", *check_keys()):
        if key in case.values:
            message = f"a test case with turns has no {key!r} of its own"
            case.error("spec-turns", message, key, hint="Write it in a turn.")
    turns = list(case.records("turns", called="a turn", hint=INPUT_HINT))
    if not turns:
        case.error("spec-missing", "a test case has no turns", "turns", hint="Write at least one turn with an input.")
    hints = {**case_hints(), **dict.fromkeys(case_keys(), "Write it in the test case, beside turns.")}
    for turn in turns:
        turn.check_keys("input", "utterance", "expected", *check_keys(), *FLAGS, hints=hints)
    kept = replace(defaults, flags={**defaults.flags, **_flags(case)})
    return tuple(_turn(record, kept, own_keys=True) for record in turns)


def _turn(record: YamlRecord, defaults: Defaults, *, own_keys: bool) -> Turn:
    names = ("input", "utterance") if own_keys else ("utterance",)
    if own_keys and record.has("input") and record.has("utterance", "utterance"):
        refuse_both(record, "utterance", "input")
    inputs = _inputs(record, *names) if own_keys else None
    utterance = record.required_text(*names) if inputs is None else json.dumps(inputs, ensure_ascii=False)
    expected = json_value(record.raw("expected"))
    if expected is not None and not (defaults.reads_expected or "function" in {*record.values, *defaults.checks}):
        record.error("spec-value", _UNREAD, "expected", hint=_UNREAD_HINT)
    _refuse_keys_without_effect(record, defaults.checks)
    checks, flags = {**defaults.checks, **_checks(record)}, {**defaults.flags, **_flags(record)}
    expectations = tuple(_flagged(check, flags) for key in check_keys() for check in checks.get(key, ()))
    return Turn(utterance, expectations, inputs=inputs, expected=expected)


def _inputs(record: YamlRecord, *names: str) -> JsonValue:
    """Return an input that is a list or a mapping, in Python also a number or Boolean; None for a text."""
    raw = record.raw(*names)
    if isinstance(raw, list | dict) or record.source is _PYTHON:
        return None if isinstance(value := json_value(raw), str) else value
    return None


def _flags(record: YamlRecord) -> dict[str, bool | str]:
    """Return the flags of a mapping; one without a value is not set."""
    flags: dict[str, bool | str] = {key: bool(record.boolean(key)) for key in FLAGS[:2] if key in record.values}
    if _ACTION_MATCH in record.values:
        flags[_ACTION_MATCH] = mode = record.text(_ACTION_MATCH) or ""
        if mode and mode not in get_args(ActionMatch):
            hint = record.diagnostics.suggest(mode, get_args(ActionMatch))
            message = f"{mode!r} is not a way of matching actions"
            record.error("spec-value", message, _ACTION_MATCH, hint=hint)
    return flags


def _flagged(check: Expectation, flags: Mapping[str, bool | str]) -> Expectation:
    """Return a check with the flags that are set and concern it, which are terms of it."""
    if not flags:
        return check
    row = all_checks().get(check.name)
    concerns = {"exact": row is not None and row.takes_exact, "empty": True, _ACTION_MATCH: check.name == ACTIONS}
    terms = {_TERMS.get(key, key): value for key, value in flags.items() if value and concerns[key]}
    if "match" in terms and check.expected_value == "[]":
        # In the modes that allow other actions, [] would pass for every answer.
        terms["match"] = "exact"
    return replace(check, terms={**check.terms, **terms}) if terms else check


def _checks(record: YamlRecord) -> Checks:
    """Return the expectations of each key; a short form without a value expects nothing, and replaces a default."""
    checks: dict[str, Sequence[Expectation]] = {}
    for key, read in _readers().items():
        if key not in record.values:
            continue
        name = _SAME.get(key, key)
        if name in checks:
            refuse_both(record, name, key)
        is_nothing = key in all_checks() and record.values[key] is None
        checks[name] = () if is_nothing else tuple(read(record))
    return checks


def _refuse_keys_without_effect(record: YamlRecord, removable: Container[str]) -> None:
    """Report each short form in YAML without a value that removes no default; in a table, it is an empty cell."""
    if isinstance(record.source, LineSource):
        return
    for key, value in record.values.items():
        if value is None and key in all_checks() and _SAME.get(key, key) not in removable:
            record.error("spec-value", f"{key!r} has no value, so it checks nothing", key, hint=_NO_VALUE_HINT)


def refuse_both(record: YamlRecord, name: str, key: str) -> None:
    """Report a key that means the same as another one of a mapping."""
    message = f"{record.called} has {name!r} and {key!r}, which mean the same"
    record.error("spec-both", message, key, hint="Keep one of them.")


def _custom(record: YamlRecord) -> Expectation:
    record.check_keys("label", "name", "parameters", hints=_CUSTOM_HINTS)
    name = record.required_text("name")
    if name and name not in OPERATORS:
        hint = record.diagnostics.suggest(name, OPERATORS)
        record.error("spec-value", f"{name!r} is not a valid custom evaluation", "name", hint=hint)
    parameters = tuple(
        Parameter(*read_pair(parameter, "name", "isReference"), parameter.boolean("isReference"))
        for parameter in record.records("parameters", called="a parameter")
    )
    return Expectation(name, label=record.text("label"), parameters=parameters)


def _expected_actions(case: YamlRecord) -> Iterator[Expectation]:
    key = "expectedActions"
    actions = dict(case.texts(key))
    for place, name in actions.items():
        if not name.strip():
            case.error("spec-missing", "an action has no name", key, place)
    names = render_actions(map(str.strip, actions.values()))
    yield Expectation(ACTIONS, names if case.has(key) else None)


def _metrics(case: YamlRecord) -> Iterator[Expectation]:
    for place, name in case.texts("metrics"):
        if name not in METRICS:
            hint = case.diagnostics.suggest(name, METRICS)
            case.error("spec-value", f"{name!r} is not a valid metric", "metrics", place, hint=hint)
        yield Expectation(name)


_TERMS: Final = {_ACTION_MATCH: "match"}
_SAME: Final = {"topic": "expectedTopic", "actions": "expectedActions"}


@cache
def _readers() -> Mapping[str, Callable[[YamlRecord], Iterator[Expectation]]]:
    """Return what reads the checks of each key, in the order in which sf writes expectations.

    A key of sf without a value expects a missing value.
    """
    own = {name: partial(SHAPES[check.shape].read, check) for name, check in all_checks().items()}
    topic, actions, latency = own.pop("topic"), own.pop("actions"), own.pop("latency_ms")
    return {
        "customEvaluations": lambda case: map(_custom, case.records("customEvaluations", called="a custom evaluation")),
        **own,
        "expectedTopic": lambda case: iter([Expectation(TOPIC, case.text("expectedTopic"))]),
        "topic": topic,
        "expectedActions": _expected_actions,
        "actions": actions,
        "expectedOutcome": lambda case: iter([Expectation(OUTCOME, case.text("expectedOutcome"))]),
        "metrics": _metrics,
        "latency_ms": latency,
    }


@cache
def check_keys() -> tuple[str, ...]:
    """Return the keys of checks."""
    return tuple(_readers())


def _tags(record: YamlRecord) -> tuple[str, ...]:
    return tuple(text for _, text in record.one_or_more("tags"))


def _metadata(record: YamlRecord) -> JsonObject:
    metadata = {name: json_value(value) for name, value in record.object("metadata").items()}
    if fault := metadata_fault(metadata):
        record.error("spec-limit", fault, "metadata", hint="Keep only what reports or functions need.")
    return metadata


def _review(case: YamlRecord) -> bool:
    if case.raw("review") is None and not isinstance(case.source, LineSource):
        case.error("spec-value", "'review' has no value", "review", hint="Write review: true, or remove the key.")
    return bool(case.boolean("review"))


def read_iterations(record: YamlRecord) -> int | None:
    """Read how often a test case or all those of a spec run; None if the mapping does not say."""
    number = record.integer("iterations")
    if number is not None and (fault := iterations_fault(number)):
        record.error("spec-value", fault, "iterations")
    return number


def _quarantine(case: YamlRecord) -> Quarantine | None:
    if (value := case.raw("quarantine")) is None:
        return None
    record = case.at(value, "quarantine", called="a quarantine", hint=_QUARANTINE_EXAMPLE)
    record.check_keys("reason", "until", hints=_QUARANTINE_HINTS)
    record.require("until")
    reason, text = record.required_text("reason"), record.text("until")
    until = parse_day(text or "")
    not_a_day = "" if text is None else f"{text!r} is not a day, such as 2027-01-31"
    if fault := end_fault(until) if until else not_a_day:
        record.error("spec-value", f"'until' of a quarantine: {fault}", "until")
    if record.has("reason") and not reason.strip():
        record.error("spec-missing", "the reason of a quarantine is empty", "reason")
    return Quarantine(reason, until) if until else None


def _variables(case: YamlRecord) -> tuple[ContextVariable, ...] | None:
    """Return the context variables of either key; None if the test case has none of the keys."""
    if "context" not in case.values:
        return read_variables(case) if "contextVariables" in case.values else None
    if "contextVariables" in case.values:
        refuse_both(case, "contextVariables", "context")
    texts = ((name, case.to_text(value, "context", name)) for name, value in case.object("context").items())
    return tuple(ContextVariable(name, text) for name, text in texts if text is not None)


def read_variables(inputs: YamlRecord) -> tuple[ContextVariable, ...]:
    """Read the context variables of a test case."""
    variables = inputs.records("contextVariables", called="a variable")
    return tuple(ContextVariable(*read_pair(variable)) for variable in variables)


def read_pair(record: YamlRecord, name: str = "name", *others: str) -> tuple[str, str]:
    """Read a mapping with a name and a value."""
    record.check_keys(name, "value", *others)
    return record.required_text(name), record.required_text("value")


def read_history(inputs: YamlRecord, *, numbers_messages: bool) -> tuple[HistoryMessage, ...]:
    """Read the conversation before a test case.

    `numbers_messages` gives messages without an index their position, and puts all into the order of their indices if
    these are complete, as in definitions.
    """
    messages = []
    for place, record in enumerate(inputs.records("conversationHistory", called="a message")):
        record.check_keys("role", "message", "topic", "index")
        index = record.integer("index")
        index = place if index is None and numbers_messages else index
        texts = record.required_text("role"), record.required_text("message"), record.text("topic")
        messages.append(HistoryMessage(*texts, index))
    read = Inputs("", conversation_history=tuple(messages))
    return read.conversation if numbers_messages else read.conversation_history
