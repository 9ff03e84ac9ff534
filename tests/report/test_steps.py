from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from rich.console import Console

import report_runs as make
from evalmeta import limits
from evalmeta.model.generated_data import Action, GeneratedData, Tokens
from evalmeta.model.run import EarlierTurn, Verdict
from evalmeta.model.steps import Step, StepKind, StepTree, tree_json
from evalmeta.report.details import blocks, case_text
from evalmeta.report.human import stream
from evalmeta.report.steps import steps_text
from evalmeta.report.terminal import print_human
from evalmeta.report.text import SHOWN_CHARS

if TYPE_CHECKING:
    from evalmeta.model.run import CaseResult

FIND, CANCEL = Action("find_order", {"id": 7}, None, 40.0), Action("cancel_order", {}, None, 2.9, "no such order")
MODEL = Step(StepKind.MODEL, "gpt-5", 0.0, 1234.0, tokens=Tokens(300, 12))
CALLS = (Step(StepKind.TOOL, action=0), Step(StepKind.TOOL, action=1))
DESK = Step(StepKind.AGENT, "order_desk", 0.0, 61_000.0, steps=(MODEL, *CALLS))
TEXT = """\
agent order_desk         1 min 1 s
  model gpt-5                1.2 s  312 tokens
  tool find_order(id=7)      40 ms
  tool cancel_order()       2.9 ms
    error: no such order"""


def answer(*steps: Step, left_out: int = 0, left_out_bytes: int = 0) -> GeneratedData:
    trace = tree_json(StepTree(steps, left_out, left_out_bytes))
    return GeneratedData("Sent.", actions=(FIND, CANCEL), trace=trace)


def failed(generated: GeneratedData) -> CaseResult:
    return make.case(1, Verdict.FAILURE, make.TOPIC_FAILED)._replace(generated=generated)


def test_steps_are_an_indented_tree_with_times_and_tokens_in_columns() -> None:
    assert steps_text(answer(DESK), chars=80) == TEXT


def test_lines_are_cut_to_the_width_and_the_columns_stay() -> None:
    long = Step(StepKind.TOOL, "find", 0.0, 40.0, {"text": "x" * 500})

    (line,) = steps_text(answer(long), chars=40).splitlines()

    assert (len(line), line[:10], line[-8:]) == (40, "tool find(", "…  40 ms")


def test_steps_deep_inside_others_fit_too() -> None:
    deep = Step(StepKind.AGENT, "desk", 0.0, 1.0)
    for _ in range(limits.MAX_STEP_DEPTH):
        deep = Step(StepKind.AGENT, "desk", 0.0, 1.0, steps=(deep,))

    assert max(map(len, steps_text(answer(deep), chars=40).splitlines())) <= 40


def test_a_long_tree_says_how_many_steps_and_errors_are_not_shown_or_not_kept() -> None:
    steps = [Step(StepKind.TOOL, f"tool_{number}", error="boom" if number == 99 else None) for number in range(100)]

    *shown, more, not_kept = steps_text(answer(*steps, left_out=12, left_out_bytes=3400), chars=96).splitlines()

    assert len(shown) == 36
    assert more == "... and 64 more steps, 1 error among them; the json report has all"
    assert not_kept == "not kept: 12 steps and 3,400 bytes of texts"


def test_the_longest_tree_is_shown_without_a_second_cut() -> None:
    steps = [Step(StepKind.TOOL, "t" * 200, 0.0, 1.0, error="e" * 200) for _ in range(400)]

    assert len(steps_text(answer(*steps, left_out=1), chars=500)) < SHOWN_CHARS


def test_unsafe_characters_and_commands_to_ci_systems_are_escaped() -> None:
    text = steps_text(answer(Step(StepKind.AGENT, "\x1b[2J##[x]", error="::error::x\ny")), chars=80)

    assert text == "agent \\x1b[2J#\\x23[x]\n  error: ::error::x y"
    case = case_text(failed(answer(Step(StepKind.AGENT, "desk", error="::error::x"))), steps=True)
    assert not re.search(r"(?m)^\s*::", case)


def test_an_answer_without_steps_has_none() -> None:
    assert steps_text(GeneratedData("Sent.", trace={"plan": []}), chars=80) == ""
    assert steps_text(GeneratedData("Sent."), chars=80) == ""
    assert steps_text(answer(), chars=80) == ""


def test_only_the_verbose_report_shows_the_steps_before_the_expectation_that_failed() -> None:
    report = make.report(failed(answer(DESK)))

    verbose = "".join(stream([report], detail="all"))

    assert TEXT.splitlines()[1].strip() in verbose
    assert verbose.index("find_order") < verbose.index("topic_sequence_match")
    assert "find_order" not in "".join(stream([report]))


def test_each_turn_has_its_own_steps() -> None:
    case = failed(answer(DESK))._replace(earlier=(EarlierTurn("Hello", answer(MODEL)),))

    shown = [
        (title, field.text) for title, fields in blocks(case, steps_chars=80) for field in fields if field[0] == "steps"
    ]

    assert shown == [("turn 1", steps_text(answer(MODEL), chars=80)), ("turn 2", TEXT)]


def test_a_terminal_shows_errors_in_red_and_every_line_in_one_piece() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, color_system="standard", _environ={})
    print_human([make.report(failed(answer(DESK)))], console, detail="all")

    shown = console.file.getvalue()  # type: ignore[attr-defined] # text in memory

    assert "\x1b[31m    error: no such order\x1b[0m" in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    for line in steps_text(answer(DESK), chars=43).splitlines():
        assert line in plain
