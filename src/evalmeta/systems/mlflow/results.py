"""The results of an evaluation as MLflow has them: metrics, and a table with a row for each case."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.json_value import plain_value
from evalmeta.model.run import Verdict
from evalmeta.model.user_warnings import warn_user
from evalmeta.systems.databricks import metrics
from evalmeta.systems.mlflow.assessments import AssessmentSource, AssessmentSourceType, Expectation, Feedback
from evalmeta.systems.mlflow.builtin_scorers import JudgedScorer
from evalmeta.systems.mlflow.entities import Trace
from evalmeta.systems.mlflow.judging import judged_value
from evalmeta.systems.mlflow.scorers import Scorer, aggregated, read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.systems.mlflow.answers import Answers
    from evalmeta.systems.mlflow.rows import ScoredRow

_LABEL: Final = "function "
_NOTHING: Final = "no scorer returned a value that passes"


class Assessed(NamedTuple):
    """One assessment of a row: its name, its value, and why; or the error because of which it has none."""

    name: str
    value: JsonValue
    rationale: str | None
    error: str | None
    verdict: Verdict

    @property
    def is_measured(self) -> bool:
        """Return whether it has a value that neither passes nor fails."""
        return self.verdict is Verdict.UNDECIDED and self.error is None and self.value is not None

    @property
    def number(self) -> float | None:
        """Return the value as a number, yes and True as 1; None for one that does not count."""
        if isinstance(self.value, bool | int | float):
            return float(self.value)
        return {"yes": 1.0, "no": 0.0}.get(self.value.strip().lower()) if isinstance(self.value, str) else None


def assessed(result: TestResult, judges: Mapping[str, Scorer]) -> Assessed:
    """Return a result of a scorer or a judge, which has a name in `judges`, as an assessment."""
    label = result.label or result.name
    if result.name != "function":
        name = f"{label}/precision" if result.name == metrics.CHUNK_RELEVANCE else label
        judge = judges.get(label)
        value_of = judge.value_of if isinstance(judge, JudgedScorer) else judged_value
        if (judged := value_of(result)) is not None:
            return Assessed(name, judged, result.explanation, None, result.verdict)
        return Assessed(name, None, None, result.error or result.explanation, result.verdict)
    if result.error:
        return Assessed(label.removeprefix(_LABEL), None, None, result.error, result.verdict)
    value, rationale = read_value(result)
    return Assessed(label.removeprefix(_LABEL), value, rationale, None, result.verdict)


def _assessments(results: Sequence[CaseResult], scorers: Sequence[Scorer]) -> Iterator[tuple[int, Assessed]]:
    """Yield the number of a row and an assessment, for all assessments of all rows."""
    judges = _by_name(scorers)
    for case in results:
        for result in case.results:
            yield case.number, assessed(result, judges)


def _by_name(scorers: Sequence[Scorer]) -> dict[str, Scorer]:
    """Return scorers by their names."""
    return {scorer.name: scorer for scorer in scorers}


def run_metrics(results: Sequence[CaseResult], scorers: Sequence[Scorer]) -> dict[str, float]:
    """Return `NAME/mean`, or the aggregations that a scorer names; values that are no numbers do not count.

    A scorer without a number is left out if it only returned words, and NaN if it could not judge.
    """
    numbers: dict[str, list[float]] = {}
    for _, assessment in _assessments(results, scorers):
        if assessment.number is not None:
            numbers.setdefault(assessment.name, []).append(assessment.number)
        elif assessment.error is not None:
            numbers.setdefault(assessment.name, [])
    wanted = {scorer.name: getattr(scorer, "aggregations", None) or ["mean"] for scorer in scorers}
    metrics_by_name: dict[str, float] = {}
    for name, values in numbers.items():
        for aggregation in wanted.get(name.partition("/")[0], ["mean"]):
            try:
                called, value = aggregated(values, aggregation)
            except Exception as error:  # noqa: BLE001 - a function of the user
                warn_user(f"the aggregation {aggregation!r:.60} of {name} failed: {error}")
                continue
            metrics_by_name[f"{name}/{called}"] = value
    return metrics_by_name


def result_rows(
    results: Sequence[CaseResult], rows: Mapping[int, ScoredRow], answers: Answers, scorers: Sequence[Scorer]
) -> list[dict[str, object]]:
    """Return a row for each result, all with the same columns."""
    judges = _by_name(scorers)
    table = [_row(result, rows[result.number], answers, judges) for result in results]
    columns = dict.fromkeys(key for row in table for key in row)
    order = sorted(columns, key=lambda name: (name != "trace_id", name in _LAST))
    return [{column: row.get(column) for column in order} for row in table]


_LAST: Final = frozenset(
    (
        *("request", "response", "expectations", "tags", "state", "execution_duration", "trace", "assessments"),
        "error_message",
    )
)


def _row(result: CaseResult, given: ScoredRow, answers: Answers, judges: Mapping[str, Scorer]) -> dict[str, object]:
    generated, trace = result.generated, answers.trace_of(result.generated) or given.trace
    row: dict[str, object] = {"trace_id": getattr(getattr(trace, "info", None), "trace_id", None) or result.label}
    seen, noted = Counter[str](), []
    for assessment in (assessed(judged, judges) for judged in result.results):
        seen[assessment.name] += 1
        name = assessment.name if seen[assessment.name] == 1 else f"{assessment.name} {seen[assessment.name]}"
        row[f"{name}/value"] = assessment.value
        if assessment.rationale is not None:
            row[f"{name}/rationale"] = assessment.rationale
        if assessment.error is not None:
            row[f"{name}/error_message"] = assessment.error
        noted.append(
            {"name": name, "value": assessment.value, "rationale": assessment.rationale, "error": assessment.error}
        )
    for name, value in (given.expectations or {}).items():
        row.setdefault(f"{name}/value", value)
    row["request"] = given.inputs
    row["response"] = plain_value(answers.outputs_of(generated, given)) if generated else None
    row["expectations"], row["tags"] = given.expectations, given.tags
    row["state"] = "ERROR" if result.error else "OK"
    row["execution_duration"] = generated.latency_ms if generated else None
    to_json = getattr(trace, "to_json", None)
    row["trace"] = to_json() if callable(to_json) else None
    row["assessments"] = noted
    row["error_message"] = result.error
    return row


def note_on_traces(
    results: Sequence[CaseResult],
    rows: Mapping[int, ScoredRow],
    answers: Answers,
    scorers: Sequence[Scorer],
    run_ids: Mapping[str, str],
) -> None:
    """Note on the trace of each row its tags, what was expected and what was found, and as metadata the run's ids."""
    judges = _by_name(scorers)
    for result in results:
        given = rows[result.number]
        trace = answers.trace_of(result.generated) or given.trace
        if not isinstance(trace, Trace):
            continue
        info = trace.info
        info.tags.update({key: str(value) for key, value in (given.tags or {}).items()})
        info.trace_metadata.update(run_ids)
        by = AssessmentSource(AssessmentSourceType.HUMAN)
        info.assessments += [
            Expectation(name, value, source=by, trace_id=info.trace_id)
            for name, value in (given.expectations or {}).items()
        ]
        info.assessments += [_feedback(judged, assessed(judged, judges), info.trace_id) for judged in result.results]


def _feedback(judged: TestResult, assessment: Assessed, trace_id: str) -> Feedback:
    kind = AssessmentSourceType.CODE if judged.name == "function" else AssessmentSourceType.LLM_JUDGE
    return Feedback(
        assessment.name,
        assessment.value,
        error=assessment.error,
        source=AssessmentSource(kind, judged.label or judged.name),
        trace_id=trace_id,
        rationale=assessment.rationale,
    )


def failures(results: Sequence[CaseResult], scorers: Sequence[Scorer]) -> list[str]:
    """Return why an evaluation did not pass: every value that is not yes or True, and every row without an answer."""
    lines = [f"row {case.number}: {case.error}" for case in results if case.error]
    passed = False
    for row, assessment in _assessments(results, scorers):
        if assessment.verdict is Verdict.PASS:
            passed = True
        # A scorer may have nothing to say of a row, which is no failure.
        elif assessment.value is not None or assessment.error is not None:
            lines.append(_line(row, assessment))
    return lines if passed or lines else [_NOTHING]


def values_not_judged(results: Sequence[CaseResult], scorers: Sequence[Scorer]) -> list[str]:
    """Return a text for each value that neither passes nor fails; or one if no scorer returned a value."""
    lines = [_line(row, assessment) for row, assessment in _assessments(results, scorers) if assessment.is_measured]
    return lines or [line for line in failures(results, scorers) if line == _NOTHING]


def _line(row: int, assessment: Assessed) -> str:
    return f"{assessment.name}: row {row}: {_why(assessment)}"


def _why(assessment: Assessed) -> str:
    if assessment.error is not None:
        return assessment.error
    shown = json.dumps(assessment.value, ensure_ascii=False)
    if assessment.is_measured:
        return f"returned {shown}, which is not yes, no, True or False; use pass_if to say which values pass"
    return assessment.rationale or f"value={shown}"
