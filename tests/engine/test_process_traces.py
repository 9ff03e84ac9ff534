from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from evalmeta import evaluate, limits
from evalmeta.engine import process_traces
from evalmeta.engine.process_traces import ProcessTraces
from evalmeta.errors import SettingsError, SubjectBusy, UsageError
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.steps import step_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta import FinishedRun
    from evalmeta.model.generated_data import GeneratedData

tracer = trace.get_tracer("the framework of the agent")


@contextmanager
def agent_span(name: str = "desk") -> Iterator[None]:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    with tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes):
        yield


def call_tool(order: str, result: str = "sent", **arguments: str) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_order",
        "gen_ai.tool.call.arguments": json.dumps({"id": order, **arguments}),
        "gen_ai.tool.call.result": result,
    }
    with tracer.start_as_current_span("execute_tool get_order", attributes=attributes):
        pass


def order_of(question: str) -> str:
    return question.rpartition(" ")[2]


def plain(question: str) -> str:
    with agent_span():
        call_tool(order_of(question))
    return "It is on its way."


async def in_the_loop(question: str) -> str:
    with agent_span():
        await asyncio.sleep(0.001)
        call_tool(order_of(question))
    return "It is on its way."


async def in_tasks_and_threads(question: str) -> str:
    with agent_span():
        await asyncio.gather(*(asyncio.to_thread(call_tool, order_of(question)) for _ in range(2)))
        await asyncio.create_task(asyncio.to_thread(call_tool, order_of(question)))
    return "It is on its way."


class Conversation:
    """An agent with sessions."""

    def open(self) -> Conversation:
        return Conversation()

    def ask(self, question: str) -> str:
        return plain(question)


def asked(agent: object, *questions: str, calls: int = 1, **options: int) -> FinishedRun:
    """Ask an agent, of which each case expects its own order in the actions."""
    cases = [
        {"input": question, "actions": [{"name": "get_order", "input": {"id": order_of(question)}}] * calls}
        for question in questions
    ]
    return evaluate(cases, agent, traces=True, options=RunOptions(**options))


def answers(run: FinishedRun) -> list[GeneratedData]:
    cases = sorted(run.run.cases, key=lambda case: case.number)
    return [case.generated for case in cases if case.generated]


def verdicts(run: FinishedRun) -> list[Verdict]:
    return [case.verdict for case in run.run.cases]


def reason(run: FinishedRun) -> str:
    return run.run.cases[0].results[0].explanation


@pytest.mark.parametrize(
    ("agent", "calls"), [(plain, 1), (in_the_loop, 1), (in_tasks_and_threads, 3), (Conversation, 1)]
)
def test_what_an_agent_did_comes_from_its_spans(agent: object, calls: int) -> None:
    run = asked(agent, "order 1", "order 2", calls=calls)
    assert verdicts(run) == [Verdict.PASS, Verdict.PASS]
    first = answers(run)[0]
    assert first.topic == "desk"
    assert [(done.name, done.output) for done in first.actions or ()] == [("get_order", "sent")] * calls
    assert isinstance(first.trace, dict)


@pytest.mark.parametrize("agent", [plain, in_the_loop, in_tasks_and_threads])
def test_200_cases_at_once_never_mix(agent: object) -> None:
    calls = 3 if agent is in_tasks_and_threads else 1
    run = asked(agent, *(f"order {number}" for number in range(200)), calls=calls, concurrency=200)
    assert verdicts(run) == [Verdict.PASS] * 200


def test_two_runs_at_once_in_one_process_never_mix() -> None:
    runs: dict[str, FinishedRun] = {}

    def ask(name: str) -> None:
        runs[name] = asked(in_the_loop, *(f"{name} {name}{number}" for number in range(20)))

    threads = [threading.Thread(target=ask, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdicts(run) for run in runs.values()] == [[Verdict.PASS] * 20] * 2


def test_each_turn_has_the_spans_of_its_own() -> None:
    turns = [
        {"input": f"order {number}", "actions": [{"name": "get_order", "input": {"id": f"{number}"}}]}
        for number in (1, 2)
    ]
    (case,) = evaluate([{"turns": turns}], Conversation, traces=True).run.cases
    assert case.verdict is Verdict.PASS
    assert [len(turn.generated.actions or ()) for turn in case.earlier] == [1]


def test_inputs_that_are_values_reach_the_agent() -> None:
    def answer(order: str) -> str:
        return plain(f"order {order}")

    run = evaluate([{"input": {"order": "7"}, "actions": ["get_order"]}], answer, traces=True)
    assert verdicts(run) == [Verdict.PASS]
    assert answers(run)[0].latency_ms is not None


def test_spans_of_other_work_in_the_process_are_ignored() -> None:
    def answer(question: str) -> str:
        contextvars.Context().run(call_tool, "other")
        with tracer.start_as_current_span("execute_tool cancel_order", context=Context()):
            pass
        return plain(question)

    assert verdicts(asked(answer, "order 1")) == [Verdict.PASS]


def test_no_action_is_not_passed_without_a_span() -> None:
    run = evaluate([{"input": "order 1", "actions": []}], lambda _: "Done.", traces=True)
    assert verdicts(run) == [Verdict.UNDECIDED]
    assert "the agent recorded no span in the turn; switch on the instrumentation of the agent's framework" in reason(
        run
    )
    assert "pydantic-ai: call Agent.instrument_all()" in reason(run)


def test_an_agent_that_runs_on_is_waited_for_but_not_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = threading.Event()

    def work(question: str, seconds: float) -> None:
        with agent_span():
            ends.wait(seconds)
            call_tool(order_of(question))

    def answer(question: str) -> str:
        seconds = 10 if question.startswith("endless") else 0.05
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work, question, seconds)).start()
        return "It is on its way."

    assert verdicts(asked(answer, "order 1")) == [Verdict.PASS]
    monkeypatch.setattr(limits, "TRACE_SECONDS", 0.1)
    run = asked(answer, "endless 2")
    ends.set()
    assert verdicts(run) == [Verdict.UNDECIDED]
    assert "spans of the turn have not ended within 0.1 s: 'invoke_agent desk'" in reason(run)


def test_what_the_agent_says_itself_counts_and_a_contradiction_is_reported() -> None:
    def answer(question: str) -> dict[str, object]:
        plain(question)
        return {"outcome": "Cancelled.", "actions": ["cancel_order"], "topic": "own"}

    run = asked(answer, "order 1")
    assert verdicts(run) == [Verdict.FAILURE]
    assert "the trace has other actions than the answer, whose actions count: get_order" in reason(run)
    assert answers(run)[0].topic == "own"


@pytest.mark.parametrize(("limit", "most"), [("MAX_TRACE_SPANS", 5), ("MAX_TRACE_BYTES", 5_000)])
def test_spans_of_a_case_are_bounded(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, limit, most)

    def answer(question: str) -> str:
        with agent_span():
            for _ in range(20):
                call_tool(order_of(question), "x" * 1_000)
        return "Done."

    run = asked(answer, "order 1")
    assert verdicts(run) == [Verdict.UNDECIDED]
    assert "larger than evalmeta keeps" in reason(run)


def test_a_trace_that_cannot_be_an_answer_costs_only_its_own_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ANSWER_CHARS", 5_000)

    def answer(question: str) -> str:
        with agent_span():
            call_tool(order_of(question), "x" * 9_000 if question.startswith("long") else "sent")
        return "Done."

    run = asked(answer, "order 1", "long 2", "order 3")
    assert verdicts(run) == [Verdict.PASS, Verdict.UNDECIDED, Verdict.PASS]


def test_nothing_is_held_after_a_run() -> None:
    asked(plain, "order 1")
    plain("order 2")
    gc.collect()
    assert not process_traces._PROCESSOR._expected  # noqa: SLF001 - nothing else shows it


def desk() -> Agent:
    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        question = str(messages[0].parts[0].content)  # type: ignore[union-attr] # the user's question
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("get_order", {"id": order_of(question)})])
        return ModelResponse(parts=[TextPart("It is on its way.")])

    agent = Agent(FunctionModel(model), name="order_desk")

    @agent.tool_plain
    async def get_order(id: str) -> str:  # noqa: A002, ARG001 - as tools are written
        await asyncio.sleep(0.001)
        return "sent"

    return agent


@pytest.fixture
def instrumented() -> Iterator[None]:
    Agent.instrument_all()
    yield
    Agent.instrument_all(instrument=False)


@pytest.mark.usefixtures("instrumented")
def test_a_framework_that_instruments_itself_needs_no_adapter() -> None:
    agent = desk()

    async def in_loop(question: str) -> str:
        return (await agent.run(question)).output

    def in_thread(question: str) -> str:
        # `run_sync` leaves its event loop open.
        return asyncio.run(in_loop(question))

    for answer in (in_loop, in_thread):
        run = asked(answer, *(f"order {number}" for number in range(10)))
        assert verdicts(run) == [Verdict.PASS] * 10
        first = answers(run)[0]
        assert first.topic == "order_desk"
        assert first.tokens
        assert first.tokens.total


def test_python_agents_of_settings_have_traces(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from engine.test_process_traces import plain as answer\n")
    agent = {"adapter": "python", "target": "shop:answer", "traces": True}
    run = evaluate([{"input": "order 1", "actions": ["get_order"]}], agent, root=tmp_path)
    assert verdicts(run) == [Verdict.PASS]


def test_traces_of_settings_are_switched_on_in_the_settings() -> None:
    agent = {"adapter": "python", "target": "json:dumps"}
    with pytest.raises(UsageError, match="needs an agent that is a Python object") as caught:
        evaluate([{"input": "Hi", "contains": "Hi"}], agent, traces=True)
    assert caught.value.actions == ("Write traces = true into the settings of the agent instead.",)


def test_a_provider_that_takes_no_processor_is_refused_before_the_first_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
    with pytest.raises(SettingsError, match=r"opentelemetry\.trace\.NoOpTracerProvider, which is set"):
        asked(pytest.fail, "order 1")


def test_a_processor_is_added_once_to_each_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    provider, traces = TracerProvider(), ProcessTraces()
    added: list[object] = []
    monkeypatch.setattr(provider, "add_span_processor", added.append)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    traces.listen()
    traces.listen()
    assert added == [traces]


def test_what_is_missing_is_named_before_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(SettingsError, match="OTEL_SDK_DISABLED"):
        asked(pytest.fail, "order 1")
    monkeypatch.delenv("OTEL_SDK_DISABLED")
    monkeypatch.setattr(process_traces, "find_spec", lambda name: None if name == "opentelemetry.sdk" else object())
    with pytest.raises(SettingsError, match="needs opentelemetry-sdk") as caught:
        asked(pytest.fail, "order 1")
    assert caught.value.actions == ("Run: pip install 'evalmeta[otel]'",)


class TooLateError(Exception):
    pass


def broken(question: str) -> str:
    with agent_span():
        call_tool(order_of(question))
        raise TooLateError("no more stock")


async def endless(question: str) -> str:
    with agent_span():
        call_tool(order_of(question))
        await asyncio.sleep(60)
    return "Never."


def blocked(question: str) -> str:
    with agent_span():
        call_tool(order_of(question))
        threading.Event().wait(3)
    return "Too late."


@pytest.mark.parametrize("agent", [broken, endless, blocked])
def test_the_steps_of_a_turn_that_ended_in_an_error_are_kept_and_never_judged(
    agent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRACE_ERROR_SECONDS", 0.05)
    cases = [{"turns": [{"input": f"order {number}", "actions": ["get_order"]} for number in (1, 2)]}]
    run = evaluate(cases, agent, traces=True, options=RunOptions(case_timeout=0.2))
    (case,) = run.run.cases
    assert (case.verdict, case.generated, case.results) == (Verdict.ERROR, None, ())
    assert case.unanswered
    tree = step_tree(case.unanswered)
    assert tree
    assert [(step.kind, step.name) for step in (*tree.steps, *tree.steps[0].steps)] == [
        ("agent", "desk"),
        ("tool", "get_order"),
    ]
    assert ("TooLateError: no more stock" in (tree.steps[0].error or "")) == (agent is broken)


def test_what_a_project_redacts_is_hidden_in_the_steps_of_a_turn_without_an_answer(tmp_path: Path) -> None:
    def answer(question: str) -> str:
        with agent_span():
            call_tool(order_of(question), "paid with 4012-8888")
            raise TooLateError

    (tmp_path / "evalmeta.toml").write_text("[redact]\npatterns = ['4012-8888']\n")
    (case,) = evaluate([{"input": "order 1", "actions": ["get_order"]}], answer, traces=True, root=tmp_path).run.cases
    assert "paid with [secret]" in str(case.unanswered)
    assert "4012-8888" not in str(case)


def test_an_error_without_spans_has_no_steps() -> None:
    def answer(question: str) -> str:
        if question.endswith("1"):
            raise TooLateError
        return plain(question)

    first, second = asked(answer, "order 1", "order 2").run.cases
    assert (first.verdict, first.unanswered) == (Verdict.ERROR, None)
    assert (second.verdict, second.unanswered) == (Verdict.PASS, None)


def test_a_busy_agent_that_is_asked_again_has_only_the_spans_of_its_answer() -> None:
    attempts: list[str] = []

    def answer(question: str) -> str:
        attempts.append(question)
        if len(attempts) == 1:
            plain("order 9")
            raise SubjectBusy("too many requests", after=0.001)
        return plain(question)

    run = asked(answer, "order 1", retries=1)
    assert verdicts(run) == [Verdict.PASS]
    assert run.run.cases[0].unanswered is None
