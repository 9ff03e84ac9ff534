"""`evalmeta.databricks`: evaluation sets of Databricks judged on this machine, as `mlflow.evaluate` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from evalmeta.api.evaluating.evaluate import evaluate_async as run_evaluation
from evalmeta.api.evaluating.inputs import check_keywords
from evalmeta.api.runs.finished import FinishedRun, notebook_html
from evalmeta.engine.scorers.judged import read_parts
from evalmeta.engine.subjects.replay import bind_recorded
from evalmeta.errors import UsageError, did_you_mean
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.user_warnings import warn_user
from evalmeta.report.text import decimal
from evalmeta.systems.databricks.evaluation_sets import RowOptions, read_databricks_file, read_databricks_rows
from evalmeta.systems.databricks.models import takes_messages, with_messages
from evalmeta.systems.databricks.tables import result_rows, rows_of, run_metrics, table_of

if TYPE_CHECKING:
    from typing import Required, Unpack

    from evalmeta.formats.document import Document
    from evalmeta.model.problem import Problem
    from evalmeta.model.run_options import RunOptions

_EVALUATOR: Final = "databricks-agent"
_MODEL_TYPES: Final = (_EVALUATOR, "databricks-rag")
_NOT_JUDGED: Final = (Verdict.ERROR, Verdict.UNDECIDED)


class ShownMetrics:
    """The base of results: a run and its metrics, as `print` and notebooks show them."""

    __slots__ = ()
    metrics: Mapping[str, float]
    run: FinishedRun

    @property
    def _figures(self) -> list[tuple[str, str]]:
        return [(name, "not judged" if isnan(value) else decimal(value)) for name, value in self.metrics.items()]

    def _repr_html_(self) -> str:
        """Return the result for a notebook."""
        return notebook_html([self.run], self._figures)

    def __repr__(self) -> str:
        return f"<EvaluationResult {self.run!r}>"

    def __str__(self) -> str:
        return "\n".join([str(self.run), "", "Metrics:", *(f"  {name}: {text}" for name, text in self._figures)])


@dataclass(frozen=True, slots=True, repr=False)
class EvaluationResult(ShownMetrics):
    """The result of an evaluation; `print` shows the report of its run and the metrics, a notebook shows tables.

    Attributes:
        metrics: The metrics of the run by their documented names: for judges the share of yes, 0 to 1, for numbers
            the average; NaN if nothing could be judged.
        tables: `eval_results` with a row for each request: a DataFrame if pandas is installed, else a list of dicts.
        run: The finished run: whether it succeeded, its report, its statistics.
        notes: Warnings about the data, such as unknown columns.
    """

    metrics: Mapping[str, float]
    tables: Mapping[str, object]
    run: FinishedRun
    notes: tuple[Problem, ...] = ()


class How(TypedDict, total=False):
    """The keywords of `evaluate`; all but `data` are optional.

    Attributes:
        data: A DataFrame, a list of dicts, a dict of columns, or the path of a file.
        model: The agent: a function of `model_input`, the request with its `messages`; a function of the question
            that can take `history` and `context`; an object of MLflow with `predict`, such as a ChatAgent or
            a ResponsesAgent; an object with `open`; or a table of settings. None judges the answers in the data.
        model_type: `databricks-agent`.
        evaluator_config: `{"databricks-agent": {"global_guidelines": [...], "metrics": [...]}}`.
        options: How to run; see `RunOptions`.
        rater: The rater; None uses the one that the project's `evalmeta.toml` names. Without a language model the
            judges leave everything undecided.
        journal: A folder for the results; an interrupted run with the same folder is resumed.
        name: The name of the run; by default the file's name, or `eval_set`.
        root: The project's folder; None finds the one around the current folder.
    """

    data: Required[object]
    model: object
    model_type: str
    evaluator_config: Mapping[str, object] | None
    options: RunOptions | None
    rater: object
    journal: Path | None
    name: str | None
    root: Path | None


async def evaluate_async(**how: Unpack[How]) -> EvaluationResult:
    """Do what `evaluate` of `evalmeta.databricks` does, without the spans of the agent."""
    check_keywords(how, How.__annotations__, of="databricks.evaluate")
    return await _evaluated(**how)


async def _evaluated(  # noqa: PLR0913 - the keywords of mlflow.evaluate, and evalmeta's own
    *,
    data: object,
    model: object = None,
    model_type: str = _EVALUATOR,
    evaluator_config: Mapping[str, object] | None = None,
    options: RunOptions | None = None,
    rater: object = None,
    journal: Path | None = None,
    name: str | None = None,
    root: Path | None = None,
) -> EvaluationResult:
    _check(model_type, _MODEL_TYPES, "model type")
    document = _document(data, _config(evaluator_config, is_asked=model is not None), name)
    called = getattr(model, "__name__", None) or (type(model).__name__ if model else "recorded answers")
    evaluation = replace(document.evaluation, subject_name=str(called))
    subject = bind_recorded() if model is None else model
    if model is not None and takes_messages(model):
        evaluation = replace(evaluation, cases=tuple(map(with_messages, evaluation.cases)))
    finished = await run_evaluation(evaluation, subject, options=options, rater=rater, journal=journal, root=root)
    results = finished.run.cases
    rows = result_rows(evaluation.cases, results, read_parts=read_parts)
    warn_of_undecided(results)
    tables = {"eval_results": table_of(rows)}
    return EvaluationResult(run_metrics(evaluation.cases, results), tables, finished, document.notes)


def _config(config: Mapping[str, object] | None, *, is_asked: bool) -> RowOptions:
    for key in config or {}:
        _check(key, _MODEL_TYPES, "evaluator of evaluator_config")
    own = next(iter((config or {}).values()), {})
    if not isinstance(own, Mapping):
        raise UsageError(f"the configuration of {_EVALUATOR} is of type {type(own).__name__}, not a dict")
    for key in own:
        _check(key, ("global_guidelines", "metrics"), f"setting of {_EVALUATOR}")
    return RowOptions(global_guidelines=own.get("global_guidelines"), metrics=own.get("metrics"), is_asked=is_asked)


def _check(name: object, known: Sequence[str], what: str) -> None:
    if name not in known:
        raise UsageError(f"{name!r:.100} is not a valid {what}", actions=(did_you_mean(str(name), known),))


def _document(data: object, options: RowOptions, name: str | None) -> Document:
    if isinstance(data, str | Path):
        path = Path(data)
        document = read_databricks_file(path, label=str(data), name=name or path.stem, **options)
    else:
        document = read_databricks_rows(rows_of(data), label="data", name=name or "eval_set", **options)
    for note in document.notes:
        warn_user(f"{note.location}: {note.message}. {note.hint}".rstrip())
    if not (options["is_asked"] or document.is_answered):
        unanswered = next(case.number for case in document.evaluation.cases if case.turns[0].recorded is None)
        message = f"there is no model to ask, and row {unanswered} has neither 'response' nor 'trace'"
        raise UsageError(message, actions=("Set model=..., or add the answers of all rows.",))
    return document


def warn_of_undecided(results: Sequence[CaseResult], *, also: Sequence[str] = ()) -> None:
    """Warn once of all cases and results that were not judged, with the first reason; `also` has other reasons."""
    judged = (result for case in results for result in case.results if not result.is_measured)
    unjudged = (result for result in judged if result.verdict in _NOT_JUDGED and not result.score)
    reasons = [case.error for case in results if case.error]
    reasons += [result.error or result.explanation for result in unjudged]
    reasons += also
    if reasons:
        message = f"cases or results that were not judged: {len(reasons):,}; the first: {reasons[0]}"
        warn_user(message)
