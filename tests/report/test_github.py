from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import report_runs as make
from evalmeta.model.run import RunStatus
from evalmeta.report import render as render_as
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.report.report import Report

render = partial(render_as, "github")

COMMAND = re.compile(r"::(error|warning|notice) (?:file=[^:,]*,)?(?:line=\d+,)?title=[^:,]*::[^\r\n]*")


def test_conversations_github(snapshot: str) -> None:
    assert render([make.conversations()]) == snapshot


def test_mixed_github(snapshot: str) -> None:
    assert render([make.mixed(), make.rated(0.7)]) == snapshot


def test_a_run_in_progress_is_not_an_error() -> None:
    going_on = replace(make.run(), total=3, status=RunStatus.IN_PROGRESS)
    assert render([make.report_of(going_on)]).startswith("::notice ")


def test_a_file_without_known_lines_is_named_alone() -> None:
    assert "line=" not in render([replace(make.mixed(), lines={})])


@given(st.lists(make.reports, max_size=3))
def test_every_line_is_a_command_and_texts_cannot_begin_one(reports: list[Report]) -> None:
    text = render(reports)
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(clean(line.removeprefix("::")) == line.removeprefix("::") for line in lines)
    assert all(map(COMMAND.fullmatch, lines))
