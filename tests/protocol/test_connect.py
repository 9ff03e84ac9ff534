from __future__ import annotations

import html
from contextlib import suppress
from dataclasses import replace
from typing import Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import MessageUnreadable
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import CaseResult, Run, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.protocol.connect import read_case, read_run, write_case, write_run
from evalmeta.protocol.generated_data import read_generated, write_generated
from evalmeta.protocol.json_fields import read_object
from evalmeta.protocol.runs import read_options, write_options
from protocol.results import cases, json_values, options, runs

CALL = Action("Find", {"id": "7"}, {"found": True}, 120.0)
ANSWER = GeneratedData("It's there.", "Orders", (CALL, Action("Tell")), 812.5, "019a")
TOPIC = TestResult("topic_assertion", Verdict.PASS, "Orders", "Orders", 1.0, "the topic is <Orders>", "Right topic")
CASE = CaseResult(1, 1, "Where's my order?", Verdict.PASS, 1.0, 2.0, (TOPIC,), ANSWER)
BROKEN = CaseResult(2, 1, "And now?", Verdict.ERROR, 1.0, 2.0, error="no answer within 1 s")
RUN = Run("4KB", "Orders", "Desk", RunStatus.COMPLETED, 0.0, 2, ended=3.0, cases=(CASE, BROKEN))

# Section 3.3 of the reference; a question mark stands for a key that need not be there.
RUN_KEYS: Final = {"status": str, "startTime": str, "endTime": str, "errorMessage": None, "subjectName": str}
CASE_KEYS: Final = {"status": str, "testNumber": int, "startTime": str, "endTime": str}
DATA_KEYS: Final = {"type": str, "topic": str, "actionsSequence": str, "outcome": str}
RESULT_KEYS: Final = {
    "name": str,
    "actualValue": str,
    "expectedValue": str,
    "score": float,
    "result": str,
    "metricLabel": str,
    "metricExplainability": str,
    "status": str,
    "startTime": str,
    "endTime": str,
}
WILD_RESULT: Final = {"name": "topic_sequence_match", "status": "COMPLETED"}


def by_wire(run: Run, *, escape: bool) -> Run:
    return read_run(read_object(orjson.dumps(write_run(run, escape=escape))))


def wild(**case: object) -> CaseResult:
    [found] = read_run({"status": "COMPLETED", "testCases": [case]}).cases
    return found


def has(found: dict[str, object], keys: dict[str, type | None]) -> bool:
    return {key: found[key] if kind is None else type(found[key]) for key, kind in keys.items()} == keys


@given(runs, st.booleans())
def test_a_run_survives_the_round_trip_escaped_or_plain(run: Run, escape: bool) -> None:  # noqa: FBT001
    assert by_wire(run, escape=escape) == run


@given(cases)
def test_a_case_survives_the_round_trip(case: CaseResult) -> None:
    assert read_case(read_object(orjson.dumps(write_case(case)))) == case


@given(options)
def test_options_survive_the_round_trip(chosen: RunOptions) -> None:
    assert read_options(write_options(chosen)) == chosen


def test_missing_options_have_their_defaults() -> None:
    assert read_options({}) == RunOptions()


def test_a_run_has_the_documented_keys() -> None:
    written = write_run(RUN, escape=True)
    assert has(written, RUN_KEYS)
    assert [type(case) for case in written["testCases"]] == [dict, dict]


def test_a_case_has_the_documented_keys() -> None:
    case = write_run(RUN, escape=True)["testCases"][0]
    assert has(case, CASE_KEYS)
    assert set(case["inputs"]) == {"utterance"}
    assert has(case["generatedData"], DATA_KEYS)
    assert has(case["testResults"][0], RESULT_KEYS)
    assert (case["testResults"][0]["errorCode"], case["testResults"][0]["errorMessage"]) == (None, None)


def test_a_run_in_progress_has_no_end_time() -> None:
    going = replace(RUN, status=RunStatus.IN_PROGRESS, ended=None, cases=())
    assert write_run(going, escape=True)["endTime"] is None


def test_a_case_without_an_answer_has_every_key_that_clients_read() -> None:
    case = write_case(BROKEN)
    assert case["status"] == "ERROR"
    assert set(case["generatedData"]) == set(write_case(CASE)["generatedData"])
    assert case["generatedData"]["actionsSequence"] == "[]"


def test_invoked_actions_are_json_in_a_string_nested_twice() -> None:
    [[first, second]] = orjson.loads(write_case(CASE)["generatedData"]["invokedActions"])
    function = {"name": "Find", "input": {"id": "7"}, "output": {"found": True}}
    assert first == {"function": function, "executionLatency": 120.0}
    assert second == {"function": {"name": "Tell", "input": {}, "output": {}}}


def test_over_the_wire_the_five_documented_texts_are_escaped() -> None:
    case = write_run(RUN, escape=True)["testCases"][0]
    assert case["inputs"]["utterance"] == "Where&#39;s my order?"
    assert case["generatedData"]["actionsSequence"] == "[&#39;Find&#39;, &#39;Tell&#39;]"
    assert "&quot;" in case["generatedData"]["invokedActions"]
    assert case["generatedData"]["outcome"] == "It's there."
    assert case["testResults"][0]["metricExplainability"] == "the topic is &lt;Orders&gt;"


def test_in_files_nothing_is_escaped_and_the_file_says_so() -> None:
    written = write_run(replace(RUN, cases=(CASE._replace(utterance="&amp;"),)), escape=False)
    assert written["evalmeta"]["plainText"] is True
    assert read_run(written).cases[0].utterance == "&amp;"


@pytest.mark.parametrize(
    ("verdict", "result", "status"),
    [
        (Verdict.PASS, "PASS", "COMPLETED"),
        (Verdict.FAILURE, "FAILURE", "COMPLETED"),
        (Verdict.ERROR, None, "ERROR"),
        (Verdict.UNDECIDED, None, "COMPLETED"),
    ],
)
def test_each_verdict_has_a_result_and_a_status(verdict: Verdict, result: str | None, status: str) -> None:
    [written] = write_case(CASE._replace(results=(TOPIC._replace(verdict=verdict),)))["testResults"]
    assert (written["result"], written["status"]) == (result, status)


def test_an_undecided_result_has_its_reason_where_clients_read_it() -> None:
    undecided = TOPIC._replace(verdict=Verdict.UNDECIDED, explanation="no rater here", error=None)
    [written] = write_case(CASE._replace(results=(undecided,)))["testResults"]
    assert (written["errorMessage"], written["errorCode"]) == ("undecided: no rater here", None)


def test_results_in_the_clis_envelope_are_read() -> None:
    wrapped = {"status": 0, "result": write_run(RUN, escape=True), "warnings": []}
    assert read_run(wrapped) == RUN


@pytest.mark.parametrize("source", [{}, {"status": "NEW"}, {"result": {"status": "NEW"}}, {"result": None}])
def test_an_object_without_test_cases_is_not_a_results_object(source: dict[str, object]) -> None:
    with pytest.raises(MessageUnreadable, match="no list of testCases"):
        read_run(source)


def test_id_and_definition_default_to_those_of_the_caller() -> None:
    run = read_run({"testCases": []}, run_id="4KB", definition="Orders")
    assert (run.id, run.definition, run.total, run.started, run.ended) == ("4KB", "Orders", 0, 0.0, None)


def test_an_unknown_status_means_in_progress() -> None:
    assert read_run({"status": "RETRY", "testCases": []}).status is RunStatus.IN_PROGRESS


@pytest.mark.parametrize(
    "sequence",
    [
        ["Find", "Tell"],
        "['Find','Tell']",
        "[&#39;Find&#39;, &#39;Tell&#39;]",
        '["Find", "Tell"]',
        "[ 'Find',\n'Tell', ]",
    ],
)
def test_actions_are_read_in_every_spelling(sequence: object) -> None:
    case = wild(generatedData={"actionsSequence": sequence, "outcome": "Done."})
    assert case.generated == GeneratedData("Done.", actions=(Action("Find"), Action("Tell")))


@pytest.mark.parametrize("nest", [lambda call: [call], lambda call: [[call]], lambda call: [[[call]], []]])
@pytest.mark.parametrize(
    "spell",
    [
        lambda calls: calls,
        lambda calls: orjson.dumps(calls).decode(),
        lambda calls: html.escape(orjson.dumps(calls).decode()),
    ],
)
def test_invoked_actions_are_read_as_lists_or_text_at_any_depth(nest: object, spell: object) -> None:
    call = {"function": {"name": "Find", "input": {"id": "7"}, "output": {"found": True}}, "executionLatency": 120}
    case = wild(generatedData={"invokedActions": spell(nest(call)), "outcome": ""})
    assert case.generated == GeneratedData("", actions=(CALL,))


@pytest.mark.parametrize("invoked", ["", "not json", "[]", None, 5, [[]]])
def test_without_invoked_actions_the_sequence_names_the_actions(invoked: object) -> None:
    data = read_generated({"actionsSequence": "['Find']", "invokedActions": invoked})
    assert data.actions == (Action("Find"),)


def test_actions_sequence_decides_which_actions_ran_and_in_which_order() -> None:
    calls = [[{"function": {"name": name, "input": {"of": name}}} for name in ("Find", "Ask", "Tell")]]
    data = read_generated({"actionsSequence": "['Tell', 'Find', 'Tell']", "invokedActions": calls})
    assert data.actions == (Action("Tell", {"of": "Tell"}), Action("Find", {"of": "Find"}), Action("Tell"))


@pytest.mark.parametrize("sequence", ["", "Find", "None", None, {"a": 1}])
def test_a_sequence_that_is_not_a_list_leaves_the_actions_unknown(sequence: object) -> None:
    assert read_generated({"actionsSequence": sequence}).actions is None
    assert read_generated({"actionsSequence": sequence, "invokedActions": "[]"}).actions == ()


@pytest.mark.parametrize(
    "actions",
    [
        None,
        (),
        (Action("Find"),),
        (Action("Find", error="timed out"),),
        (Action("Find", output={"id": 1}, review="actions/Find.yaml:3"),),
    ],
)
@pytest.mark.parametrize("topic", [None, "", "Orders"])
def test_unknown_actions_and_topics_are_not_empty_ones(actions: tuple[Action, ...] | None, topic: str | None) -> None:
    generated = GeneratedData("Sent.", topic, actions)
    assert read_generated(write_generated(generated)) == generated


def test_an_org_that_reports_no_actions_is_believed() -> None:
    assert read_generated({"outcome": "Sent.", "actionsSequence": "[]", "invokedActions": "[[]]"}).actions == ()


def test_clients_that_decode_actions_as_text_find_text() -> None:
    written = write_generated(GeneratedData("Sent."))
    assert (written["actionsSequence"], written["invokedActions"]) == ("", "")


def test_items_of_a_sequence_that_are_not_names_are_ignored() -> None:
    deep = orjson.loads(b"[" * 1_000 + b"]" * 1_000)
    assert read_generated({"actionsSequence": ["Find", deep, None, {}]}).actions == (Action("Find"),)


@pytest.mark.parametrize("key", ["input", "output"])
def test_what_is_too_deep_to_be_written_again_is_unreadable(key: str) -> None:
    nested = {"a": orjson.loads(b"[" * 252 + b"]" * 252)}
    with pytest.raises(MessageUnreadable, match="nested more than 100 levels deep"):
        read_generated({"invokedActions": [{"function": {"name": "Find", key: nested}}]})


def test_generated_response_is_another_name_of_outcome() -> None:
    assert read_generated({"generatedResponse": "Hello"}).outcome == "Hello"


@pytest.mark.parametrize("data", [{}, {"generatedData": None}, {"generatedData": {"sessionId": "1"}}])
def test_a_case_without_generated_data_is_an_error(data: dict[str, object]) -> None:
    case = wild(status="COMPLETED", testResults=[{**WILD_RESULT, "result": "PASS"}], **data)
    assert (case.generated, case.verdict) == (None, Verdict.ERROR)


def test_a_case_that_says_error_is_one_whatever_its_results() -> None:
    data = {"outcome": "Done."}
    case = wild(status="ERROR", testResults=[{**WILD_RESULT, "result": "PASS"}], generatedData=data)
    assert (case.verdict, case.generated) == (Verdict.ERROR, GeneratedData("Done."))


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        ({"result": "PASS"}, Verdict.PASS),
        ({"result": "FAILURE"}, Verdict.FAILURE),
        ({"metricScore": "FAILED"}, Verdict.FAILURE),
        ({"metricScore": "pass"}, Verdict.PASS),
        ({"metricScore": "UNCERTAIN"}, Verdict.UNDECIDED),
        ({"result": None, "score": 4}, Verdict.UNDECIDED),
        ({"result": "FAILURE", "status": "ERROR"}, Verdict.ERROR),
        ({}, Verdict.UNDECIDED),
    ],
)
def test_a_result_is_judged_by_the_word_it_has(result: dict[str, object], verdict: Verdict) -> None:
    case = wild(testResults=[{**WILD_RESULT, **result}], generatedData={"outcome": "Done."})
    assert ([result.verdict for result in case.results], case.verdict) == ([verdict], verdict)


def test_cases_without_numbers_are_numbered_by_their_place() -> None:
    found = read_run({"testCases": [{}, {"testNumber": 7}, {"testNumber": "9"}]}).cases
    assert [case.number for case in found] == [1, 7, 3]


def test_an_orgs_metric_label_is_not_the_definitions_label() -> None:
    case = wild(testResults=[{**WILD_RESULT, "metricLabel": "Accuracy"}])
    assert case.results[0].label is None


@given(st.dictionaries(st.sampled_from(["testCases", "result", "evalmeta", "status", "startTime"]), json_values))
def test_any_object_is_a_run_or_unreadable(source: dict[str, object]) -> None:
    with suppress(MessageUnreadable):
        read_run(source)


keys = st.sampled_from([*CASE_KEYS, "inputs", "generatedData", "testResults", *DATA_KEYS, "invokedActions", "function"])
objects = st.recursive(json_values, lambda inner: st.dictionaries(keys, inner) | st.lists(inner, max_size=3))


@given(st.lists(objects, max_size=3))
def test_any_test_cases_are_read(found: list[object]) -> None:
    read_run({"testCases": found})
