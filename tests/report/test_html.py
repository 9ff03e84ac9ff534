from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_runs as make
from evalmeta.engine.statistics import collect
from evalmeta.model.generated_data import Action, GeneratedData, Tokens
from evalmeta.model.run import RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.report import render as render_as
from evalmeta.report.html import Part, word_difference
from evalmeta.report.text import clean, shorten

if TYPE_CHECKING:
    from evalmeta.report.report import Report


render = partial(render_as, "html")

HOSTILE = st.sampled_from(
    ["<script>alert(1)</script>", "</pre></style>", '" onclick="x', "' x='", "<img src=x>", "{{ 7 * 7 }}", "-->"]
)
VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """What a page holds: its elements, all well nested, the texts of its <pre>, and its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "pre":
            self.texts.append(data)


def rich() -> Report:
    """Gives a run with all that a page can show."""
    actions = (Action("FindOrder"), Action("PrintLabel"))
    answer = GeneratedData("You may.", "Returns", actions, 250.0, tokens=Tokens(12, None))
    options = RunOptions(iterations=2)
    failed = make.case(1, Verdict.FAILURE, make.ACTIONS_FAILED, make.RESPONSE_FAILED, utterance="a\nb")
    broken = TestResult("factuality", Verdict.ERROR, error="the rater did not answer")
    cases = (
        failed._replace(generated=replace(answer, tokens=Tokens(3, 4))),
        make.case(1, Verdict.PASS, make.TOPIC_PASSED, broken, iteration=2, utterance="a\nb")._replace(generated=answer),
    )
    report = make.report(*cases, options=options)
    return replace(report, statistics=collect(cases, options))


SAFE = Page(render([make.mixed(), make.rated(0.7), make.broken_off(), rich()]))


def test_a_page_is_well_nested_and_loads_nothing() -> None:
    text = render([make.mixed(), rich(), make.report()])
    assert not {"src", "href", "style", "onclick"} & (Page(text).attributes - {"href"})
    assert set(re.findall(r'href="([^"]*)"', text)) == {"#run1", "#run2", "#run3"}
    assert "http:" not in text.replace("http-equiv", "")
    assert "https:" not in text


def test_the_policy_allows_only_the_pages_own_style_and_script() -> None:
    text = render([make.mixed()])
    for element in ("style", "script"):
        [inside] = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text


def test_iterations_of_a_case_are_grouped() -> None:
    text = render([rich()])
    assert text.count('<details class="case') == 1
    assert '<details class="case failure partly mixed" open>' in text
    assert ["iteration 1" in text, "iteration 2" in text] == [True, True]


def test_the_known_facts_of_an_answer_are_shown() -> None:
    text = render([rich()])
    for fact in ("topic <code>Returns</code>", "<code>PrintLabel</code>", "250 ms", "tokens 12 in, ? out"):
        assert fact in text
    for fact in ("rated by rules", "partial 0.67", "score 0", "the rater did not answer"):
        assert fact in text


def test_statistics_are_shown_where_they_were_collected() -> None:
    assert re.search('<dt>median latency</dt><dd>250 ms</dd><dd class="dim">p95 250 ms</dd>', render([rich()]))
    assert "95 % interval" in render([rich()])
    assert "median latency" not in render([make.mixed()])


def test_unknown_numbers_are_not_shown_as_0() -> None:
    unknown = rich().run.cases[0]._replace(generated=GeneratedData("", tokens=Tokens(None, 5)))
    report = make.report(unknown)
    text = render([replace(report, statistics=collect(report.run.cases, report.run.options))])
    assert "<dd>? / 5</dd>" in text
    assert "(empty answer)" in text
    assert "<dd>none</dd>" in render([make.report(make.MIXED_CASES[3])])


def test_a_short_latency_is_not_shown_as_0() -> None:
    answer = GeneratedData("Yes.", latency_ms=0.31)
    assert "<span>0.31 ms</span>" in render([make.report(make.PASSED._replace(generated=answer))])


def test_nan_is_shown_as_nan() -> None:
    result = TestResult("x", Verdict.UNDECIDED, score=float("nan"), detail=float("inf"))
    answer = GeneratedData("Yes.", latency_ms=float("nan"))
    text = render([make.report(make.case(1, Verdict.UNDECIDED, result)._replace(generated=answer))])
    assert ["score nan" in text, "partial inf" in text, "<span>unknown</span>" in text] == [True, True, True]


def test_a_run_without_cases_says_so() -> None:
    going_on = replace(make.run(), total=3, status=RunStatus.IN_PROGRESS)
    text = render([make.report_of(going_on)])
    assert "No case results yet." in text
    assert 'class="decision undecided"' in text


@given(st.lists(make.reports, max_size=2))
def test_any_texts_make_a_well_nested_page(reports: list[Report]) -> None:
    text = render(reports)
    assert clean(text) == text
    page = Page(text)
    assert {*page.elements} <= {*SAFE.elements}
    assert page.attributes <= SAFE.attributes


@given(HOSTILE, HOSTILE)
def test_markup_in_texts_stays_text(first: str, second: str) -> None:
    result = TestResult(first, Verdict.FAILURE, first, second, None, first, label=second, rater=first, error=second)
    case = make.case(1, Verdict.FAILURE, result, utterance=f"{first}\n")._replace(
        generated=GeneratedData(second, first, (Action(second),)), error=first
    )
    run = replace(make.run(case), definition=first, subject_name=second, id=first, error=second, total=2)
    page = Page(render([replace(make.report_of(run), file=first), make.rated(0.7)]))
    assert {*page.elements} <= {*SAFE.elements}
    assert page.attributes <= SAFE.attributes
    assert page.texts[:2] == [shorten(f"{first}\n"), shorten(second)]


def test_the_page_opens_at_the_first_failure_and_folds_what_passed() -> None:
    text = render([make.mixed(), make.rated(0.7)])
    assert re.findall(r'<details class="(case [a-z ]+)" open>', text) == ["case failure undecided"]
    assert text.index("case failure") < text.index('<details class="rest">') < text.index('<details class="case pass">')
    assert [text.count('<fieldset class="filter">'), text.count("<summary>1 case passed</summary>")] == [1, 1]


def test_a_forgiven_failure_is_not_what_the_page_opens_at() -> None:
    report = make.compared()
    known = make.report(*report.run.cases[:2])
    text = render([replace(known, baseline=report.baseline)])
    assert not re.search('class="case [a-z -]+" open>', text)


def test_a_short_run_took_milliseconds() -> None:
    short = replace(make.run(make.PASSED), ended=make.STARTED + 0.000_25)
    assert re.search("<dt>took</dt><dd>0.2[0-9] ms</dd>", render([make.report_of(short)]))


def test_a_reported_state_and_handoffs_are_shown() -> None:
    answer = GeneratedData("Yes.", state={"order": "<b>"}, handoffs=("Triage", "<i>"))
    text = render([make.report(make.PASSED._replace(generated=answer))])
    assert "&#34;order&#34;: &#34;&lt;b&gt;&#34;" in text
    assert "<span>handoffs <code>Triage</code> <code>&lt;i&gt;</code> </span>" in text


def test_a_huge_hostile_answer_is_cut_and_its_control_characters_are_shown() -> None:
    answer = GeneratedData("\x1b[31m\u202ered</pre><script>" + "a" * 10_000_000)
    text = render([make.report(make.PASSED._replace(generated=answer))])
    assert len(text) < 100_000
    assert r"\x1b[31m\u202ered&lt;/pre&gt;&lt;script&gt;" in text


def test_differences_are_marked_only_if_they_made_a_result_fail() -> None:
    def page(verdict: Verdict) -> str:
        result = TestResult("bot_response_rating", verdict, "30 days", "You have 30 days.")
        return render([make.report(make.case(1, verdict, result))])

    assert "<mark>You have </mark>30 days" in page(Verdict.FAILURE)
    assert not any("<mark>" in page(verdict) for verdict in (Verdict.ERROR, Verdict.UNDECIDED, Verdict.PASS))


def marked(parts: tuple[Part, ...]) -> str:
    return "".join(f"[{part.text}]" if part.is_different else part.text for part in parts)


@pytest.mark.parametrize(
    ("before", "after", "left", "right"),
    [
        ("Order 12 is here.", "Order 13 is here.", "Order [12] is here.", "Order [13] is here."),
        ("on Friday", "on Friday", "on Friday", "on Friday"),
        ("", "new", "", "[new]"),
        ("a b", "c d", "[a b]", "[c d]"),
        ("['A']", "['A', 'B']", "['A']", "['A'[, 'B']]"),
    ],
)
def test_only_what_differs_is_marked(before: str, after: str, left: str, right: str) -> None:
    found = word_difference(before, after)
    assert (marked(found[0]), marked(found[1])) == (left, right)


@given(st.text(), st.text())
def test_the_parts_of_a_text_are_the_text(before: str, after: str) -> None:
    found = word_difference(before, after)
    assert "".join(part.text for part in found[0]) == before
    assert "".join(part.text for part in found[1]) == after
    assert any(part.is_different for part in (*found[0], *found[1])) == (before != after)


def test_very_long_texts_are_marked_as_a_whole() -> None:
    found = word_difference("a " * 5_000, "b " * 5_000)
    assert [part.is_different for part in (*found[0], *found[1])] == [True, True]
