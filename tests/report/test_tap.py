from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import report_runs as make
from evalmeta.model.run import Verdict
from evalmeta.report import render as render_as
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.report.report import Report

render = partial(render_as, "tap")

POINT = re.compile(r"(not )?ok (\d+) - .+")
LINE = re.compile(r'  +(- )?[a-z]+: ("(?:[^"\\]|\\.)*"|[A-Za-z]+|\d+)|  (---|\.\.\.|averages:|earlier:|results:)|#.*')


def test_conversations_tap(snapshot: str) -> None:
    assert render([make.conversations()]) == snapshot


def test_mixed_tap(snapshot: str) -> None:
    assert render([make.mixed(), make.rated(0.7)]) == snapshot


def test_no_case_is_a_skipped_plan() -> None:
    assert render([]) == "TAP version 14\n1..0 # SKIP no cases\n"


def test_a_run_that_broke_off_is_not_ok() -> None:
    assert "\nnot ok 2 - Returns_Desk: the run\n" in render([make.broken_off()])


def test_a_hash_in_an_utterance_is_no_directive() -> None:
    report = make.report(make.case(1, Verdict.PASS, utterance="case # SKIP me \\"))
    assert render([report]).endswith("\nok 1 - 1: case \\# SKIP me \\\\\n")


@given(st.lists(make.reports, max_size=3))
def test_points_are_numbered_through_and_planned(reports: list[Report]) -> None:
    numbers = [int(point[2]) for point in map(POINT.fullmatch, render(reports).split("\n")) if point]
    planned = sum(report.summary.total + len(report.run_failures) for report in reports)
    assert numbers == list(range(1, planned + 1))


@given(make.reports)
def test_every_line_is_a_point_a_comment_or_quoted_yaml(report: Report) -> None:
    _, _, *lines = render([report]).removesuffix("\n").split("\n")
    for line in lines:
        yaml = LINE.fullmatch(line)
        assert yaml or POINT.fullmatch(line)
        assert not (yaml and yaml[2] and yaml[2].startswith('"')) or isinstance(json.loads(yaml[2]), str)


@given(make.reports)
def test_no_text_reaches_a_terminal_with_controls(report: Report) -> None:
    text = render([report])
    assert clean(text) == text


@given(make.reports)
def test_what_the_summary_counts_is_not_ok(report: Report) -> None:
    lines = render([report]).split("\n")
    broken = report.summary.failed + report.summary.errors + len(report.run_failures)
    assert sum(line.startswith("not ok ") for line in lines) == broken
