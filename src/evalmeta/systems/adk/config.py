"""ADK's test_config.json: the metrics that judge an eval set, and the thresholds of their means.

Sources: ADK-TS, "Testing Agents", Configuring Criteria; google-adk 2.13, eval_config.py and eval_metrics.py.
A file that cannot be read is an error; ADK-TS uses the defaults instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.formats.diagnostics import Diagnostics, kind_of
from evalmeta.formats.sources import read_json
from evalmeta.systems.adk.cases import ADK_CONFIG, RUBRIC_TYPES, AdkRecord, Rubric, read_rubrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.problem import Problem
    from evalmeta.model.settings import MissingData


TRAJECTORY: Final = "tool_trajectory_avg_score"
RESPONSE_MATCH: Final = "response_match_score"
FINAL_RESPONSE_MATCH: Final = "final_response_match_v2"


class _Metric(NamedTuple):
    """The scale of a metric, and the keys that its criterion may have besides `threshold`."""

    least: float = 0.0
    most: float = 1.0
    keys: tuple[str, ...] = ()


_OF_CONVERSATIONS: Final = (
    "multi_turn_task_success_v1", "multi_turn_trajectory_quality_v1", "multi_turn_tool_use_quality_v1",
)  # fmt: skip
JUDGED_ONCE: Final = frozenset({*_OF_CONVERSATIONS, "rubric_based_multi_turn_trajectory_quality_v1"})
"""The metrics that judge the whole conversation, after its last turn."""

_JUDGED: Final = ("judgeModelOptions",)
_METRICS: Final = {
    TRAJECTORY: _Metric(keys=("matchType", "ignoreArgs")),
    RESPONSE_MATCH: _Metric(),
    "response_evaluation_score": _Metric(1.0, 5.0, _JUDGED),
    "safety_v1": _Metric(keys=_JUDGED),
    FINAL_RESPONSE_MATCH: _Metric(keys=_JUDGED),
    "hallucinations_v1": _Metric(keys=(*_JUDGED, "evaluateIntermediateNlResponses")),
    **{name: _Metric(keys=_JUDGED) for name in _OF_CONVERSATIONS},
    **{name: _Metric(keys=(*_JUDGED, "rubrics")) for name in RUBRIC_TYPES},
}
_EFFICIENCY: Final = ("tool_call_count_v1", "token_usage_v1", "invocation_duration_v1", "inference_call_count_v1")
_NOT_MEASURED: Final = "inference_call_count_v1"
_UNSUPPORTED: Final = ("per_turn_user_simulator_quality_v1",)
_MATCH_TYPES: Final = ("EXACT", "IN_ORDER", "ANY_ORDER")
_INTERMEDIATE: Final = "includeIntermediateResponsesInFinal"
_NUM_SAMPLES: Final = 5
_EXAMPLE: Final = 'Write {"criteria": {"response_match_score": 0.8}}.'


@dataclass(frozen=True, slots=True)
class Criterion:
    """A metric that judges every case; `threshold`, missing if it is only measured, is the least mean that passes."""

    name: str
    terms: JsonObject  # the options of the metric's scorer
    rubrics: tuple[Rubric, ...] = ()  # of every case, for metrics that judge by rubrics


@dataclass(frozen=True, slots=True)
class AdkConfig:
    """The criteria of an eval set, in the order of the file.

    `missing` is how a turn without the data of a criterion counts: `undecided` leaves it out of the mean, `adk` treats
    it as without tool calls, or as an empty reference, as ADK does.
    """

    criteria: tuple[Criterion, ...]
    is_default: bool = False  # whether there is no file, and ADK's defaults apply
    missing: MissingData = "undecided"
    label: str = field(default="", compare=False)  # the file, as messages show it, or a text about ADK's defaults
    notes: tuple[Problem, ...] = field(default=(), compare=False)


class _Extension(NamedTuple):
    """The key `evalmeta` of a file, which other tools ignore."""

    missing: MissingData = "undecided"
    tokens: str = "unicode"
    aggregate: str = "majority"
    measure: tuple[str, ...] = ()


DEFAULT_CONFIG: Final = AdkConfig(
    (
        Criterion(TRAJECTORY, {"threshold": 1.0, "match_type": "EXACT", "ignore_args": False}),
        Criterion(RESPONSE_MATCH, {"threshold": 0.8, "tokens": "unicode"}),
    ),
    is_default=True,
    label="ADK's defaults (tool_trajectory_avg_score 1, response_match_score 0.8)",
)
"""ADK's criteria when there is no test_config.json."""


def read_test_config(data: bytes, *, label: str) -> AdkConfig:
    """Read a test_config.json; raise FormatError, with every problem and its place, if it is not valid."""
    diagnostics = Diagnostics(label)
    file = read_json(data, label=label)
    root = AdkRecord(file, (), file.value, diagnostics, called=ADK_CONFIG)
    root.check_keys("criteria", "customMetrics", "userSimulatorConfig", "liveModelConfig", "evalmeta")
    for name in ("userSimulatorConfig", "liveModelConfig"):
        if root.has(name):
            root.warn("adk-config", f"{root.key(name)!r} is ignored: evalmeta does not simulate users", name)
    extension = _extension(root)
    customs = dict(_custom_metrics(root))
    criteria = tuple(_criteria(root, customs, extension))
    if root.require("criteria", hint=_EXAMPLE) and root.raw("criteria") == {}:
        root.error("adk-config", f"'criteria' of {ADK_CONFIG} is empty: add at least one metric", "criteria")
    diagnostics.check()
    return AdkConfig(criteria, missing=extension.missing, label=label, notes=diagnostics.notes)


def _as_number(value: JsonValue) -> float | None:
    """Return what EvalConfig, a model of pydantic, reads as a number; None for anything else."""
    try:
        number = float(value) if isinstance(value, str | bool | int | float) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _extension(root: AdkRecord) -> _Extension:
    record = root.record("evalmeta", called="the key 'evalmeta'")
    if record is None:
        return _Extension()
    record.check_keys("missing", "tokens", "aggregate", "measure")
    return _Extension(
        "adk" if _chosen(record, "missing", ("undecided", "adk")) == "adk" else "undecided",
        _chosen(record, "tokens", ("unicode", "ascii", "typescript")),
        _chosen(record, "aggregate", ("majority", "share")),
        tuple(_measured(record)),
    )


def _measured(record: AdkRecord) -> Iterator[str]:
    """Yield the metrics to measure; ADK measures all of them, and refuses a file whose criteria name one."""
    known = [name for name in _EFFICIENCY if name != _NOT_MEASURED]
    for place, name in record.texts("measure"):
        if name in known:
            yield name
        else:
            message = f"{name!r} is not a metric that is measured"
            record.error("adk-metric", message, "measure", place, hint=record.diagnostics.suggest(name, known))


def _chosen(record: AdkRecord, name: str, known: tuple[str, ...]) -> str:
    value = record.text(name)
    if value is not None and value not in known:
        record.error("adk-config", f"{name!r} is {value!r}, not {' or '.join(known)}", name)
    return value or known[0]


def _custom_metrics(root: AdkRecord) -> Iterator[tuple[str, str]]:
    """Yield the names of a file's custom metrics with their functions, `package.module.function`."""
    customs = root.record("customMetrics", called="'custom_metrics'")
    if customs is None:
        return
    for name, value in customs.values.items():
        metric = customs.at(value, name, called=f"the custom metric {name!r}")
        metric.check_keys("codeConfig", "metricInfo", "description")
        metric.require("code_config", "codeConfig", hint='Write {"code_config": {"name": "package.module.function"}}.')
        code = metric.record("codeConfig", called=f"'code_config' of the custom metric {name!r}")
        if code is None:
            continue
        code.check_keys("name", "args")
        if code.items("args"):
            code.error("adk-config", f"{code.called} has arguments, which are not supported", "args")
        function = code.required_text("name")
        first, *others = function.split(".")
        if function and not (others and all(part.isidentifier() for part in (first, *others))):
            message = f"{function!r} is not a dotted name of a function, such as package.module.function"
            code.error("adk-config", message, "name")
        yield name, function


def _criteria(root: AdkRecord, customs: Mapping[str, str], extension: _Extension) -> Iterator[Criterion]:
    criteria = root.record("criteria", called="'criteria'")
    if criteria is None:
        return
    for name in criteria.values:
        reader = _CriterionReader(criteria, name, extension)
        if name in customs:
            yield reader.custom(customs[name])
        elif name in _METRICS:
            yield reader.metric(_METRICS[name])
        elif name in _EFFICIENCY:
            yield from reader.measured()
        else:
            reader.report_unknown([*_METRICS, *_EFFICIENCY, *customs])
    yield from (Criterion(name, {}) for name in extension.measure if name not in criteria.values)
    for name in customs:
        if name not in criteria.values:
            message = f"the custom metric {name!r} is not used: no criterion names it"
            root.warn("adk-config", message, "customMetrics")


class _CriterionReader:
    """Read one criterion: a number, or an object."""

    def __init__(self, criteria: AdkRecord, name: str, extension: _Extension) -> None:
        self._criteria = criteria
        self._name = name
        self._extension = extension
        self._value = criteria.values[name]
        self._is_object = isinstance(self._value, dict)
        self._object = criteria.at(self._value if self._is_object else {}, name, called=f"the criterion {name!r}")

    def metric(self, metric: _Metric) -> Criterion:
        threshold = self._threshold()
        self._check_scale(threshold, metric)
        self._object.check_keys("threshold", _INTERMEDIATE, *metric.keys)
        if self._object.boolean(_INTERMEDIATE):
            message = f"{self._object.key(_INTERMEDIATE)!r} is ignored: agents report only their answer"
            self._object.warn("adk-config", message, _INTERMEDIATE)
        rubrics = read_rubrics(self._object) if "rubrics" in metric.keys else ()
        return Criterion(self._name, {"threshold": threshold, **self._terms()}, rubrics)

    def custom(self, function: str) -> Criterion:
        self._object.check_keys("threshold")
        return Criterion(self._name, {"function": function, "threshold": self._threshold(), "conversation": True})

    def measured(self) -> Iterator[Criterion]:
        if (self._object.raw("threshold") if self._is_object else self._value) is not None:
            hint = f'Write null, or remove it and write "evalmeta": {{"measure": ["{self._name}"]}}, which ADK accepts.'
            self._error(f"{self._name!r} is measured and not judged: it has no threshold", hint=hint)
        elif self._name == _NOT_MEASURED:
            message = f"{self._name!r} is ignored: agents do not report how often they call a model"
            self._criteria.warn("adk-config", message, self._name)
        else:
            yield Criterion(self._name, {})

    def report_unknown(self, known: list[str]) -> None:
        message, hint = f"{self._name!r} is not a known metric", self._criteria.diagnostics.suggest(self._name, known)
        if self._name in _UNSUPPORTED:
            message = f"ADK's metric {self._name!r} is not supported here"
            hint = "Remove it, or name a function of your own under 'custom_metrics'."
        self._error(message, hint=hint, code="adk-metric")

    def _check_scale(self, threshold: float, metric: _Metric) -> None:
        scale = f"its scores go from {metric.least:g} to {metric.most:g}"
        fault = f"the threshold of {self._name!r} is {threshold:g}; {scale}"
        if threshold > metric.most:
            self._error(f"{fault}, so that it never passes")
        elif threshold < metric.least:
            self._criteria.warn("adk-config", f"{fault}, so that it always passes", self._name)

    def _threshold(self) -> float:
        """Return the threshold; like ADK, accept numbers in quotes, and true and false as 1 and 0."""
        if self._is_object and not self._object.require("threshold"):
            return 1.0
        value = self._object.raw("threshold") if self._is_object else self._value
        number = _as_number(value)
        if number is None:
            what = f"the threshold of {self._name!r}" if self._is_object else self._object.called
            self._error(f"{what} is {kind_of(value)}, not a number{'' if self._is_object else ' or an object'}")
            return 1.0
        if isinstance(value, str | bool):
            shown = f"{value!r:.40}" if isinstance(value, str) else kind_of(value)
            message = f"the threshold of {self._name!r} is {shown}, read as {number:g}"
            self._criteria.warn("adk-config", message, self._name)
        return number

    def _terms(self) -> JsonObject:
        if self._name == TRAJECTORY:
            return {"match_type": self._match_type(), "ignore_args": bool(self._object.boolean("ignoreArgs"))}
        if self._name == RESPONSE_MATCH:
            return {"tokens": self._extension.tokens}
        samples = self._num_samples()
        if self._name == FINAL_RESPONSE_MATCH:
            return {"num_samples": samples or _NUM_SAMPLES, "aggregate": self._extension.aggregate}
        return {"num_samples": samples} if samples else {}

    def _match_type(self) -> str:
        """Return how calls are matched; ADK accepts names in any case, with `-` or blanks, and numbers from 0."""
        value = self._object.raw("matchType")
        if value is None:
            return _MATCH_TYPES[0]
        if type(value) is int and 0 <= value < len(_MATCH_TYPES):
            return _MATCH_TYPES[value]
        spelt = value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else ""
        if spelt not in _MATCH_TYPES:
            shown = repr(value) if isinstance(value, str | int | float) else kind_of(value)
            message = f"'match_type' is {shown}, not {', '.join(_MATCH_TYPES)} or a number from 0 to 2"
            self._object.error("adk-config", message, "matchType")
        return spelt

    def _num_samples(self) -> int | None:
        options = self._object.record("judgeModelOptions", called=f"'judge_model_options' of {self._name!r}")
        if options is None:
            return None
        options.check_keys("judgeModel", "judgeModelConfig", "numSamples", "parallelismLimit")
        for name in ("judgeModel", "judgeModelConfig"):
            if options.has(name):
                message = f"{options.key(name)!r} is ignored: the run's rater judges"
                options.warn("adk-config", message, name, hint="Choose it with --rater, or in evalmeta.toml.")
        samples = options.number("numSamples")
        if samples is None:
            return None
        if not (samples.is_integer() and 1 <= samples <= limits.MAX_RATER_SAMPLES):
            message = f"'num_samples' is {samples:g}, not a whole number from 1 to {limits.MAX_RATER_SAMPLES}"
            options.error("adk-config", message, "numSamples")
        return int(samples)

    def _error(self, message: str, *, hint: str = "", code: str = "adk-config") -> None:
        self._criteria.error(code, message, self._name, hint=hint)
