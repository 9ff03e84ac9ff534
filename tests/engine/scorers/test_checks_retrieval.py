from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers.checks import score_document_recall
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import GeneratedData, Passage
from evalmeta.model.run import TestResult, Verdict


def judge(uris: object, *retrieved: str, is_reported: bool = True, **terms: object) -> TestResult:
    expectation = Expectation("retrieval/ground_truth/document_recall", terms={"uris": uris, **terms})
    passages = tuple(Passage(uri, "text") for uri in retrieved) if is_reported else None
    return score_document_recall(expectation, exchange(GeneratedData("", retrieved=passages)))


def test_the_share_of_expected_documents_is_measured() -> None:
    result = judge(["a", "b", "c"], "c", "x", "a")
    assert (result.is_measured, result.score) == (True, 2 / 3)
    assert result.explanation == "2 of 3 expected documents were retrieved; missing: b"
    assert (result.expected, result.actual) == ("[a, b, c]", "[c, x, a]")


def test_a_document_counts_once() -> None:
    assert judge(["a", "a", "b"], "a", "a").score == 0.5


@pytest.mark.parametrize(("retrieved", "verdict"), [("ab", Verdict.PASS), ("a", Verdict.PASS), ("", Verdict.FAILURE)])
def test_a_threshold_decides(retrieved: str, verdict: Verdict) -> None:
    result = judge(["a", "b"], *retrieved, threshold=0.5)
    assert (result.verdict, result.threshold) == (verdict, 0.5)


def test_without_reported_passages_there_is_no_score() -> None:
    result = judge(["a"], is_reported=False, threshold=0.5)
    assert (result.verdict, result.score, result.threshold) == (Verdict.UNDECIDED, None, 0.5)
    assert result.explanation == "the agent did not report what it retrieved"


def test_an_agent_that_retrieved_nothing_found_nothing() -> None:
    assert judge(["a"]).score == 0.0


@pytest.mark.parametrize("uris", [None, []])
def test_where_no_document_is_expected_there_is_no_score(uris: object) -> None:
    result = judge(uris, "a")
    assert (result.verdict, result.score) == (Verdict.UNDECIDED, None)


@pytest.mark.parametrize("uris", ["a", [1], {"a": 1}, 3])
def test_documents_that_are_not_a_list_are_an_error(uris: object) -> None:
    assert judge(uris, "a").verdict is Verdict.ERROR
