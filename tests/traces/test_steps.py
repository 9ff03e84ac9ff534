from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from evalmeta import limits
from evalmeta.model.steps import Step, StepKind, step_tree, tree_json
from traces.test_turns import RECORDINGS, ROOT, chat, span, turn_of, turns_of

if TYPE_CHECKING:
    from evalmeta.traces.spans import Span

NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))


def all_steps(*steps: Step) -> list[Step]:
    return [inner for step in steps for inner in (step, *all_steps(*step.steps))]


def lines(*steps: Step, level: int = 0) -> list[str]:
    return [
        text
        for step in steps
        for text in (f"{'  ' * level}{step.kind} {step.name}", *lines(*step.steps, level=level + 1))
    ]


def tool(span_id: str, parent: str = "a", *, start: int = 3, end: int = 5, **attributes: object) -> Span:
    return span(
        "execute_tool look_up",
        span_id,
        parent,
        start=start,
        end=end,
        gen_ai__operation__name="execute_tool",
        **attributes,
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_action_of_a_real_library_has_one_step_that_keeps_nothing_of_it_twice(name: str) -> None:
    for turn in turns_of(name):
        called = [step for step in all_steps(*turn.steps.steps) if step.action is not None]

        assert sorted(step.action for step in called if step.action is not None) == [*range(len(turn.actions or ()))]
        assert {(step.name, step.input, step.output) for step in called} <= {("", None, None)}
        for step in called:
            action = (turn.actions or ())[step.action or 0]
            assert action.latency_ms is None or step.duration_ms is None
        assert (turn.steps.left_out_steps, turn.steps.left_out_bytes) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_tokens_of_the_model_steps_are_those_of_the_turn(name: str) -> None:
    for turn in turns_of(name):
        used = [step.tokens for step in all_steps(*turn.steps.steps) if step.kind is StepKind.MODEL]
        if turn.rules.get("tokens") == "sum of the model calls":
            assert turn.tokens
            assert sum(tokens.input or 0 for tokens in used if tokens) == turn.tokens.input


def test_a_handoff_is_a_step_with_its_arguments_and_the_next_agent_is_inside_the_first() -> None:
    turn = turns_of("adk_2_content")[0]
    tree = step_tree(turn.generated())

    assert tree
    assert lines(*tree.steps) == [
        "agent triage",
        "  model small",
        "  tool transfer_to_agent",
        "  agent orders",
        "    model small",
        "    tool get_order",
        "    model small",
    ]
    handoff, called = (step for step in all_steps(*tree.steps) if step.kind is StepKind.TOOL)
    assert (handoff.action, handoff.input) == (None, '{"agent_name":"orders"}')
    assert (called.action, called.input, called.output) == (0, {"id": "10045"}, {"id": "10045", "state": "sent"})
    assert called.start_ms is not None
    assert handoff.start_ms is not None
    assert 0 < handoff.start_ms < called.start_ms


def test_spans_of_nodes_and_of_an_agent_inside_itself_are_no_steps() -> None:
    tree = turns_of("langchain_openinference")[0].steps

    assert lines(*tree.steps) == [
        "agent order_desk", "  model Model", "  tool ", "    retrieval Retriever", "  model Model",
    ]  # fmt: skip


def test_a_tool_without_details_has_its_time_and_its_error_in_the_step() -> None:
    failed = tool("c", gen_ai__tool__name="look_up", start=2_000_001, end=5_000_001)._replace(error="refused")

    turn = turn_of(ROOT, failed)

    (step,) = turn.steps.steps[0].steps
    assert turn.actions
    assert (turn.actions[0].latency_ms, turn.actions[0].error) == (None, None)
    assert (step.start_ms, step.duration_ms, step.error) == (2.0, 3.0, "refused")


def test_a_call_that_no_span_carried_out_is_a_step_behind_the_model_that_asked_for_it() -> None:
    turn = turn_of(
        ROOT, chat("b", "a", asked="Hello", call="look_up"), chat("c", "a", asked="x", answered="Hi", start=4)
    )

    tree = step_tree(turn.generated())

    assert tree
    assert lines(*tree.steps) == ["agent desk", "  model chat", "  tool look_up", "  model chat"]


def test_a_model_step_has_what_it_was_told_since_its_last_answer() -> None:
    said = [("user", "Hello"), ("assistant", "Hi"), ("system", "Be short."), ("user", "Where is it?")]
    messages = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said]
    model = chat("b", "a", asked="", answered="On its way.")
    model = model._replace(attributes={**model.attributes, "gen_ai.input.messages": messages})  # type: ignore[dict-item]

    (step,) = turn_of(ROOT, model).steps.steps[0].steps

    assert (step.input, step.output) == ("Be short.\nWhere is it?", "On its way.")


def test_a_call_of_a_model_inside_another_is_no_step_of_its_own() -> None:
    outer = chat("b", "a", asked="Hello", answered="Hi")

    assert len(turn_of(ROOT, outer, outer._replace(span_id="c", parent_id="b")).steps.steps[0].steps) == 1


def test_too_many_steps_are_cut_with_their_number() -> None:
    calls = [tool(f"c{number}", start=number + 1) for number in range(limits.MAX_STEPS + 40)]

    tree = turn_of(ROOT, *calls).steps

    assert len(all_steps(*tree.steps)) == limits.MAX_STEPS
    assert tree.left_out_steps == 41
    assert tree_json(tree)["left_out"] == {"steps": 41, "bytes": 0}


def test_steps_that_are_too_deep_are_cut_with_their_number() -> None:
    calls = [tool(f"c{number}", f"c{number - 1}" if number else "a", start=number + 1) for number in range(3_000)]

    tree = turn_of(ROOT, *calls).steps

    assert len(all_steps(*tree.steps)) == limits.MAX_STEP_DEPTH
    assert tree.left_out_steps == 3_001 - limits.MAX_STEP_DEPTH


def test_a_long_text_is_cut_with_the_number_of_bytes() -> None:
    long = "né " * 3_000

    tree = turn_of(ROOT, chat("b", "a", asked=long, answered="Hi")).steps

    (step,) = tree.steps[0].steps
    assert isinstance(step.input, str)
    kept, _, notice = step.input.partition("… ")
    assert len(kept.encode()) <= limits.MAX_STEP_TEXT_BYTES
    assert kept == long[: len(kept)]
    assert notice == f"({tree.left_out_bytes:,} more bytes)"
    assert len(kept.encode()) + tree.left_out_bytes == len(long.encode())


@pytest.mark.parametrize("character", ["x ", "\x01 ", "ж ", "\U0001f600 "])
def test_the_texts_of_a_tree_have_a_limit_together_and_the_answer_can_be_recorded(character: str) -> None:
    long = character * limits.MAX_STEP_TEXT_BYTES
    models = [chat(f"c{number}", "a", asked=long, answered="Hi", start=number + 1) for number in range(300)]

    turn = turn_of(ROOT, *models)

    assert len(orjson.dumps(tree_json(turn.steps))) < limits.MAX_STEPS_BYTES + 300 * 300
    assert turn.steps.left_out_bytes > 300 * limits.MAX_STEP_TEXT_BYTES - limits.MAX_STEPS_BYTES


@pytest.mark.parametrize("words_before", [0, 1, 2, 3, 4])
def test_no_half_of_a_secret_is_left_where_a_text_is_cut(words_before: int) -> None:
    secret = "sk-" + "a1B2c3D4" * 4
    before = "x " * (limits.MAX_STEP_TEXT_BYTES // 2 - 4 * words_before)

    tree = turn_of(ROOT, chat("b", "a", asked=f"{before}{secret} {'y ' * 9_000}", answered=secret)).steps

    (step,) = tree.steps[0].steps
    assert step.output == "[secret]"
    assert isinstance(step.input, str)
    assert "sk-" not in step.input
    assert "more bytes)" in step.input


def test_no_half_of_a_word_is_left_for_the_patterns_of_a_project_to_miss() -> None:
    before = "x " * (limits.MAX_STEP_TEXT_BYTES // 2 - 4)

    tree = turn_of(ROOT, chat("b", "a", asked=f"{before}customer-1234567890 y", answered="Hi")).steps

    assert tree.steps[0].steps[0].input == f"{before}… (21 more bytes)"
