from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import exchange
from evalmeta.engine.scorers import score
from evalmeta.errors import FormatError
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.registry import recognise
from evalmeta.formats.testspec import read_spec
from evalmeta.formats.testspec_writer import write_testspec
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.systems.ballerina.reader import read_ballerina
from systems.ballerina.ballerinasets import ADD, SUBTRACT, assistant, evalset, iteration, result, trace, user

if TYPE_CHECKING:
    from evalmeta.formats.document import Document
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue

SEED = [
    [
        {
            "input": "Summarize my unread emails and schedule a follow-up meeting.",
            "expectedTools": ["readEmail", "summarizeEmail", "readCalendar", "bookCalendar"],
        }
    ],
    [{"input": "Send an email to Raj and add a calendar invite.", "expectedTools": ["sendEmail", "bookCalendar"]}],
]
"""The dataset that the proposal's tool call evaluation takes, as its data provider returns it."""


def read(value: object) -> Document:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_ballerina(data, label="d.json", name="d")


def cases(document: Document) -> list[Case]:
    return list(document.evaluation.cases)


def problem(value: object) -> str:
    with pytest.raises(FormatError) as caught:
        read(value)
    return str(caught.value)


def expected(document: Document) -> list[list[tuple[str, str | None]]]:
    return [
        [(expectation.name, expectation.expected_value) for expectation in case.turns[0].expectations]
        for case in cases(document)
    ]


def test_a_thread_is_a_case_and_a_trace_a_turn() -> None:
    hello, sums = trace("hi", assistant("Hello!")), trace("4+9?", assistant("13"), toolCalls=[ADD])
    document = read(evalset(maths=[hello, sums], more=[hello]))

    assert [(case.number, case.label) for case in cases(document)] == [(1, "maths"), (2, "more")]
    assert [turn.utterance for turn in cases(document)[0].turns] == ["hi", "4+9?"]
    assert (document.evaluation.name, document.evaluation.subject_name, document.is_answered) == ("d", "", False)
    assert (document.iterations, document.min_pass_rate) == (None, None)
    assert document.lines == {1: 6, 2: 69}


def test_a_turn_expects_the_calls_and_the_answer_that_were_recorded() -> None:
    [case] = cases(read(evalset(t=[trace("7-3+9?", assistant("13"), iteration(assistant(None, SUBTRACT, ADD)))])))
    assert case.turns[0].expectations == (
        Expectation("action_sequence_match", "['subtract', 'add']", terms={"calls": [call(SUBTRACT), call(ADD)]}),
        Expectation("bot_response_rating", "13"),
    )


def call(recorded: dict[str, object]) -> JsonValue:
    return {"name": recorded["name"], "args": recorded["arguments"]}  # type: ignore[dict-item]


def test_arguments_that_a_trace_does_not_have_are_not_compared() -> None:
    [case] = cases(read(evalset(t=[trace("4+9?", assistant("13"), iteration(result("add", "13")))])))
    assert case.turns[0].expectations[0] == Expectation("action_sequence_match", "['add']")


def judge(recorded: dict[str, object], **given: int) -> TestResult:
    document = read(evalset(t=[trace("sum?", assistant("2"), toolCalls=[recorded])]))
    expectation = cases(document)[0].turns[0].expectations[0]
    actions = (Action(str(recorded["name"]), dict(given)),)
    found = score(expectation, exchange(GeneratedData("2", actions=actions)))
    assert isinstance(found, TestResult)
    return found


def test_recorded_arguments_are_compared() -> None:
    recorded: dict[str, object] = {"name": "sumTool", "arguments": {"a": 1, "b": 1}}
    assert judge(recorded, a=1, b=1).verdict is Verdict.PASS
    other = judge(recorded, a=999, b=-7)
    assert (other.verdict, other.explanation) == (
        Verdict.FAILURE,
        "sumTool.input.a: expected 1, got 999; sumTool.input.b: expected 1, got -7",
    )
    assert judge(recorded).verdict is Verdict.UNDECIDED


def test_recorded_arguments_are_compared_after_a_conversion_too() -> None:
    recorded: dict[str, object] = {"name": "sumTool", "arguments": {"a": 1, "b": 1}}
    definition, _ = definition_of(read(evalset(t=[trace("sum?", assistant("2"), toolCalls=[recorded])])))
    spec = read_spec(write_testspec(replace(definition, subject_name="s")).content, label="t.yaml")
    [case] = spec.definition.test_cases
    given = GeneratedData("2", actions=(Action("sumTool", {"a": 999, "b": -7}),))
    verdicts = [score(expectation, exchange(given)) for expectation in case.expectations]
    assert [getattr(verdict, "verdict", None) for verdict in verdicts][:2] == [Verdict.FAILURE, Verdict.FAILURE]


def test_a_thread_needs_no_more_than_what_was_said_answered_and_called() -> None:
    said = {"userMessage": user("7-3?"), "output": assistant("4"), "toolCalls": [SUBTRACT]}
    [case] = cases(read({"threads": [{"traces": [said]}]}))
    assert (case.label, case.turns[0].utterance, len(case.turns[0].expectations)) == ("thread-1", "7-3?", 2)


def test_no_calls_are_expected_only_where_the_trace_lists_none() -> None:
    listed, silent = trace("hi", assistant("Hello!"), toolCalls=[]), trace("hi", assistant("Hello!"))
    [case] = cases(read(evalset(t=[listed, silent])))
    assert [expectation.name for expectation in case.turns[1].expectations] == ["bot_response_rating"]
    assert case.turns[0].expectations[0] == Expectation("action_sequence_match", "[]")


def test_a_recording_is_never_its_own_answer() -> None:
    document = read(evalset(t=[trace("hi", assistant("Hello!")), trace("q", "the model is gone", toolCalls=[ADD])]))
    assert [turn.recorded for case in cases(document) for turn in case.turns] == [None, None]
    assert document.why_asked == "its expected answers are its recorded answers, so an agent must be asked"


def test_what_ended_in_an_error_expects_no_answer() -> None:
    [case] = cases(read(evalset(t=[trace("q", "the model is gone", toolCalls=[ADD])])))
    [turn] = case.turns
    assert [expectation.name for expectation in turn.expectations] == ["action_sequence_match"]


def test_a_thread_without_traces_is_passed_over_with_a_warning() -> None:
    document = read(evalset(empty=[], full=[trace("hi", assistant("Hello!"))]))
    assert [case.label for case in cases(document)] == ["full"]
    [note] = document.notes
    assert note.message == "the thread 'empty' has no traces; it is ignored"


def test_threads_without_any_trace_are_nothing_to_ask() -> None:
    assert problem(evalset(empty=[])) == "d.json:1:1: no thread has a trace"


@pytest.mark.parametrize("entries", [SEED, [entry for [entry] in SEED]])
def test_the_proposals_dataset_is_read_with_and_without_inner_lists(entries: list[object]) -> None:
    document = read(entries)
    assert expected(document) == [
        [("action_sequence_match", "['readEmail', 'summarizeEmail', 'readCalendar', 'bookCalendar']")],
        [("action_sequence_match", "['sendEmail', 'bookCalendar']")],
    ]
    assert cases(document)[1].turns[0].utterance == "Send an email to Raj and add a calendar invite."
    assert (document.is_answered, document.min_pass_rate, document.iterations) == (False, None, None)


@pytest.mark.parametrize("terms", [{"confidence": 0.8, "iterations": 3}, {"minPassRate": 0.8, "runs": 3}])
def test_both_vocabularies_say_how_often_is_asked_and_what_passes(terms: dict[str, object]) -> None:
    document = read({**terms, "name": "tools", "entries": SEED})
    assert (document.min_pass_rate, document.iterations, len(cases(document))) == (0.8, 3, 2)


@pytest.mark.parametrize(
    ("entry", "expectation"),
    [
        ({"expectedTools": []}, ("action_sequence_match", "[]")),
        ({"expectedOutput": "Yes."}, ("bot_response_rating", "Yes.")),
        ({"expectedAnswer": "Yes.", "expectedOutput": "Yes."}, ("bot_response_rating", "Yes.")),
        ({"expectedContext": "Opening hours"}, ("bot_response_rating", "Opening hours")),
    ],
)
def test_an_entry_expects_tools_or_an_answer(entry: dict[str, object], expectation: tuple[str, str]) -> None:
    assert expected(read([{"input": "Open?", **entry}])) == [[expectation]]


def test_an_entrys_id_is_the_label_of_its_case() -> None:
    assert [case.label for case in cases(read([{"id": "hours", "input": "Open?", "expectedTools": []}]))] == ["hours"]


def test_cases_know_their_lines() -> None:
    text = b'{"entries": [\n{"input": "a", "expectedTools": []},\n\n [{"input": "b", "expectedTools": []}]]}'
    assert read(text).lines == {1: 2, 2: 4}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"confidence": 1.1, "entries": SEED}, "d.json:1:16: 'confidence' is 1.1; 0 to 1 are allowed"),
        ({"minPassRate": -0.5, "entries": SEED}, "d.json:1:17: 'minPassRate' is -0.5; 0 to 1 are allowed"),
        ({"iterations": 0, "entries": SEED}, "'iterations' is 0; whole numbers from 1 to 1000 are allowed"),
        ({"runs": 1.5, "entries": SEED}, "'runs' is 1.5; whole numbers from 1 to 1000 are allowed"),
        (
            {"confidence": 0.8, "minPassRate": 0.9, "entries": SEED},
            "'confidence' and 'minPassRate' are two spellings of one key with different values",
        ),
        (
            {"iterations": 2, "runs": 3, "entries": SEED},
            "'iterations' and 'runs' are two spellings of one key with different values",
        ),
        (
            [{"input": "q", "expectedOutput": "a", "expectedAnswer": "b"}],
            "d.json:1:58: 'expectedOutput' and 'expectedAnswer' are two spellings of one key with different values",
        ),
        ([{"expectedTools": []}], "d.json:1:2: an entry needs 'input'"),
        ({"entries": [{"query": "q"}]}, "an entry needs 'input'"),
        ([["x"]], "d.json:1:3: an entry is a text, not an object"),
        ([SEED[0] * 2], "d.json:1:2: an entry's list has 2 values; one is allowed, the object with 'input'"),
        ([{"input": "q", "expectedTools": "add"}], "'expectedTools' of an entry is a text, not a list"),
        ([{"input": "q", "expectedTools": [1]}], "'expectedTools' of an entry holds a number, not a text"),
        ({"entries": 3}, "'entries' of the dataset is a number, not a list"),
        ({"confidence": 1}, "the dataset needs 'entries'"),
        ([], "d.json:1:1: the dataset has no entries"),
        (3, "d.json:1:1: the dataset is a number, not an object"),
    ],
)
def test_what_does_not_fit_is_a_problem(value: object, message: str) -> None:
    assert message in problem(value)


def test_what_expects_nothing_and_what_is_not_known_are_warnings() -> None:
    notes = [note.message for note in read([{"input": "q", "expectedTool": []}]).notes]
    assert notes == ["the entry expects nothing", "an entry has no key 'expectedTool'; it is ignored"]


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"threads": []}, True),
        ({"entries": []}, True),
        (SEED, True),
        ([{"input": "q"}], True),
        ({"eval_set_id": "x", "eval_cases": []}, False),
        ([{"request": "q"}], False),
        ([{"query": "q", "expected_tool_use": []}], False),
        ([[]], True),
        ([], False),
        ("input", False),
        (None, False),
    ],
)
def test_a_file_is_told_by_its_keys(value: object, *, is_one: bool) -> None:
    assert (recognise(json.dumps(value).encode()) == "ballerina") is is_one


@given(
    st.lists(
        st.fixed_dictionaries(
            {"input": st.text(st.characters(exclude_categories=["Cs"]))},
            optional={"expectedTools": st.lists(st.text("ab'\\", min_size=1)), "expectedOutput": st.text("xyz")},
        ),
        min_size=1,
    )
)
def test_every_dataset_is_a_case_for_each_entry(entries: list[dict[str, object]]) -> None:
    found = cases(read(entries))
    assert [case.turns[0].utterance for case in found] == [entry["input"] for entry in entries]
    assert [len(case.turns[0].expectations) for case in found] == [len(entry) - 1 for entry in entries]
