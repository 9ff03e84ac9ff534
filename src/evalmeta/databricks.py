"""Databricks Agent Evaluation in Python: evaluation sets judged on this machine, with its names.

from evalmeta import databricks

result = databricks.evaluate(
    data=pd.DataFrame(eval_set),
    evaluator_config={"databricks-agent": {"global_guidelines": ["The response must be in English"]}},
)
result.metrics["response/llm_judged/correctness/rating/percentage"]
result.tables["eval_results"]
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from evalmeta.api.evaluate import evaluate_async as run_evaluation
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.scorers.judged import read_parts
from evalmeta.engine.subjects.replay import bind_recorded
from evalmeta.errors import UsageError
from evalmeta.formats.databricks.reader import read_databricks_file, read_databricks_rows
from evalmeta.formats.databricks.tables import result_rows, rows_of, run_metrics
from evalmeta.formats.diagnostics import did_you_mean
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.runs import FinishedRun
    from evalmeta.formats.databricks.metrics import Guidelines
    from evalmeta.formats.document import Document
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.problem import Problem
    from evalmeta.model.run import CaseResult, RunOptions


_EVALUATOR: Final = "databricks-agent"
_MODEL_TYPES: Final = (_EVALUATOR, "databricks-rag")
_NOT_JUDGED: Final = (Verdict.ERROR, Verdict.UNDECIDED)
_CONFIG_KEYS: Final = ("global_guidelines", "metrics")


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """What an evaluation came to.

    Attributes:
        metrics: what the run comes to, by documented names: of judges the share of yes, 0 to 1, of numbers the average;
            NaN of what nothing could judge.
        tables: `eval_results`, a row for each request; a DataFrame where pandas is installed, or else a list of dicts.
        run: the run as evalmeta sees it: whether it succeeded, its report, its statistics.
        notes: what was remarked about the data, such as unknown columns.
    """

    metrics: Mapping[str, float]
    tables: Mapping[str, object]
    run: FinishedRun
    notes: tuple[Problem, ...] = ()


def evaluate(  # noqa: PLR0913 - the keywords of mlflow.evaluate, and ours
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
    """Judges the answers of an evaluation set, or asks an agent for them, as `mlflow.evaluate` does.

    Args:
        data: a DataFrame, a list of dicts, a dict of columns, or the path of a file.
        model: the agent: a function of the question that may take `history` and `context`, an object with `open`,
            or a table of settings, as `evalmeta.evaluate` takes them. None judges the answers that the data has.
        model_type: `databricks-agent`.
        evaluator_config: `{"databricks-agent": {"global_guidelines": [...], "metrics": [...]}}`.
        options: how to run; see `RunOptions`.
        rater: who judges; None takes what the project's `evalmeta.toml` names. Without a language model the judges
            leave everything undecided.
        journal: a folder that keeps the results, in which an interrupted run goes on.
        name: what the run is called; the file's name, or `eval_set`.
        root: the project's folder; the one around the current folder when None.

    Raises:
        FormatError: the data does not fit the schema; `problems` has every reason with its row.
        UsageError: the call is wrong, a metric is unknown, or answers are missing and no model was given.
        NotFound: there is no such file.
        SettingsError: the model or the rater cannot be used.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work = evaluate_async(
            data=data,
            model=model,
            model_type=model_type,
            evaluator_config=evaluator_config,
            options=options,
            rater=rater,
            journal=journal,
            name=name,
            root=root,
        )
        return run_to_end(work)
    raise UsageError("an event loop is running here: use `await databricks.evaluate_async(...)` instead of evaluate")


async def evaluate_async(  # noqa: PLR0913 - as above
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
    """Does what `evaluate` does, in the event loop that is running; takes, gives and raises the same."""
    if model_type not in _MODEL_TYPES:
        raise UsageError(
            f"there is no model type {model_type!r:.100}", actions=(did_you_mean(str(model_type), _MODEL_TYPES),)
        )
    document = _document(data, _config(evaluator_config), name, is_asked=model is not None)
    called = getattr(model, "__name__", None) or (type(model).__name__ if model else "recorded answers")
    evaluation = replace(document.evaluation, subject_name=str(called))
    subject = bind_recorded() if model is None else model
    finished = await run_evaluation(evaluation, subject, options=options, rater=rater, journal=journal, root=root)
    results = finished.run.cases
    rows = result_rows(evaluation.cases, results, read_parts=read_parts)
    _warn_of_undecided(results)
    return EvaluationResult(
        run_metrics(evaluation.cases, results), {"eval_results": _table(rows)}, finished, document.notes
    )


class _Config(dict[str, object]):
    """The part of the configuration that is for this evaluator."""

    @property
    def global_guidelines(self) -> Guidelines | None:
        return cast("Guidelines | None", self.get("global_guidelines"))

    @property
    def metrics(self) -> Sequence[str] | None:
        return cast("Sequence[str] | None", self.get("metrics"))


def _config(config: Mapping[str, object] | None) -> _Config:
    for key in config or {}:
        if key not in _MODEL_TYPES:
            raise UsageError(
                f"evaluator_config has no evaluator {key!r:.100}", actions=(did_you_mean(str(key), _MODEL_TYPES),)
            )
    own = next(iter((config or {}).values()), {})
    if not isinstance(own, Mapping):
        raise UsageError(f"the configuration of {_EVALUATOR} is of type {type(own).__name__}, not a dict")
    for key in own:
        if key not in _CONFIG_KEYS:
            raise UsageError(
                f"{_EVALUATOR} has no setting {key!r:.100}", actions=(did_you_mean(str(key), _CONFIG_KEYS),)
            )
    return _Config(own)


def _document(data: object, config: _Config, name: str | None, *, is_asked: bool) -> Document:
    if isinstance(data, str | Path):
        path = Path(data)
        document = read_databricks_file(
            path,
            label=str(data),
            name=name or path.stem,
            global_guidelines=config.global_guidelines,
            metrics=config.metrics,
            is_asked=is_asked,
        )
    else:
        document = read_databricks_rows(
            rows_of(data),
            label="data",
            name=name or "eval_set",
            global_guidelines=config.global_guidelines,
            metrics=config.metrics,
            is_asked=is_asked,
        )
    for note in document.notes:
        warnings.warn(f"{note.location}: {note.message}. {note.hint}".rstrip(), UserWarning, stacklevel=2)
    if not (is_asked or document.is_answered):
        raise UsageError(
            f"there is no model to ask, and row {_unanswered(document)} has neither 'response' nor 'trace'",
            actions=("Give a model=..., or the answers of all rows.",),
        )
    return document


def _warn_of_undecided(results: Sequence[CaseResult]) -> None:
    judged = [each for case in results for each in case.results if not each.is_measured]
    reasons = [each.error for each in results if each.error]
    reasons += [each.error or each.explanation for each in judged if each.verdict in _NOT_JUDGED and not each.score]
    if reasons:
        message = f"{len(reasons):,} cases or results were not judged; the first: {reasons[0]}"
        warnings.warn(message, UserWarning, stacklevel=2)


def _unanswered(document: Document) -> int:
    return next(case.number for case in document.evaluation.cases if case.turns[0].recorded is None)


def _table(rows: list[dict[str, JsonValue]]) -> object:
    try:
        from pandas import DataFrame  # noqa: PLC0415 - an extra
    except ImportError:
        return rows
    return DataFrame(rows)
