"""ADK's test_config.json: which metrics judge an eval set, and what their means must reach.

Sources: ADK-TS, "Testing Agents", Configuring Criteria; google-adk 2.13, eval_config.py and
eval_metrics.py. A file that cannot be read is an error: ADK-TS takes the defaults instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.formats.adk.cases import RUBRIC_TYPES, Keys, both, read_rubrics
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.json_source import JsonRecord, json_kind, read_json, unquoted
from evalmeta.formats.registry import ADK_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.formats.adk.cases import Rubric
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.problem import Problem
    from evalmeta.model.settings import MissingData


TRAJECTORY: Final = "tool_trajectory_avg_score"
RESPONSE_MATCH: Final = "response_match_score"
FINAL_RESPONSE_MATCH: Final = "final_response_match_v2"


class _Metric(NamedTuple):
    """The scale of a metric, and which keys its criterion may have beside `threshold`."""

    least: float = 0.0
    most: float = 1.0
    keys: tuple[str, ...] = ()


_JUDGED: Final = ("judgeModelOptions",)
_METRICS: Final = {
    TRAJECTORY: _Metric(keys=("matchType", "ignoreArgs")),
    RESPONSE_MATCH: _Metric(),
    "response_evaluation_score": _Metric(1.0, 5.0, _JUDGED),
    "safety_v1": _Metric(keys=_JUDGED),
    FINAL_RESPONSE_MATCH: _Metric(keys=_JUDGED),
    "hallucinations_v1": _Metric(keys=(*_JUDGED, "evaluateIntermediateNlResponses")),
    **{name: _Metric(keys=(*_JUDGED, "rubrics")) for name in RUBRIC_TYPES},
}
_EFFICIENCY: Final = ("tool_call_count_v1", "token_usage_v1", "invocation_duration_v1", "inference_call_count_v1")
_UNTOLD: Final = "inference_call_count_v1"
_NOT_HERE: Final = (
    "rubric_based_multi_turn_trajectory_quality_v1",
    "per_turn_user_simulator_quality_v1",
    "multi_turn_task_success_v1",
    "multi_turn_trajectory_quality_v1",
    "multi_turn_tool_use_quality_v1",
)
_MATCH_TYPES: Final = ("EXACT", "IN_ORDER", "ANY_ORDER")
_TOKENS: Final = ("unicode", "ascii", "typescript")
_AGGREGATES: Final = ("majority", "share")
_MISSING: Final = ("undecided", "adk")
_WRITTEN: Final = ("threshold", "match_type", "ignore_args")
_NUM_SAMPLES: Final = 5
_EXAMPLE: Final = 'Write {"criteria": {"response_match_score": 0.8}}.'


@dataclass(frozen=True, slots=True)
class Criterion:
    """A metric that judges every case.

    Attributes:
        name: the metric's.
        terms: what the metric's scorer is told; `threshold` is what the mean must reach, and is missing
            where a metric is measured only.
        rubrics: what every case is judged by, for metrics that judge by rubrics.
    """

    name: str
    terms: JsonObject
    rubrics: tuple[Rubric, ...] = ()


@dataclass(frozen=True, slots=True)
class AdkConfig:
    """What judges an eval set.

    Attributes:
        criteria: in the order of the file.
        is_default: whether there is no file, and ADK's defaults hold.
        missing: what becomes of a turn without the data that a criterion needs: `undecided` leaves it out of the
            mean, `adk` takes it for no tool calls, or for an empty reference, as ADK does.
        notes: warnings.
    """

    criteria: tuple[Criterion, ...]
    is_default: bool = False
    missing: MissingData = "undecided"
    notes: tuple[Problem, ...] = field(default=(), compare=False)


class _Extension(NamedTuple):
    """What the key `evalmeta` of a file says, which other tools pass over."""

    missing: MissingData = "undecided"
    tokens: str = "unicode"
    aggregate: str = "majority"


DEFAULT_CONFIG: Final = AdkConfig(
    (
        Criterion(TRAJECTORY, {"threshold": 1.0, "match_type": "EXACT", "ignore_args": False}),
        Criterion(RESPONSE_MATCH, {"threshold": 0.8, "tokens": "unicode"}),
    ),
    is_default=True,
)
"""What ADK judges by where there is no test_config.json."""


def read_test_config(data: bytes, *, label: str) -> AdkConfig:
    """Reads a test_config.json.

    Args:
        data: the file's bytes.
        label: the file's name as messages show it.

    Raises:
        FormatError: it is no JSON, has no criteria, an unknown metric or a value that the metric does not take;
            `problems` has every reason with line and column.
    """
    diagnostics = Diagnostics(label)
    root = JsonRecord(read_json(data, label=label), (), diagnostics, called=ADK_CONFIG)
    keys = Keys()
    keys.check(root, "criteria", "customMetrics", "userSimulatorConfig", "liveModelConfig", "evalmeta")
    for name in ("userSimulatorConfig", "liveModelConfig"):
        if root.has(*both(name)):
            root.note("adk-config", f"{root.key(*both(name))!r} is passed over: users are not simulated", *both(name))
    extension = _extension(root, keys)
    customs = dict(_custom_metrics(root, keys))
    criteria = tuple(_criteria(root, customs, _Reading(extension, keys, diagnostics)))
    if root.is_object and not root.has("criteria"):
        root.missing("criteria", hint=_EXAMPLE)
    elif root.raw("criteria") == {}:
        root.refuse("adk-config", f"'criteria' of {ADK_CONFIG} is empty: nothing would be judged", "criteria")
    diagnostics.check()
    return AdkConfig(criteria, missing=extension.missing, notes=diagnostics.notes)


def write_test_config(config: AdkConfig) -> bytes:
    """Writes criteria as a test_config.json in Python's spelling, which ADK-TS reads where criteria are numbers."""
    criteria = {each.name: _as_written(each.terms) for each in config.criteria}
    return orjson.dumps({"criteria": criteria}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _as_written(terms: JsonObject) -> JsonValue:
    is_plain = terms.get("match_type", "EXACT") == "EXACT" and not terms.get("ignore_args")
    return terms.get("threshold") if is_plain else {name: terms[name] for name in _WRITTEN}


def _extension(root: JsonRecord, keys: Keys) -> _Extension:
    record = root.record("evalmeta", called="the key 'evalmeta'")
    if record is None:
        return _Extension()
    keys.check(record, "missing", "tokens", "aggregate")
    missing = _chosen(record, "missing", _MISSING)
    return _Extension(
        "adk" if missing == "adk" else "undecided",
        _chosen(record, "tokens", _TOKENS),
        _chosen(record, "aggregate", _AGGREGATES),
    )


def _chosen(record: JsonRecord, name: str, known: tuple[str, ...]) -> str:
    """Gives one of the known values, the first where none is given."""
    value = record.text(name)
    if value is not None and value not in known:
        record.refuse("adk-config", f"{name!r} is {value!r}, not {' or '.join(known)}", name)
    return value or known[0]


def _custom_metrics(root: JsonRecord, keys: Keys) -> Iterator[tuple[str, str]]:
    """Yields the names of a file's own metrics with their functions, `pkg.mod.fn`."""
    called = "'custom_metrics'"
    customs = root.record(*both("customMetrics"), called=called)
    for name in customs.values if customs else ():
        if not (metric := customs.record(name, called=f"the custom metric {name!r}") if customs else None):
            continue
        keys.check(metric, "codeConfig", "metricInfo", "description")
        code = metric.record(*both("codeConfig"), called=f"'code_config' of the custom metric {name!r}")
        if code is None:
            metric.missing("code_config", hint='Write {"code_config": {"name": "package.module.function"}}.')
            continue
        keys.check(code, "name", "args")
        if code.items("args"):
            code.refuse("adk-config", f"{code.called} has arguments, which are not supported", "args")
        function = code.required_text("name")
        if function and not _is_dotted(function):
            message = f"{function!r} is no dotted name of a function, such as package.module.function"
            code.refuse("adk-config", message, "name")
        yield name, function


def _is_dotted(name: str) -> bool:
    parts = name.split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


def _criteria(root: JsonRecord, customs: Mapping[str, str], reading: _Reading) -> Iterator[Criterion]:
    criteria = root.record("criteria", called="'criteria'")
    if criteria is None:
        return
    for name in criteria.values:
        reader = _CriterionReader(criteria, name, reading)
        if name in customs:
            yield reader.custom(customs[name])
        elif name in _METRICS:
            yield reader.metric(_METRICS[name])
        elif name in _EFFICIENCY:
            yield from reader.measured()
        else:
            reader.unknown([*_METRICS, *_EFFICIENCY, *customs])
    for name in customs:
        if name not in criteria:
            message = f"the custom metric {name!r} is not used: no criterion names it"
            root.note("adk-config", message, *both("customMetrics"))


class _Reading(NamedTuple):
    """What the reading of every criterion takes and adds to."""

    extension: _Extension
    keys: Keys
    diagnostics: Diagnostics


class _CriterionReader:
    """Reads one criterion: a number, or an object."""

    def __init__(self, criteria: JsonRecord, name: str, reading: _Reading) -> None:
        self._criteria = criteria
        self._name = name
        self._extension, self._keys, self._diagnostics = reading
        is_object = isinstance(criteria.values[name], dict)
        self._object = criteria.record(name, called=f"the criterion {name!r}") if is_object else None

    def metric(self, metric: _Metric) -> Criterion:
        """Gives a criterion of one of ADK's metrics; a problem when its threshold is beyond the metric's scale."""
        threshold = self._threshold()
        if not metric.least <= threshold <= metric.most:
            scale = f"its scores go from {metric.least:g} to {metric.most:g}"
            self._refuse(f"the threshold of {self._name!r} is {threshold:g}; {scale}")
        if self._object:
            self._keys.check(self._object, "threshold", *metric.keys)
        rubrics = read_rubrics(self._object, self._keys) if self._object and "rubrics" in metric.keys else ()
        return Criterion(self._name, {"threshold": threshold, **self._terms()}, rubrics)

    def custom(self, function: str) -> Criterion:
        """Gives a criterion of a metric of the file's own."""
        threshold = self._threshold()
        if self._object:
            self._keys.check(self._object, "threshold")
        return Criterion(self._name, {"function": function, "threshold": threshold, "conversation": True})

    def measured(self) -> Iterator[Criterion]:
        """Yields the criterion of a metric that is told and never judged."""
        given = self._criteria.values[self._name]
        threshold = given if self._object is None else self._object.raw("threshold")
        if threshold is not None:
            self._refuse(f"{self._name!r} is measured and not judged: it has no threshold", hint="Write null.")
        elif self._name == _UNTOLD:
            message = f"{self._name!r} is passed over: an agent's answer does not tell how often a model was asked"
            self._criteria.note("adk-config", message, self._name)
        else:
            yield Criterion(self._name, {})

    def unknown(self, known: list[str]) -> None:
        """Notes a problem: no metric has the name, or one that only ADK has."""
        if self._name in _NOT_HERE:
            hint = "Remove it, or name a function of your own under 'custom_metrics'."
            self._refuse(f"ADK's metric {self._name!r} is not supported here", hint=hint, code="adk-metric")
        else:
            nearest = self._diagnostics.suggest(self._name, known)
            self._refuse(f"{self._name!r} is no metric", hint=nearest, code="adk-metric")

    def _threshold(self) -> float:
        record = self._object
        if record is None:
            value = self._criteria.values[self._name]
            if value is None or isinstance(value, str | bool | list):
                message = f"the criterion {self._name!r} is {json_kind(value)}, not a number or an object"
                self._refuse(message, hint=unquoted(value))
                return 1.0
            return self._criteria.number(self._name) or 0.0
        if not record.has("threshold"):
            record.missing("threshold")
            return 1.0
        return record.number("threshold") or 0.0

    def _terms(self) -> JsonObject:
        if self._name == TRAJECTORY:
            ignores = self._object.boolean(*both("ignoreArgs")) if self._object else None
            return {"match_type": self._match_type(), "ignore_args": bool(ignores)}
        if self._name == RESPONSE_MATCH:
            return {"tokens": self._extension.tokens}
        samples = self._num_samples()
        if self._name == FINAL_RESPONSE_MATCH:
            return {"num_samples": samples or _NUM_SAMPLES, "aggregate": self._extension.aggregate}
        return {"num_samples": samples} if samples else {}

    def _match_type(self) -> str:
        """Gives the way of matching; ADK takes names in any case, with `-` or blanks, and numbers from 0."""
        names = both("matchType")
        value = self._object.raw(*names) if self._object else None
        if value is None:
            return _MATCH_TYPES[0]
        if type(value) is int and 0 <= value < len(_MATCH_TYPES):
            return _MATCH_TYPES[value]
        spelt = value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else ""
        if spelt not in _MATCH_TYPES and self._object:
            shown = repr(value) if isinstance(value, str | int | float) else json_kind(value)
            message = f"'match_type' is {shown}, not {', '.join(_MATCH_TYPES)} or a number from 0 to 2"
            self._object.refuse("adk-config", message, *names)
        return spelt

    def _num_samples(self) -> int | None:
        called = f"'judge_model_options' of {self._name!r}"
        options = self._object.record(*both("judgeModelOptions"), called=called) if self._object else None
        if options is None:
            return None
        self._keys.check(options, "judgeModel", "judgeModelConfig", "numSamples", "parallelismLimit")
        for name in ("judgeModel", "judgeModelConfig"):
            if options.has(*both(name)):
                message = f"{options.key(*both(name))!r} is passed over: the rater of the run is asked"
                options.note("adk-config", message, *both(name), hint="Choose it with --rater, or in evalmeta.toml.")
        samples = options.number(*both("numSamples"))
        if samples is None:
            return None
        if not (samples.is_integer() and 1 <= samples <= limits.MAX_RATER_SAMPLES):
            message = f"'num_samples' is {samples:g}, not a whole number from 1 to {limits.MAX_RATER_SAMPLES}"
            options.refuse("adk-config", message, *both("numSamples"))
        return int(samples)

    def _refuse(self, message: str, *, hint: str = "", code: str = "adk-config") -> None:
        self._criteria.refuse(code, message, self._name, hint=hint)
