from __future__ import annotations

from html.parser import HTMLParser

import pytest

import report_runs as make
from evalmeta.api.runs.comparisons import compare_runs
from evalmeta.api.runs.finished import ComparedRuns, FinishedRun, FinishedRuns
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions

HOSTILE = (
    "<script>alert(1)</script>", '" onmouseover="x', "<img src=x onerror=x>", "{{ 7 * 7 }}", "</div></table>",
    "\x1b[2J\u202e",
)  # fmt: skip
HARMLESS = {"div", "span", "strong", "table", "thead", "tbody", "tr", "th", "td", "pre"}


class Elements(HTMLParser):
    """The elements and attributes of a part of a page, all well nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def failed(number: int, utterance: str = "", reason: str = "expected Returns") -> FinishedRun:
    result = make.TOPIC_FAILED._replace(explanation=reason)
    return FinishedRun.of(make.run(make.case(number, Verdict.FAILURE, result, utterance=utterance)))


def test_a_run_shows_its_verdict_its_counts_and_why_cases_did_not_pass() -> None:
    text = Elements(FinishedRun.of(make.run(*make.MIXED_CASES))._repr_html_()).text

    assert "not passed" in text
    assert "5 cases: 0 passed, 1 partly judged" in text
    assert "expected the topic Returns, got Orders" in text
    assert "the agent did not answer within 120 s" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_answer_adds_no_element_attribute_or_control_character(text: str) -> None:
    shown = Elements(failed(1, text, text)._repr_html_())

    assert shown.names <= HARMLESS
    assert shown.attributes <= {"class", "style"}
    assert "\x1b" not in shown.text
    assert "\u202e" not in shown.text
    assert "49" not in shown.text


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comparison_of_hostile_texts_is_harmless(text: str) -> None:
    before = make.run(make.case(1, Verdict.PASS, make.TOPIC_PASSED, utterance=text))
    after = make.run(make.case(1, Verdict.FAILURE, make.TOPIC_FAILED, utterance=text))
    assert Elements(ComparedRuns(compare_runs(before, after))._repr_html_()).names <= HARMLESS


def test_formulas_in_answers_are_not_set() -> None:
    assert '<div class="tex2jax_ignore mathjax_ignore">' in failed(1, "$x$")._repr_html_()


def test_a_large_run_stays_compact_and_says_how_much_is_missing() -> None:
    cases = [make.case(number, Verdict.FAILURE, make.TOPIC_FAILED, utterance="x" * 9_999) for number in range(1, 1001)]
    html = FinishedRun.of(make.run(*cases))._repr_html_()

    assert len(html) < 20_000
    assert "990 more cases" in html


def test_runs_that_did_not_pass_are_shown_first() -> None:
    runs = FinishedRuns([*[FinishedRun.of(make.run(make.PASSED))] * 21, failed(1)])
    text = Elements(runs._repr_html_()).text
    assert text.index("21 of 22 runs passed") < text.index("not passed") < text.index("passed: all judged cases passed")
    assert "... and 2 more runs" in text


def test_iterations_of_a_case_are_named() -> None:
    cases = [make.case(1, Verdict.FAILURE, make.TOPIC_FAILED, iteration=each) for each in (1, 2)]
    run = make.run(*cases, options=RunOptions(iterations=2))
    assert "in 2 of 2 iterations" in FinishedRun.of(run)._repr_html_()


def test_a_comparison_tells_what_broke() -> None:
    before = FinishedRun.of(make.run(*(make.case(each, Verdict.PASS, make.TOPIC_PASSED) for each in range(1, 31))))
    now = FinishedRun.of(make.run(*(make.case(each, Verdict.FAILURE, make.TOPIC_FAILED) for each in range(1, 31))))

    found = now.compare(before)

    assert found.is_worse
    assert "WORSE" in repr(found)
    assert "pass rate 100 % before, 0 % now" in str(found)
    assert "WORSE" in Elements(found._repr_html_()).text
    assert not before.compare(now).is_worse
