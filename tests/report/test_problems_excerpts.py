from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.report.problems import excerpts, excerpts_text, render

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def error(line: int, column: int = 0, *, path: str = "a.yaml", severity: Severity = Severity.ERROR) -> Problem:
    return Problem("spec-key", severity, Location(path, line, column), "a test case has no key", "Did you mean x?")


def test_an_error_shows_its_line_with_a_caret_below_the_word(folder: Path) -> None:
    (folder / "a.yaml").write_text("testCases:\n- input: Hi\n  contians: Paris\n")
    assert render("human", [error(3, 3)], files=1) == (
        "a.yaml\n"
        "  3:3 error a test case has no key [spec-key]\n"
        "    3 |   contians: Paris\n"
        "      |   ^^^^^^^^\n"
        "    Did you mean x?\n"
        "\n1 error in 1 of 1 file\n"
    )


@pytest.mark.parametrize(
    ("text", "column", "shown"),
    [
        ('- "contians": x', 3, ['1 | - "contians": x', "  |   ^^^^^^^^^^"]),
        ("- {a: b}", 3, ["1 | - {a: b}", "  |   ^"]),
        ("\ta: b", 2, ["1 |  a: b", "  |  ^"]),
        ("\ufeffa: b", 1, ["1 | a: b", "  | ^"]),
        ("こんにちは: x", 8, ["1 | こんにちは: x", "  |             ^"]),
        ("<value>x</value>", 1, ["1 | <value>x</value>", "  | ^^^^^^^"]),
        ("a:", 3, ["1 | a:", "  |   ^"]),
        ("a: b", 0, ["1 | a: b"]),
        ("a: b", 99, ["1 | a: b", "  |     ^"]),
        ("", 1, ["1 |"]),
        (
            "x" * 200 + " bad: " + "y" * 200,
            202,
            ["1 | …" + "x" * 59 + " bad: " + "y" * 35 + "…", "  | " + " " * 61 + "^^^"],
        ),
        ("a: \x1b[31m", 1, ["1 | a: \\x1b[31m", "  | ^"]),
        ("a: ##[group]", 1, ["1 | a: #\\x23[group]", "  | ^"]),
    ],
)
def test_a_line_is_shown_as_it_is_on_a_terminal_and_the_caret_is_below_its_place(
    folder: Path, text: str, column: int, shown: list[str]
) -> None:
    (folder / "a.yaml").write_text(f"{text}\n", newline="")
    assert excerpts([error(1, column)]) == [shown]


def test_places_that_no_longer_exist_warnings_and_settings_have_no_excerpt(folder: Path) -> None:
    (folder / "evalmeta.toml").write_text('key = "secret"\n')
    (folder / "a.yaml").write_text("a: b\n")
    problems = [
        error(1, 1, path="missing.yaml"),
        error(1, 1, path="evalmeta.toml"),
        error(7, 1),
        error(0),
        error(1, 1, severity=Severity.WARNING),
    ]
    assert not any(excerpts(problems))
    assert excerpts_text(problems, most=3) == ""


def test_problems_of_one_place_share_an_excerpt(folder: Path) -> None:
    (folder / "a.yaml").write_text("tests:\n")
    assert render("human", [error(1, 1), error(1, 1)], files=1).count("| tests:") == 1


def test_a_secret_in_a_line_is_not_shown(folder: Path) -> None:
    (folder / "a.yaml").write_text("contians: Bearer abcdefghijklmnopqrstuvwxyz0123456789\n")
    assert "abcdefghijklm" not in render("human", [error(1, 1)], files=1)


def test_all_places_of_a_file_are_found_in_one_pass(folder: Path) -> None:
    (folder / "a.yaml").write_text("".join(f"key{number}: x\n" for number in range(50_000)))
    shown = excerpts([error(number, 1) for number in range(1, 50_001, 10)])
    assert (len(shown), shown[-1][0]) == (5_000, "49991 | key49990: x")


def test_a_place_without_a_column_has_the_caret_below_the_word_that_its_message_quotes(folder: Path) -> None:
    (folder / "a.csv").write_text("input,contians,rubrics\nHi,x,y\n")
    texts = [
        "column 2 has the unknown title 'contians'",
        "column 3 has the unknown title 'rubrics'",
        "'x y' is missing",
    ]
    problems = [Problem("csv-columns", Severity.ERROR, Location("a.csv", 1), text) for text in texts]
    line = "1 | input,contians,rubrics"
    assert excerpts(problems) == [[line, "  |       ^^^^^^^^"], [line, "  |                ^^^^^^^"], [line]]
