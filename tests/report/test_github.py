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
    from pathlib import Path

    import pytest

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


def test_the_passed_runs_of_a_suite_share_one_notice() -> None:
    passed = make.report(make.PASSED)
    counts = "7 cases: 2 passed, 1 partly judged, 2 failed, 1 error, 1 undecided; took 3.2 s"
    notice = f"::notice title=evalmeta::2 of 3 runs passed; {counts}\n"
    assert render([passed, passed, make.mixed()]) == notice + render([make.mixed()])


def test_files_are_named_from_the_top_of_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "agents/shop").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "agents/shop")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert f"::error file=agents/shop/{make.FILE}," in render([make.mixed()])
    monkeypatch.setenv("GITHUB_WORKSPACE", "/elsewhere")
    assert f"::error file={make.FILE}," in render([make.mixed()])


def test_a_file_without_known_lines_is_named_alone() -> None:
    assert "line=" not in render([replace(make.mixed(), lines={})])


@given(st.lists(make.reports, max_size=3))
def test_every_line_is_a_command_and_texts_cannot_begin_one(reports: list[Report]) -> None:
    text = render(reports)
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(clean(line.removeprefix("::")) == line.removeprefix("::") for line in lines)
    assert all(map(COMMAND.fullmatch, lines))
