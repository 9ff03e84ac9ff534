"""Datasets of pydantic-evals (YAML and JSON): cases with inputs and evaluators.

Source: pydantic.dev/docs/ai/evals, "Dataset Serialization", "Native Evaluators" and "Agentic Evaluators". An evaluator
is written as its name, as `name: first argument`, or as `name: {argument: value}`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import FormatError, did_you_mean
from evalmeta.formats.document import read_bytes
from evalmeta.formats.sources import read_json
from evalmeta.formats.translation import TranslatedCase, Translation, kept_metadata
from evalmeta.formats.yaml_source import json_value, read_yaml
from evalmeta.model.json_value import json_text
from evalmeta.systems.test_tools.checks import CaseChecks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject, JsonValue


_CASE_KEYS: Final = ("name", "inputs", "metadata", "expected_output", "evaluators")
_JSON_TYPES: Final = {
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "bool": "boolean",
    "int": "integer",
    "float": "number",
}


def translate(path: Path, *, label: str) -> Translation:
    """Read a dataset; raise FormatError if it is not one."""
    data = read_bytes(path)
    if path.suffix.lower() == ".json":
        file = read_json(data, label=label)
        value, lines = file.value, file.lines_of(("cases",))
    else:
        yaml = read_yaml(data, label=label)
        value = json_value(yaml.value)
        count = len(cases) if isinstance(value, dict) and isinstance(cases := value.get("cases"), list) else 0
        lines = [yaml.place(("cases", index))[0] for index in range(count)]
    if not isinstance(value, dict) or not isinstance(items := value.get("cases"), list):
        raise FormatError(f"{label} is not a dataset of pydantic-evals", actions=["Write its cases under 'cases'."])
    shared = _evaluators(value.get("evaluators"), label, 0)
    cases = [_case(item, line, shared, label) for item, line in zip(items, lines, strict=True)]
    reports = _evaluators(value.get("report_evaluators"), label, 0)
    left_out = tuple(f"the report evaluator {evaluator.name}" for evaluator in reports)
    name = value.get("name")
    head: JsonObject = {"name": name} if isinstance(name, str) else {}
    return Translation(label, cases, head, left_out=left_out)


class _Evaluator(NamedTuple):
    """An evaluator with its arguments; the first one has no name if it is written in the short form."""

    name: str
    arguments: JsonObject
    first: JsonValue = None

    def argument(self, name: str) -> JsonValue:
        """Return an argument, which may be the first one."""
        return self.arguments.get(name, self.first)


def _evaluators(value: JsonValue, label: str, line: int) -> list[_Evaluator]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise FormatError(f"{label}:{line}: 'evaluators' is not a list", actions=["Write '- ' before each."])
    return [_evaluator(item, label, line) for item in value]


def _evaluator(item: JsonValue, label: str, line: int) -> _Evaluator:
    if isinstance(item, str):
        return _Evaluator(item, {})
    if isinstance(item, dict) and len(item) == 1:
        [(name, arguments)] = item.items()
        short_form = not isinstance(arguments, dict)
        return _Evaluator(name, {}, arguments) if short_form else _Evaluator(name, dict(arguments))
    raise FormatError(
        f"{label}:{line}: an evaluator is not a name, or a name with its arguments",
        actions=["Write EqualsExpected, Contains: text, or LLMJudge: {rubric: text}."],
    )


def _case(item: JsonValue, line: int, shared: list[_Evaluator], label: str) -> TranslatedCase:
    if not isinstance(item, dict):
        raise FormatError(f"{label}:{line}: a case is not a mapping", actions=["Write inputs: and its evaluators."])
    if "inputs" not in item:
        raise FormatError(f"{label}:{line}: a case has no 'inputs'")
    if unknown := [key for key in item if key not in _CASE_KEYS]:
        raise FormatError(
            f"{label}:{line}: a case has no key {unknown[0]!r}", actions=[did_you_mean(unknown[0], _CASE_KEYS)]
        )
    expected = item.get("expected_output")
    checks = CaseChecks()
    for evaluator in (*shared, *_evaluators(item.get("evaluators"), label, line)):
        translated = _TRANSLATED.get(evaluator.name)
        if translated is None or not translated(evaluator, expected, checks):
            checks.lose(f"the evaluator {evaluator.name}")
    name, metadata = item.get("name"), item.get("metadata")
    known = metadata if isinstance(metadata, dict) else {"metadata": metadata} if metadata is not None else {}
    if expected is not None and not checks.is_expected(expected):
        known = {**known, "expected_output": expected}
    kept, left_out = kept_metadata(known)
    values: JsonObject = {
        **({"name": name} if isinstance(name, str) else {}),
        "input": item["inputs"],
        **checks.keys(),
        **kept,
    }
    return TranslatedCase(values, line, checks.unjudged, (*checks.left_out, *left_out))


def _equals_expected(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    # Without an expected output, the evaluator says nothing.
    return expected is None or checks.equal(expected)


def _equals(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    return checks.equal(evaluator.argument("value"))


def _contains(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    value = evaluator.argument("value")
    if not isinstance(value, str) and not evaluator.arguments.get("as_strings"):
        return False
    return checks.contain([json_text(value)], ignores_case=evaluator.arguments.get("case_sensitive") is False)


def _is_instance(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    kind = evaluator.argument("type_name")
    if kind == "str":
        checks.left_out.append("the evaluator IsInstance: str, which every answer as text passes")
        return True
    if json_type := _JSON_TYPES.get(str(kind)):
        checks.add("json", {"schema": {"type": json_type}})
    return bool(json_type)


def _max_duration(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    seconds = _seconds(evaluator.argument("seconds"))
    return seconds is not None and checks.limit("latency_ms", max(1, math.floor(seconds * 1000)))


_DURATION: Final = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?")


def _seconds(value: JsonValue) -> float | None:
    """Return a number of seconds, which pydantic writes as an ISO 8601 duration if it is a timedelta."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return None
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _llm_judge(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    rubric = evaluator.argument("rubric")
    if not isinstance(rubric, str):
        return False
    if evaluator.arguments.get("assertion") is False:
        checks.left_out.append(f"the score of LLMJudge for {rubric!r}, which decides nothing")
        return True
    if evaluator.arguments.get("include_expected_output") and expected is not None:
        rubric = f"{rubric}\nThe expected output is: {json_text(expected)}"
    if model := evaluator.arguments.get("model"):
        checks.left_out.append(f"the model {model} of LLMJudge; the project's rater judges")
    return checks.add("rubric", rubric)


def _g_eval(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    checks.left_out.append(f"the score of GEval for {evaluator.argument('criteria')!r}, which decides nothing")
    return True


def _tool_correctness(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    mode = "superset" if evaluator.arguments.get("allow_extra") else "any_order"
    return checks.call(evaluator.argument("expected_tools"), mode)


def _trajectory_match(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    calls = evaluator.argument("expected_trajectory")
    order = evaluator.arguments.get("order", "in_order")
    if order == "exact":
        return checks.call(calls, "exact")
    checks.left_out.append(f"the score of TrajectoryMatch for {json_text(calls)}, which decides nothing")
    return True


def _argument_correctness(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    arguments = evaluator.arguments.get("expected_arguments")
    if evaluator.arguments.get("occurrence", "first") != "first" or not isinstance(arguments, dict):
        return False
    exact: JsonObject = {"exact": True} if evaluator.arguments.get("match_mode") == "exact" else {}
    return checks.call([{"name": evaluator.arguments.get("tool_name"), "input": arguments, **exact}], "superset")


def _max_tool_calls(evaluator: _Evaluator, expected: JsonValue, checks: CaseChecks) -> bool:
    most = evaluator.argument("max_calls")
    return isinstance(most, int) and checks.limit("max_actions", most)


_TRANSLATED: Final[dict[str, Callable[[_Evaluator, JsonValue, CaseChecks], bool]]] = {
    "EqualsExpected": _equals_expected,
    "Equals": _equals,
    "Contains": _contains,
    "IsInstance": _is_instance,
    "MaxDuration": _max_duration,
    "LLMJudge": _llm_judge,
    "GEval": _g_eval,
    "ToolCorrectness": _tool_correctness,
    "TrajectoryMatch": _trajectory_match,
    "ArgumentCorrectness": _argument_correctness,
    "MaxToolCalls": _max_tool_calls,
}
