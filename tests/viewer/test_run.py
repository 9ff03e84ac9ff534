"""The page of a run, and of the runs of one command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from evalmeta import limits
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, Doubt, Run, RunStatus, TestResult, Verdict, Verdicts
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs
from viewer.conftest import RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from viewer.conftest import Browser


def cases(html: str) -> list[str]:
    """Return the numbers of the listed cases in order."""
    return re.findall(r"data-row[^>]*>.*?/cases/(\d+)", html, re.DOTALL)


def test_failures_come_first_with_the_reason(browser: Browser, run: Callable[..., int]) -> None:
    run()

    html = browser.page(f"/view/runs/{RUN}")

    assert cases(html) == ["2", "1"]
    assert "not passed: 1 case failed" in html
    assert "50 %" in html


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("verdict=failure", ["2"]),
        ("verdict=pass", ["1"]),
        ("verdict=error", []),
        ("text=CANCEL", ["2"]),
        ("text=arrives+on+friday", ["2", "1"]),
        ("name=topic_sequence_match&verdict=FAILURE", ["2"]),
        ("verdict=nonsense&after=1.2", ["2", "1"]),
    ],
)
def test_cases_are_filtered(browser: Browser, run: Callable[..., int], query: str, expected: list[str]) -> None:
    run()

    assert cases(browser.page(f"/view/runs/{RUN}?{query}")) == expected


def test_a_page_reads_only_its_own_rows(
    browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VIEW_ROWS", 1)
    run()

    html = browser.page(f"/view/runs/{RUN}")
    [address] = re.findall(r'rel="next" href="([^"]+)"', html)

    assert cases(html) == ["2"]
    assert cases(browser.page(address.replace("&amp;", "&"))) == ["1"]


def test_all_runs_of_a_command_are_one_list(project: Project, browser: Browser, run: Callable[..., int]) -> None:
    (project.root / "more.yaml").write_text((project.root / "orders.yaml").read_text())
    run(str(project.root / "more.yaml"))

    [suite] = set(re.findall(r"/view/suites/(\w+)", browser.page("/view/runs")))
    html = browser.page(f"/view/suites/{suite}")

    assert cases(html) == ["2", "2", "1", "1"]
    assert cases(browser.page(f"/view/suites/{suite}?test=more.yaml")) == ["2", "1"]


@pytest.mark.parametrize("path", ["/view/runs/nothing", "/view/suites/nothing", f"/view/runs/{RUN}?org=https://x.test"])
def test_unknown_runs_have_a_page_with_the_way_back(browser: Browser, path: str) -> None:
    browser.log_in()

    reply = browser.client.get(path)

    assert reply.status_code == httpx.codes.NOT_FOUND
    assert 'href="/view"' in reply.text


def test_numbers_of_a_run_change_when_it_gets_other_results(browser: Browser, run: Callable[..., int]) -> None:
    run()
    assert "case results</dt><dd>2" in browser.page(f"/view/runs/{RUN}")

    run("--iterations", "2")

    assert "case results</dt><dd>4" in browser.page("/view/runs/4KB000000000002GAA")


def test_a_run_of_another_org_shows_what_its_check_found(project: Project, browser: Browser) -> None:
    both = Verdicts(Verdict.PASS, Verdict.FAILURE, "expected the topic Returns, got Orders")
    result = TestResult("topic_assertion", Verdict.PASS, "Returns", "Orders", verdicts=both)
    case = CaseResult(1, 1, "Where is it?", Verdict.PASS, 1.0, 2.0, (result,), GeneratedData("On its way."))
    there, doubt = "4KB5e0000000001AAA", Doubt("agent-version", "v2 of Agent is the newest version")
    run = Run(there, "Orders", "Agent", RunStatus.COMPLETED, 1.0, 1, ended=2.0, cases=(case,), doubts=(doubt,))
    with open_remote_runs(project.store) as runs:
        runs.keep(RemoteRun("https://org.example", "dev", run, (there,)))

    html = browser.page(f"/view/runs/{there}?org=https://org.example")

    assert "case 1: topic_assertion: org PASS, evalmeta FAILURE: expected the topic Returns, got Orders" in html
    assert "v2 of Agent is the newest version (agent-version)" in html
