"""`evalmeta.mlflow.genai.evaluate`: MLflow's evaluations on evalmeta's engine, journal and reports."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypedDict, cast

from evalmeta.api.evaluating.evaluate import evaluate_async as run_evaluation
from evalmeta.api.evaluating.inputs import check_keywords
from evalmeta.api.evaluating.loaded import Roots
from evalmeta.api.runs.saved import keep_runs
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.scorers.functions import Check
from evalmeta.engine.subjects.replay import bind_recorded
from evalmeta.errors import EvalmetaError, UsageError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.user_warnings import warn_user
from evalmeta.systems.databricks.evaluation import ShownMetrics, warn_of_undecided
from evalmeta.systems.databricks.tables import table_of
from evalmeta.systems.mlflow.answers import Answers, asked
from evalmeta.systems.mlflow.builtin_scorers import JudgedScorer
from evalmeta.systems.mlflow.entities import Trace
from evalmeta.systems.mlflow.instructions import PromptJudge
from evalmeta.systems.mlflow.judging import judged_by
from evalmeta.systems.mlflow.results import failures, note_on_traces, result_rows, run_metrics, values_not_judged
from evalmeta.systems.mlflow.rows import ReadRows, ScoredRow, check_arguments, read_rows
from evalmeta.systems.mlflow.scorers import Scorer, check_scorers, checks_of
from evalmeta.systems.mlflow.sessions import row_sessions, session_of
from evalmeta.systems.mlflow.tracking import noted_metadata, noted_run, run_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.engine.project_code import Function
    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run_options import RunOptions


class How(TypedDict, total=False):
    """Evalmeta's own keywords of `evaluate`; all are optional.

    Attributes:
        options: How to run; see `RunOptions`.
        rater: The rater; None uses the one that the project's `evalmeta.toml` names.
        journal: A folder for the results; an interrupted run with the same folder is resumed.
        name: The name of the run; by default that of the experiment.
        root: The project's folder; None finds the one around the current folder.
    """

    options: RunOptions | None
    rater: object
    journal: Path | None
    name: str | None
    root: Path | None


@dataclass(frozen=True, slots=True, repr=False)
class EvaluationResult(ShownMetrics):
    """The result of an evaluation, with MLflow's members.

    Attributes:
        run_id: The id of the run.
        metrics: `NAME/mean`, or the aggregations of a scorer; NaN if a scorer could judge nothing.
        result_df: A row for each case: a DataFrame if pandas is installed, else a list of dicts.
        run: The finished run of evalmeta: its report, its statistics.
        failures: Why it did not pass, a text for each value and each row.
    """

    run_id: str
    metrics: Mapping[str, float]
    result_df: object
    run: FinishedRun
    failures: Sequence[str] = ()

    @property
    def tables(self) -> Mapping[str, object]:
        """Return the table as `eval_results`."""
        return {"eval_results": self.result_df}

    @property
    def passed(self) -> bool:
        """Return whether every row has an answer, and every value is yes, True or passes by `pass_if`."""
        return not self.failures

    @property
    def reason(self) -> str:
        """Return why it did not pass; empty if it did."""
        return "\n".join(self.failures)


def evaluate(
    data: object, scorers: object = (), predict_fn: object = None, model_id: str | None = None, **how: Unpack[How]
) -> EvaluationResult:
    """Judge the outputs of rows or traces, or ask an agent for them, as `mlflow.genai.evaluate` does.

    In a project with an `evalmeta.toml`, the run is kept in the project's history, unless there is a journal.

    Args:
        data: A list of dicts with `inputs` and perhaps `outputs`, `expectations`, `tags` or `trace`; a data frame of
            them; a list or a data frame of traces; or a dataset with `to_df`.
        scorers: Built-in scorers, functions with `@scorer`, instances of subclasses of `Scorer`, and scorers of MLflow.
        predict_fn: The agent, which receives the inputs as keyword arguments. None judges the outputs of the data.
        model_id: Kept as metadata of the cases.
        how: See `How`.

    Raises:
        FormatError: The data does not match the schema; `problems` has every reason with its row.
        UsageError: A scorer, the agent or another argument cannot be used. Nothing was asked.
        SettingsError: The rater cannot be used.
    """
    return run_to_end(evaluate_async(data, scorers, predict_fn, model_id, **how))


async def evaluate_async(
    data: object, scorers: object = (), predict_fn: object = None, model_id: str | None = None, **how: Unpack[How]
) -> EvaluationResult:
    """Do what `evaluate` does, in the running event loop."""
    check_keywords(how, (*_MLFLOW, *How.__annotations__), of="mlflow.genai.evaluate")
    return await _evaluated(data, scorers, predict_fn, model_id, **how)


async def _evaluated(  # noqa: PLR0913 - the keywords of mlflow.genai.evaluate, and evalmeta's own
    data: object,
    scorers: object,
    predict_fn: object,
    model_id: str | None,
    *,
    options: RunOptions | None = None,
    rater: object = None,
    journal: Path | None = None,
    name: str | None = None,
    root: Path | None = None,
) -> EvaluationResult:
    judges = check_scorers(scorers)
    if not judges:
        raise UsageError("there are no scorers", actions=["Pass scorers=[...]."])
    read = read_rows(data, is_asked=predict_fn is not None)
    sessions = row_sessions(read.rows)
    _check_needs(judges, read, sessions, is_asked=predict_fn is not None)
    answers = Answers()
    subject, called = _subject(predict_fn, read, answers)
    metadata = noted_metadata(model_id)
    built_in = [judge for judge in judges if isinstance(judge, JudgedScorer)]
    expectations = [_expectations(number, read, built_in, sessions) for number in read.rows]
    cases = tuple(_case(case, expected, metadata) for case, expected in zip(read.cases, expectations, strict=True))
    evaluation = Evaluation(name or run_name(), called, cases)
    checks = [_check_of(judge, read.rows, answers, sessions) for judge in judges if judge not in built_in]
    with judged_by(rater, root):
        finished = await run_evaluation(
            evaluation, subject, options=options, rater=rater, journal=journal, root=root, checks=checks
        )
    results = finished.run.cases
    warn_of_undecided(results, also=values_not_judged(results, judges))
    table = table_of(result_rows(results, read.rows, answers, judges))
    run_id = finished.run.id if journal else _kept(finished, root)
    metrics = run_metrics(results, judges)
    note_on_traces(results, read.rows, answers, judges, noted_run(run_id, metrics))
    return EvaluationResult(run_id, metrics, table, finished, failures(results, judges))


_MLFLOW: Final = ("data", "scorers", "predict_fn", "model_id")


def _kept(finished: FinishedRun, root: Path | None) -> str:
    """Keep a run in the history of the project around a folder and return its id there, or else its own id."""
    project = Roots(root, "").root_of().project
    if project is None or project.declared is None:
        return finished.run.id
    try:
        return keep_runs(project, [finished.run])[0]
    except EvalmetaError as error:
        warn_user(f"the run is not in the history: {error}")
        return finished.run.id


def _check_needs(
    judges: Sequence[Scorer], read: ReadRows, sessions: Mapping[int, Sequence[int]], *, is_asked: bool
) -> None:
    """Refuse scorers that can judge no row; warn of models that are not used."""
    for judge in judges:
        if _reads_sessions(judge) and (is_asked or not sessions):
            lack = "predict_fn answers single rows" if is_asked else "no row has a trace with a session id"
            raise UsageError(
                f"the scorer {judge.name!r} judges sessions, and {lack}",
                actions=[
                    "Pass data=mlflow.search_traces(), with mlflow.update_current_trace(session_id=...) in the agent.",
                    "Or write the conversation as a test with turns, and judge it with task_resolution.",
                ],
            )
        if not isinstance(judge, JudgedScorer):
            continue
        rows = read.rows.values()
        if judge.needed and not any((row.expectations or {}).get(key) for row in rows for key in judge.needed):
            needed = " or ".join(repr(key) for key in judge.needed)
            raise UsageError(
                f"no row has what the scorer {judge.name!r} needs: {needed} in 'expectations'",
                actions=[f'Write {{"inputs": ..., "expectations": {{"{judge.needed[0]}": ...}}}}.'],
            )
    models = sorted({judge.model for judge in judges if isinstance(judge, JudgedScorer) and judge.model})
    if models:
        message = f"the judge is evalmeta's rater; the model {models[0]!r} of a scorer is not asked (docs/rating.md)"
        warn_user(message)


def _reads_sessions(judge: object) -> bool:
    return bool(getattr(judge, "is_session_level_scorer", False))


def _expectations(
    number: int, read: ReadRows, judges: Sequence[JudgedScorer], sessions: Mapping[int, Sequence[int]]
) -> list[Expectation]:
    """Return what is judged with a row: its answer, and the session that it begins."""
    given = read.rows[number].expectations or {}
    expectations = [judge.expectation(given) for judge in judges if not _reads_sessions(judge)]
    of_sessions = [judge for judge in judges if isinstance(judge, PromptJudge) and _reads_sessions(judge)]
    if of_sessions and number in sessions:
        session = session_of(read, sessions[number])
        expectations += [judge.expectation(given, session) for judge in of_sessions]
    return expectations


def _case(case: Case, expectations: Sequence[Expectation], metadata: JsonObject) -> Case:
    turn = replace(case.turns[0], expectations=tuple(expectations))
    return replace(case, turns=(turn,), metadata={**case.metadata, **metadata} if metadata else case.metadata)


def _subject(predict_fn: object, read: ReadRows, answers: Answers) -> tuple[object, str]:
    if predict_fn is None:
        return bind_recorded(), "recorded outputs"
    if not callable(predict_fn):
        raise UsageError(f"predict_fn is of type {type(predict_fn).__name__}, not a function")
    check_arguments(predict_fn, read.rows)
    called = str(getattr(predict_fn, "__name__", type(predict_fn).__name__))
    return asked(cast("Function", predict_fn), called, answers), called


def _check_of(
    judge: Scorer, rows: Mapping[int, ScoredRow], answers: Answers, sessions: Mapping[int, Sequence[int]]
) -> object:
    """Return a scorer as a check of evalmeta's engine; one of sessions judges with the first row of each."""

    def check(generated: GeneratedData, case: Case) -> list[Check]:
        row = rows[case.number]
        if _reads_sessions(judge):
            # In the order of the data, as in MLflow.
            traces = [_foreign(rows[number].trace, judge) for number in sorted(sessions.get(case.number, ()))]
            return checks_of(judge, judge.run(session=traces) if traces else None)
        trace = answers.trace_of(generated) if row.trace is None else row.trace
        given = {
            "inputs": row.inputs,
            "outputs": answers.outputs_of(generated, row),
            "expectations": dict(row.expectations or {}),
            "trace": _foreign(trace, judge),
        }
        try:
            return checks_of(judge, judge.run(**given))
        except AssertionError as error:
            # MLflow does not count a scorer that raises, whatever it raises.
            return [Check(name=judge.name, error=f"{type(error).__name__}: {error}")]

    check.__name__ = check.__qualname__ = judge.name
    return check


def _foreign(trace: object, judge: object) -> object:
    """Return a trace as MLflow's own object if the scorer is MLflow's."""
    entities = sys.modules.get("mlflow.entities")
    if isinstance(judge, Scorer) or not isinstance(trace, Trace) or entities is None:
        return trace
    kind = cast("type[Trace]", entities.Trace)
    return kind.from_dict(trace.to_dict())
