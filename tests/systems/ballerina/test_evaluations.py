"""The examples of the proposal "Evaluation for AI Agents in Ballerina" as tests of pytest, and their reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET  # noqa: TID251 - what pytest wrote itself

import pytest

import evalmeta
from evalmeta.errors import UsageError
from evalmeta.formats.baseline import read_baseline
from evalmeta.pytest_plugin.notes import inputs_text

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., pytest.RunResult]

pytest_plugins = ["pytester"]

TOOL_CALL_ORDER = """
import evalmeta
import pytest
from evalmeta import ballerina

CALLS = {{
    "Summarize my unread emails and schedule a follow-up meeting.":
        ["readEmail", "summarizeEmail", "readCalendar", "bookCalendar"],
    "Send an email to Raj and add a calendar invite.": ["bookCalendar", "sendEmail"],
}}

def agent(question):
    return {{"outcome": "Done.", "actions": CALLS[question]}}

@evalmeta.evaluation({terms})
@pytest.mark.parametrize("entry", [
    {{"input": "Summarize my unread emails and schedule a follow-up meeting.",
      "expectedTools": ["readEmail", "summarizeEmail", "readCalendar", "bookCalendar"]}},
    {{"input": "Send an email to Raj and add a calendar invite.", "expectedTools": ["sendEmail", "bookCalendar"]}},
])
def test_tool_call_order(entry):
    trace = ballerina.trace_of(agent(entry["input"]), entry["input"])
    names = [call.name for call in ballerina.get_all_tool_calls(trace)]
    assert names == entry["expectedTools"]
"""
RELEVANCE = """
import evalmeta
import pytest
from evalmeta import ballerina

@evalmeta.evaluation(confidence=0.85)
@pytest.mark.parametrize("score", {scores})
def test_answer_relevance(score):
    answer = ballerina.get_final_answer(ballerina.trace_of("We open at nine."))
    relevance = score if answer == "We open at nine." else 0.0
    assert relevance >= 0.7, f"Relevance score {{relevance}} below threshold 0.7"
"""
TEN = """
import evalmeta
import pytest

WRONG = {wrong}

@evalmeta.evaluation({terms})
@pytest.mark.parametrize("entry", range(10))
def test_entry(entry, evalmeta_iteration):
    assert (evalmeta_iteration, entry) not in WRONG
"""
SINGLE = """
import evalmeta

@evalmeta.evaluation(min_pass_rate=0.5, runs=4)
def test_agent(evalmeta_iteration):
    assert evalmeta_iteration != 3
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest as a program of its own, with this plugin and xdist."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(evalmeta.__file__).parent.parent))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    plugins = ["-p", "evalmeta.pytest_plugin", "-p", "xdist.plugin"]
    return lambda *words: pytester.runpytest_subprocess(*plugins, *words, timeout=120)


def reports(pytester: pytest.Pytester, folder: str = "evaluation") -> list[Path]:
    """Return the reports, each of which has a page beside it."""
    found = sorted((pytester.path / folder).iterdir())
    pages = [path for path in found if path.suffix == ".html"]
    written = [path for path in found if path not in pages]
    assert [path.with_suffix(".json") for path in pages] == written
    return written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("terms", "verdict", "least"),
    [("confidence=0.8", "FAILED", "80 %"), ("confidence=0.5", "PASSED", "50 %"), ("", "FAILED", "100 %")],
)
def test_tool_call_order_passes_by_the_confidence(
    pytester: pytest.Pytester, run: Run, terms: str, verdict: str, least: str
) -> None:
    pytester.makepyfile(test_it=TOOL_CALL_ORDER.format(terms=terms))

    result = run()

    assert result.ret == (pytest.ExitCode.OK if verdict == "PASSED" else pytest.ExitCode.TESTS_FAILED)
    result.stdout.fnmatch_lines(
        [f"{verdict} test_it.py::test_tool_call_order: 50 % (1 of 2); at least {least} must pass"]
    )
    # A reason is shown once, in the failure or with the rate.
    assert result.stdout.str().count("  entry1: AssertionError: assert ") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "verdict", "rate"),
    [
        ([0.7, 0.9, 1.0], "PASSED", "100 % (3 of 3)"),
        ([0.69, 0.9, 1.0, 1.0, 1.0], "FAILED", "80 % (4 of 5)"),
        ([0.1, *[0.7] * 6], "PASSED", "85.71 % (6 of 7)"),
    ],
)
def test_the_threshold_in_the_test_turns_scores_into_passes(
    pytester: pytest.Pytester, run: Run, scores: list[float], verdict: str, rate: str
) -> None:
    pytester.makepyfile(test_it=RELEVANCE.format(scores=scores))

    result = run()

    result.stdout.fnmatch_lines([f"{verdict} test_it.py::test_answer_relevance: {rate}; at least 85 % must pass"])
    if scores[0] < 0.7:
        result.stdout.fnmatch_lines([f"*Relevance score {scores[0]} below threshold 0.7*"])


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "verdict"), [("{(1, 3), (1, 7)}", "PASSED"), ("{(1, 3), (1, 7), (1, 9)}", "FAILED")])
def test_eight_of_ten_reach_a_confidence_of_80_percent(
    pytester: pytest.Pytester, run: Run, wrong: str, verdict: str
) -> None:
    pytester.makepyfile(test_it=TEN.format(terms="confidence=0.8", wrong=wrong))

    run().stdout.fnmatch_lines([f"{verdict} test_it.py::test_entry: * of 10); at least 80 % must pass"])


@pytest.mark.slow
@pytest.mark.parametrize("words", ["confidence={}, iterations=2", "min_pass_rate={}, runs=2"])
@pytest.mark.parametrize(("confidence", "verdict"), [(0.85, "PASSED"), (0.86, "FAILED")])
def test_the_mean_of_the_iterations_decides(
    pytester: pytest.Pytester, run: Run, words: str, confidence: float, verdict: str
) -> None:
    wrong = "{(1, 0), (2, 0), (2, 1)}"
    pytester.makepyfile(test_it=TEN.format(terms=words.format(confidence), wrong=wrong))

    run().stdout.fnmatch_lines(
        [f"{verdict} test_it.py::test_entry: 85 % (17 of 20); at least *", "  by iteration: 9 of 10, 8 of 10"]
    )


@pytest.mark.slow
def test_without_parameters_the_rate_is_over_the_runs(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_it=SINGLE)

    result = run("--evalmeta-report-dir", "evaluation", "--junitxml=junit.xml")

    result.stdout.fnmatch_lines(
        [
            "PASSED test_it.py::test_agent: 75 % (3 of 4); at least 50 % must pass",
            "  by iteration: 1 of 1, 1 of 1, 0 of 1, 1 of 1",
        ]
    )
    none = "no data provider: the test has no parameters"
    evaluation = json.loads(reports(pytester)[0].read_text())["tests"]["test_it.py::test_agent"]
    assert evaluation["inputs"] == none
    assert "inputs" not in evaluation["cases"]["1"]
    cases = {each.get("name"): each for each in ET.parse(pytester.path / "junit.xml").iter("testcase")}  # noqa: S314
    properties = {each.get("name"): each.get("value") for each in cases["test_agent"].iter("property")}
    assert (properties["pass_rate"], properties["min_pass_rate"], properties["iterations"]) == ("0.75", "0.5", "4")
    assert (properties["outcomes"], properties["inputs"]) == ("1 of 1, 1 of 1, 0 of 1, 1 of 1", none)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_report_has_rate_threshold_outcomes_and_inputs(
    pytester: pytest.Pytester, run: Run, workers: list[str]
) -> None:
    pytester.makepyfile(test_it=TOOL_CALL_ORDER.format(terms="confidence=0.5, iterations=2"))

    result = run("--evalmeta-report-dir", "build/evaluation", *workers)

    [path] = reports(pytester, "build/evaluation")
    result.stdout.fnmatch_lines([f"report: {path}", f"page: {path.with_suffix('.html')}"])
    document = json.loads(path.read_text())
    written = document["written"]
    assert path.name == f"evalmeta-{written.replace('-', '').replace(':', '')}.json"
    assert document["complete"] is True
    evaluation = document["tests"]["test_it.py::test_tool_call_order"]
    assert [evaluation[key] for key in ("verdict", "pass_rate", "min_pass_rate", "iterations")] == [
        "PASSED",
        0.5,
        0.5,
        2,
    ]
    assert evaluation["outcomes"] == [
        {"iteration": each, "pass_rate": 0.5, "passed": 1, "failed": 1, "errors": 0} for each in (1, 2)
    ]
    second = evaluation["cases"]["2"]
    assert [(each["iteration"], each["verdict"]) for each in second["outcomes"]] == [(1, "FAILURE"), (2, "FAILURE")]
    assert second["outcomes"][0]["reason"].startswith("AssertionError: ")
    assert second["inputs"] == {
        "entry": {
            "input": "Send an email to Raj and add a calendar invite.",
            "expectedTools": ["sendEmail", "bookCalendar"],
        }
    }


@pytest.mark.slow
def test_every_session_has_a_report_of_its_own(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_it=SINGLE)

    for _ in range(2):
        run("--evalmeta-report-dir", "evaluation")

    assert len(reports(pytester)) == 2


def test_a_session_without_evaluations_has_no_report(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile("def test_it():\n    pass")

    run("--evalmeta-report-dir", "evaluation").assert_outcomes(passed=1)

    assert reports(pytester) == []


@pytest.mark.slow
def test_a_session_that_is_stopped_says_so_in_its_report(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_it=SINGLE, test_other="def test_other():\n    assert 0")

    run("-x", "test_it.py", "test_other.py", "--evalmeta-report-dir", "evaluation")

    document = json.loads(reports(pytester)[0].read_text())
    assert (document["complete"], document["tests"]["test_it.py::test_agent"]["verdict"]) == (False, "STOPPED")


@pytest.mark.slow
def test_a_report_is_a_baseline_for_later_sessions(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_it=TEN.format(terms="confidence=0.8", wrong="{(1, 3)}"))
    run("--evalmeta-report-dir", "evaluation")
    [baseline] = reports(pytester)
    known = read_baseline(baseline)["test_it.py::test_entry"]
    assert [(case.utterance, case.passed, case.failed) for case in known.cases][2:4] == [("2", 1, 0), ("3", 0, 1)]

    pytester.makepyfile(test_it=TEN.format(terms="confidence=0.8", wrong="{(1, 7), (1, 9)}"))
    result = run("--evalmeta-baseline", f"evaluation/{baseline.name}")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "PASSED test_it.py::test_entry: 80 % (8 of 10); at least 80 % must pass",
            f"  in evaluation/{baseline.name}: 90 % (9 of 10); not significantly worse, but 2 suspect",
            "    suspect *8  1/1 -> 0/1 *7",
            "    suspect *10  1/1 -> 0/1 *9",
            "    maybe fixed *4  0/1 -> 1/1 *3",
            "    0 broken, 2 suspect, 1 maybe fixed, 0 still failing, 7 still passing",
        ]
    )


@pytest.mark.slow
def test_an_invalid_baseline_or_folder_is_reported_at_once(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_it=SINGLE)
    (pytester.path / "file").write_text("{}")

    for words in (["--evalmeta-baseline", "file"], ["--evalmeta-report-dir", "file"]):
        result = run(*words)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: */file:*"])
        result.stdout.no_fnmatch_line("*test_agent*")


def test_a_report_that_cannot_be_written_is_reported_with_the_results(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(
        test_it=SINGLE,
        test_other="import os\n\ndef test_other():\n    os.rmdir('evaluation')\n    open('evaluation', 'x')",
    )

    result = run("--evalmeta-report-dir", "evaluation")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["PASSED test_it.py::test_agent: *", "no report: *: cannot be written: *"])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"confidence": 1.5}, "confidence is 1.5; it must be from 0 to 1"),
        ({"runs": 0}, "runs is 0; it must be a whole number from 1 to 1000"),
        (
            {"confidence": 0.8, "min_pass_rate": 0.9},
            "min_pass_rate=0.9 and confidence=0.8 are aliases; use only one of them",
        ),
        ({"runs": 2, "iterations": 3}, "iterations=3 and runs=2 are aliases; use only one of them"),
    ],
)
def test_terms_that_conflict_or_are_out_of_range_are_refused(terms: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=rf"^@evalmeta\.evaluation: {message}"):
        evalmeta.evaluation(**terms)  # type: ignore[arg-type] # that is the test


def test_two_words_for_the_same_may_say_the_same() -> None:
    assert evalmeta.evaluation(confidence=0.8, min_pass_rate=0.8, runs=2, iterations=2)


def test_inputs_are_json_or_the_repr_of_other_values() -> None:
    text = inputs_text(
        {"entry": {"a": [1, None]}, "kind": int, "keys": {(1, 2): "x"}, "odd": "\ud800\x1b", "nan": 1e999}
    )

    assert json.loads(text) == {
        "entry": {"a": [1, None]},
        "kind": "<class 'int'>",
        "keys": "{(1, 2): 'x'}",
        "odd": "\ud800\x1b",
        "nan": "inf",
    }
    assert text.isascii()
