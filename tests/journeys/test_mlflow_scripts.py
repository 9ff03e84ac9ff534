"""Scripts as MLflow's documentation teaches them run with only their imports changed."""

from __future__ import annotations

import asyncio
import json
import math
from typing import TYPE_CHECKING, cast

import pytest

from evalmeta.systems.mlflow.tracking import new_notices
from journeys.mlflow_runs import judge_of, metrics_of, run_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from evalmeta.databricks import EvaluationResult as DatabricksResult
    from evalmeta.mlflow.genai import EvaluationResult


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with new_notices():
        yield


def result_of(name: str, folder: Path) -> EvaluationResult:
    return cast("EvaluationResult", run_script(name, folder)["result"])


def rows_of(result: EvaluationResult) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", cast("pd.DataFrame", result.result_df).to_dict("records"))


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_functions_judge_answers_and_a_scorer_that_raises_does_not_count_its_row(tmp_path: Path) -> None:
    result = result_of("custom_scorers", tmp_path)

    assert result.metrics == {
        "exact_match/mean": pytest.approx(2 / 3),
        "length/min": 17,
        "length/max": 38,
        "length/mean": pytest.approx(77 / 3),
        "length/median": 22,
        "length/variance": pytest.approx(80.2222, abs=1e-3),
        "length/p90": pytest.approx(34.8),
        "tool_calls/mean": pytest.approx(2 / 3),
        "polite/mean": pytest.approx(1 / 3),
        "ends_with_dot/mean": 1,
        "words/mean": 6,
        "breaks_at_long_ones/mean": 1,
    }
    first, _, third = rows_of(result)
    assert (first["tone/value"], first["tone/rationale"]) == ("plain", "by its style")
    assert "ValueError: too long for me" in str(third["breaks_at_long_ones/error_message"])
    assert third["tags"] == {"topic": "orders"}
    assert third["state"] == "OK"
    # The run is evalmeta's: the case whose scorer raised is an ERROR, and the actions of the agent are known.
    cases = result.run.run.cases
    assert result.run_id == result.run.run.id
    assert result.run.run.definition == "shop"
    assert not result.run.succeeded
    assert cases[0].generated is not None
    assert cases[0].generated.actions is None
    assert cases[1].generated is not None
    assert [action.name for action in cases[1].generated.actions or ()] == ["get_order"]
    assert [passage.uri for passage in cases[1].generated.retrieved or ()] == ["sending.md"]
    assert not result.passed
    assert "exact_match: row 2: value=false" in result.reason


def test_classes_of_scorers_and_scorers_of_texts_judge_given_outputs(tmp_path: Path) -> None:
    result = result_of("scorer_classes", tmp_path)

    assert result.metrics == {
        "mentions_all/mean": 0.5,
        "mentions_one/mean": 0.5,
        "shouts/mean": 0.5,
        "few_words/mean": 3,
        "regex_match/mean": 0.5,
        "response_length/mean": 0.5,
    }
    assert [row["few_words/value"] for row in rows_of(result)] == [4, 2]
    assert "few_words" not in result.reason


def test_agents_return_objects_which_scorers_receive_as_they_are(tmp_path: Path) -> None:
    result = result_of("structured_values", tmp_path)

    assert result.metrics == {"has_priority/mean": 0.5, "keeps_labels/mean": 1}
    assert rows_of(result)[0]["response"] == {"ticket": {"title": "Lost Parcel", "priority": 2}, "labels": ["a", "b"]}


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_traces_that_were_recorded_before_are_judged(tmp_path: Path) -> None:
    result = result_of("recorded_traces", tmp_path)

    assert result.metrics == {"knows/mean": 0.5, "right_about_knowing/mean": 1, "asked_for/mean": 1, "tools/mean": 1}
    assert sorted(str(row["trace_id"])[:3] for row in rows_of(result)) == ["tr-", "tr-"]


def test_what_a_script_tells_a_tracking_server_is_kept_as_metadata_or_noticed_once(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="has no effect in evalmeta") as warned:
        result = result_of("datasets_and_runs", tmp_path)

    assert len([warning for warning in warned if "autolog" in str(warning.message)]) == 1
    assert result.metrics == {"right/mean": 0.5}
    assert result.run.run.cases[0].metadata == {
        "run_name": "nightly",
        "param.model": "small",
        "param.temperature": "0.1",
        "tag.team": "shop",
    }


def test_built_in_scorers_ask_the_rater_of_the_project(tmp_path: Path) -> None:
    with judge_of(tmp_path) as server:
        variables = run_script("judges", tmp_path)
    result = cast("EvaluationResult", variables["result"])

    assert result.metrics == dict.fromkeys(
        (
            *("correctness/mean", "relevance_to_query/mean", "safety/mean", "retrieval_groundedness/mean"),
            *("expectations_guidelines/mean", "english/mean", "concise/mean", "guidelines/mean"),
        ),
        0.5,
    )
    first, second = rows_of(result)
    assert (first["english/value"], second["english/value"]) == ("yes", "no")
    assert first["correctness/rationale"] == "That is why."
    assert variables["feedback"].value == "yes"  # type: ignore[attr-defined]
    assert variables["feedback"].source.source_type == "LLM_JUDGE"  # type: ignore[attr-defined]
    assert len(server.bodies) == 16


def test_without_a_model_as_judge_nothing_that_needs_one_passes_and_it_is_said_once(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not judged: 16; the first: only an LLM rater can judge this") as warned:
        result = result_of("judges", tmp_path)

    needs = ("correctness", "safety", "retrieval_groundedness", "expectations_guidelines", "english", "concise")
    assert all(math.isnan(result.metrics[f"{name}/mean"]) for name in needs)
    assert math.isnan(result.metrics["guidelines/mean"])
    assert not result.passed
    assert len(warned) == 1
    assert all(row["safety/value"] is None for row in rows_of(result))


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_conversations_are_judged_as_a_whole_with_the_traces_of_their_session(tmp_path: Path) -> None:
    with judge_of(tmp_path):
        variables = run_script("sessions", tmp_path)
        broken = run_script("sessions", tmp_path, changes={'else "Which order?"': 'else "This is wrong."'})
    result, frustrated = (cast("EvaluationResult", variables[name]) for name in ("result", "frustrated"))

    assert result.metrics == {
        "conversation_completeness/mean": 1,
        "polite/mean": 1,
        "turns/mean": 1.5,
        "mentions_an_order/mean": 1,
    }
    assert sorted(str(row["polite/value"]) for row in rows_of(result)) == ["None", "True", "True"]
    assert sorted(str(row["user_frustration/value"]) for row in rows_of(frustrated))[1:] == ["unresolved"] * 2
    worse = cast("EvaluationResult", broken["result"])
    assert worse.metrics["conversation_completeness/mean"] == 0.5
    assert "conversation_completeness: row" in worse.reason


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_a_notebook_searches_traces_and_judges_them_with_what_people_noted(tmp_path: Path) -> None:
    variables = run_script("notebook", tmp_path)
    recorded, result, again = (cast("EvaluationResult", variables[name]) for name in ("recorded", "result", "again"))

    assert result.metrics == {"exact/mean": 1, "passages/mean": 0.5}
    assert recorded.metrics["exact/mean"] == again.metrics["exact/mean"] == 1
    assert cast("pd.Series[object]", variables["best"])["passages/rationale"] == "hours.md"
    broken = run_script("notebook", tmp_path, changes={'else "I do not know."': 'else "I am a bot."'})
    assert cast("EvaluationResult", broken["result"]).metrics["exact/mean"] == 0.5


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_judges_return_numbers_words_and_lists(tmp_path: Path) -> None:
    with judge_of(tmp_path):
        result = result_of("ratings", tmp_path)

    assert result.metrics == {"quality/mean": 3, "length/mean": 11}
    first, second = rows_of(result)
    names = ("quality/value", "tone/value", "topics/value")
    assert [first[name] for name in names] == [5, "formal", ["places"]]
    assert [second[name] for name in names] == [1, "casual", []]


def test_a_gate_lets_a_script_pass_or_says_why_it_does_not(tmp_path: Path) -> None:
    assert result_of("quality_gate", tmp_path).passed
    with pytest.raises(AssertionError, match=r"pii_detection: row 1: the answer has phone"):
        run_script("quality_gate", tmp_path, changes={'f"Your order is': 'f"Call 555-123-4567: your order is'})
    with pytest.raises(AssertionError, match=r"looks_the_order_up: row 1: value=false"):
        run_script("quality_gate", tmp_path, changes={"{find_order(10045)['state']}": "sent"})


def test_answers_of_a_retrieval_agent_are_judged_with_their_passages(tmp_path: Path) -> None:
    with judge_of(tmp_path):
        variables = run_script("databricks_rag", tmp_path, door="from evalmeta import databricks as mlflow")
    result = cast("DatabricksResult", variables["result"])

    assert result.metrics == {
        "retrieval/llm_judged/chunk_relevance/precision/average": 0.75,
        "response/llm_judged/correctness/rating/percentage": 0.5,
        "response/llm_judged/groundedness/rating/percentage": 0.5,
        "response/llm_judged/guideline_adherence/english/rating/percentage": 0.5,
    }
    assert list(cast("pd.DataFrame", variables["display"])["response/llm_judged/correctness/rating"]) == ["yes", "no"]


def test_scripts_run_in_a_notebook_whose_event_loop_is_running(tmp_path: Path) -> None:
    async def cell() -> dict[str, object]:
        return metrics_of("structured_values", tmp_path)

    assert asyncio.run(cell())["metrics"] == {"has_priority/mean": 0.5, "keeps_labels/mean": 1}


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_agents_of_databricks_receive_the_request_with_its_messages(tmp_path: Path) -> None:
    with judge_of(tmp_path):
        variables = run_script("databricks_agent", tmp_path, door="from evalmeta import databricks as mlflow")
    result = cast("DatabricksResult", variables["result"])

    asked = sorted(cast("list[dict[str, object]]", variables["asked"]), key=json.dumps)
    assert asked == sorted(
        [
            {"messages": [{"role": "user", "content": "What is Spark?"}]},
            {"messages": [{"role": "user", "content": "What is wrong?"}], "custom_inputs": {"user": "7"}},
            {"messages": [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "And now?"}]},
        ],
        key=json.dumps,
    )
    metrics = {name: value for name, value in result.metrics.items() if name.startswith("response")}
    assert metrics == {
        "response/llm_judged/correctness/rating/percentage": pytest.approx(2 / 3),
        "response/llm_judged/global_guideline_adherence/english/rating/percentage": pytest.approx(2 / 3),
    }
    assert cast("pd.DataFrame", result.tables["eval_results"])["response"][0] == "About What is Spark?"
