"""`mlflow.trace` and `mlflow.start_span` record what an agent does."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, cast

import pytest

from evalmeta import limits, mlflow
from evalmeta.errors import UsageError
from evalmeta.mlflow.entities import Trace
from evalmeta.systems.mlflow.assessments import AssessmentSource
from evalmeta.systems.mlflow.tracking import new_notices

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import pandas as pd


@pytest.fixture(autouse=True)
def _new_notices() -> Iterator[None]:
    with new_notices():
        yield


def last_trace() -> Trace:
    trace = mlflow.get_trace(str(mlflow.get_last_active_trace_id()))
    assert trace is not None
    return trace


def test_an_asynchronous_generator_is_recorded_with_its_arguments_and_all_parts() -> None:
    @mlflow.trace(name="stream", attributes={"model": "small"})
    async def parts(word: str) -> AsyncIterator[str]:
        for letter in word:
            yield letter

    async def read() -> list[str]:
        return [part async for part in parts("ab")]

    assert asyncio.run(read()) == ["a", "b"]
    [span] = last_trace().data.spans
    assert (span.name, span.inputs, span.outputs) == ("stream", {"word": "ab"}, ["a", "b"])
    assert span.attributes["model"] == "small"


def test_a_reducer_joins_the_parts_of_an_asynchronous_generator() -> None:
    @mlflow.trace(output_reducer="".join)  # type: ignore[arg-type]
    async def parts() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    async def read() -> None:
        assert [part async for part in parts()] == ["a", "b"]

    asyncio.run(read())
    assert last_trace().data.response == '"ab"'


def test_a_generator_that_fails_is_an_error_of_its_trace_and_has_no_outputs() -> None:
    @mlflow.trace
    def parts() -> Iterator[str]:
        yield "a"
        raise LookupError("no more")

    with pytest.raises(LookupError):
        list(parts())
    [span] = last_trace().data.spans
    assert (last_trace().info.state, span.outputs) == ("ERROR", None)
    assert span.status.description == "LookupError: no more"


def test_arguments_that_do_not_fit_are_recorded_as_they_came_and_the_error_is_pythons() -> None:
    @mlflow.trace
    def greet(name: str) -> str:
        return name

    with pytest.raises(TypeError, match="unexpected keyword"):
        greet("Ada", 2, loud=True)  # type: ignore[call-arg]
    assert last_trace().data.spans[0].inputs == {"0": "Ada", "1": 2, "loud": True}


def test_a_trace_keeps_at_most_the_allowed_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TRACE_SPANS", 2)
    with mlflow.start_span("agent"):
        for _ in range(5):
            with mlflow.start_span("step"):
                pass
    assert [span.name for span in last_trace().data.spans] == ["agent", "step"]


def test_the_trace_that_runs_takes_tags_session_user_and_previews_and_outside_of_one_nothing_happens() -> None:
    with mlflow.start_span("agent") as span:
        assert mlflow.get_current_active_span() is span
        assert mlflow.get_active_trace_id() == span.request_id
        span.set_inputs({"question": "open?"})
        mlflow.update_current_trace(
            {"team": "shop"}, {"build": "7"}, session_id="s", user="ada", request_preview="Are you open?"
        )
    info = last_trace().info
    mlflow.update_current_trace({"team": "other"})
    assert (info.tags, info.request_preview, info.response_preview) == ({"team": "shop"}, "Are you open?", "null")
    assert info.trace_metadata == {"build": "7", "mlflow.trace.session": "s", "mlflow.trace.user": "ada"}
    assert mlflow.get_active_trace_id() is None


def test_feedback_and_expectations_are_noted_on_their_trace_and_written_with_it() -> None:
    with mlflow.start_span("agent"):
        pass
    trace_id = last_trace().info.trace_id
    by = AssessmentSource("HUMAN", "ada")
    mlflow.log_feedback(trace_id=trace_id, name="polite", value=True, source=by, rationale="It says please.")
    mlflow.log_expectation(trace_id=trace_id, name="expected_response", value="Yes.")

    again = Trace.from_json(last_trace().to_json())
    [feedback] = again.search_assessments(type="feedback")
    [expectation] = again.search_assessments("expected_response")
    assert (feedback.name, feedback.value, feedback.source, getattr(feedback, "rationale", "")) == (
        *("polite", True, by),
        "It says please.",
    )
    assert (expectation.value, expectation.source) == ("Yes.", AssessmentSource("HUMAN", "default"))
    assert again.search_assessments("polite", type="expectation") == []


def test_a_note_on_a_trace_that_this_process_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="this process has no trace 'tr-unknown'"):
        mlflow.log_feedback(trace_id="tr-unknown", value=True)
    with pytest.raises(UsageError, match="tr-unknown"):
        mlflow.log_expectation(trace_id="tr-unknown", name="expected_response", value="Yes.")


def test_traces_are_found_the_newest_first_as_a_list_a_data_frame_or_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        with mlflow.start_span(name) as span:
            span.set_outputs(name)
    listed = cast("list[Trace]", mlflow.search_traces(max_results=2, return_type="list"))
    assert [trace.data.response for trace in listed] == ['"second"', '"first"']

    frame = cast("pd.DataFrame", mlflow.search_traces(max_results=2))
    monkeypatch.setitem(sys.modules, "pandas", None)
    rows = cast("list[dict[str, object]]", mlflow.search_traces(max_results=2))
    assert frame.to_dict("records") == rows
    assert [row["trace_id"] for row in rows] == [trace.info.trace_id for trace in listed]
    assert [(row["state"], row["response"]) for row in rows] == [("OK", '"second"'), ("OK", '"first"')]
    assert Trace.from_json(str(rows[0]["trace"])).data.spans[0].name == "second"


def test_what_chooses_among_traces_of_a_server_is_a_warning_and_an_order_an_error() -> None:
    with pytest.warns(UserWarning, match="experiment_ids of mlflow.search_traces has no effect"):
        mlflow.search_traces(experiment_ids=["0"], max_results=1)
    with pytest.raises(UsageError, match="cannot apply order_by=") as caught:
        mlflow.search_traces(order_by=["timestamp_ms DESC"])
    assert caught.value.actions[0].startswith("Choose among what it returns, or pass the result of MLflow's own")


def test_a_coroutine_is_recorded_with_what_it_returns_when_it_is_awaited() -> None:
    @mlflow.trace
    async def agent(question: str) -> str:
        await asyncio.sleep(0)
        return question.upper()

    assert asyncio.run(agent("open?")) == "OPEN?"
    [span] = last_trace().data.spans
    assert (span.name, span.inputs, span.outputs) == ("agent", {"question": "open?"}, "OPEN?")
