"""The table that ADK's `AgentEvaluator` writes to its `output_file`: a row for each metric in each turn of each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import ProjectError
from evalmeta.model.run import Verdict
from evalmeta.model.session_state import STATE
from evalmeta.package.files import put_file, read_file
from evalmeta.report.csv import lines, safe_cell
from evalmeta.report.details import exchange_of
from evalmeta.systems.adk.cases import both
from evalmeta.systems.adk.reader import read_adk_file, shown_call

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.systems.adk.cases import AdkCase
    from evalmeta.systems.adk.sources import Source


_COLUMNS: Final = (
    "eval_set_id", "eval_id", "metric_name", "threshold", "score", "eval_status", "prompt", "expected_response",
    "actual_response", "expected_tool_calls", "actual_tool_calls",
)  # fmt: skip
_STATUSES: Final = {Verdict.PASS: "PASSED", Verdict.FAILURE: "FAILED"}


def check_output_file(path: Path) -> None:
    """Raise ProjectError if a file has something else than this table, before an agent is asked."""
    if path.is_dir():
        raise ProjectError(f"the output_file {str(path)!r} is a folder", actions=["Name a file in it."])
    known = _content(path)
    if known and known.split(b"\n", 1)[0].strip() != lines([_COLUMNS]).strip().encode():
        raise ProjectError(
            f"the output_file {str(path)!r} has other columns than those of ADK's results, so nothing can be added",
            actions=["Name another file, or delete this one."],
        )


def add_to_output_file(path: Path, sources: Sequence[Source], runs: Sequence[FinishedRun]) -> None:
    """Add the results of runs to a file, which gets the titles if it is new, as google-adk does."""
    known = _content(path)
    rows = [row for source, run in zip(sources, runs, strict=True) for row in _rows(source, run)]
    put_file(path, known + lines([*([] if known else [_COLUMNS]), *rows]).encode())


def _content(path: Path) -> bytes:
    return read_file(path, max_bytes=limits.MAX_JSON_BYTES) if path.is_file() else b""


def _rows(source: Source, run: FinishedRun) -> Iterator[list[str]]:
    content = orjson.loads(source.data)
    # A deprecated array has no id.
    set_id = next((str(content[key]) for key in both("evalSetId") if key in content), "")
    cases = read_adk_file(source.data, label=source.label, dialect=source.dialect).cases
    thresholds = _thresholds(source.document.evaluation)
    judged = [(case, result) for case in run.run.cases for result in case.results if result.name in thresholds]
    # As in ADK: case after case, its metrics in the order of the criteria, and the turns of all runs of each.
    metrics = {name: place for place, name in enumerate(thresholds)}
    for case, result in sorted(judged, key=lambda pair: (pair[0].number, metrics[pair[1].name])):
        row = _row(cases[case.number - 1], case, result, thresholds[result.name])
        yield [safe_cell(cell) for cell in (set_id, *row)]


def _thresholds(evaluation: Evaluation) -> dict[str, str]:
    """Return the metrics in the order of the criteria, with their thresholds, empty for those that are measured."""
    turns = (turn for case in evaluation.cases for turn in case.turns)
    metrics = (expectation for turn in turns for expectation in turn.expectations if expectation.name != STATE)
    return {metric.name: _number(metric.terms.get("threshold")) for metric in metrics}


def _number(value: object) -> str:
    return str(float(value)) if isinstance(value, int | float) else ""


def _row(expected: AdkCase, case: CaseResult, result: TestResult, threshold: str) -> Iterator[str]:
    exchange = exchange_of(case, result)
    turn = expected.turns[exchange.turn - 1]
    actions = exchange.generated.actions if exchange.generated else None
    yield from (case.label, result.name, threshold, _number(result.score))
    yield "INFORMATIONAL" if result.is_measured else _STATUSES.get(result.verdict, "NOT_EVALUATED")
    yield from (exchange.utterance, turn.reference or "", exchange.generated.outcome if exchange.generated else "")
    yield "\n".join(shown_call(call.name, call.args) for call in turn.calls or ())
    yield "\n".join(shown_call(action.name, action.input) for action in actions or ())
