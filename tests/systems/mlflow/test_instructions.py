"""Judges by instructions return values of their type, and read what their instructions name."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Literal, cast

import pytest

from engine.raters.llm.model_server import NONCE_PLACE, saying, serving
from evalmeta import mlflow
from evalmeta.errors import UsageError
from evalmeta.mlflow.genai import make_judge, scorers
from evalmeta.mlflow.genai.scorers import scorer
from evalmeta.model.run import Verdict
from evalmeta.systems.mlflow.tracing import recorded_traces

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pandas as pd

    from engine.raters.llm.model_server import ModelServer
    from evalmeta.mlflow.entities import Feedback, Trace

ROWS = [{"inputs": {"question": "open?", "style": "short"}, "outputs": "Yes.", "expectations": {"tone": "kind"}}]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def saying_always(output: object) -> AbstractContextManager[ModelServer]:
    scored = {"nonce": NONCE_PLACE, "explanation": "That is why.", "output": output}
    return serving(lambda _: saying(json.dumps(scored)))


def rater_of(server: ModelServer) -> dict[str, object]:
    return {"adapter": "llm", "model": "judge-1", "url": server.url}


@pytest.mark.parametrize(
    ("kind", "output", "value", "mean", "verdict"),
    [
        (bool, "yes", True, 1, Verdict.PASS),
        (bool, "no", False, 0, Verdict.FAILURE),
        (Literal["yes", "no"], "no", "no", 0, Verdict.FAILURE),
        (Literal["good", "bad"], "Good", "good", None, Verdict.UNDECIDED),
        (Literal[1, 2, 3], "3", 3, 3, Verdict.UNDECIDED),
        (int, 4, 4, 4, Verdict.UNDECIDED),
        (float, 0.123456789, 0.123456789, 0.123456789, Verdict.UNDECIDED),
        (str, "yes, kind", "yes, kind", None, Verdict.UNDECIDED),
        (None, "kind", "kind", None, Verdict.UNDECIDED),
        (list[str], ["a", "b"], ["a", "b"], None, Verdict.UNDECIDED),
        (list[int], [], [], None, Verdict.UNDECIDED),
    ],
)
@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_a_judge_returns_values_of_its_type_and_only_yes_and_true_pass(
    kind: object, output: object, value: object, mean: float | None, verdict: Verdict
) -> None:
    tone = make_judge(name="tone", instructions="Rate {{ outputs }}.", feedback_value_type=kind)
    with saying_always(output) as server:
        result = mlflow.genai.evaluate(data=ROWS, scorers=[tone], rater=rater_of(server))

    [row] = cast("pd.DataFrame", result.result_df).to_dict("records")
    assert row["tone/value"] == value
    assert type(row["tone/value"]) is type(value)
    assert "That is why." in str(row["tone/rationale"])
    assert result.metrics == ({} if mean is None else {"tone/mean": mean})
    assert result.run.run.cases[0].results[0].verdict is verdict
    assert result.passed is (verdict is Verdict.PASS)


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
@pytest.mark.parametrize(
    ("kind", "output"), [(int, "four"), (Literal["good", "bad"], "fair"), (list[int], [1, "b"]), (list[str], "a")]
)
def test_a_value_of_another_type_is_an_error_and_never_a_value(kind: object, output: object) -> None:
    tone = make_judge(name="tone", instructions="Rate {{ outputs }}.", feedback_value_type=kind)
    with saying_always(output) as server:
        result = mlflow.genai.evaluate(data=ROWS, scorers=[tone], rater=rater_of(server))

    assert math.isnan(result.metrics["tone/mean"])
    assert result.run.run.cases[0].results[0].verdict is Verdict.ERROR
    assert not result.passed


def test_a_judge_reads_what_its_instructions_name_and_no_text_of_the_agent_becomes_an_instruction() -> None:
    instructions = "Is {{ outputs }} to {{ inputs }} as {{ expectations }}?"
    tone = make_judge(name="tone", instructions=instructions, feedback_value_type=bool)
    with saying_always("yes") as server:
        mlflow.genai.evaluate(data=ROWS, scorers=[tone], rater=rater_of(server))

    [body, *_] = server.bodies
    system, user = (message["content"] for message in body["messages"])
    assert '{"tone": "kind"}' in system
    assert "{{" not in system.partition("conform to this JSON Schema")[0]
    assert "Yes." not in system
    assert json.loads(user)["session"]["inputs"] == {"question": "open?", "style": "short"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"instructions": "Rate {{ user }}."}, r"names \{\{ user \}\} It can name \{\{ inputs \}\}"),
        ({"instructions": "Rate it."}, "does not name what it judges"),
        ({"instructions": "{{ conversation }} and {{ outputs }}"}, "judges sessions and single answers"),
        ({"feedback_value_type": dict[str, int]}, "which evalmeta's rater cannot return .* a judge for each"),
        ({"feedback_value_type": list}, "which evalmeta's rater cannot return"),
        ({"feedback_value_type": float | None}, "which evalmeta's rater cannot return"),
    ],
)
def test_a_judge_that_cannot_judge_is_refused_when_it_is_made(words: dict[str, object], message: str) -> None:
    given = {"name": "tone", "instructions": "Rate {{ outputs }}.", "feedback_value_type": bool, **words}
    with pytest.raises(UsageError) as caught:
        make_judge(**given)  # type: ignore[arg-type]
    assert caught.match(message.partition(" .* ")[0].partition(" It can")[0])


def answer(question: str) -> str:
    with mlflow.start_span("look_up", span_type="TOOL") as span:
        span.set_outputs("open")
    return f"{question} Yes."


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_a_judge_of_traces_reads_the_actions_and_decides_nothing_without_them() -> None:
    careful = make_judge(name="careful", instructions="Is {{ trace }} careful?", feedback_value_type=bool)
    rows = [{"inputs": {"question": "open?"}}]
    with saying_always("yes") as server:
        known = mlflow.genai.evaluate(data=rows, predict_fn=answer, scorers=[careful], rater=rater_of(server))
        asked = json.loads(server.bodies[0]["messages"][1]["content"])
        unknown = mlflow.genai.evaluate(
            data=rows, predict_fn=lambda question: question, scorers=[careful], rater=rater_of(server)
        )

    assert known.metrics == {"careful/mean": 1}
    assert asked["lastInteraction"]["agentLoop"]["steps"][0]["name"] == "look_up"
    assert math.isnan(unknown.metrics["careful/mean"])
    assert not unknown.passed


@pytest.fixture
def traces() -> list[Trace]:
    """Two sessions, of two questions and one, the first one last, and a trace without a session."""

    @mlflow.trace
    def ask(question: str, session: str) -> str:
        if session:
            mlflow.update_current_trace(session_id=session)
        return answer(question)

    with recorded_traces() as recorded:
        for question, session in (("Where?", "a"), ("When?", "b"), ("This is wrong?", "a"), ("Who?", "")):
            ask(question, session)
        for number, trace in enumerate(recorded):
            trace.info.request_time = number
    return list(reversed(recorded))


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_scorers_of_sessions_read_all_answers_of_a_session_in_their_order(traces: list[Trace]) -> None:
    @scorer
    def turns(session: list[Trace]) -> int:
        assert [trace.info.request_time for trace in session] in ([2, 0], [1])
        return len(session)

    longer = make_judge(name="steps", instructions="Rate {{ conversation }}.", feedback_value_type=int)
    judges = [longer, turns]
    with saying_always(7) as server:
        result = mlflow.genai.evaluate(data=traces, scorers=judges, rater=rater_of(server))

    read = [json.loads(body["messages"][1]["content"])["session"]["runs"] for body in server.bodies]
    questions = {tuple(run["messages"][0]["message"] for run in runs) for runs in read}
    assert questions == {("Where?", "This is wrong?"), ("When?",)}
    rows = cast("pd.DataFrame", result.result_df).to_dict("records")
    assert [row["request"]["question"] for row in rows] == ["Who?", "This is wrong?", "When?", "Where?"]
    assert [row["steps/value"] for row in rows[2:]] == [7, 7]
    assert [row["turns/value"] for row in rows[2:]] == [1, 2]
    assert all(math.isnan(row[name]) for row in rows[:2] for name in ("steps/value", "turns/value"))
    assert result.metrics == {"steps/mean": 7, "turns/mean": 1.5}


@pytest.mark.parametrize(
    ("made", "output", "verdict"),
    [
        (scorers.ConversationCompleteness(), "no", Verdict.FAILURE),
        (scorers.ConversationalSafety(), "yes", Verdict.PASS),
        (scorers.ConversationalToolCallEfficiency(), "yes", Verdict.PASS),
        (scorers.ConversationalRoleAdherence(), "yes", Verdict.PASS),
        (scorers.ConversationalGuidelines(guidelines="Be kind."), "yes", Verdict.PASS),
        (scorers.KnowledgeRetention(), "no", Verdict.FAILURE),
        (scorers.UserFrustration(), "none", Verdict.UNDECIDED),
        (scorers.UserFrustration(), "unresolved", Verdict.FAILURE),
    ],
    ids=lambda made: getattr(made, "name", None),
)
@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_built_in_scorers_of_sessions_judge_a_session(
    made: scorers.Scorer, output: str, verdict: Verdict, traces: list[Trace]
) -> None:
    with saying_always(output) as server:
        result = mlflow.genai.evaluate(data=traces, scorers=[made], rater=rater_of(server))
    verdicts = [[judged.verdict for judged in case.results] for case in result.run.run.cases]
    assert verdicts == [[], [], [verdict], [verdict]]


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_actions_of_a_session_are_only_judged_if_those_of_all_answers_are_known(traces: list[Trace]) -> None:
    # The trace of the first answer of the longer session has lost its spans.
    traces[-1].data.spans.clear()
    traces[-1].info.trace_metadata |= {"mlflow.traceInputs": '"Where?"', "mlflow.traceOutputs": '"Yes."'}
    with saying_always("yes") as server:
        efficiency = scorers.ConversationalToolCallEfficiency()
        result = mlflow.genai.evaluate(data=traces, scorers=[efficiency], rater=rater_of(server))
    verdicts = [[judged.verdict for judged in case.results] for case in result.run.run.cases]
    assert verdicts == [[], [], [Verdict.PASS], [Verdict.UNDECIDED]]


def test_a_scorer_of_sessions_can_be_called_with_traces(traces: list[Trace], tmp_path: Path) -> None:
    with saying_always("resolved") as server:
        settings = f'[score]\nrater = "judge"\n[raters.judge]\nadapter = "llm"\nmodel = "m"\nurl = "{server.url}"\n'
        (tmp_path / "evalmeta.toml").write_text(settings, encoding="utf-8")
        feedback = cast("Feedback", scorers.UserFrustration()(session=traces))
    assert feedback.value == "resolved"
    with pytest.raises(UsageError, match="judges a session"):
        scorers.UserFrustration()(outputs="Yes.")
