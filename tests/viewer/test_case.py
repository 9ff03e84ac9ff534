"""The page of a case, and what people say of its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta.model.evaluation import today
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

CASE = f"/view/runs/{RUN}/cases/2"
FORM = {"iteration": "1", "result": "topic_sequence_match", "turn": "0"}


def head_of(html: str) -> str:
    """Return the head of a case's page."""
    return html.partition('aria-label="Result"')[2].partition("</section>")[0]


def test_a_failure_is_explained_with_the_difference(browser: Browser, run: Callable[..., int]) -> None:
    run()

    html = browser.page(CASE)

    assert "<mark>Cancellations</mark>" in html
    assert "<mark>Orders</mark>" in html
    assert "· line 8</p>" in html
    assert "evalmeta run orders.yaml --case 2" in html


def test_a_case_in_quarantine_has_a_badge_and_its_reason(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    settings = project.root / "evalmeta.toml"
    entry = f'\n[[quarantine]]\ntest = "orders"\ncase = 2\nreason = "<b>flaky</b>"\nuntil = {today()}\n'
    settings.write_text(settings.read_text() + entry)
    run()

    html = browser.page(CASE)

    assert '<span class="pill measured" title="&lt;b&gt;flaky&lt;/b&gt;">quarantined</span>' in html
    assert f"In quarantine until {today()}: <bdi>&lt;b&gt;flaky&lt;/b&gt;</bdi>" in html
    assert browser.page(f"/view/runs/{RUN}").count(">quarantined</span>") == 1


def test_the_metadata_of_a_case_is_shown(browser: Browser, run: Callable[..., int], project: Project) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(spec.read_text().replace("Cancellations", "Cancellations\n    metadata: {owner: <b>, level: 2}"))
    run()

    assert "<p>Metadata: <bdi>owner: &lt;b&gt;, level: 2</bdi></p>" in browser.page(CASE)


def test_the_history_shows_the_case_in_earlier_runs(browser: Browser, run: Callable[..., int]) -> None:
    run()
    run()

    html = browser.page("/view/runs/4KB000000000002GAA/cases/2")

    assert html.count('class="square failure"') == 2
    assert f'href="/view/runs/{RUN}/cases/2"' in html


def test_iterations_with_the_same_answer_are_one(browser: Browser, run: Callable[..., int]) -> None:
    run("--iterations", "3")

    assert "3 of 3 iterations, same answer" in browser.page(CASE)


CRASH = """
def answer(utterance):
    days[utterance]
    return "Hello"
days = {}
"""


def test_the_head_of_a_crash_says_why_and_its_iterations_have_no_answer(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    (project.root / "order_agent.py").write_text(CRASH)
    run("--iterations", "2")

    html = browser.page(CASE)

    head = head_of(html)
    assert "agent crash: <bdi>order_agent.py:3: KeyError: &#39;Cancel order 13.&#39;</bdi>" in head
    assert html.count("order_agent.py:3: KeyError") == 1
    assert "2 of 2 iterations, same error" in html


def test_a_long_error_is_also_shown_whole(browser: Browser, run: Callable[..., int], project: Project) -> None:
    (project.root / "order_agent.py").write_text(
        CRASH.replace("days[utterance]", "raise ValueError('x' * 600 + 'end')")
    )
    run()

    html = browser.page(CASE)

    assert "xend" not in head_of(html)
    assert "xend" in html


def test_a_turn_that_crashed_is_named(browser: Browser, run: Callable[..., int], project: Project) -> None:
    (project.root / "order_agent.py").write_text(CRASH.replace("days[", "if 'Hi' not in utterance: days["))
    (project.root / "orders.yaml").write_text(
        "subjectName: Order_Agent\ntestCases:\n  - turns: [{utterance: Hi}, {utterance: Cancel}, {utterance: Bye}]\n"
    )
    run()

    assert "<b>turn 2</b> · agent crash: " in browser.page(f"/view/runs/{RUN}/cases/1")


def test_all_iterations_of_a_case_with_its_own_number_are_shown(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    spec = project.root / "orders.yaml"
    spec.write_text(spec.read_text().replace("Cancellations", "Cancellations\n    iterations: 3"))
    run()

    assert "3 of 3 iterations, same answer" in browser.page(CASE)
    page = browser.page(f"/view/runs/{RUN}")
    assert 'case results</dt><dd>4</dd><dd class="dim">up to 3 iterations' in page
    assert [f"{CASE}?iteration={number}" in page for number in (1, 2, 3)] == [True] * 3


def test_a_person_marks_a_result_and_removes_the_mark(browser: Browser, run: Callable[..., int]) -> None:
    run()

    marked = browser.send(CASE, f"{CASE}/mark", {**FORM, "judgement": "wrong", "note": "<b>Both</b> are right"})
    assert "<b>wrong</b> says Local Admin" in marked
    assert "&lt;b&gt;Both&lt;/b&gt; are right" in marked

    removed = browser.send(CASE, f"{CASE}/mark", {**FORM, "judgement": "none", "seen": seen_in(marked)})
    assert "says Local Admin" not in removed


def seen_in(html: str) -> str:
    """Return which judgement of the user the first form of a page shows."""
    return html.split('name="seen" value="')[1].split('"', maxsplit=1)[0]


def test_a_second_tab_does_not_replace_a_judgement_that_it_does_not_show(
    browser: Browser, run: Callable[..., int]
) -> None:
    run()
    csrf, seen = browser.csrf(CASE), seen_in(browser.page(CASE))
    form = {**FORM, "csrf": csrf, "seen": seen}
    browser.client.post(f"{CASE}/mark", data={**form, "judgement": "right"})

    second = browser.client.post(f"{CASE}/mark", data={**form, "judgement": "wrong"})

    assert second.status_code == httpx.codes.BAD_REQUEST
    assert "judged in another tab, your judgement is already: right" in second.text
    assert "<b>right</b> says Local Admin" in browser.page(CASE)


def test_a_person_says_what_an_undecided_verdict_should_be(
    browser: Browser, run: Callable[..., int], project: Project
) -> None:
    undecided = 'def answer(utterance):\n    return "Yes."\n'
    (project.root / "order_agent.py").write_text(undecided)
    run()

    assert "What should the verdict be?" in browser.page(CASE)
    marked = browser.send(CASE, f"{CASE}/mark", {**FORM, "judgement": "pass"})
    assert "<b>should pass</b> says Local Admin" in marked


@pytest.mark.parametrize("change", [{"judgement": "maybe"}, {"judgement": "right", "note": "x" * 2_001}])
def test_a_bad_judgement_is_refused(browser: Browser, run: Callable[..., int], change: dict[str, str]) -> None:
    run()
    value = browser.page(CASE).split('name="csrf" value="')[1].split('"')[0]

    reply = browser.client.post(f"{CASE}/mark", data={**FORM, **change, "csrf": value})

    assert reply.status_code == httpx.codes.BAD_REQUEST


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\\u202egnp.exe", "\\u202egnp.exe"),
        ("\\x1b[31m", "\\x1b[31m"),
    ],
)
def test_hostile_answers_are_text(
    project: Project, browser: Browser, run: Callable[..., int], text: str, shown: str
) -> None:
    (project.root / "order_agent.py").write_text(f'def answer(_):\n    return "{text}"\n')
    run()
    run()

    second = RUN.replace("1GAA", "2GAA")
    for path in (CASE, f"/view/runs/{RUN}", f"/view/compare?after={second}&before={RUN}"):
        html = browser.page(path)
        assert "<script>alert" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html
    assert shown in browser.page(CASE)


def test_a_huge_answer_is_cut_and_leads_to_all_of_it(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    (project.root / "order_agent.py").write_text('def answer(_):\n    return "word " * 190_000 + "<end>"\n')
    run()

    html = browser.page(CASE)

    assert "more characters" in html
    assert len(html) < 200_000
    assert "Show all 950.0 kB of the answer" in html
    assert "word &lt;end&gt;</pre>" in browser.page(f"{CASE}/text?part=turn-1-answer")
    assert browser.client.get(f"{CASE}/text?part=turn-2-answer").status_code == httpx.codes.NOT_FOUND


def test_the_head_says_where_and_why_a_case_failed(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    turns = "".join(f"      - utterance: {turn}\n        contains: {turn}\n" for turn in ("First", "Sunday", "Third"))
    (project.root / "order_agent.py").write_text('def answer(text):\n    return text.replace("Sun", "Mon")\n')
    (project.root / "orders.yaml").write_text(f"{_head_of(project)}  - turns:\n{turns}")
    run()

    html = browser.page(f"/view/runs/{RUN}/cases/1")

    assert "<b>turn 2 of 3</b>" in html
    target = html.split('<a href="#')[1].split('"')[0]
    assert f'<section class="result failure" id="{target}">' in html
    assert [part.split(">")[0].endswith(" open") for part in html.split('<details class="card turn-card"')[1:]] == [
        *(False, True, False)
    ]


def _head_of(project: Project) -> str:
    text = (project.root / "orders.yaml").read_text()
    return text[: text.index("  - utterance")]


def test_the_answer_that_passed_last_stands_beside_one_that_fails(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    (project.root / "orders.yaml").write_text(_head_of(project) + "  - utterance: When?\n    contains: Friday\n")
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace("Friday", "Monday"))
    run()
    run()

    passed, failed = (browser.page(f"/view/runs/{RUN.replace('1GAA', number)}/cases/1") for number in ("1GAA", "3GAA"))

    assert "<mark>Friday</mark>" in passed
    assert f"passed in run {RUN}" in failed
    assert "<mark>Friday</mark>" in failed
    assert "<mark>Monday</mark>" in failed


def test_an_answer_to_another_utterance_is_not_compared(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    for utterance, day in (("When?", "Friday"), ("Where?", "Monday")):
        (project.root / "order_agent.py").write_text(f'def answer(_):\n    return "On {day}"\n')
        case = f"  - utterance: {utterance}\n    contains: Friday\n"
        (project.root / "orders.yaml").write_text(_head_of(project) + case)
        run()

    html = browser.page("/view/runs/4KB000000000002GAA/cases/1")

    assert "passed in run" not in html
    assert 'class="square pass changed"' in html


def test_a_page_draws_fifty_expectations_failed_ones_first(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    checks = "".join(f'      - "{number}"\n' for number in range(100, 220))
    (project.root / "order_agent.py").write_text('def answer(_):\n    return " ".join(map(str, range(100, 217)))\n')
    (project.root / "orders.yaml").write_text(_head_of(project) + f"  - utterance: Count\n    contains:\n{checks}")
    run()
    path = f"/view/runs/{RUN}/cases/1"

    first, last = browser.page(path), browser.page(f"{path}?from=100")

    assert first.count('<section class="result ') == 50
    assert first.count('<section class="result failure"') == 3
    assert "Expectations 1 to 50 of 120, failed ones first." in first
    assert last.count('<section class="result ') == 20
    assert "Go to this expectation" in last
    shown = browser.page(f"{path}?show=failure")
    assert shown.count('<section class="result ') == 3
    assert "Expectations 1 to 3 of 3" in shown


def test_markdown_and_json_are_shown_in_both_forms(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    answers = """{"Where is order 12?": "# All <b>is</b> well", "Cancel order 13.": '{"state": "<i>"}'}"""
    (project.root / "order_agent.py").write_text(f"def answer(utterance):\n    return {answers}[utterance]\n")
    run()

    markdown, json = browser.page(f"/view/runs/{RUN}/cases/1"), browser.page(CASE)

    assert '<p class="heading-1">All &lt;b&gt;is&lt;/b&gt; well</p>' in markdown
    assert '<pre class="answer as-sent" dir="auto"># All &lt;b&gt;is&lt;/b&gt; well</pre>' in markdown
    assert '<pre dir="auto">{\n  &#34;state&#34;: &#34;&lt;i&gt;&#34;\n}</pre>' in json


def test_a_missing_call_is_drawn_and_each_step_leads_to_its_input(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    case = "  - utterance: Where?\n    actions: [Find_Order, Track_Parcel]\n"
    (project.root / "orders.yaml").write_text(_head_of(project) + case)
    run()

    html = browser.page(f"/view/runs/{RUN}/cases/1")

    assert 'Track_Parcel <b>missing</b></span><svg class="lane" aria-hidden="true"><rect class="missing"' in html
    assert '<a href="#turn-1-step-1">Find_Order</a>' in html
    assert '<div class="io" id="turn-1-step-1">' in html


def test_the_head_names_the_fault_and_since_when(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text() + CRASH)
    run()
    first = head_of(browser.page("/view/runs/4KB000000000002GAA/cases/1"))
    run()
    second = head_of(browser.page("/view/runs/4KB000000000003GAA/cases/1"))

    for head in (first, second):
        assert 'title="the agent did not answer">infrastructure: agent crash</span>' in head
        assert f"before={RUN}" in head
    assert "the commit is not known ·" in first
    assert '<a href="/view/runs/4KB000000000002GAA/cases/1">since ' in second
    assert "the commit is not known, 2 runs in a row</a>" in second


def test_a_case_that_passes_or_of_an_older_run_has_no_fault(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text() + CRASH)
    run()
    agent.write_text(agent.read_text().replace("days[utterance]", "days.get(utterance)"))
    run()

    heads = [head_of(browser.page(f"/view/runs/4KB00000000000{number}GAA/cases/1")) for number in (1, 2, 3)]

    assert ["Compare the runs" in head for head in heads] == [False, False, True]


def test_names_are_listed_as_people_write_them(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    case = "  - utterance: Where?\n    actions: [Find_Order, Track_Parcel]\n"
    (project.root / "orders.yaml").write_text(_head_of(project) + case)
    run()

    html = browser.page(f"/view/runs/{RUN}/cases/1")

    assert "<dd><bdi>Find_Order, Track_Parcel</bdi></dd>" in head_of(html)
    assert '<pre dir="auto">Find_Order<mark>, Track_Parcel</mark></pre>' in html
    assert "&#39;Find_Order" not in html
