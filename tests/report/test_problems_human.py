from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.report.problems import problem_json, render, render_human, warning_counts
from evalmeta.report.text import clean
from report_runs import texts

MISSING = Problem(
    "expected-value-missing",
    Severity.ERROR,
    Location("force-app/Orders.xml", 112, 9),
    "The expectation topic_sequence_match has no expectedValue",
    "Add <expectedValue> with the API name of the topic.",
    "AiEvaluationDefinition:Orders",
)
UNUSED = Problem("expected-value-unused", Severity.WARNING, Location("force-app/Orders.xml", 20, 5), "It is unused")
UNREADABLE = Problem("xml-malformed", Severity.ERROR, Location("Bad.xml"), "The file is no XML", "Close the element.")


def test_problems_are_grouped_by_file_and_sorted_by_line() -> None:
    assert render("human", [MISSING, UNREADABLE, UNUSED], files=7) == (
        "force-app/Orders.xml\n"
        "  20:5  warning It is unused [expected-value-unused]\n"
        "  112:9 error   The expectation topic_sequence_match has no expectedValue [expected-value-missing]\n"
        "    Add <expectedValue> with the API name of the topic.\n"
        "\n"
        "Bad.xml\n"
        "  error The file is no XML [xml-malformed]\n"
        "    Close the element.\n"
        "\n"
        "2 errors, 1 warning in 2 of 7 files\n"
    )


def test_file_names_and_severities_can_be_styled() -> None:
    text = render_human([MISSING, UNUSED], style=lambda text, name: f"<{name}>{text}</>")
    assert "<file>force-app/Orders.xml</>\n" in text
    assert "  20:5  <warning>warning</> It" in text
    assert "  112:9 <error>error  </> The" in text


def test_warnings_are_counted_by_code_with_their_files() -> None:
    other = replace(UNUSED, location=Location("Other.xml", 3, 1))
    label = replace(UNUSED, code="name-format")
    assert list(warning_counts([UNUSED, MISSING, label, other, UNUSED])) == [
        ("3 findings of expected-value-unused", ["force-app/Orders.xml", "Other.xml"]),
        ("1 finding of name-format", ["force-app/Orders.xml"]),
    ]


@pytest.mark.parametrize(
    ("files", "line"), [(0, "no files were checked\n"), (1, "1 file is valid\n"), (7, "7 files are valid\n")]
)
def test_files_without_problems_are_valid(files: int, line: str) -> None:
    assert render("human", [], files=files) == line


def test_the_last_line_leaves_out_zeros() -> None:
    assert render("human", [UNUSED], files=1).endswith("\n1 warning in 1 of 1 file\n")
    assert render("human", [MISSING], files=2).endswith("\n1 error in 1 of 2 files\n")


@given(texts)
def test_texts_have_no_control_characters(text: str) -> None:
    shown = render("human", [Problem("code", Severity.ERROR, Location(text, 1, 1), text, text)], files=1)
    assert clean(shown) == shown


def test_a_problem_as_json_has_every_key() -> None:
    assert problem_json(MISSING) == {
        "code": "expected-value-missing",
        "severity": "error",
        "file": "force-app/Orders.xml",
        "line": 112,
        "column": 9,
        "message": "The expectation topic_sequence_match has no expectedValue",
        "hint": "Add <expectedValue> with the API name of the topic.",
        "component": "AiEvaluationDefinition:Orders",
    }


def test_unknown_values_are_null() -> None:
    written = problem_json(UNREADABLE)
    assert (written["line"], written["column"], written["component"]) == (None, None, None)
