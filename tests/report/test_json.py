from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import report_runs as make
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import Verdict
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.report.json import render
from evalmeta.report.text import clean


def test_one_run_is_an_object() -> None:
    report = make.mixed()
    assert json.loads(render([report])) == write_run(report.run, escape=False)


def test_several_runs_are_a_list() -> None:
    assert [run["evalmeta"]["total"] for run in json.loads(render([make.mixed(), make.rated(1)]))] == [5, 4]


def test_no_run_is_an_empty_list() -> None:
    assert render([]) == "[]\n"


def test_it_is_indented_by_two_and_ends_with_a_line_break() -> None:
    text = render([make.mixed()])
    assert text.startswith('{\n  "status": "COMPLETED",\n')
    assert text.endswith("\n}\n")


@given(st.text())
def test_answers_are_read_back_unchanged_and_have_no_control_characters(answer: str) -> None:
    case = replace(make.case(1, Verdict.PASS), generated=GeneratedData(answer))
    text = render([make.report(case)])
    [read] = read_run(json.loads(text)).cases
    assert read.generated == case.generated
    assert clean(text) == text
