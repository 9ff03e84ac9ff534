from __future__ import annotations

import html
from contextlib import suppress
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import MessageUnreadable
from evalmeta.model.run import CaseResult, Run, RunStatus, Verdict
from evalmeta.protocol.json_fields import read_object
from evalmeta.protocol.testing import plain_status, read_testing_run, studio_status, write_testing_run
from protocol.results import json_values, runs
from protocol.test_connect import RUN

STATUSES = {"NEW": "NEW", "IN_PROGRESS": "IN_PROGRESS", "COMPLETED": "SUCCESS", "ERROR": "FAILED"}


def of_a_definition(run: Run) -> Run:
    """Scorers have no labels and definitions one turn a case, and an org's own shape has no place for more."""
    cases = (
        case._replace(
            results=tuple(
                result._replace(label=None, threshold=None, turn=0, verdicts=None) for result in case.results
            ),
            label="",
            earlier=(),
            tags=(),
        )
        for case in run.cases
    )
    return replace(run, cases=tuple(cases), doubts=())


def by_wire(run: Run) -> Run:
    return read_testing_run(read_object(orjson.dumps(write_testing_run(run))))


def wild(response: str, *scores: str) -> CaseResult:
    results = [{"scorerName": "coherence", "scorerResponse": score} for score in scores]
    case = {"testNumber": 1, "subjectResponse": response, "testScorerResults": results}
    [found] = read_testing_run({"status": "SUCCESS", "testCases": [case]}).cases
    return found


@given(runs.map(of_a_definition))
def test_a_run_comes_over_the_wire_whole(run: Run) -> None:
    assert by_wire(run) == run


def test_the_shape_is_agentforce_studios() -> None:
    written = write_testing_run(RUN)
    case = written["testCases"][0]
    assert "subjectName" not in written
    assert (written["status"], case["testNumber"]) == ("SUCCESS", 1)
    assert case["inputs"] == [{"name": "utterance", "value": "Where's my order?"}]
    response = orjson.loads(html.unescape(case["subjectResponse"]))
    assert (response["userInput"], response["content"]) == ("Where's my order?", "It's there.")
    assert response["performance"] == {"latency": {"duration": 812.5}}


def test_a_scorers_result_is_json_in_escaped_text() -> None:
    [result] = write_testing_run(RUN)["testCases"][0]["testScorerResults"]
    assert '"' not in result["scorerResponse"]
    response = orjson.loads(html.unescape(result["scorerResponse"]))
    assert (response["status"], response["actualValue"], response["expectedValue"]) == ("PASS", "Orders", "Orders")


@pytest.mark.parametrize("status", RunStatus)
def test_every_status_has_its_word_and_comes_back(status: RunStatus) -> None:
    word = studio_status(status)
    assert word == STATUSES.get(status, status)
    assert plain_status(word) == status


@pytest.mark.parametrize(("word", "plain"), [("CREATED", "NEW"), ("RETRY", "RETRY"), ("", "")])
def test_unknown_status_words_are_unchanged(word: str, plain: str) -> None:
    assert plain_status(word) == plain


@pytest.mark.parametrize("escape", [html.escape, str])
def test_an_orgs_results_are_read_escaped_or_not(escape: type[str]) -> None:
    case = wild(escape('{"userInput": "Hi", "response": "Hello"}'), escape('{"status": "Failure", "reasoning": "no"}'))
    assert (case.utterance, case.generated.outcome, case.verdict) == ("Hi", "Hello", Verdict.FAILURE)
    assert case.results[0].explanation == "no"


def test_an_answer_without_content_is_an_error() -> None:
    case = wild('{"userInput": "Hi"}', '{"status": "PASS"}')
    assert (case.generated, case.verdict) == (None, Verdict.ERROR)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "7"])
def test_text_that_is_not_a_json_object_is_ignored(text: str) -> None:
    assert wild(text, text).results[0].verdict is Verdict.UNDECIDED


def test_results_without_test_cases_are_not_valid() -> None:
    with pytest.raises(MessageUnreadable, match="no list of testCases"):
        read_testing_run({"status": "SUCCESS"})


@given(st.dictionaries(st.sampled_from(["testCases", "evalmeta", "status", "startTime"]), json_values))
def test_any_object_is_read_or_refused(source: dict[str, object]) -> None:
    with suppress(MessageUnreadable):
        read_testing_run(source)
