from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import pandas as pd
import pytest

import evalmeta
from evalmeta import databricks
from evalmeta.engine.interfaces import Rating
from evalmeta.errors import FormatError, NotFound, RaterError, SettingsError, UsageError
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.systems.databricks.metrics import METRICS
from report.test_html_notebook import HARMLESS, Elements

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Rubric
    from evalmeta.model.json_value import JsonObject

TRACE = {
    "info": {
        "trace_id": "tr-1",
        "execution_duration_ms": 1500,
        "trace_metadata": {"mlflow.trace.tokenUsage": '{"input_tokens": 10, "output_tokens": 5}'},
    },
    "data": {"spans": []},
}
CONTEXT = [
    {"doc_uri": "a: b.md", "content": "Spark is an engine."},
    {"doc_uri": "c.md", "content": "off"},
    {"doc_uri": "bare.md"},
]
GUIDELINES = ["The response must be in English", "The response must be clear, coherent, and concise"]
EVAL_SET: list[JsonObject] = [
    {
        "request_id": "r-1",
        "request": {"query": "What is Spark?", "history": [{"role": "user", "content": "Hi"}]},
        "response": "An engine.",
        "expected_facts": ["engine"],
        "expected_retrieved_context": [{"doc_uri": "a: b.md"}, {"doc_uri": "missing.md"}],
        "retrieved_context": CONTEXT,
        "guidelines": {"tone": ["kind"], "length": ["short"]},
        "trace": TRACE,
    },
    {"request": "What is RDD?", "response": "wrong", "expected_response": "A dataset."},
]


def judge(rubric: Rubric) -> Rating:
    """A rater that says no to wrong or irrelevant texts, and yes to all others."""
    if "unsure" in rubric.actual:
        raise RaterError("no answer")
    is_bad = "wrong" in rubric.actual or [passage.content for passage in rubric.passages] == ["off"]
    verdict = Verdict.FAILURE if is_bad else Verdict.PASS
    return Rating(0 if is_bad else 5, verdict, f"because of {rubric.metric.split('/')[2]}", "judge")


def rows_of(result: databricks.EvaluationResult) -> list[dict[str, object]]:
    table = cast("pd.DataFrame", result.tables["eval_results"])
    rows = cast("list[dict[str, object]]", table.astype(object).where(table.notna(), None).to_dict("records"))
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def test_recorded_answers_are_judged_under_the_documented_names() -> None:
    config = {"databricks-agent": {"global_guidelines": GUIDELINES}}
    result = databricks.evaluate(
        data=pd.DataFrame(EVAL_SET), model_type="databricks-agent", evaluator_config=config, rater=judge
    )

    assert result.metrics == {
        "response/llm_judged/relevance_to_query/rating/percentage": 0.5,
        "response/llm_judged/safety/rating/percentage": 0.5,
        "response/llm_judged/groundedness/rating/percentage": 1.0,
        "retrieval/llm_judged/chunk_relevance/precision/average": 0.5,
        "response/llm_judged/correctness/rating/percentage": 0.5,
        "retrieval/llm_judged/context_sufficiency/rating/percentage": 1.0,
        "response/llm_judged/guideline_adherence/tone/rating/percentage": 1.0,
        "response/llm_judged/guideline_adherence/length/rating/percentage": 1.0,
        "response/llm_judged/global_guideline_adherence/rating/percentage": 0.5,
        "retrieval/ground_truth/document_recall/average": 0.5,
        "agent/total_token_count/average": 15.0,
        "agent/input_token_count/average": 10.0,
        "agent/output_token_count/average": 5.0,
        "agent/latency_seconds/average": 1.5,
    }
    first, second = rows_of(result)
    assert json.loads(str(first.pop("trace"))) == TRACE
    assert first == {
        "request_id": "r-1",
        "request": {"messages": [{"role": "user", "content": "Hi"}, {"role": "user", "content": "What is Spark?"}]},
        "response": "An engine.",
        "retrieved_context": [{"content": None, **each} for each in CONTEXT],
        "expected_facts": ["engine"],
        "guidelines": {"tone": ["kind"], "length": ["short"]},
        "expected_retrieved_context": [{"doc_uri": "a: b.md"}, {"doc_uri": "missing.md"}],
        **yes("response/llm_judged/relevance_to_query"),
        **yes("response/llm_judged/safety"),
        **yes("response/llm_judged/groundedness", more=" (1 of 3 passages have no content)"),
        "retrieval/llm_judged/chunk_relevance/ratings": ["yes", "no"],
        "retrieval/llm_judged/chunk_relevance/rationales": ["because of chunk_relevance"] * 2,
        "retrieval/llm_judged/chunk_relevance/precision": 0.5,
        **yes("response/llm_judged/correctness"),
        **yes("retrieval/llm_judged/context_sufficiency", more=" (1 of 3 passages have no content)"),
        **yes("response/llm_judged/guideline_adherence/tone", "guideline_adherence"),
        **yes("response/llm_judged/guideline_adherence/length", "guideline_adherence"),
        **yes("response/llm_judged/global_guideline_adherence"),
        "retrieval/ground_truth/document_recall": 0.5,
        "agent/total_token_count": 15.0,
        "agent/input_token_count": 10.0,
        "agent/output_token_count": 5.0,
        "agent/latency_seconds": 1.5,
        "overall_assessment/rating": "yes",
    }
    assert "request_id" not in second
    assert second["expected_response"] == "A dataset."
    assert second["response/llm_judged/correctness/rating"] == "no"
    assert second["overall_assessment/rating"] == "no"
    assert second["overall_assessment/rationale"] == "because of correctness"
    assert second["root_cause_assessment/root_cause"] == "correctness"
    assert not result.run.succeeded


def yes(base: str, metric: str = "", *, more: str = "") -> dict[str, object]:
    return {f"{base}/rating": "yes", f"{base}/rationale": f"because of {metric or base.split('/')[2]}{more}"}


def test_a_function_is_asked_with_history_and_answers_of_the_data_do_not_matter() -> None:
    asked: list[tuple[str, list[str]]] = []

    def agent(utterance: str, history: list[dict[str, str]]) -> dict[str, object]:
        asked.append((utterance, [each["message"] for each in history]))
        return {"outcome": "An engine.", "retrieved": [{"doc_uri": "a: b.md"}], "tokens": {"input": 2, "output": 1}}

    with pytest.warns(UserWarning, match="not judged: 6; the first: no retrieved context with content"):
        result = databricks.evaluate(data=EVAL_SET, model=agent, rater=judge, options=RunOptions(concurrency=1))

    assert asked == [("What is Spark?", ["Hi"]), ("What is RDD?", [])]
    assert [row["response"] for row in rows_of(result)] == ["An engine.", "An engine."]
    assert result.metrics["agent/total_token_count/average"] == 3
    assert result.metrics["retrieval/ground_truth/document_recall/average"] == 0.5
    assert result.metrics["response/llm_judged/correctness/rating/percentage"] == 1
    assert result.run.run.subject_name == "agent"


def test_a_tree_of_steps_is_not_in_the_column_that_is_read_as_a_trace_of_mlflow() -> None:
    def agent(utterance: str) -> dict[str, object]:
        steps = {"steps": [{"kind": "agent", "name": "desk"}]}
        return {"outcome": f"{utterance} An engine.", "trace": steps, "retrieved": CONTEXT[:1]}

    asked = databricks.evaluate(data=[{"request": "What is Spark?"}], model=agent, rater=judge)
    (row,) = rows_of(asked)
    again = databricks.evaluate(data=[row], rater=judge)

    assert "trace" not in row
    assert rows_of(again)[0]["response"] == row["response"] == "What is Spark? An engine."


def test_without_a_language_model_judges_say_why_they_did_not() -> None:
    with pytest.warns(UserWarning, match="cases or results that were not judged: 4"):
        result = databricks.evaluate(data=[{"request": "q", "response": "a", "retrieved_context": CONTEXT}])
    [row] = rows_of(result)
    assert len(result.metrics) == 4
    assert all(math.isnan(each) for each in result.metrics.values())
    table = cast("pd.DataFrame", result.tables["eval_results"])
    assert {"overall_assessment/rating", "root_cause_assessment/root_cause"} <= set(table.columns)
    for metric in ("response/llm_judged/safety", "retrieval/llm_judged/chunk_relevance"):
        assert "an LLM rater" in str(row[f"{metric}/error_message"])
    assert "overall_assessment/rating" not in row


def test_errors_of_judges_and_agents_stand_in_their_rows() -> None:
    def agent(_: str) -> str:
        raise ValueError("out of order")

    with pytest.warns(UserWarning, match="not rated: no answer"):
        [judged] = rows_of(databricks.evaluate(data=[{"request": "q", "response": "unsure"}], rater=judge))
    with pytest.warns(UserWarning, match="out of order"):
        failed = databricks.evaluate(data=[{"request": "q"}], model=agent)
    [asked] = rows_of(failed)
    assert "response/llm_judged/safety/rating/percentage" in failed.metrics
    assert judged["response/llm_judged/safety/error_message"] == "not rated: no answer"
    assert "out of order" in str(asked["model_error_message"])
    assert "response" not in asked


def test_irrelevant_passages_are_the_root_cause() -> None:
    row = {"request": "q", "response": "fine", "retrieved_context": [{"doc_uri": "c", "content": "off"}]}
    [found] = rows_of(databricks.evaluate(data=[row], rater=judge))
    assert found["root_cause_assessment/root_cause"] == "chunk_relevance"
    assert found["response/llm_judged/safety/rating"] == "no"


def test_a_file_is_evaluated_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "eval_set.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in EVAL_SET))
    for path in (file, str(file)):
        result = databricks.evaluate(data=path, rater=judge)
        assert [row.get("request_id") for row in rows_of(result)] == ["r-1", None]
        assert result.run.run.definition == "eval_set"


def test_chosen_metrics_and_notes_reach_the_result() -> None:
    config = {"databricks-agent": {"metrics": ["safety"]}}
    data = [{"request": "q", "response": "a", "expected": "x"}]
    with pytest.warns(UserWarning, match="'expected' is not a known column; it is ignored. Did you mean"):
        result = databricks.evaluate(data=data, evaluator_config=config, rater=judge, name="mine")
    assert list(result.metrics) == ["response/llm_judged/safety/rating/percentage"]
    assert ["'expected' is not a known column" in note.message for note in result.notes] == [True]
    assert result.run.run.definition == "mine"


def test_a_metric_without_its_columns_says_which_it_needs() -> None:
    config = {"databricks-agent": {"metrics": ["correctness"]}}
    with pytest.warns(UserWarning, match="'correctness' needs: 'expected_facts' or 'expected_response' and 'response'"):
        databricks.evaluate(data=[{"request": "q", "response": "a"}], evaluator_config=config, rater=judge)


def test_columns_of_tables_have_their_order_whatever_row_is_first() -> None:
    def columns(rows: list[JsonObject]) -> list[str]:
        return list(cast("pd.DataFrame", databricks.evaluate(data=rows, rater=judge).tables["eval_results"]).columns)

    there, back = columns(EVAL_SET), columns(EVAL_SET[::-1])
    assert there[:7] == back[:7]
    assert there[-3:] == back[-3:]


def test_rationales_are_the_words_of_the_judge() -> None:
    def sampled(_: Rubric) -> Rating:
        return Rating(5, Verdict.PASS, "2 of 3 samples (1 unread): it is kind: yes", "judge")

    [row] = rows_of(databricks.evaluate(data=[{"request": "q", "response": "a"}], rater=sampled))
    assert row["response/llm_judged/safety/rationale"] == "it is kind: yes"


def test_a_notebook_shows_the_numbers_that_print_shows() -> None:
    result = databricks.evaluate(data=EVAL_SET, rater=judge)
    shown, printed = Elements(result._repr_html_()), str(result)

    assert "2 cases" in printed
    assert "2 cases" in shown.text
    for name, value in result.metrics.items():
        text = "not judged" if math.isnan(value) else f"{value:,.3f}".rstrip("0").rstrip(".")
        assert f"{name}: {text}\n" in f"{printed}\n"
        assert f"{name}{text}" in shown.text
    assert shown.names <= HARMLESS
    assert repr(result).startswith("<EvaluationResult <FinishedRun eval_set ")


def test_a_notebook_shows_metrics_and_answers_that_look_like_html_as_text() -> None:
    rows = [{"request": "<b>q</b>", "response": "<script>alert(1)</script>", "guidelines": {"<img src=x>": ["kind"]}}]
    result = databricks.evaluate(data=rows, rater=lambda _: Rating(0, Verdict.FAILURE, "<i>no</i>", "judge"))
    shown = Elements(result._repr_html_())

    assert shown.names <= HARMLESS
    assert "<i>no</i>" in shown.text


def test_a_notebook_does_not_show_thousands_of_metrics() -> None:
    rows = [{"request": "q", "response": "a", "guidelines": {f"rule {number}": ["kind"] for number in range(500)}}]
    html = databricks.evaluate(data=rows, rater=judge)._repr_html_()

    assert len(html) < 20_000
    assert "more metrics; print the result to see all" in html


def test_it_works_in_a_running_loop_and_can_be_awaited_there() -> None:
    async def work() -> list[databricks.EvaluationResult]:
        blocking = databricks.evaluate(data=EVAL_SET, rater=judge)
        return [blocking, await databricks.evaluate_async(data=EVAL_SET, rater=judge)]

    first, second = asyncio.run(work())
    assert rows_of(first) == rows_of(second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            {"model_type": "databricks-agents"},
            "'databricks-agents' is not a valid model type Did you mean 'databricks-agent'?",
        ),
        ({"evaluator_config": {"agent": {}}}, "'agent' is not a valid evaluator of evaluator_config"),
        ({"evaluator_config": {"databricks-agent": []}}, "the configuration of databricks-agent is of type list"),
        (
            {"evaluator_config": {"databricks-agent": {"metric": []}}},
            "'metric' is not a valid setting of databricks-agent Did you mean 'metrics'?",
        ),
        ({"evaluator_config": {"databricks-agent": {"metrics": ["recall"]}}}, "'recall' is not a known metric"),
        ({"data": [{"request": "q"}]}, "there is no model to ask, and row 1 has neither 'response' nor 'trace'"),
        ({"data": 3}, "int is not a table of rows"),
        (
            {"evaluator_confg": {}},
            "databricks.evaluate has no keyword 'evaluator_confg' Did you mean 'evaluator_config'?",
        ),
        ({"model": "models:/mine/1"}, "the model 'models:/mine/1' is an address that only MLflow can load"),
    ],
)
def test_an_invalid_call_is_reported_before_anything_is_judged(call: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        databricks.evaluate(**{"data": EVAL_SET, **call})  # type: ignore[arg-type]
    assert " ".join((str(caught.value), *caught.value.actions)).startswith(message)


def test_invalid_data_is_reported_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="data: row 2: it has both 'expected_facts' and 'expected_response'"):
        databricks.evaluate(data=[EVAL_SET[1], {**EVAL_SET[0], "expected_response": "x"}])
    with pytest.raises(NotFound, match=r"the file .* cannot be found"):
        databricks.evaluate(data=tmp_path / "none.jsonl")


WITHOUT_PANDAS = """
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None
import evalmeta
from evalmeta import databricks
from evalmeta.errors import UsageError
result = databricks.evaluate(data=[{"request": "q", "response": "a"}])
print(type(result.tables["eval_results"]).__name__, result.tables["eval_results"][0]["response"])
open("x.parquet", "wb").write(b"PAR1")
try:
    databricks.evaluate(data="x.parquet")
except UsageError as error:
    print(error, *error.actions)
"""


@pytest.mark.slow
def test_without_the_extra_tables_are_lists_and_parquet_names_it(tmp_path: Path) -> None:
    output = subprocess.run(
        [sys.executable, "-c", WITHOUT_PANDAS], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert output.stdout.splitlines() == [
        "list a",
        (
            "x.parquet is a Parquet file, and reading it needs pyarrow, which is not installed "
            "Run: pip install 'evalmeta[databricks]' Or save it as JSON Lines."
        ),
    ]


def test_every_metric_has_a_scorer() -> None:
    from evalmeta.engine.scorers import SCORERS

    assert {metric.name for metric in METRICS} <= SCORERS.keys()


class ChatAgent:
    """As MLflow's class of this name, which takes messages."""

    __module__ = "mlflow.pyfunc.model"

    def predict(self, request: dict[str, list[dict[str, str]]]) -> dict[str, object]:
        return {"messages": [{"role": "assistant", "content": request["messages"][-1]["content"].upper(), "id": "1"}]}


class ResponsesAgent:
    """As MLflow's class of this name, which takes input."""

    __module__ = "mlflow.pyfunc.model"

    def predict(self, request: dict[str, list[dict[str, str]]]) -> dict[str, object]:
        text = {"type": "output_text", "text": request["input"][-1]["content"].upper()}
        return {"output": [{"type": "message", "role": "assistant", "content": [text]}]}


def of_request(request: dict[str, list[dict[str, str]]]) -> str:
    return request["messages"][-1]["content"].upper()


def of_messages(messages: list[dict[str, str]]) -> str:
    return messages[-1]["content"].upper()


def of_text(request: str) -> str:
    return request.upper()


@pytest.mark.parametrize("model", [ChatAgent(), ResponsesAgent(), of_request, of_messages, of_text])
def test_agents_receive_messages_unless_they_ask_for_a_text(model: object) -> None:
    config = {"databricks-agent": {"metrics": ["safety"]}}
    result = databricks.evaluate(data=[{"request": "Is it sent?"}], model=model, rater=judge, evaluator_config=config)
    [row] = rows_of(result)
    assert row["response"] == "IS IT SENT?"
    assert result.run.run.subject_name == getattr(model, "__name__", type(model).__name__)


class Asked(ChatAgent):
    """Keeps its requests, and says how many messages it read."""

    def __init__(self) -> None:
        self.requests: list[dict[str, list[dict[str, str]]]] = []

    def predict(self, request: dict[str, list[dict[str, str]]]) -> dict[str, object]:
        self.requests.append(request)
        said = {"role": "assistant", "content": f"{len(request['messages'])} messages"}
        return {"messages": [said], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}


@databricks.trace(span_type="TOOL")
def get_order(number: int) -> dict[str, object]:
    return {"number": number, "state": "sent"}


@databricks.trace(span_type="RETRIEVER")
def search(question: str) -> list[dict[str, object]]:
    return [{"page_content": f"{question} In a day.", "metadata": {"doc_uri": "sending.md"}}]


def recorded_agent(model_input: dict[str, list[dict[str, str]]]) -> str:
    search(model_input["messages"][-1]["content"])
    get_order(7)
    return "Sent."


async def recorded_later(question: str) -> str:
    return recorded_agent({"messages": [{"content": question}]})


def reporting_agent(question: str) -> dict[str, object]:
    get_order(7)
    return {"response": f"{question} Sent.", "actions": [], "retrieved_context": [{"doc_uri": "own.md"}]}


def silent_agent(question: str) -> str:
    return f"{question} Sent."


@pytest.mark.parametrize(
    ("model", "actions", "passages"),
    [
        (recorded_agent, ["get_order"], ["sending.md"]),
        (recorded_later, ["get_order"], ["sending.md"]),
        (reporting_agent, [], ["own.md"]),
        (silent_agent, None, None),
    ],
)
def test_spans_of_a_model_complete_its_answer_and_change_nothing_that_it_says(
    model: object, actions: list[str] | None, passages: list[str] | None
) -> None:
    config = {"databricks-agent": {"metrics": ["safety"]}}
    result = databricks.evaluate(data=[{"request": "Is it sent?"}], model=model, rater=judge, evaluator_config=config)
    [case] = result.run.run.cases
    assert case.generated is not None
    known, retrieved = case.generated.actions, case.generated.retrieved
    assert (known if known is None else [action.name for action in known]) == actions
    assert (retrieved if retrieved is None else [passage.uri for passage in retrieved]) == passages


def test_models_receive_the_keys_of_a_request_and_other_context_as_custom_inputs() -> None:
    message = {"role": "user", "content": "Is it sent?"}
    request = {"messages": [message], "custom_inputs": {"city": "Bonn"}, "temperature": 0.5}
    asked = Asked()
    config = {"databricks-agent": {"metrics": ["safety"]}}
    result = databricks.evaluate(data=[{"request": request}], model=asked, rater=judge, evaluator_config=config)
    assert asked.requests == [request]
    [case] = result.run.run.cases
    assert case.generated is not None
    assert case.generated.tokens is not None
    assert (case.generated.tokens.input, case.generated.tokens.output) == (5, 2)


def test_files_ask_models_with_the_messages_so_far_and_custom_inputs(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    messages = [*history, {"role": "user", "content": "Is it sent?"}]
    row = {"request": {"messages": messages, "custom_inputs": {"city": "Bonn"}, "plan": "gold"}}
    (tmp_path / "eval_set.jsonl").write_text(json.dumps(row), encoding="utf-8")
    asked = Asked()
    evalmeta.evaluate(tmp_path / "eval_set.jsonl", asked)
    assert [(sent["messages"], sent["custom_inputs"]) for sent in asked.requests] == [
        (messages, {"city": "Bonn", "plan": "gold"})
    ]


def test_an_object_with_predict_that_is_not_of_mlflow_is_refused_before_the_first_question() -> None:
    class Model:
        def predict(self, request: object) -> str:
            raise AssertionError(request)

    with pytest.raises(SettingsError, match="neither a function nor an object with the method open"):
        databricks.evaluate(data=[{"request": "Is it sent?"}], model=Model())


def test_the_precision_of_passages_has_the_name_of_the_input_schema_too() -> None:
    config = {"databricks-agent": {"metrics": ["chunk_relevance_precision"]}}
    result = databricks.evaluate(data=EVAL_SET[:1], evaluator_config=config, rater=judge)
    assert result.metrics["retrieval/llm_judged/chunk_relevance/precision/average"] == 0.5
    assert "response/llm_judged/safety/rating/percentage" not in result.metrics
