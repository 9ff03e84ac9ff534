"""The page that compares runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta.api.runs.comparisons import compare_runs
from evalmeta.cli.main import main
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, Run, RunStatus, TestResult, Verdict
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs
from evalmeta.viewer import compare
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

LATER = "4KB000000000002GAA"


@pytest.fixture
def two(project: Project, run: Callable[..., int]) -> None:
    """Two runs: in the second, case 1 fails too, with another answer."""
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"Orders"', '"Returns"').replace("Friday", "Monday"))
    run()


@pytest.mark.usefixtures("two")
def test_a_run_is_compared_with_the_previous_one_of_its_test(browser: Browser) -> None:
    html = browser.page(f"/view/compare?after={LATER}")

    assert "not significantly worse, but 1 suspect" in html
    assert "<mark>Friday</mark>" in html
    assert "<mark>Monday</mark>" in html
    assert f"evalmeta test compare {RUN} {LATER}" in html


def test_answers_are_those_of_iterations_that_differ(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run("--iterations", "2")
    agent = project.root / "order_agent.py"
    worse = agent.read_text().replace("Friday", '" + days.pop() + "').replace('"Orders"', "topics.pop()")
    agent.write_text(f'days, topics = ["Monday"] * 2 + ["Friday"] * 2, ["Returns"] * 2 + ["Orders"] * 2\n{worse}')
    run("--iterations", "2", "--concurrency", "1")

    html = browser.page(f"/view/compare?after={LATER}")

    assert "after 50 %" in html
    assert "<mark>Monday</mark>" in html


def test_cases_are_paired_as_the_statistics_pair_them(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    """In the second run, both cases have moved, and a new one has the number of the first."""
    run()
    spec, agent = project.root / "orders.yaml", project.root / "order_agent.py"
    head, first, second = re.split(r"(?=  - utterance)", spec.read_text())
    spec.write_text(head + "  - utterance: Return order 14.\n    expectedTopic: Returns\n" + first + second)
    # A file of the same size, changed in the same second, would be loaded from its cache.
    agent.write_text(agent.read_text().replace("Friday", "Wednesday"))
    run()

    html = browser.page(f"/view/compare?after={LATER}&standing=still+passing")
    assert "Order 12 arrives on <mark>Friday</mark>: Where is order 12?" in html
    assert "Order 12 arrives on <mark>Wednesday</mark>: Where is order 12?" in html
    assert "Another version of the agent" in html

    new = browser.page(f"/view/compare?after={LATER}&standing=new")
    assert "Order 12 arrives on Wednesday: Return order 14." in new
    assert "answer before" not in new


def test_a_removed_case_has_only_the_answer_before(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    spec = project.root / "orders.yaml"
    head, first, _ = re.split(r"(?=  - utterance)", spec.read_text())
    spec.write_text(head + first)
    run()

    html = browser.page(f"/view/compare?after={LATER}&standing=gone")

    assert "answer before" in html
    assert "answer after" not in html
    assert "1 case was removed." in html


@pytest.mark.usefixtures("two")
def test_tests_with_suspect_cases_are_marked(browser: Browser) -> None:
    assert "1 suspect" in browser.page("/view/tests")


@pytest.mark.usefixtures("two")
def test_a_run_is_compared_with_a_baseline_of_the_project(project: Project, browser: Browser) -> None:
    with pytest.raises(SystemExit):
        main(["test", "baseline", "-o", "baseline.json", RUN])

    html = browser.page(f"/view/compare?after={LATER}&before=baseline.json")

    assert "1 suspect" in html
    (project.root / "evalmeta.toml").rename(project.root.parent / "secret.json")
    reply = browser.client.get(f"/view/compare?after={LATER}&before=../secret.json")
    assert reply.status_code == httpx.codes.NOT_FOUND


def test_a_first_run_has_nothing_to_be_compared_with(browser: Browser, run: Callable[..., int]) -> None:
    run()
    browser.log_in()

    reply = browser.client.get(f"/view/compare?after={RUN}")

    assert reply.status_code == httpx.codes.NOT_FOUND
    assert "no earlier complete run" in reply.text


def test_runs_of_another_org_are_compared_with_links_to_them(project: Project, browser: Browser) -> None:
    """The project's own org has a run with the same id, whose answers are not shown."""
    url, first, second = "https://org.example", "4KB5e0000000001AAA", "4KB5e0000000002AAA"
    for place, (run_id, verdict, answer) in enumerate(
        [(first, Verdict.PASS, "It is on its way."), (second, Verdict.FAILURE, "I cannot say.")]
    ):
        result = TestResult("topic_assertion", verdict, "Orders", "Orders")
        case = CaseResult(1, 1, "Where is it?", verdict, 1.0, 2.0, (result,), GeneratedData(answer))
        started = 1.0 + place
        run = Run(run_id, "Orders", "Agent", RunStatus.COMPLETED, started, 1, ended=started + 1, cases=(case,))
        with open_remote_runs(project.store) as runs:
            runs.keep(RemoteRun(url, "dev", run, (run_id,)))

    html = browser.page(f"/view/compare?after={second}&org={url}")

    assert "I cannot say." in re.sub("</?mark>", "", html)
    assert f"/view/runs/{first}?org=https%3A%2F%2Forg.example" in html
    assert "standing=suspect&amp;org=https" in html
    both = browser.page(f"/view/compare?after={second}&org={url}&before={first}&before_org={url}")
    assert "not significantly worse, but 1 suspect" in both


@pytest.mark.usefixtures("two")
def test_runs_have_names_in_comparisons(browser: Browser) -> None:
    html = browser.page("/view/compare?after=latest&before=previous")

    assert f"evalmeta test compare {RUN} {LATER}" in html


def test_a_run_that_cannot_be_found_is_named(browser: Browser) -> None:
    browser.log_in()

    reply = browser.client.get("/view/compare?after=4KB000000000009GAA")

    assert reply.status_code == httpx.codes.NOT_FOUND
    assert "run &#39;4KB000000000009GAA&#39; cannot be found" in reply.text


SPEC = """
name: Orders
subjectType: AGENT
subjectName: Order_Agent
testCases:
  - utterance: Where is order 12?
    expectedActions: [Find_Order, Track_Parcel]
  - utterance: Cancel order 13.
    expectedTopic: Orders
"""


@pytest.fixture
def lost_call(project: Project, run: Callable[..., int]) -> None:
    """Two runs: in the second, the agent does not track parcels any more, and answers with the same words."""
    (project.root / "orders.yaml").write_text(SPEC)
    agent = project.root / "order_agent.py"
    tracking = agent.read_text().replace('["Find_Order"]', '["Find_Order", "Track_Parcel"]')
    agent.write_text(tracking)
    run()
    agent.write_text(tracking.replace(', "Track_Parcel"', ""))
    run()


@pytest.mark.usefixtures("lost_call")
def test_a_lost_call_is_shown_although_the_answers_are_the_same(browser: Browser) -> None:
    html = browser.page(f"/view/compare?after={LATER}")

    assert re.search(r"<code>Track_Parcel</code></td><td>.</td><td><b>missing now</b>", html)
    assert "Actions: ok before, FAILED now" in html
    assert "fault: agent" in html


def test_calls_and_answer_of_a_crash_are_not_known(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    run()
    (project.root / "order_agent.py").write_text("def answer(utterance):\n    raise ValueError('boom')\n")
    run()

    html = browser.page(f"/view/compare?after={LATER}&standing=error")

    assert "<code>Find_Order</code></td><td>?</td><td><b>not known now</b>" in html
    assert "answer before; there is none after" in html
    assert "missing now" not in html
    assert "(empty" not in html


@pytest.mark.usefixtures("lost_call")
@pytest.mark.parametrize(
    ("wanted", "is_shown"),
    [
        *(("text=where+IS", True), ("text=no+such+words", False)),
        *(("expectation=actions_assertion", True), ("expectation=topic_assertion", False)),
        *(("fault=agent", True), ("fault=judge", False), ("sort=score", True)),
    ],
)
def test_compared_cases_are_filtered(browser: Browser, wanted: str, *, is_shown: bool) -> None:
    html = browser.page(f"/view/compare?after={LATER}&{wanted}")

    assert ("missing now" in html) is is_shown
    assert ("No case matches these filters." in html) is not is_shown


@pytest.mark.usefixtures("lost_call")
def test_filters_stay_in_links_to_other_groups(browser: Browser) -> None:
    html = browser.page(f"/view/compare?after={LATER}&text=order&sort=score")

    assert "standing=suspect&amp;text=order&amp;sort=score" in html


def test_the_largest_differences_of_scores_come_first(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    """By standing and number, case 1 would be the first."""
    spec = project.root / "orders.yaml"
    spec.write_text(SPEC.replace("Find_Order, Track_Parcel", "Find_Order"))
    run("--iterations", "2")
    agent = project.root / "order_agent.py"
    worse = agent.read_text().replace('"Orders"', '"Returns"').replace('["Find_Order"]', "calls.pop()")
    agent.write_text('calls = [["Find_Order"]] * 3 + [[]]\n' + worse)
    run("--iterations", "2", "--concurrency", "1")

    html = browser.page(f"/view/compare?after={LATER}&sort=score")

    assert re.findall(r'aria-label="case (\d)"', html) == ["2", "1"]


@pytest.mark.usefixtures("two")
def test_a_comparison_is_kept_until_suspect_cases_are_asked_again(
    browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []
    monkeypatch.setattr(
        compare, "compare_runs", lambda *runs, **options: compared.append(runs) or compare_runs(*runs, **options)
    )
    pages = [browser.page(f"/view/compare?after={LATER}&before={RUN}") for _ in range(2)]
    assert pages[0] == pages[1]
    assert len(compared) == 1
    run("--baseline", RUN, "--confirm", "2")
    browser.page("/view/compare?after=4KB000000000003GAA&before=" + RUN)
    assert len(compared) == 2


def test_hostile_texts_are_escaped_in_reasons_and_calls(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace("Orders", "<script>x</script>").replace("Find_Order", "<img src=x>"))
    run()

    html = browser.page(f"/view/compare?after={LATER}")

    assert "<script>x" not in html
    assert "<img" not in html
    assert "&lt;img src=x&gt;" in html
