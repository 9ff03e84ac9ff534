"""The rows of an evaluation: data frames, lists, traces and datasets, read as cases with what scorers receive."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from evalmeta.errors import UsageError
from evalmeta.model.json_value import JsonObject, JsonValue, decoded, frame_rows, is_frame, plain_value
from evalmeta.systems.databricks.evaluation_sets import read_databricks_rows
from evalmeta.systems.mlflow.entities import Trace

if TYPE_CHECKING:
    from evalmeta.engine.project_code import Function
    from evalmeta.model.evaluation import Case

_HINT: Final = (
    'Pass a list such as [{"inputs": {"question": "..."}, "expectations": {...}}], a data frame or a dataset.'
)
_VALUES: Final = ("inputs", "outputs", "expectations", "tags")


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """What the scorers of a row receive, besides what an agent answers; None for what the row does not have."""

    inputs: JsonValue = None
    outputs: object = None
    expectations: JsonObject | None = None
    trace: object = None
    tags: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows as cases without expectations, and what their scorers receive, by the numbers of cases."""

    cases: tuple[Case, ...]
    rows: Mapping[int, ScoredRow]


def read_rows(data: object, *, is_asked: bool) -> ReadRows:
    """Read the data of an evaluation; raise FormatError or UsageError, with the row, for what is not valid."""
    given = [_row(row, number) for number, row in enumerate(_rows(data), 1)]
    if not given:
        raise UsageError("the data has no rows", actions=[_HINT])
    for number, row in enumerate(given, 1):
        _check(row, number, is_asked=is_asked)
    plain = [{key: _plain_cell(key, value) for key, value in row.items()} for row in given]
    document = read_databricks_rows(plain, label="data", name="data", metrics=(), is_asked=is_asked)
    cases, rows = [], dict[int, ScoredRow]()
    for case, values, original in zip(document.evaluation.cases, plain, given, strict=True):
        scored = _scored(case, values, original)
        turn = replace(case.turns[0], expectations=(), inputs=scored.inputs, expected=scored.expectations)
        rows[case.number] = scored
        cases.append(replace(case, turns=(turn,)))
    return ReadRows(tuple(cases), rows)


def _rows(data: object) -> Iterable[object]:
    if callable(getattr(data, "simulate", None)):
        raise UsageError(
            "evalmeta.mlflow does not simulate users", actions=["Write the turns of the conversation in a test spec."]
        )
    if not is_frame(data) and callable(to_df := getattr(data, "to_df", None)):
        data = to_df()
    if is_frame(data):
        return frame_rows(data)
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise UsageError(f"the data is of type {type(data).__name__}, not rows", actions=[_HINT])
    return cast("Iterable[object]", data)


def _row(row: object, number: int) -> dict[str, object]:
    if not isinstance(row, Mapping) and callable(getattr(row, "to_dict", None)):
        return {"trace": row}
    if not isinstance(row, Mapping):
        raise UsageError(f"row {number} is of type {type(row).__name__}, not a dict", actions=[_HINT])
    values = {str(key): value for key, value in row.items() if value is not None}
    if values.get("trace") is not None and "outputs" not in values:
        # A table of traces repeats in its other columns what is in them.
        return {key: value for key, value in values.items() if key in {"trace", *_VALUES}}
    return values


def _check(row: Mapping[str, object], number: int, *, is_asked: bool) -> None:
    inputs = decoded(plain_value(row["inputs"])) if "inputs" in row else None
    if "inputs" in row and not isinstance(inputs, dict):
        raise UsageError(
            f"row {number}: 'inputs' is of type {type(row['inputs']).__name__}, not a dict of arguments",
            actions=['Write {"inputs": {"question": "..."}}.'],
        )
    if is_asked and inputs is None and "trace" not in row:
        raise UsageError(f"row {number} has no 'inputs' for predict_fn", actions=[_HINT])
    if not is_asked and "outputs" not in row and "trace" not in row:
        raise UsageError(
            f"row {number} has neither 'outputs' nor 'trace', and there is no predict_fn to ask",
            actions=["Pass predict_fn=..., or add the outputs of all rows."],
        )


def _plain_cell(key: str, value: object) -> JsonValue:
    if key == "trace":
        to_dict = getattr(value, "to_dict", None)
        return plain_value(to_dict() if callable(to_dict) else value)
    return plain_value(value)


def _scored(case: Case, row: JsonObject, given: Mapping[str, object]) -> ScoredRow:
    trace, expected = _trace(given.get("trace"), row.get("trace")), decoded(row.get("expectations"))
    inputs, outputs = decoded(row.get("inputs")), given.get("outputs")
    root = next((span for span in trace.data.spans if span.parent_id is None), None) if trace else None
    if inputs is None and root is not None:
        inputs = plain_value(root.inputs)
    if outputs is None and root is not None:
        outputs = root.outputs
    if expected is None and trace is not None:
        noted = trace.search_assessments(type="expectation")
        expected = {assessment.name: plain_value(assessment.value) for assessment in noted} or None
    tags = decoded(row.get("tags"))
    shown = given.get("trace") if callable(getattr(given.get("trace"), "search_spans", None)) else trace
    return ScoredRow(
        inputs if inputs is not None else {} if not case.turns[0].utterance else {"request": case.turns[0].utterance},
        outputs,
        expected if isinstance(expected, dict) else None,
        shown,
        tags if isinstance(tags, dict) else None,
    )


def _trace(given: object, plain: JsonValue) -> Trace | None:
    if isinstance(given, Trace):
        return given
    value = decoded(plain)
    return Trace.from_dict(value) if isinstance(value, dict) else None


def check_arguments(function: object, rows: Mapping[int, ScoredRow]) -> None:
    """Check that predict_fn takes the inputs of every row as keyword arguments; raise UsageError."""
    try:
        signature = inspect.signature(cast("Function", function))
    except (TypeError, ValueError):
        return
    for number, row in rows.items():
        keys = row.inputs if isinstance(row.inputs, dict) else {}
        try:
            signature.bind(**dict.fromkeys(keys))
        except TypeError as error:
            name = getattr(function, "__name__", "predict_fn")
            raise UsageError(
                f"predict_fn cannot be called with the inputs of row {number}: {error}; it is {name}{signature}",
                actions=[f"Give it the parameters {', '.join(keys) or '(none)'}, or rename the keys of 'inputs'."],
            ) from None
