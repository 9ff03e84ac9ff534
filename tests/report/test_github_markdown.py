from __future__ import annotations

from dataclasses import replace
from functools import partial
from html import unescape
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import report_runs as make
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.report import render as render_as
from evalmeta.report.details import group_cases
from evalmeta.report.results import check_lines
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.report.report import Report

render = partial(render_as, "markdown")

HOSTILE = st.sampled_from(
    ["</pre></details><script>", "| a | b |", "```\n# x", "@octocat #1", "[a](http://b)", "![x](y)", "<!--", "a\n\nb\n"]
)
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
INLINE = {"text", "code_inline", "html_inline", "softbreak", "text_special"}


def test_conversations_markdown(snapshot: str) -> None:
    assert render([make.conversations()]) == snapshot


def test_mixed_markdown(snapshot: str) -> None:
    assert render([make.mixed(), make.rated(0.7)]) == snapshot


def test_a_run_in_progress_is_marked_as_such() -> None:
    assert "| ⏳ |" in render([make.report_of(replace(make.run(), total=3, status=RunStatus.IN_PROGRESS))])


def test_a_suite_has_no_section_for_runs_that_the_table_describes() -> None:
    passed, failed = make.report(make.PASSED), make.mixed()
    assert render([passed, failed]).count("### ") == 1
    assert render([passed]).count("### ") == 1


def test_parts_beyond_the_size_limit_are_counted() -> None:
    failed = [make.MIXED_CASES[1]._replace(number=number) for number in range(1, 1001)]
    text = render([make.report(*failed)])
    left_out = 1000 - text.count("<details>")
    assert len(text) < 65_536
    assert text.endswith(f"\n{left_out} more parts left out because of the size limit; see the other formats.\n")


def test_names_and_numbers_are_not_linked() -> None:
    broken = replace(make.broken_off().run, definition="@octocat", error="see #12, @octocat")
    text = unescape(render([make.report_of(broken)]))
    assert "<code>@octocat</code>" in text
    assert "see #\u200b12, @\u200boctocat" in text


@pytest.mark.slow
@given(st.lists(make.reports, max_size=2))
def test_texts_cannot_break_the_structure(reports: list[Report]) -> None:
    _check(reports)


@given(HOSTILE, HOSTILE)
def test_markup_in_texts_stays_text(first: str, second: str) -> None:
    result = make.TOPIC_FAILED._replace(name=first, actual=second, explanation=first)
    case = make.case(1, Verdict.FAILURE, result, utterance=second)
    run = replace(make.run(case), definition=first, error=second, total=2)
    _check([replace(make.report_of(run), file=first)])


def _check(reports: list[Report]) -> None:
    text = render(reports)
    assert clean(text) == text
    tokens = PARSER.parse(text)
    kinds = [token.type for token in tokens]
    averages = [len(each.summary.averages) for each in reports if each.summary.averages]
    assert kinds.count("table_open") == 1 + len(averages)
    assert kinds.count("tr_open") == 1 + len(reports) + len(averages) + sum(averages)
    assert kinds.count("td_open") == 11 * len(reports) + 6 * sum(averages)
    # The table says all about a passed run of several.
    open_runs = [report for report in reports if len(reports) == 1 or not report.counts_as_passed]
    assert len(open_runs) <= kinds.count("heading_open") <= len(reports)
    assert not {"fence", "code_block", "hr", "blockquote_open"} & {*kinds}
    blocks = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert [block for block in blocks if not _is_ours(block)] == []
    open_cases = sum(group.verdict is not Verdict.PASS for report in reports for group in group_cases(report))
    checked = sum(any(check_lines(run.run, run.tally.differences)) for run in open_runs)
    assert len(blocks) == 3 * open_cases + checked
    inner = [child for token in tokens for child in token.children or []]
    assert {child.type for child in inner} <= INLINE
    assert {child.content for child in inner if child.type == "html_inline"} <= {"<code>", "</code>"}


def _is_ours(block: str) -> bool:
    """Says whether a block of HTML is one of the three that a case has, with nothing but text inside."""
    if block == "</details>":
        return True
    if block.startswith("<pre>") and block.endswith("</pre>"):
        return "<" not in block[5:-6]
    start, end = "<details><summary><b>", "</code></summary>"
    inside = block.removeprefix(start).removesuffix(end).replace("</b>", "", 1).replace("<code>", "", 1)
    return block.startswith(start) and block.endswith(end) and "<" not in inside


@pytest.mark.parametrize("text", ["@team", "#12", "<img src=x>", "**bold**", "[a](http://b)", "</summary>", "www.a.b"])
def test_a_label_cannot_mention_people_or_act_as_markup(text: str) -> None:
    failed = make.case(1, Verdict.FAILURE, make.TOPIC_FAILED)._replace(label=text)
    summary = render([make.report(failed)]).split("<summary>")[1].split("</summary>")[0]
    assert text not in summary
