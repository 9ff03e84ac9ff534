"""Tables of Agent Evaluation: data frames read into rows, and results as rows and metrics.

A row passes when no judge says no. The root cause is the first judge of `_ROOT_CAUSES` that says no: bad retrieval
prevents good answers. One relevant passage is enough.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from statistics import fmean
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.model.steps import step_tree
from evalmeta.systems.databricks import metrics

if TYPE_CHECKING:
    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue

    ResultRow: TypeAlias = dict[str, JsonValue]
    ReadParts: TypeAlias = Callable[[str], Sequence[tuple[str, str, str]]]


_RATING: Final = "/rating"
_ROOT_CAUSES: Final = (
    *(metrics.CONTEXT_SUFFICIENCY, metrics.CHUNK_RELEVANCE, metrics.GROUNDEDNESS, metrics.CORRECTNESS),
    *(metrics.RELEVANCE, metrics.SAFETY, metrics.GUIDELINES, metrics.GLOBAL_GUIDELINES),
)
_MEASURED: Final = frozenset({metrics.TOTAL_TOKENS, metrics.INPUT_TOKENS, metrics.OUTPUT_TOKENS, metrics.LATENCY})
_FIRST: Final = (
    *("request_id", "request", "response", "retrieved_context", "expected_response", "expected_facts", "guidelines"),
    *("expected_retrieved_context", "trace", "model_error_message"),
)
_OVERALL: Final = ("overall_assessment/rating", "overall_assessment/rationale", "root_cause_assessment/root_cause")
_SAMPLES: Final = re.compile(r"^\d+ of \d+ samples[^:]*: ")


def run_metrics(cases: Iterable[Case], results: Sequence[CaseResult]) -> dict[str, float]:
    """Return the metrics of a run: the share of yes (0 to 1) for judges, the average for numbers.

    Results without a verdict or a value do not count; a metric that has only such results is NaN.
    """
    numbers: dict[str, list[float]] = {}
    for expectation in (expected for case in cases for turn in case.turns for expected in turn.expectations):
        if expectation.name not in _MEASURED:
            numbers.setdefault(_metric(expectation), [])
    for result in (judged for case in results for judged in case.results):
        if result.name.endswith(_RATING):
            if (word := _yes_or_no(result)) is not None:
                numbers.setdefault(_metric(result), []).append(float(word == "yes"))
        elif result.score is not None:
            numbers.setdefault(_metric(result), []).append(result.score)
    return {name: fmean(values) if values else math.nan for name, values in numbers.items()}


def _metric(of: Expectation | TestResult) -> str:
    return f"{_labelled(of)}/percentage" if of.name.endswith(_RATING) else f"{of.name}/average"


def result_rows(cases: Iterable[Case], results: Sequence[CaseResult], *, read_parts: ReadParts) -> list[ResultRow]:
    """Return a row for every result, all with the same columns, in the order of the results.

    `read_parts` splits the explanation of a metric that judges several items: label, name and rationale of each.
    """
    by_number = {case.number: case for case in cases}
    rows = [_row(by_number[result.number], result, read_parts) for result in results]
    names = dict.fromkeys(key for row in rows for key in row)
    # The request, the answer and what is expected come first, the overall assessment last.
    columns = sorted(names, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST) + (name in _OVERALL))
    return [{column: row.get(column) for column in columns} for row in rows]


def table_of(rows: Sequence[Mapping[str, object]]) -> object:
    """Return rows as a DataFrame if pandas is installed, else as they are."""
    try:
        from pandas import DataFrame
    except ImportError:
        return rows
    return DataFrame(rows)


def _row(case: Case, result: CaseResult, read_parts: ReadParts) -> ResultRow:
    row: ResultRow = {"request_id": case.label or None, "request": _request(case, result.utterance)}
    generated = result.generated
    row["response"] = generated.outcome if generated else None
    retrieved = generated.retrieved if generated else None
    if retrieved is not None:
        row["retrieved_context"] = [{"doc_uri": passage.uri, "content": passage.content} for passage in retrieved]
    if generated and generated.trace is not None and step_tree(generated) is None:
        # The column is read again as a trace of MLflow, which a tree of steps is not.
        row["trace"] = json.dumps(generated.trace, ensure_ascii=False)
    if result.error is not None:
        row["model_error_message"] = result.error
    groups: dict[str, JsonValue] = {}
    for expectation in case.turns[0].expectations:
        row |= _expected(expectation)
        if expectation.name == metrics.GUIDELINES:
            groups[expectation.label or ""] = expectation.terms.get("guidelines")
    if groups:
        row["guidelines"] = groups[""] if [*groups] == [""] else groups
    for judged in result.results:
        row |= _judged(judged, read_parts)
    return {**row, **dict.fromkeys(_OVERALL), **_overall(result.results)}


def _request(case: Case, utterance: str) -> JsonValue:
    if not case.history:
        return utterance
    history = [("assistant" if message.role == "agent" else message.role, message.message) for message in case.history]
    return {"messages": [{"role": role, "content": text} for role, text in (*history, ("user", utterance))]}


def _expected(expectation: Expectation) -> Mapping[str, JsonValue]:
    """Return the columns of the row that an expectation was made from."""
    terms = expectation.terms
    if expectation.name in {metrics.CORRECTNESS, metrics.CONTEXT_SUFFICIENCY}:
        columns = {"expected_response": expectation.expected_value, "expected_facts": terms.get("facts")}
        return {key: value for key, value in columns.items() if value is not None}
    if expectation.name == metrics.DOCUMENT_RECALL:
        uris = terms.get("uris")
        passages: JsonValue = [{"doc_uri": uri} for uri in uris if uri] if isinstance(uris, list) else []
        return {"expected_retrieved_context": passages}
    return {}


def _judged(result: TestResult, read_parts: ReadParts) -> Mapping[str, JsonValue]:
    if result.name == metrics.CHUNK_RELEVANCE:
        return _chunks(result, read_parts)
    if not result.name.endswith(_RATING):
        return {result.name: result.score}
    base, word = _labelled(result).removesuffix(_RATING), _yes_or_no(result)
    columns: dict[str, JsonValue] = {f"{base}/rating": word}
    columns[f"{base}/rationale"] = _rationale(result.explanation) if word else None
    if word is None:
        columns[f"{base}/error_message"] = result.error or result.explanation
    return columns


def _chunks(result: TestResult, read_parts: ReadParts) -> Mapping[str, JsonValue]:
    """Return a rating and a rationale for each passage with content, in their order."""
    base = metrics.CHUNK_RELEVANCE.removesuffix("/precision")
    columns: dict[str, JsonValue] = {f"{base}/precision": result.score}
    if result.score is None:
        return {**columns, f"{base}/error_message": result.error or result.explanation}
    parts = read_parts(result.explanation)
    columns[f"{base}/ratings"] = [label for label, _, _ in parts]
    columns[f"{base}/rationales"] = [_rationale(text) for _, _, text in parts]
    return columns


def _overall(results: Sequence[TestResult]) -> Mapping[str, JsonValue]:
    refused = (result for name in _ROOT_CAUSES for result in results if result.name == name)
    if cause := next((result for result in refused if _assessed(result) == "no"), None):
        values = ("no", _rationale(cause.explanation), cause.name.split("/")[2])
        return dict(zip(_OVERALL, values, strict=True))
    return {"overall_assessment/rating": "yes" if any(map(_assessed, results)) else None}


def _rationale(explanation: str) -> str:
    """Return a judge's rationale, without the number of samples that agree."""
    return _SAMPLES.sub("", explanation)


def _assessed(result: TestResult) -> str | None:
    if result.name == metrics.CHUNK_RELEVANCE:
        return None if result.score is None else "yes" if result.score > 0 else "no"
    return _yes_or_no(result) if result.name in _ROOT_CAUSES else None


def _yes_or_no(result: TestResult) -> str | None:
    return {Verdict.PASS: "yes", Verdict.FAILURE: "no"}.get(result.verdict)


def _labelled(result: Expectation | TestResult) -> str:
    """Return a judge's name, with the name of its group of guidelines if it has one."""
    if not result.label:
        return result.name
    return f"{result.name.removesuffix(_RATING)}/{result.label}{_RATING}"


_HINT: Final = ("Give a DataFrame, a list of dicts, a dict of columns, or a path.",)


def rows_of(data: object) -> list[JsonObject]:
    """Return the rows of a DataFrame, an iterable of mappings or a mapping of columns as plain values.

    NaN and missing values become None, arrays become lists; a value that JSON cannot hold raises UsageError.
    """
    if callable(to_pandas := getattr(data, "toPandas", None)):  # Spark's
        data = to_pandas()
    if isinstance(data, Mapping):
        data = _from_columns(data)
    elif callable(to_dict := getattr(data, "to_dict", None)):  # pandas'
        data = to_dict("records")
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise UsageError(f"{type(data).__name__} is not a table of rows", actions=_HINT)
    return [plain_row(value, number) for number, value in enumerate(data, 1)]


def plain_row(row: object, number: int) -> JsonObject:
    """Return a row of plain values, or a trace of MLflow as one; raises like `rows_of`."""
    if not isinstance(row, Mapping) and callable(getattr(row, "to_dict", None)):
        row = {"trace": row}
    if not isinstance(row, Mapping):
        raise UsageError(f"row {number} is of type {type(row).__name__}, not a dict of columns", actions=_HINT)
    return {str(key): _plain(value, f"{key!r} of row {number}") for key, value in row.items()}


def _from_columns(columns: Mapping[object, object]) -> list[dict[object, object]]:
    lists = [items for items in columns.values() if isinstance(items, Sequence) and not isinstance(items, str)]
    if len(lists) < len(columns) or len(set(map(len, lists))) > 1:
        raise UsageError("a dict of columns has lists of one length", actions=_HINT)
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _plain(value: object, where: str, depth: int = 0) -> JsonValue:
    if depth > limits.MAX_JSON_DEPTH:
        raise UsageError(f"{where} is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    if isinstance(value, Mapping):
        # In Arrow, every row has all keys of its column's type; those that it does not use are null.
        inner = {str(key): _plain(item, where, depth + 1) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item, where, depth + 1) for item in value]
    return _plain_one(value, where, depth)


def _plain_one(value: object, where: str, depth: int) -> JsonValue:
    if value is None or isinstance(value, bool) or type(value) is int:
        return value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"{where} is not valid Unicode text ({error.reason})") from error
        return value
    if isinstance(value, float):
        if math.isinf(value):
            raise UsageError(f"{where} holds {value}, which JSON cannot hold")
        return None if math.isnan(value) else float(value)
    return _converted(value, where, depth)


def _converted(value: object, where: str, depth: int) -> JsonValue:
    if type(value).__name__ in {"NaTType", "NAType"}:
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    # Arrays and numbers of numpy have the first method, traces of MLflow the second.
    for name in ("tolist", "to_dict"):
        if callable(convert := getattr(value, name, None)):
            return _plain(convert(), where, depth + 1)
    raise UsageError(f"{where} is of type {type(value).__name__}, which JSON cannot hold", actions=_HINT)
