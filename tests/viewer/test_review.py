"""The page to review results that nobody has judged."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.api.judging.marks import mark_result
from evalmeta.cli.main import main
from evalmeta.model.login import User
from evalmeta.store.database import open_database
from evalmeta.store.judgements import ResultPlace, list_marks
from evalmeta.viewer.memory import Memory
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

SPEC = """
name: Orders
subjectType: AGENT
subjectName: Order_Agent
testCases:
  - utterance: Tell me about order 12.
    expectedOutcome: The agent is polite.
  - utterance: Cancel order 13.
    expectedTopic: Cancellations
  - utterance: <b>Hello</b>
    expectedOutcome: The agent greets the customer.
"""


@pytest.fixture
def undecided(project: Project, run: Callable[..., int]) -> None:
    """A run with two undecided results and one that failed."""
    (project.root / "orders.yaml").write_text(SPEC)
    run()


def judge(browser: Browser, judgement: str, **fields: str) -> str:
    """Send the form of the page of review, and return the page that follows."""
    page = browser.page("/view/review")
    action = re.search(r'action="(/view/runs/[^"]+/mark)"', page)
    assert action
    names = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.partition("the result to review")[2])
    return browser.send("/view/review", action[1], {**dict(names), "judgement": judgement, **fields})


@pytest.mark.usefixtures("undecided")
def test_undecided_results_are_reviewed_one_by_one(browser: Browser, project: Project) -> None:
    first = browser.page("/view/review")
    assert "2 results of the newest runs" in first
    assert "Tell me about order 12." in first
    assert "Cancel order 13." not in first

    second = judge(browser, "pass")
    assert "1 result of the newest runs" in second
    assert "&lt;b&gt;Hello&lt;/b&gt;" in second
    assert "<b>Hello" not in second

    last = judge(browser, "fail", note="It does not greet.")
    assert "Nothing to review" in last
    with open_database(project.store) as database:
        assert [(mark.place.number, mark.judgement) for mark in list_marks(database)] == [(1, "pass"), (3, "fail")]


@pytest.mark.usefixtures("undecided")
def test_reviewed_results_are_labels_for_checks_of_raters(browser: Browser, project: Project) -> None:
    judge(browser, "pass")
    judge(browser, "fail")

    with pytest.raises(SystemExit):
        main(["test", "marks", "--export", "labels.jsonl"])

    pairs = [json.loads(line) for line in (project.root / "labels.jsonl").read_text().splitlines()]
    assert [(pair["expected"], pair["right"]) for pair in pairs] == [
        ("The agent is polite.", True),
        ("The agent greets the customer.", False),
    ]
    assert pairs[0]["actual"].startswith("Order 12 arrives on Friday")


@pytest.mark.usefixtures("undecided")
def test_a_skipped_result_waits(browser: Browser, project: Project) -> None:
    page = browser.page("/view/review?skip=1")
    assert "&lt;b&gt;Hello" in page
    assert "2 of 2" in page
    assert 'data-key="s" href="/view/review"' in page
    assert "2 of 2" in browser.page("/view/review?skip=99")
    with open_database(project.store) as database:
        assert list_marks(database) == []


@pytest.mark.usefixtures("undecided")
def test_results_that_others_judged_still_wait_and_agreement_is_shown(browser: Browser, project: Project) -> None:
    ann = User("005000000000009AAA", "ann", "ann@example.com", is_admin=True)
    with open_database(project.store) as database:
        for number in (1, 3):
            place = ResultPlace("", RUN, 1, number, "bot_response_rating")
            mark_result(project, database, place, ann, "pass", note="")

    page = browser.page("/view/review")
    assert "2 results of the newest runs" in page
    assert "<b>should pass</b> says ann" in page
    judge(browser, "pass")

    assert "agree about 0 of 1 result" not in judge(browser, "fail")
    assert "ann agree about 1 of 2 results that both judged" in browser.page("/view/review")


@pytest.mark.usefixtures("undecided")
def test_the_test_to_copy_runs_and_passes_with_the_same_answer(
    browser: Browser, project: Project, run: Callable[..., int]
) -> None:
    copied = re.search(r'data-copy="(testCases:[^"]+)"', browser.page("/view/review"))
    assert copied
    head = SPEC.partition("testCases:")[0]
    (project.root / "orders.yaml").write_text(head + html.unescape(copied[1]))
    assert run() == 0


@pytest.mark.usefixtures("undecided")
def test_the_tab_is_on_every_page_and_keys_have_their_buttons(browser: Browser) -> None:
    assert '<a href="/view/review">Review <b' in browser.page("/view")
    assert re.findall(r'data-key="(\w)"', browser.page("/view/review")) == ["1", "2", "a", "s", "c"]


def test_without_undecided_results_nothing_waits(browser: Browser, run: Callable[..., int]) -> None:
    run()
    assert "Nothing to review" in browser.page("/view/review")


@pytest.mark.usefixtures("undecided")
def test_the_tab_has_the_number_of_results_that_the_user_has_not_judged(
    browser: Browser, project: Project, run: Callable[..., int]
) -> None:
    def number() -> list[str]:
        return re.findall(r">Review(?: <b [^>]*>(\d+)</b>)?</a>", browser.page("/view/runs"))

    assert number() == ["2"]
    judge(browser, "pass")
    assert number() == ["1"]
    ann = User("005000000000009AAA", "ann", "ann@example.com", is_admin=True)
    with open_database(project.store) as database:
        mark_result(project, database, ResultPlace("", RUN, 1, 3, "bot_response_rating"), ann, "pass", note="")
    assert number() == ["1"]
    judge(browser, "fail")
    assert number() == [""]
    # The newest run has results of its own.
    run()
    assert number() == ["2"]
    assert "2 results of the newest runs" in browser.page("/view/review")


@pytest.mark.usefixtures("undecided")
def test_the_number_on_the_tab_reads_no_results_again(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    browser.page("/view/runs")
    monkeypatch.setattr("evalmeta.viewer.review.cases_of", None)
    judged = browser.page("/view/tests")

    assert '<b title="2 results that you have not judged">2</b>' in judged
    # Another process has what was kept in the store.
    monkeypatch.setattr("evalmeta.viewer.review._COUNTS", Memory(1))
    assert '<b title="2 results that you have not judged">2</b>' in browser.page("/view/tests")


@pytest.mark.usefixtures("undecided")
def test_a_second_tab_does_not_replace_a_judgement(browser: Browser, project: Project) -> None:
    page = browser.page("/view/review")
    judge(browser, "pass")

    action = re.search(r'action="(/view/runs/[^"]+/mark)"', page)
    assert action
    names = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.partition("the result to review")[2])
    reply = browser.client.post(action[1], data={**dict(names), "judgement": "fail", "csrf": browser.csrf()})

    assert "judged in another tab, your judgement is already: should pass" in reply.text
    with open_database(project.store) as database:
        assert [mark.judgement for mark in list_marks(database)] == ["pass"]


@pytest.mark.parametrize("searched_rows", [1, 100])
def test_judged_results_make_room_for_later_ones_and_the_tab_agrees(
    project: Project, browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, *, searched_rows: int
) -> None:
    monkeypatch.setattr(limits, "MAX_REVIEWED", 2)
    monkeypatch.setattr(limits, "MAX_SEARCHED_ROWS", searched_rows)
    case = "  - utterance: Tell me about order {}.\n    expectedOutcome: The agent is polite.\n"
    cases = "".join(case.format(number) for number in range(1, 6))
    (project.root / "orders.yaml").write_text(SPEC.partition("  - ")[0] + cases)
    run()
    seen, waiting, tabs = [], [], []
    page = browser.page("/view/review")
    while "Nothing to review" not in page:
        seen += re.findall(r'<pre class="question" dir="auto">Tell me about order (\d)', page)
        waiting += re.findall(r"<small>(?:at least )?(\d) results? of the newest runs", page)
        tabs += re.findall(r">Review <b [^>]*>(\d+)</b></a>", page)
        page = judge(browser, "pass")

    assert waiting == tabs == ["2", "2", "2", "2", "1"]
    assert seen == ["1", "2", "3", "4", "5"]
    assert ">Review</a>" in page
