from __future__ import annotations

import math
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import pytest

from cli.conftest import evalmeta  # noqa: F401 - a fixture
from evalmeta import mlflow
from evalmeta.engine.interfaces import Rating
from evalmeta.errors import UsageError
from evalmeta.mlflow.entities import Feedback, Trace
from evalmeta.mlflow.genai import make_judge, scorers
from evalmeta.mlflow.genai.scorers import Correctness, RegexMatch, Safety, ToolCallCorrectness, scorer
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.systems.mlflow.original_traces import with_spans
from evalmeta.systems.mlflow.tracing import recorded_traces
from evalmeta.systems.mlflow.tracking import new_notices, noted_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome
    from evalmeta.engine.interfaces import Rubric

ROWS = [{"inputs": {"question": "open?"}, "outputs": "Yes.", "expectations": {"expected_response": "Yes."}}]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with new_notices():
        yield


@scorer
def passes(outputs: object) -> bool:
    return bool(outputs)


def never(question: str) -> str:
    raise AssertionError(f"asked {question}")


def judge(rubric: Rubric) -> Rating:
    verdict = Verdict.FAILURE if "wrong" in rubric.actual else Verdict.PASS
    return Rating(0 if verdict is Verdict.FAILURE else 5, verdict, f"because of {rubric.metric}", "judge")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"scorers": passes}, "scorers is of type _FunctionScorer, not a list"),
        ({"scorers": []}, "there are no scorers"),
        ({"scorers": [Safety]}, "Safety is a class, not a scorer Write Safety()."),
        ({"scorers": [never]}, "is not a scorer Write @scorer above the function"),
        ({"scorers": [scorer(lambda answer: answer)]}, "has the parameter 'answer' It can have: inputs, outputs"),
        ({"scorers": [scorer(lambda session: session)]}, "judges sessions, and predict_fn answers single rows"),
        (
            {"scorers": [scorers.UserFrustration()], "data": ROWS, "predict_fn": None},
            "the scorer 'user_frustration' judges sessions, and no row has a trace with a session id",
        ),
        ({"scorers": [scorers.ExpectationsGuidelines()]}, "needs: 'guidelines' in 'expectations'"),
        ({"scorers": [scorer(aggregations=["meen"])(lambda: 1)]}, "'meen' is not an aggregation Did you mean 'mean'?"),
        ({"data": []}, "the data has no rows"),
        ({"data": "rows.json"}, "the data is of type str, not rows"),
        ({"data": [{"inputs": "open?"}]}, "row 1: 'inputs' is of type str, not a dict of arguments"),
        ({"data": [{"inputs": {"query": "open?"}}]}, "the inputs of row 1: missing a required argument: 'question'"),
        ({"data": [{"outputs": "Yes."}]}, "row 1 has no 'inputs' for predict_fn"),
        ({"data": ROWS, "predict_fn": "agent"}, "predict_fn is of type str, not a function"),
        ({"data": [{"inputs": {"question": "?"}}], "predict_fn": None}, "row 1 has neither 'outputs' nor 'trace'"),
        ({"predictfn": never}, "mlflow.genai.evaluate has no keyword 'predictfn' Did you mean 'predict_fn'?"),
    ],
)
def test_bad_input_is_one_error_before_the_first_question(call: dict[str, object], message: str) -> None:
    given = {"data": [{"inputs": {"question": "open?"}}], "predict_fn": never, "scorers": [passes], **call}
    with pytest.raises(UsageError) as caught:
        mlflow.genai.evaluate(**given)  # type: ignore[arg-type]
    assert message in " ".join((str(caught.value), *caught.value.actions))


@pytest.mark.parametrize(
    ("returned", "value", "verdict"),
    [
        (True, True, Verdict.PASS),
        ("No", "No", Verdict.FAILURE),
        (0.25, 0.25, Verdict.UNDECIDED),
        ("formal", "formal", Verdict.UNDECIDED),
        (["a", "b"], "a", Verdict.UNDECIDED),
        (None, None, Verdict.UNDECIDED),
        ([], None, Verdict.UNDECIDED),
        (Feedback(value="yes", rationale="so"), "yes", Verdict.PASS),
        (Feedback(error=ValueError("down")), None, Verdict.ERROR),
        (float("nan"), None, Verdict.ERROR),
        ({"score": 1}, None, Verdict.ERROR),
    ],
)
def test_only_a_yes_and_true_pass_and_the_table_has_each_value(
    returned: object, value: object, verdict: Verdict
) -> None:
    given = scorer(name="says")(lambda: returned)
    is_judged = verdict in {Verdict.PASS, Verdict.FAILURE}
    with (
        nullcontext() if is_judged else pytest.warns(UserWarning, match=r"results that were not judged: \d; the first")
    ):
        result = mlflow.genai.evaluate(data=ROWS, scorers=[given])

    [case] = result.run.run.cases
    assert case.results[0].verdict is verdict
    [row] = cast("pd.DataFrame", result.result_df).to_dict("records")
    assert row["says/value"] == value
    assert result.passed is (verdict is Verdict.PASS)
    assert result.run.succeeded is (verdict is Verdict.PASS)


NEITHER = "which is not yes, no, True or False; use pass_if to say which values pass"


@pytest.mark.parametrize(
    ("returned", "warnings"),
    [
        (0.0, [f"2; the first: says: row 1: returned 0.0, {NEITHER}"]),
        ("good", [f'2; the first: says: row 1: returned "good", {NEITHER}']),
        (None, ["1; the first: no scorer returned a value that passes"]),
        ("no", []),
    ],
)
def test_one_warning_says_why_values_that_nothing_judged_do_not_pass(
    returned: object, warnings: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    result = mlflow.genai.evaluate(data=ROWS * 2, scorers=[scorer(name="says")(lambda: returned)])
    assert not result.passed
    prefix = "cases or results that were not judged: "
    assert [str(warning.message).removeprefix(prefix) for warning in recwarn] == warnings


def test_a_value_that_pass_if_judges_is_not_warned_of() -> None:
    judged = scorer(name="says", pass_if=lambda value: value > 0.5)(lambda: 0.7)  # type: ignore[operator] # a number
    assert mlflow.genai.evaluate(data=ROWS, scorers=[judged]).passed


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_an_agent_that_fails_is_not_scored_and_does_not_count() -> None:
    def answer(question: str) -> str:
        if question == "b":
            raise RuntimeError("down")
        return question

    result = mlflow.genai.evaluate(
        data=[{"inputs": {"question": letter}} for letter in "ab"], predict_fn=answer, scorers=[passes]
    )

    assert result.metrics == {"passes/mean": 1}
    assert not result.passed
    assert "row 2: " in result.reason
    assert [row["state"] for row in cast("pd.DataFrame", result.result_df).to_dict("records")] == ["OK", "ERROR"]


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_a_metric_that_nothing_could_judge_is_not_a_number() -> None:
    with pytest.warns(UserWarning, match="the model 'openai:/gpt-4' of a scorer is not asked"):
        result = mlflow.genai.evaluate(data=ROWS, scorers=[Safety(model="openai:/gpt-4"), Correctness()])

    assert math.isnan(result.metrics["safety/mean"])
    assert result.metrics["correctness/mean"] == 1
    assert not result.passed


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_built_in_scorers_see_what_the_trace_of_the_agent_says() -> None:
    @mlflow.trace(span_type="RETRIEVER")
    def retrieve(question: str) -> list[dict[str, object]]:
        return [{"page_content": f"{question} 9 to 5", "metadata": {"doc_uri": "hours.md"}}]

    @mlflow.trace(span_type="TOOL")
    def look_up(day: str) -> str:
        return f"{day}: open"

    def answer(question: str) -> str:
        retrieve(question)
        return look_up("Monday")

    wanted = [scorers.RetrievalGroundedness(), scorers.RetrievalRelevance(), ToolCallCorrectness()]
    result = mlflow.genai.evaluate(
        data=[{"inputs": {"question": "open?"}}], predict_fn=answer, scorers=wanted, rater=judge
    )

    assert result.metrics == {
        "retrieval_groundedness/mean": 1,
        "retrieval_relevance/precision/mean": 1,
        "tool_call_correctness/mean": 1,
    }


def test_calls_of_tools_that_models_answer_are_actions_if_no_tool_is_recorded() -> None:
    function = {"name": "get_order", "arguments": '{"id": 7}'}
    call = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    result_of_tool = {"role": "tool", "tool_call_id": "c1", "content": '{"state": "sent"}'}

    @mlflow.trace(span_type="CHAT_MODEL")
    def model(messages: list[object]) -> dict[str, object]:
        answer = call if len(messages) == 1 else {"role": "assistant", "content": "Sent."}
        return {"choices": [{"message": answer}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}

    def answer(question: str) -> str:
        asked: list[object] = [{"role": "user", "content": question}]
        model(asked)
        model([*asked, call, result_of_tool])
        return "Sent."

    result = mlflow.genai.evaluate(data=[{"inputs": {"question": "?"}}], predict_fn=answer, scorers=[passes])

    generated = result.run.run.cases[0].generated
    assert generated is not None
    assert [(action.name, action.input, action.output) for action in generated.actions or ()] == [
        ("get_order", {"id": 7}, {"state": "sent"})
    ]
    assert generated.tokens is not None
    assert (generated.tokens.input, generated.tokens.output) == (6, 2)


def test_spans_of_another_trace_take_their_place_below_the_root() -> None:
    with recorded_traces() as traces:
        with mlflow.start_span("ours"):
            pass
        with mlflow.start_span("theirs") as root:
            mlflow.update_current_trace(session_id="s")
            with mlflow.start_span("model"), mlflow.start_span("tool"):
                pass
    joined = with_spans(*traces)

    [ours, model, tool] = joined.data.spans
    assert [(span.name, span.trace_id) for span in joined.data.spans] == [
        (name, ours.trace_id) for name in ("ours", "model", "tool")
    ]
    assert (model.parent_id, tool.parent_id) == (ours.span_id, model.span_id)
    assert root.span_id not in {span.span_id for span in joined.data.spans}
    assert joined.info.trace_metadata["mlflow.trace.session"] == "s"


def test_scorers_with_one_name_are_counted_together_and_have_columns_of_their_own() -> None:
    result = mlflow.genai.evaluate(
        data=ROWS, scorers=[RegexMatch(pattern="Yes"), RegexMatch(pattern="No")], options=RunOptions(concurrency=1)
    )

    assert result.metrics == {"regex_match/mean": 0.5}
    [row] = cast("pd.DataFrame", result.result_df).to_dict("records")
    assert (row["regex_match/value"], row["regex_match 2/value"]) == ("yes", "no")


def test_an_interrupted_evaluation_is_resumed_from_its_journal(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return question

    def run() -> mlflow.genai.EvaluationResult:
        rows = [{"inputs": {"question": letter}} for letter in "ab"]
        return mlflow.genai.evaluate(data=rows, predict_fn=answer, scorers=[passes], journal=tmp_path / "journal")

    first, again = run(), run()

    assert sorted(asked) == ["a", "b"]
    assert first.metrics == again.metrics == {"passes/mean": 1}
    assert cast("pd.DataFrame", again.result_df)["response"].tolist() == ["a", "b"]


def test_runs_of_a_project_are_in_its_history_and_a_run_without_one_leaves_nothing(
    tmp_path: Path,
    evalmeta: Callable[..., Outcome],  # noqa: F811 - the fixture
) -> None:
    mlflow.set_experiment("/Shared/desk")
    mlflow.genai.evaluate(ROWS, [passes])
    assert not list(tmp_path.iterdir())

    (tmp_path / "evalmeta.toml").touch()
    result = mlflow.genai.evaluate(ROWS, [passes], model_id="m-1")

    assert "desk" in evalmeta("test", "history").out
    shown = evalmeta("test", "results", "--job-id", result.run_id, "-v")
    assert "1 passed" in shown.out
    assert result.run.run.cases[0].metadata == {"model_id": "m-1"}


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_an_agent_that_records_no_steps_does_not_report_its_actions() -> None:
    def answer(question: str) -> str:
        return question

    result = mlflow.genai.evaluate(
        data=[{"inputs": {"question": "open?"}}],
        predict_fn=answer,
        scorers=[ToolCallCorrectness(), passes],
        rater=judge,
        options=RunOptions(),
    )
    assert math.isnan(result.metrics["tool_call_correctness/mean"])
    assert not result.passed


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_values_of_data_frames_stay_what_they_are() -> None:
    frame = pd.DataFrame(
        {
            "inputs": [{"words": np.array(["a", "b"]), "rate": float("nan"), "text": "NaN"}],
            "outputs": [{"count": np.int64(2)}],
            "expectations": [{"expected_facts": np.array(["a fact"])}],
        }
    )
    seen: list[object] = []
    keep = scorer(name="keep")(lambda inputs, outputs, expectations: seen.append((inputs, outputs, expectations)))
    mlflow.genai.evaluate(frame, [keep])

    [(inputs, outputs, expectations)] = cast("list[tuple[object, object, object]]", seen)
    assert inputs == {"words": ["a", "b"], "rate": None, "text": "NaN"}
    assert outputs == {"count": 2}
    assert expectations == {"expected_facts": ["a fact"]}


def test_a_chat_completion_says_its_text_its_tool_calls_and_its_tokens() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"day": "Monday"}'}}
    message = {"role": "assistant", "content": "At 9.", "tool_calls": [call]}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}

    def answer(messages: list[dict[str, str]]) -> dict[str, object]:
        return {"choices": [{"message": {**message, "content": f"{messages[0]['content']} At 9."}}], "usage": usage}

    inputs = {"messages": [{"role": "user", "content": "Open?"}]}
    result = mlflow.genai.evaluate([{"inputs": inputs}], [passes], answer)

    generated = result.run.run.cases[0].generated
    assert generated is not None
    assert generated.outcome == "Open? At 9."
    assert generated.tokens is not None
    assert (generated.tokens.input, generated.tokens.output) == (3, 2)
    assert [(action.name, action.input) for action in generated.actions or ()] == [("look_up", {"day": "Monday"})]


@pytest.mark.filterwarnings("ignore:.*not judged")
def test_what_has_no_effect_is_said_once() -> None:
    def call_twice() -> None:
        for _ in range(2):
            mlflow.genai.evaluate(ROWS, [given])
            Safety(model="openai:/gpt-4")(inputs={"question": "open?"}, outputs="Yes.")
            mlflow.genai.judges.is_safe(content="Yes.", model="openai:/gpt-4")

    given = scorer(timeout=5)(lambda outputs: outputs == "Yes.")
    with pytest.warns(UserWarning, match="has no effect in evalmeta") as warned:
        call_twice()

    said = [str(warning.message) for warning in warned]
    assert [text.partition(" has no effect")[0] for text in said] == ["the timeout of a scorer", "the model of a judge"]


def test_secrets_that_a_script_logs_are_hidden_in_the_metadata_of_its_cases() -> None:
    with mlflow.start_run():
        mlflow.log_params({"api_key": "abcd1234efgh5678ijkl", "model": "small"})
        mlflow.set_tag("header", "Bearer abcdefgh12345678ijklmnop")
        metadata = noted_metadata(None)
    assert metadata == {"param.api_key": "[secret]", "param.model": "small", "tag.header": "[secret]"}


def test_a_rater_that_is_a_function_decides_for_judges_by_instructions() -> None:
    concise = make_judge(name="concise", instructions="Is {{ outputs }} short?", feedback_value_type=bool)
    result = mlflow.genai.evaluate(
        data=[*ROWS, {"inputs": {"question": "?"}, "outputs": "wrong"}], scorers=[concise], rater=judge
    )
    assert result.metrics == {"concise/mean": 0.5}
    rows = cast("pd.DataFrame", result.result_df).to_dict("records")
    assert [row["concise/value"] for row in rows] == [True, False]


@pytest.mark.parametrize(
    ("text", "detected"),
    [
        ("Your order confirmation is ABC-123, version 1.2.3, 100 %.", ""),
        ("Write to alice.b+c@example.co.uk.", "email"),
        ("a@b, @someone and user@host", ""),
        ("Call 555-123-4567", "phone"),
        ("Call +4930123456 or (555) 123-4567", "phone"),
        ("Order 12345678", ""),
        ("SSN 123-45-6789", "ssn"),
        ("Card 4111 1111 1111 1111", "credit_card"),
        ("Card 378282246310005", "credit_card"),
        ("Server 192.168.0.1.", "ip_address"),
        ("Version 256.1.1.1", ""),
        ("a@b.de from 10.0.0.1", "email, ip_address"),
        ("x" * 100_000 + "." * 100_000, ""),
    ],
    ids=lambda value: value[:20],
)
def test_personal_data_in_an_answer_is_named(text: str, detected: str) -> None:
    feedback = scorers.PIIDetection()(outputs=text)
    assert (feedback.value, feedback.rationale) == (
        "no" if detected else "yes",
        f"the answer has {detected or 'no personal data'}",
    )


def test_only_the_kinds_of_personal_data_that_are_named_count() -> None:
    assert scorers.PIIDetection(pii_types=["email"])(outputs="Call 555-123-4567").value == "yes"
    with pytest.raises(ValueError, match="pii_types"):
        scorers.PIIDetection(pii_types=["iban"])


@pytest.mark.parametrize(
    "find",
    [
        lambda: mlflow.MlflowClient,  # type: ignore[attr-defined]
        lambda: mlflow.genai.to_predict_fn,  # type: ignore[attr-defined]
        lambda: scorers.Ragas,  # type: ignore[attr-defined]
    ],
)
def test_what_is_missing_says_that_no_mlflow_is_installed(find: Callable[[], object]) -> None:
    with pytest.raises(AttributeError, match="and no installed MLflow has it"):
        find()


# The public names of mlflow.genai.scorers in MLflow 3.17; a test with MLflow itself holds them to it.
INSTEAD_OF_ENSEMBLES = ("make_scorer_ensemble", "agg_all", "agg_any", "majority_vote", "maximum", "mean", "minimum")
INSTEAD_OF_REGISTRY = ("ScorerSamplingConfig", "get_scorer", "list_scorers", "delete_scorer")
JUDGES_ANSWERS = (
    *("Completeness", "Correctness", "Equivalence", "ExpectationsGuidelines", "Fluency", "Guidelines", "PIIDetection"),
    *("RegexMatch", "RelevanceToQuery", "ResponseLength", "RetrievalGroundedness", "RetrievalRelevance"),
    *("RetrievalSufficiency", "Safety", "Summarization", "ToolCallCorrectness", "ToolCallEfficiency"),
)
JUDGES_SESSIONS = (
    *("ConversationCompleteness", "ConversationalGuidelines", "ConversationalRoleAdherence", "ConversationalSafety"),
    *("ConversationalToolCallEfficiency", "KnowledgeRetention", "UserFrustration"),
)


def test_every_scorer_of_mlflow_is_here_or_says_what_to_use_instead() -> None:
    needed = {"guidelines": "Be kind.", "pattern": "a", "max_length": 1}
    for names, of_sessions in ((JUDGES_ANSWERS, False), (JUDGES_SESSIONS, True)):
        for name in names:
            made = getattr(scorers, name)(**needed)
            assert isinstance(made, scorers.Scorer), name
            assert made.is_session_level_scorer is of_sessions, name
            assert name in scorers.__all__
    for names, instead in ((INSTEAD_OF_ENSEMBLES, "pass all scorers"), (INSTEAD_OF_REGISTRY, "keep scorers in your")):
        for name in names:
            with pytest.raises(AttributeError, match=f"{name}.*no installed MLflow has it; {instead}"):
                getattr(scorers, name)


def test_traces_are_written_as_mlflow_reads_them_and_read_again() -> None:
    @mlflow.trace(span_type="TOOL")
    def fails(city: str) -> str:
        raise LookupError(city)

    @mlflow.trace
    def agent(city: str) -> str:
        mlflow.update_current_trace(tags={"team": "shop"})
        try:
            return fails(city)
        except LookupError:
            return "unknown"

    agent("Rome")
    trace = mlflow.get_trace(str(mlflow.get_last_active_trace_id()))
    assert trace is not None
    again = Trace.from_json(trace.to_json())

    assert again.to_dict() == trace.to_dict()
    assert again.info.tags == {"team": "shop"}
    assert again.search_spans(span_type="TOOL")[0].status.status_code == "ERROR"
    assert again.search_spans(name="agent")[0].outputs == "unknown"
    with pytest.raises(UsageError, match="cannot apply filter_string"):
        mlflow.search_traces(filter_string="status = 'OK'")


def test_generators_and_coroutines_are_recorded_when_they_end() -> None:
    @mlflow.trace(output_reducer="".join)  # type: ignore[arg-type]
    def parts() -> Iterator[str]:
        yield "a"
        yield "b"

    assert list(parts()) == ["a", "b"]
    trace = mlflow.get_trace(str(mlflow.get_last_active_trace_id()))
    assert trace is not None
    assert trace.data.spans[0].outputs == "ab"
    assert mlflow.get_current_active_span() is None


@pytest.mark.slow
def test_evalmeta_loads_nothing_of_this_wing_by_itself() -> None:
    code = "import sys, evalmeta; from evalmeta.cli import main; print([m for m in sys.modules if 'mlflow' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_traces_of_an_evaluation_are_found_by_its_run_with_what_was_expected_and_found() -> None:
    @mlflow.trace
    def agent(question: str) -> str:
        return question

    @scorer
    def breaks(outputs: object) -> bool:
        raise ValueError(f"no luck with {outputs}")

    agent("outside of any run")
    rows = [{"inputs": {"question": "open?"}, "expectations": {"expected_response": "Yes."}, "tags": {"shop": "1"}}]
    with mlflow.start_run() as run:
        result = mlflow.genai.evaluate(rows, [passes, breaks], agent)

    assert run.data.metrics["passes/mean"] == 1
    assert mlflow.search_traces(run_id="another", return_type="list") == []
    for run_id in (result.run_id, run.info.run_id):
        (trace,) = cast("list[Trace]", mlflow.search_traces(run_id=run_id, return_type="list"))
        read = Trace.from_json(trace.to_json())
        assert read.info.tags == {"shop": "1"}
        assert [(noted.name, noted.value) for noted in read.search_assessments(type="expectation")] == [
            ("expected_response", "Yes.")
        ]
        passed, broken = cast("list[Feedback]", read.search_assessments(type="feedback"))
        assert (passed.name, passed.value) == ("passes", True)
        assert broken.name == "breaks"
        assert "no luck with open?" in str(broken.error_message)
