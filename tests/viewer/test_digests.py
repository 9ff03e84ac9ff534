"""The numbers of runs on pages, computed from all their results or from their JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run, statistics_of
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, EarlierTurn, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.spending import Spent, cost_lines
from evalmeta.model.tally import summarise
from evalmeta.store.database import open_database
from evalmeta.store.kept_numbers import KeptTally
from evalmeta.store.run_lists import find_listed
from evalmeta.store.runs import Lease, RunJournal, Runs
from evalmeta.viewer.digests import Digest, digest_of
from evalmeta.viewer.pages import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.package.project import Project
    from viewer.conftest import Browser

LATER: Final = "4KB000000000002GAA"
ANSWER: Final = GeneratedData("On Friday.", latency_ms=300.0, tokens=Tokens(10, 5), first_token_ms=20.0)
UNDECIDED: Final = TestResult("tone", Verdict.UNDECIDED, explanation="no LLM rater is configured")
CASES: Final = (
    CaseResult(
        *(1, 1, "And order 13?", Verdict.PASS, 1.0, 2.0, (TestResult("topic", Verdict.PASS), UNDECIDED)),
        generated=ANSWER,
        earlier=(EarlierTurn("Where is order 12?", GeneratedData("Here.", latency_ms=100.0, tokens=Tokens(1, None))),),
        spent=(Spent("agent", "gpt", 2, 11, 5, amount=0.25),),
    ),
    CaseResult(
        *(2, 1, "Cancel it.", Verdict.FAILURE, 1.0, 2.0, (TestResult("topic", Verdict.FAILURE), UNDECIDED)),
        generated=GeneratedData("No.", latency_ms=50.0),
    ),
    CaseResult(
        *(3, 1, "Hello?", Verdict.PASS, 1.0, 2.0),
        (TestResult("topic", Verdict.PASS), TestResult("words", Verdict.UNDECIDED, score=3.0, is_measured=True)),
        generated=GeneratedData("Hi."),
    ),
    CaseResult(
        *(4, 1, "Bye.", Verdict.ERROR, 1.0, 2.0, (), None, "the agent did not answer"),
        metadata={"team": "desk"},
        tags=("smoke",),
    ),
)


def digest_in(project: Project, cases: Sequence[CaseResult], options: RunOptions) -> Digest:
    """Save a run as a worker does, and return its numbers."""
    with open_database(project.store) as database:
        runs, evaluation = Runs(database), Evaluation("Orders", "Desk", ())
        run_id = runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b""), options, total=len(cases), now=1.0)
        assert runs.claim(run_id, "w", taken_from=Lease(None, None), until=9e9, now=1.0)
        RunJournal(database, run_id, "w").append(cases)
        kept = KeptTally.of(summarise(cases, options), RunStatus.COMPLETED, total=len(cases)).columns()
        runs.finish(run_id, "w", RunStatus.COMPLETED, error=None, now=5.0, kept=kept)
        listed = find_listed(database, run_id)
        assert listed
        digest = digest_of(Source(project, database), listed)
        assert digest
        return digest


def test_the_numbers_of_a_run_are_those_of_its_results(project: Project) -> None:
    digest = digest_in(project, CASES, RunOptions())

    statistics = statistics_of(find_run(project, "4KB000000000001GAA"))
    assert statistics.interval
    assert statistics.latency
    assert digest["interval"] == pytest.approx([*statistics.interval])
    assert (digest["p50"], digest["p95"]) == (statistics.latency.p50, statistics.latency.p95)
    assert (digest["input"], digest["output"], digest["told_tokens"], digest["answers"]) == (11, 5, 2, 4)
    assert digest["costs"] == [*cost_lines(statistics.spent)]
    assert digest["took"] == 4
    assert digest["outcome"].startswith("not passed: 1 case ended in an error")
    verdicts = {known["name"]: known["verdicts"] for known in digest["expectations"]}
    assert verdicts == {"topic": {"PASS": 2, "FAILURE": 1}, "tone": {"UNDECIDED": 2}}
    assert [name for name, _ in digest["reasons"]] == ["tone"]
    assert "no LLM rater is configured" in digest["reasons"][0][1]
    assert (digest["flaky"], digest["tags"]) == ([], ["smoke", "team=desk"])


def test_both_ways_to_compute_them_agree(project: Project) -> None:
    """Cases that can run several times are read as a whole."""
    plain, whole = (digest_in(project, CASES, options) for options in (RunOptions(), RunOptions(most_iterations=2)))
    assert {**plain, "outcome": ""} == {**whole, "outcome": ""}


def test_tests_with_many_cases_are_marked_without_reading_their_results(
    project: Project, browser: Browser, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_LIVE_CASES", 1)
    run()
    agent = project.root / "order_agent.py"
    agent.write_text(agent.read_text().replace('"topic": "Orders"', '"topic": "Cancellations"'))
    run()

    html = browser.page("/view/tests")

    assert "1 suspect" in html
    with open_database(project.store) as database:
        kept = [run_id for (run_id,) in database.query("SELECT run_id FROM run_digest") if "doubtful" not in run_id]
    assert kept == [f"4KB000000000001GAA {LATER}"]
    assert browser.page("/view/tests").count("1 suspect") == 1


def test_runs_with_other_cases_are_compared_by_what_they_ask(
    project: Project, browser: Browser, run: Callable[..., int]
) -> None:
    run()
    spec = project.root / "orders.yaml"
    new = "testCases:\n  - utterance: Hello?\n    contains: Friday\n"
    spec.write_text(spec.read_text().replace("testCases:\n", new).replace("Topic: Orders", "Topic: Refunds"))
    run()

    assert "1 suspect" in browser.page("/view/tests")
