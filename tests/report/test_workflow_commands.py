"""No text of a test or an answer is a command to the CI system that reads a report in its log."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import report_runs as make
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.run import TestResult, Verdict
from evalmeta.report import FORMATS, problems, render
from evalmeta.report.terminal import print_human
from evalmeta.report.text import LINE_CHARS, clean, wrap

if TYPE_CHECKING:
    from evalmeta.report.report import Report

COMMANDS = (
    "::error file=a.py,line=1::forged",
    "::stop-commands::x",
    "##[error]forged",
    "##vso[task.setvariable variable=a]b",
    "##teamcity[buildStatus status='SUCCESS']",
    "section_start:0:forged\r\x1b[0Kforged",
)
STARTS = ("", " ", "\t", "\u00a0", "\n", "\r", "\r\n  ", "a\n\u3000", "#", "x" * 95 + " ", "y" * (LINE_CHARS - 10))
PLANTED = [f"{start}{command}{end}" for start, command, end in product(STARTS, COMMANDS, ("", "\nb"))]
ARE_COMMANDS = re.compile(r"\s*::|.*##\w*\[|.*section_(start|end):\d+:[^\r\n]*\r\x1b\[0K", re.IGNORECASE)
planted = st.sampled_from(PLANTED)


def commands_in(text: str, *, own: str = "(?!)") -> list[str]:
    """Return the lines that a CI system would take as commands, except evalmeta's own."""
    lines = re.split("\r\n|\n|\r(?!\x1b)", text)
    return [line for line in lines if ARE_COMMANDS.match(line) and not re.match(own, line)]


@st.composite
def planted_reports(draw: st.DrawFn) -> Report:
    texts = [draw(planted) for _ in range(9)]
    verdict = draw(st.sampled_from(Verdict))
    result = TestResult(texts[0], verdict, texts[1], texts[2], None, texts[3], texts[4], error=texts[5])
    case = make.case(1, verdict, result, utterance=texts[6])._replace(generated=GeneratedData(texts[7]), label=texts[8])
    case = case._replace(error=texts[5], traceback=texts[4]) if verdict is Verdict.ERROR else case
    finished = make.run(case, options=draw(st.sampled_from([None, make.RunOptions(iterations=2)])))
    made = make.report_of(replace(finished, definition=draw(planted), subject_name=draw(planted), error=texts[3]))
    return replace(made, file=draw(planted), lines={1: 7})


@pytest.mark.parametrize("name", FORMATS)
@given(report=planted_reports())
def test_no_text_of_a_run_is_a_command_in_any_format(name: str, report: Report) -> None:
    own = r"::(error|warning|notice) (?!.*##\w*\[)" if name == "github" else "(?!)"
    assert commands_in(render(name, [report]), own=own) == []


@given(report=planted_reports())
def test_no_text_is_a_command_on_a_terminal_that_breaks_lines(report: Report) -> None:
    shown = io.StringIO()
    print_human([report], Console(file=shown, force_terminal=True, width=100, _environ={}), detail="all")
    assert commands_in(shown.getvalue()) == []


@pytest.mark.parametrize("name", problems.FORMATS)
@given(message=planted, hint=planted, path=planted)
def test_no_problem_of_a_file_is_a_command(name: str, message: str, hint: str, path: str) -> None:
    found = [Problem("rule", severity, Location(path, 1, 1), message, hint) for severity in Severity]
    own = r"::(error|warning) (?!.*##\w*\[)" if name == "github" else "(?!)"
    assert commands_in(problems.render(name, found, files=1), own=own) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_not_one_after_a_line_was_broken(command: str) -> None:
    assert all(commands_in(wrap("y" * width + command, first="", indent="")) == [] for width in range(2 * LINE_CHARS))


def test_colons_and_number_signs_inside_a_text_stay_as_they_are() -> None:
    assert clean("std::vector ::x, # 1, ## 2 and a[1]") == "std::vector ::x, # 1, ## 2 and a[1]"


def test_json_texts_are_the_same_after_they_were_read() -> None:
    [report] = [make.report(make.PASSED._replace(utterance="##[error]x", generated=GeneratedData("\n::error::x")))]
    [line] = render("jsonl", [report]).splitlines()
    assert (json.loads(line)["utterance"], json.loads(line)["outcome"]) == ("##[error]x", "\n::error::x")
