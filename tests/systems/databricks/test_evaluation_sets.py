from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.errors import FormatError, NotFound, UsageError
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.registry import recognise
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
)
from evalmeta.model.generated_data import GeneratedData, Passage, Tokens
from evalmeta.systems.databricks.evaluation_sets import (
    read_databricks,
    read_databricks_file,
    read_databricks_rows,
    write_databricks,
)
from evalmeta.systems.databricks.metrics import (
    CHUNK_RELEVANCE,
    CONTEXT_SUFFICIENCY,
    CORRECTNESS,
    DOCUMENT_RECALL,
    GLOBAL_GUIDELINES,
    GROUNDEDNESS,
    GUIDELINES,
    INPUT_TOKENS,
    LATENCY,
    OUTPUT_TOKENS,
    RELEVANCE,
    SAFETY,
    TOTAL_TOKENS,
)
from evalmeta.systems.databricks.tables import rows_of
from examples import at_most
from strategies import definitions, xml_texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.formats.document import Document
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue


COUNTS = {TOTAL_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS, LATENCY}
TRACE: JsonObject = {
    "info": {
        "trace_id": "tr-7",
        "execution_duration_ms": 250,
        "trace_metadata": {"mlflow.trace.tokenUsage": '{"input_tokens": 3, "output_tokens": 4}'},
    },
    "data": {
        "spans": [
            {
                "span_id": "a",
                "name": "agent",
                "attributes": {
                    "mlflow.spanInputs": '{"messages": [{"role": "user", "content": "traced?"}]}',
                    "mlflow.spanOutputs": '"traced"',
                },
            },
            {
                "span_id": "b",
                "parent_span_id": "a",
                "attributes": {
                    "mlflow.spanType": '"RETRIEVER"',
                    "mlflow.spanOutputs": '[{"page_content": "c", "metadata": {"doc_uri": "u"}}]',
                },
            },
        ]
    },
}


def read(*rows: JsonValue, **how: object) -> Document:
    return read_databricks(json.dumps(rows).encode(), label="set.json", name="set", **how)  # type: ignore[arg-type]


def case_of(row: JsonValue, **how: object) -> Case:
    [case] = read(row, **how).evaluation.cases
    return case


def metrics_of(row: JsonValue, **how: object) -> set[str]:
    return {expectation.name for expectation in case_of(row, **how).turns[0].expectations}


def problems(data: str | bytes, label: str = "set.json") -> list[str]:
    with pytest.raises(FormatError) as caught:
        read_databricks(data if isinstance(data, bytes) else data.encode(), label=label, name="set")
    return [f"{problem.location} {problem.message} {problem.hint}".strip() for problem in caught.value.problems]


def warnings(document: Document) -> list[str]:
    return [f"{note.location} {note.message} {note.hint}".strip() for note in document.notes]


# The examples of the schema's page.


def test_the_page_s_row_with_guidelines_is_judged_by_its_own_and_the_global_ones() -> None:
    guidelines = ["The response must be in English", "The response must be clear, coherent, and concise"]
    row = {
        "request": "What is the difference between reduceByKey and groupByKey in Spark?",
        "response": "reduceByKey aggregates data before shuffling, whereas groupByKey shuffles all data.",
        "guidelines": guidelines,
    }

    document = read(row, global_guidelines=guidelines)

    [case] = document.evaluation.cases
    assert document.is_answered
    assert case.turns[0].recorded == GeneratedData(row["response"])  # type: ignore[arg-type]
    assert case.turns[0].expectations == (
        Expectation(RELEVANCE),
        Expectation(SAFETY),
        Expectation(GUIDELINES, terms={"guidelines": guidelines}),
        Expectation(GLOBAL_GUIDELINES, terms={"guidelines": guidelines}),
    )


def test_the_page_s_three_kinds_of_request_stand_in_one_column() -> None:
    frame = pd.DataFrame(
        {
            "request": [
                "What is the difference between reduceByKey and groupByKey in Spark?",
                {"messages": [{"role": "user", "content": "How can you minimize data shuffling in Spark?"}]},
                {
                    "query": "Explain broadcast variables in Spark. How do they enhance performance?",
                    "history": [
                        {"role": "user", "content": "What are broadcast variables?"},
                        {"role": "assistant", "content": "Broadcast variables allow the programmer to cache."},
                    ],
                },
            ],
            "expected_response": ["first", "second", "third"],
        }
    )

    document = read_databricks_rows(rows_of(frame), label="data", name="set")

    first, second, third = document.evaluation.cases
    assert not document.is_answered
    assert [each.turns[0].utterance for each in (first, second)] == [
        "What is the difference between reduceByKey and groupByKey in Spark?",
        "How can you minimize data shuffling in Spark?",
    ]
    assert third.turns[0].utterance.startswith("Explain broadcast variables")
    assert [(each.role, each.message, each.index) for each in third.history] == [
        ("user", "What are broadcast variables?", 0),
        ("agent", "Broadcast variables allow the programmer to cache.", 1),
    ]
    assert [_expected(each, CORRECTNESS) for each in (first, second, third)] == ["first", "second", "third"]


def _expected(case: Case, name: str) -> str | None:
    return next(expectation.expected_value for expectation in case.turns[0].expectations if expectation.name == name)


def test_facts_and_a_response_at_once_are_the_documented_error() -> None:
    assert problems('[\n  {"request": "a",\n   "expected_facts": ["x"], "expected_response": "y"}\n]') == [
        (
            "set.json:3:22 row 1: it has both 'expected_facts' and 'expected_response'; a row can have one of them "
            "Keep 'expected_facts': they say more exactly what is expected."
        )
    ]


# Which metric appears for which columns.

OPTIONAL: dict[str, JsonValue] = {
    "expected_response": "r",
    "expected_facts": ["f"],
    "expected_retrieved_context": [{"doc_uri": "u"}],
    "guidelines": ["g"],
    "response": "a",
    "retrieved_context": [{"doc_uri": "u", "content": "c"}],
    "trace": TRACE,
}
COMBINATIONS = [
    each
    for each in chain.from_iterable(combinations(OPTIONAL, size) for size in range(len(OPTIONAL) + 1))
    if not {"expected_response", "expected_facts"} <= set(each)
]


def expected_metrics(columns: set[str]) -> Iterator[str]:
    """Gives the table of the schema's page: a judge for every column that it needs."""
    is_given = bool(columns & {"response", "trace"})
    has_context = not is_given or bool(columns & {"retrieved_context", "trace"})
    has_truth = bool(columns & {"expected_response", "expected_facts"})
    yield from (RELEVANCE, SAFETY)
    if has_context:
        yield from (GROUNDEDNESS, CHUNK_RELEVANCE)
    if has_truth:
        yield CORRECTNESS
    if has_truth and has_context:
        yield CONTEXT_SUFFICIENCY
    if has_context and "expected_retrieved_context" in columns:
        yield DOCUMENT_RECALL
    if "guidelines" in columns:
        yield GUIDELINES
    if not is_given or "trace" in columns:
        yield from COUNTS


@pytest.mark.parametrize("columns", COMBINATIONS, ids="+".join)
def test_a_metric_appears_when_its_columns_do(columns: tuple[str, ...]) -> None:
    row = {"request": "q", **{column: OPTIONAL[column] for column in columns}}
    assert metrics_of(row) == set(expected_metrics(set(columns)))
    asked = set(columns) - {"response", "retrieved_context", "trace"}
    assert metrics_of(row, is_asked=True) == set(expected_metrics(asked))


ALWAYS = {RELEVANCE, SAFETY, GROUNDEDNESS, CHUNK_RELEVANCE, *COUNTS}


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ((), set()),
        (("expected_response",), {CORRECTNESS, CONTEXT_SUFFICIENCY}),
        (
            ("expected_response", "expected_retrieved_context", "guidelines"),
            {CORRECTNESS, CONTEXT_SUFFICIENCY, DOCUMENT_RECALL, GUIDELINES},
        ),
        (("expected_retrieved_context",), {DOCUMENT_RECALL}),
        (("guidelines",), {GUIDELINES}),
    ],
)
def test_the_page_s_five_columns_of_ticks_for_an_agent_that_is_asked(columns: tuple[str, ...], more: set[str]) -> None:
    assert metrics_of({"request": "q", **{column: OPTIONAL[column] for column in columns}}) == ALWAYS | more


def test_empty_lists_are_as_if_they_were_not_there() -> None:
    row = {"request": "q", "expected_facts": [], "guidelines": [], "expected_retrieved_context": []}
    assert metrics_of({**row, "expected_response": "r"}) == ALWAYS | {CORRECTNESS, CONTEXT_SUFFICIENCY}


def test_expectations_carry_what_the_row_expects() -> None:
    row: JsonObject = {
        "request": "q",
        "expected_facts": ["f", "g"],
        "expected_retrieved_context": [{"doc_uri": "u"}, {"doc_uri": "v", "content": None}],
        "guidelines": {"tone": ["be kind"], "none": [], "length": ["be short", "one line"]},
    }
    by_name = {(expectation.name, expectation.label): expectation for expectation in case_of(row).turns[0].expectations}
    assert by_name[CORRECTNESS, None].terms == by_name[CONTEXT_SUFFICIENCY, None].terms == {"facts": ["f", "g"]}
    assert by_name[DOCUMENT_RECALL, None].terms == {"uris": ["u", "v"]}
    assert by_name[GUIDELINES, "tone"].terms == {"guidelines": ["be kind"]}
    assert by_name[GUIDELINES, "length"].terms == {"guidelines": ["be short", "one line"]}


def test_only_wanted_metrics_are_judged_and_counts_always() -> None:
    row = {"request": "q", "expected_response": "r"}
    assert metrics_of(row, metrics=["correctness", RELEVANCE]) == {CORRECTNESS, RELEVANCE, *COUNTS}
    assert metrics_of(row, metrics=[]) == COUNTS


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"metrics": ["corectness"]}, "'corectness' is not a known metric Did you mean 'correctness'?"),
        ({"metrics": "safety"}, "'metrics' is a text, not a list of names Write ['safety']."),
        ({"global_guidelines": "be kind"}, "guidelines are a list of texts, or lists of texts by name"),
        ({"global_guidelines": {"tone": "be kind"}}, "guidelines are a list of texts, or lists of texts by name"),
        ({"global_guidelines": [1]}, "guidelines are a list of texts, or lists of texts by name"),
    ],
)
def test_a_wrong_configuration_is_told(how: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read({"request": "q"}, **how)
    assert f"{caught.value} {caught.value.actions[0]}".startswith(message)


# Requests.


@pytest.mark.parametrize(
    ("request_", "utterance", "history", "state"),
    [
        ("text", "text", [], {}),
        ('{"query": "q"}', "q", [], {}),
        ('{"no": "request"}', '{"no": "request"}', [], {}),
        ({"query": "q", "history": None, "custom_inputs": {"x": 1}}, "q", [], {"custom_inputs": {"x": 1}}),
        (
            {
                "messages": [
                    {"role": "system", "content": "Be kind."},
                    {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}]},
                    {"role": "assistant", "content": None, "tool_calls": [{}]},
                    {"role": "tool", "content": "4711"},
                    {"role": "assistant", "content": "Yes?"},
                    {"role": "user", "content": "Go on"},
                ]
            },
            "Go on",
            [("system", "Be kind."), ("user", "Hi!"), ("tool", "4711"), ("agent", "Yes?")],
            {},
        ),
        ({"input": [{"role": "user", "content": "Hi"}]}, "Hi", [], {}),
    ],
)
def test_a_request_becomes_an_utterance_with_history_and_state(
    request_: JsonValue, utterance: str, history: list[tuple[str, str]], state: JsonObject
) -> None:
    case = case_of({"request": request_, "request_id": "r-1"})
    assert case.turns[0].utterance == utterance
    assert case.history == tuple(HistoryMessage(*each, index=place) for place, each in enumerate(history))
    assert (case.state, case.label) == (state, "r-1")


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ("7", "1:14 row 1: the request is a number, not a text or an object"),
        ('""', "1:14 row 1: the request is empty"),
        ("{}", "1:14 row 1: the request has neither 'messages' nor 'query'"),
        ('{"query": 3}', "1:24 row 1: 'query' is a number, not a text"),
        ('{"query": "q", "history": "h"}', "1:40 row 1: 'history' is a text, not a list of messages"),
        ('{"messages": "m"}', "1:27 row 1: 'messages' are a text, not a list"),
        ('{"messages": []}', "1:27 row 1: the messages are none, and an agent is asked what a user says last"),
        (
            '{"messages": [{"role": "assistant", "content": "a"}]}',
            "1:27 row 1: the messages end with one of role 'agent'",
        ),
        (
            '{"messages": [{"role": "usr", "content": "a"}]}',
            '1:37 row 1: a message has the role "usr", which is not a valid role',
        ),
        ('{"messages": [{"content": "a"}]}', "1:28 row 1: a message has no 'role'"),
        ('{"messages": [{"role": "user", "content": 4}]}', "1:56 row 1: the content of a message is a number"),
        ('{"messages": [3]}', "1:28 row 1: a message is a number, not an object"),
    ],
)
def test_a_request_that_is_none_is_refused_at_its_place(request_: str, problem: str) -> None:
    assert problems(f'[{{"request": {request_}}}]')[0].startswith(f"set.json:{problem}")


# Answers.


def test_a_trace_gives_what_the_row_does_not_say() -> None:
    case = case_of({"trace": json.dumps(TRACE)})
    recorded = case.turns[0].recorded
    assert recorded is not None
    assert (case.turns[0].utterance, case.label, recorded.outcome) == ("traced?", "tr-7", "traced")
    assert (recorded.tokens, recorded.latency_ms) == (Tokens(3, 4), 250)
    assert recorded.retrieved == (Passage("u", "c"),)


def test_what_the_row_says_goes_before_the_trace() -> None:
    context = [{"doc_uri": "own"}]
    case = case_of({"request": "q", "response": "own", "retrieved_context": context, "trace": TRACE})
    recorded = case.turns[0].recorded
    assert recorded is not None
    assert (case.turns[0].utterance, recorded.outcome) == ("q", "own")
    assert (recorded.retrieved, recorded.tokens) == ((Passage("own"),), Tokens(3, 4))


def test_a_response_may_be_a_chat_completion() -> None:
    response = {"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}
    recorded = case_of({"request": "q", "response": response}).turns[0].recorded
    assert recorded == GeneratedData("Hi")


def test_answers_count_when_every_row_has_one() -> None:
    some = read({"request": "a", "response": "b"}, {"request": "c"})
    assert not some.is_answered
    assert warnings(some) == [
        (
            "set.json:1 row 2 has neither 'response' nor 'trace', which others have "
            "Given answers are judged when every row has one; otherwise an agent is asked for all of them."
        )
    ]
    asked = read({"request": "a", "response": "b"}, {"request": "c"}, is_asked=True)
    assert (asked.is_answered, asked.notes) == (False, ())


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"response": "a"}, "1:2 row 1: it has neither 'request' nor 'trace'"),
        ({"outputs": "a"}, "1:2 row 1: it has neither 'inputs' nor 'trace'"),
        ({"request": "q", "inputs": {}}, "1:29 row 1: it has both 'request' and 'inputs', which are of two formats"),
        ({"trace": "no trace"}, "1:12 row 1: 'trace': this is not a valid MLflow trace: it is a text"),
        ({"trace": {"info": {}, "data": {}}}, "1:12 row 1: its trace does not say what was asked"),
        ({"request": "q", "response": 3}, "1:31 row 1: 'response' is a number, not a text"),
        ({"request": "q", "request_id": [3]}, "1:33 row 1: 'request_id' is a list, not a text"),
        ({"request": "q", "expected_facts": "f"}, "1:37 row 1: 'expected_facts' is a text, not a list of texts"),
        ({"request": "q", "expected_facts": [1]}, "1:38 row 1: 'expected_facts[0]' is a number, not a text"),
        ({"request": "q", "guidelines": {"a": [1]}}, "1:40 row 1: 'guidelines.a[0]' is a number, not a text"),
        ({"request": "q", "retrieved_context": ["u"]}, "1:41 row 1: 'retrieved_context[0]' is a text, not an object"),
        ({"request": "q", "retrieved_context": [{}]}, "1:41 row 1: 'retrieved_context[0]' has no 'doc_uri'"),
        (
            {"request": "q", "retrieved_context": [{"doc_uri": 1}]},
            "1:41 row 1: 'retrieved_context[0]' has a 'doc_uri' that",
        ),
        (
            {"request": "q", "retrieved_context": [{"doc_uri": "u", "content": 1}]},
            "1:69 row 1: 'retrieved_context[0].content' is a number, not a text",
        ),
        (
            {"inputs": "q", "expectations": {"expected_response": 1}},
            "1:56 row 1: 'expectations.expected_response' is a number, not a text",
        ),
        ({"request": "q", "tags": "t"}, "1:27 row 1: 'tags' is a text, not an object"),
        ("row", "1:2 row 1: it is a text, not an object"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_at_its_place(row: JsonValue, problem: str) -> None:
    assert problems(json.dumps([row]))[0].startswith(f"set.json:{problem}")


def test_unknown_columns_are_warned_of_once() -> None:
    rows = [{"request": "q", "expected_fact": ["x"]}, {"request": "q", "expected_fact": ["x"]}]
    assert warnings(read(*rows)) == [
        "set.json:1:36 row 1: 'expected_fact' is not a known column; it is ignored Did you mean 'expected_facts'?"
    ]


# Rows of MLflow 3.


@pytest.mark.parametrize(
    ("inputs", "utterance", "state"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}]}, "Hi", {}),
        ({"question": "Why?", "user": "u-1"}, "Why?", {"user": "u-1"}),
        ({"topic": "Spark", "n": 3}, "Spark", {"n": 3}),
        ({"a": "x", "b": "y"}, '{"a": "x", "b": "y"}', {"a": "x", "b": "y"}),
        ({"model_input": {"query": "q"}}, "q", {}),
        ("text", "text", {}),
    ],
)
def test_inputs_may_be_called_anything(inputs: JsonValue, utterance: str, state: JsonObject) -> None:
    case = case_of({"inputs": inputs})
    assert (case.turns[0].utterance, case.state) == (utterance, state)


def test_a_row_of_mlflow_3_is_read_whole() -> None:
    row = {
        "inputs": {"question": "q"},
        "outputs": {"response": "a"},
        "expectations": {
            "expected_response": "r",
            "expected_facts": ["f"],
            "guidelines": "be kind",
            "expected_retrieved_context": [{"doc_uri": "u"}],
            "mood": "good",
        },
        "tags": {"team": "x"},
        "trace": TRACE,
    }
    document = read(row)
    [case] = document.evaluation.cases
    by_name = {expectation.name: expectation for expectation in case.turns[0].expectations}
    assert case.turns[0].recorded is not None
    assert (case.turns[0].recorded.outcome, case.tags) == ("a", ("team=x",))
    assert (by_name[CORRECTNESS].expected_value, by_name[CORRECTNESS].terms) == ("r", {"facts": ["f"]})
    assert by_name[GUIDELINES].terms == {"guidelines": ["be kind"]}
    assert by_name[DOCUMENT_RECALL].terms == {"uris": ["u"]}
    assert [note.message for note in document.notes] == [
        "row 1: no metric judges by the expectation 'mood'; it is ignored"
    ]


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ('{"choices": [{"message": {"content": "a"}}]}', "a"),
        ('{"content": ""}', ""),
        ('{"sum": 3}', '{"sum": 3}'),
        ("plain", "plain"),
        ({"sum": 3}, '{"sum": 3}'),
    ],
)
def test_outputs_are_text_where_they_have_one(outputs: JsonValue, text: str) -> None:
    recorded = case_of({"inputs": "q", "outputs": outputs}).turns[0].recorded
    assert recorded is not None
    assert recorded.outcome == text


# Files.

ROWS: list[JsonObject] = [
    {"request_id": "1", "request": "a", "expected_facts": ["x"]},
    {"request_id": "2", "request": {"query": "b"}, "retrieved_context": [{"doc_uri": "u", "content": "c"}]},
]


def content_of(form: str, rows: list[JsonObject]) -> bytes:
    cells = [{k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows]
    match form:
        case "jsonl":
            return b"\xef\xbb\xbf" + b"\n\n".join(json.dumps(row).encode() for row in rows)
        case "wrapped":
            return json.dumps({"rows": rows}).encode()
        case "csv":
            return pd.DataFrame(cells).to_csv(index=False).encode()
        case "semicolons":
            return pd.DataFrame(cells).to_csv(index=False, sep=";").encode()
        case "parquet":
            texts = ("request",)  # a column has one type
            return pd.DataFrame(
                [{**row, **{key: cell[key] for key in texts}} for row, cell in zip(rows, cells, strict=True)]
            ).to_parquet()
    return json.dumps(rows, indent=2).encode()


FORMS = ["json", "jsonl", "wrapped", "csv", "semicolons", "parquet"]


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_file_gives_the_same_cases(form: str, tmp_path: Path) -> None:
    content, file = content_of(form, ROWS), tmp_path / "rows"
    file.write_bytes(content)
    expected = list(read(*ROWS).evaluation.cases)

    assert recognise(content) == "databricks"
    document = read_databricks(content, label="rows", name="set")
    streamed = read_databricks_file(file, label="rows", name="set")
    assert list(document.evaluation.cases) == list(streamed.evaluation.cases) == expected
    assert list(streamed.evaluation.cases) == expected
    assert document.lines == streamed.lines


def test_lines_of_rows_are_known() -> None:
    assert dict(read_databricks(content_of("jsonl", ROWS), label="l", name="s").lines) == {1: 1, 2: 3}
    assert dict(read_databricks(content_of("json", ROWS), label="l", name="s").lines) == {1: 2, 2: 9}
    assert dict(read_databricks(content_of("csv", ROWS), label="l", name="s").lines) == {1: 2, 2: 3}
    assert dict(read_databricks(content_of("parquet", ROWS), label="l", name="s").lines) == {}
    assert read_databricks(content_of("jsonl", ROWS), label="l", name="s").lines.get(3) is None


def test_traces_by_themselves_are_rows() -> None:
    line = json.dumps(TRACE).encode()
    for data, count in ((line, 1), (line + b"\n" + line, 2), (b"[" + line + b"]", 1)):
        cases = list(read_databricks(data, label="l", name="s").evaluation.cases)
        assert [case.turns[0].utterance for case in cases] == ["traced?"] * count


def test_a_file_with_one_row_is_read() -> None:
    document = read_databricks(b'{\n "request": "q"\n}', label="l", name="s")
    assert [case.turns[0].utterance for case in document.evaluation.cases] == ["q"]


def test_every_problem_of_json_lines_is_told_and_reading_goes_on() -> None:
    lines = '{"request": 1}\n{"request":\n\n[1]\n{"request": "q", "response": []}\n'
    assert problems(lines, "set.jsonl") == [
        "set.jsonl:1:13 row 1: the request is a number, not a text or an object",
        "set.jsonl:2:12 row 2: this is not valid JSON: unexpected end of data",
        (
            "set.jsonl:4:1 row 3: it is a list, not an object "
            "A row has 'request', and 'response' or 'trace' when its answer is given."
        ),
        "set.jsonl:5:30 row 4: 'response' is a list, not a text",
    ]


def test_a_line_that_is_too_long_is_told_and_the_next_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ROW_BYTES", 50)
    lines = f'{{"request": "{"x" * 200}"}}\n{{"request": 1}}\n'
    assert problems(lines, "set.jsonl") == [
        "set.jsonl:1 row 1: the line is longer than 50 bytes",
        "set.jsonl:2:13 row 2: the request is a number, not a text or an object",
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[]", "set.json there are no rows"),
        (b"", "set.json there are no rows"),
        (b"\n\n", "set.json there are no rows"),
        (b'[{"request": "q"}', "set.json:1:18 this is not valid JSON: unexpected end of data"),
        (b'{\n"rows": 3}', "set.json:1 the file holds an object, not a list of rows"),
        (
            b"reqest,response\na,b\n",
            "set.json:1 a column 'request', 'inputs' or 'trace' is missing Did you mean 'request'?",
        ),
        (b"request,request\na,b\n", "set.json:1 column 2, 'request', is repeated"),
        (b"request,response\na,b,c\n", "set.json:2 row 1: it has 3 cells for 2 columns"),
        (b'request\na\n"x"y\n', "set.json:3 this is not valid CSV"),
        (b"request\na\n\xff\n", "set.json:3 the file is not UTF-8 Save it as CSV UTF-8."),
        (b"request,expected_facts\na,[1\n", "set.json:2 row 1: 'expected_facts' is broken JSON: unexpected end"),
        (b"request,expected_facts\na,x\n", "set.json:2 row 1: 'expected_facts' is a text, not a list of texts Write ["),
        (b'request\n"{""messages"": ["\n', "set.json:2 row 1: the request is broken JSON: unexpected end of data"),
        (b"PAR1 is not all of it", "set.json this is not a valid Parquet file"),
    ],
)
def test_a_file_that_is_none_is_refused(data: bytes, problem: str) -> None:
    assert problems(data)[0].startswith(problem)


@pytest.mark.parametrize("rows", [5_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_problems_of_a_large_list_are_told_in_one_pass(rows: int) -> None:
    text = ",\n".join(['{"request": 1}'] * rows)
    found = problems(f"[{text}]")
    assert len(found) == limits.MAX_PROBLEMS
    assert found[-1].startswith("set.json:1000:13 row 1000")


def test_a_table_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_JSON_BYTES", 10)
    assert problems("request\na long question\n") == ["set.json the file is larger than 10 bytes"]


def test_a_cell_may_be_as_long_as_a_trace() -> None:
    trace = json.dumps({**TRACE, "more": "x" * 200_000})
    table = pd.DataFrame([{"trace": trace}]).to_csv(index=False).encode()
    assert read_databricks(table, label="l", name="s").is_answered


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"the file 'x\.jsonl' cannot be found"):
        read_databricks_file(tmp_path / "x.jsonl", label="x.jsonl", name="x")


def test_a_file_that_was_changed_meanwhile_is_refused_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"request": "q"}\n{"request": "r"}\n')
    cases = iter(read_databricks_file(file, label="x.jsonl", name="x").evaluation.cases)
    assert next(cases).turns[0].utterance == "q"
    file.write_text('{"request": "q"}\n{"request": 1}\n')
    with pytest.raises(FormatError, match=r"x\.jsonl:2:13"):
        list(read_databricks_file(file, label="x.jsonl", name="x").evaluation.cases)


def test_the_cases_of_a_small_file_are_read_once(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"request": "q"}\n{"request": "r"}\n')
    document = read_databricks_file(file, label="x.jsonl", name="x")
    file.unlink()
    assert [case.turns[0].utterance for case in document.evaluation.cases] == ["q", "r"]


READ = """
import resource, sys
from pathlib import Path
from evalmeta.systems.databricks.evaluation_sets import read_databricks_file
def read(path):
    document = read_databricks_file(Path(path), label=path, name="x")
    return sum(1 for case in document.evaluation.cases)
small = read(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
large = read(sys.argv[2])
print(small, large, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_list_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text('[{"request": "Where is it?"}')
    os.truncate(path, 100_000_000_000)
    with pytest.raises(FormatError, match="the file is larger than 54,000,000 bytes"):
        read_databricks_file(path, label="large.json", name="large")


@pytest.mark.slow
def test_a_large_file_is_read_in_flat_memory(tmp_path: Path) -> None:
    line = json.dumps({"request": "q" * 2000, "response": "a" * 2000, "expected_facts": ["f" * 1000]}) + "\n"
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_text(line * 200)
    large.write_text(line * 12_000)
    told = subprocess.run([sys.executable, "-c", READ, small, large], check=True, capture_output=True, text=True)
    counted_small, counted, growth_kb = map(int, told.stdout.split())
    assert (counted_small, counted) == (200, 12_000)
    assert large.stat().st_size > 60_000_000
    assert growth_kb * (1 if sys.platform != "darwin" else 1 / 1024) < 15_000


# Tables in memory.


class Traced:
    def to_dict(self) -> JsonObject:
        return TRACE


def test_traces_are_rows() -> None:
    assert rows_of([Traced()]) == [{"trace": TRACE}]


def test_a_data_frame_gives_plain_rows() -> None:
    frame = pd.DataFrame(
        {
            "request": ["a", None],
            "expected_facts": [np.array(["x"]), np.nan],
            "n": [np.int64(3), pd.NA],
            "at": [datetime(2026, 1, 2, tzinfo=UTC), pd.NaT],
        },
        dtype=object,
    )
    assert rows_of(frame) == [
        {"request": "a", "expected_facts": ["x"], "n": 3, "at": "2026-01-02T00:00:00+00:00"},
        {"request": None, "expected_facts": None, "n": None, "at": None},
    ]


def test_other_tables_give_plain_rows() -> None:
    class Spark:
        def toPandas(self) -> pd.DataFrame:  # noqa: N802 - Spark's name
            return pd.DataFrame({"request": ["a"]})

    assert rows_of(Spark()) == rows_of([{"request": "a"}]) == rows_of({"request": ["a"]}) == [{"request": "a"}]
    assert rows_of([{"trace": Traced(), "x": {"y": None, "z": (1, 2)}}]) == [{"trace": TRACE, "x": {"z": [1, 2]}}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("text", "str is not a table of rows"),
        (3, "int is not a table of rows"),
        ([3], "row 1 is of type int, not a dict of columns"),
        ({"a": [1], "b": []}, "a dict of columns has lists of one length"),
        ({"a": "text"}, "a dict of columns has lists of one length"),
        ([{"a": {1, 2}}], "'a' of row 1 is of type set, which JSON cannot hold"),
        ([{"a": float("inf")}], "'a' of row 1 holds inf, which JSON cannot hold"),
        ([{"a": "\ud800"}], "'a' of row 1 is not valid Unicode text"),
    ],
)
def test_what_is_no_table_is_refused(data: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rows_of(data)


def test_a_table_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(UsageError, match="nested more than 100 levels"):
        rows_of([{"a": loop}])


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_columns = st.sampled_from(
    ["request", "response", "trace", "inputs", "guidelines", "retrieved_context", "expectations"]
)


@given(st.lists(st.dictionaries(_columns, _json) | _json, max_size=3))
def test_whatever_rows_hold_is_read_or_refused(rows: list[JsonValue]) -> None:
    try:
        document = read(*rows)
    except FormatError:
        return
    assert len(list(document.evaluation.cases)) == len(rows)


@given(st.binary(max_size=60), st.sampled_from([b"", b"[", b'{"request": ', b"request,response\n", b"PAR1"]))
def test_whatever_a_file_holds_is_read_or_refused(data: bytes, begin: bytes) -> None:
    with suppress(FormatError):
        assert read_databricks(begin + data, label="l", name="n").evaluation.name == "n"


def test_an_id_may_be_a_number_and_one_that_stands_twice_is_warned_of() -> None:
    document = read_databricks(
        b'{"request": "a", "request_id": 1}\n{"request": "b", "request_id": "1"}', label="s.jsonl", name="n"
    )

    assert [case.label for case in document.evaluation.cases] == ["1", "1"]
    assert [note.message for note in document.notes] == ["row 2: an earlier row has the 'request_id' '1' too"]


def searched(**info: JsonValue) -> dict[str, JsonValue]:
    """Gives a row of `mlflow.search_traces`, whose columns repeat the trace."""
    found = {**TRACE, "info": {**TRACE["info"], **info}}
    repeated = {"trace_id": "tr-1", "state": "OK", "request": {"question": "q", "mode": "x"}, "response": None}
    return {
        "trace": json.dumps(found),
        **repeated,
        "trace_metadata": {},
        "tags": {"a": "b"},
        "spans": [],
        "assessments": [],
    }


def test_the_table_of_search_traces_is_read_by_its_traces() -> None:
    document = read(searched())
    assert (document.notes, document.is_answered) == ((), True)
    assert list(document.evaluation.cases) == list(read({"trace": TRACE}).evaluation.cases)


def test_the_history_of_a_dataset_record_is_not_reported() -> None:
    history = {"dataset_record_id": "r", "source": {"human": {}}, "create_time": "2026-01-01", "last_updated_by": "me"}
    assert read({"inputs": {"question": "q"}, "expectations": {"expected_response": "r"}, **history}).notes == ()


def test_results_of_an_earlier_evaluation_are_not_reported() -> None:
    results: JsonValue = {"correctness/value": "yes", "response/llm_judged/safety/rating": "no"}
    assert read({"request": "q", "response": "r", **results}).notes == ()


def test_a_row_with_a_question_of_another_name_says_what_to_write() -> None:
    [found] = problems('[{"id": "E1", "question": "Where?"}]')
    assert found.endswith("There is 'question'; write 'request'.")


def test_expectations_noted_in_a_trace_are_expected_unless_the_row_has_its_own() -> None:
    noted: JsonValue = [{"assessment_name": "expected_response", "expectation": {"value": "noted"}}]
    own = {"expectations": {"expected_response": "own"}}
    for row, wanted in ((searched(assessments=noted), "noted"), ({**searched(assessments=noted), **own}, "own")):
        by_name = {expectation.name: expectation.expected_value for expectation in case_of(row).turns[0].expectations}
        assert by_name[CORRECTNESS] == wanted


def test_a_trace_that_ended_in_an_error_is_recorded_as_one() -> None:
    row: JsonValue = {"trace": {**TRACE, "info": {**TRACE["info"], "state": "ERROR"}}}
    error = "the recorded agent ended in an error: the trace does not say which"
    assert case_of(row).turns[0].recorded_error == error
    assert case_of(row, is_asked=True).turns[0].recorded_error == ""


def test_a_step_that_failed_is_a_warning_once_in_a_file() -> None:
    step = {"name": "find", "span_id": "f", "parent_span_id": "r", "status": {"code": "ERROR", "message": "Timeout"}}
    row: JsonValue = {"trace": {**TRACE, "data": {**TRACE["data"], "spans": [*TRACE["data"]["spans"], step]}}}
    assert [note.message for note in read(row, row).notes if note.code == "databricks-trace"] == [
        "row 1: the step 'find' of the trace ended in an error, and the agent continued: Timeout"
    ]


spoken = xml_texts.filter(str.strip) | st.sampled_from(['{"query": "q"}', '{"messages": []}', "[1]", "3"])
roles = st.sampled_from(["user", "agent", "system", "tool"])


@st.composite
def held(draw: st.DrawFn) -> Definition:
    """Draws a definition whose every part has a place in a row."""
    cases = []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        said = draw(st.lists(st.tuples(roles, xml_texts), max_size=3))
        history = tuple(HistoryMessage(role, text, None, place) for place, (role, text) in enumerate(said))
        answer = draw(st.none() | xml_texts)
        expected = () if answer is None else (Expectation("bot_response_rating", answer),)
        cases.append(TestCase(Inputs(draw(spoken), (), history), expected, number))
    return Definition(draw(spoken), draw(spoken), test_cases=tuple(cases))


def back(content: bytes, definition: Definition) -> Definition:
    document = read_databricks(content, label="set.jsonl", name=definition.name)
    return definition_of(document, subject_name=definition.subject_name)[0]


@settings(max_examples=at_most(125))
@given(held())
def test_what_rows_hold_is_read_to_the_same_definition(definition: Definition) -> None:
    written = write_databricks(definition)
    assert [loss.where for loss in written.losses] == ["definition"]
    assert back(written.content, definition) == definition


@settings(max_examples=at_most(125))
@given(definitions())
def test_whatever_is_written_can_be_read_or_is_named_as_lost(definition: Definition) -> None:
    written = write_databricks(definition)
    if not written.content:
        assert "an evaluation set without rows cannot be read" in written.losses[-1].what
        return
    kept = back(written.content, definition)
    if len(written.losses) == 1:
        assert [case.inputs for case in kept.test_cases] == [case.inputs for case in definition.test_cases]


def test_every_loss_is_named_with_its_place() -> None:
    history = (HistoryMessage("User", None, "T", 7),)
    inputs = Inputs("Hi", (ContextVariable("Tier", "gold"),), history, (PromptInput("P", "v"),))
    expectations = (
        Expectation("topic_sequence_match", "Orders"),
        Expectation("output_validation", "Yes", "L", (Parameter("a", "b"),), "Custom"),
        Expectation("bot_response_rating", "No"),
        Expectation("coherence"),
    )
    definition = Definition("n", "s", "PROMPT", "v2", "d", (TestCase(Inputs("  ")), TestCase(inputs, expectations, 5)))

    written = write_databricks(definition)

    assert [json.loads(line) for line in written.content.splitlines()] == [
        {
            "request_id": "1",
            "request": {"messages": [{"role": "user", "content": ""}, {"role": "user", "content": "Hi"}]},
            "expected_response": "Yes",
        }
    ]
    assert list(map(str, written.losses)) == [
        "definition: the subject's name 's'; rows do not name their agent",
        "definition: the subject's version 'v2'",
        "definition: the subject's type PROMPT",
        "definition: the description",
        "test case 1: all of it; a row needs something that is asked",
        "test case 5: the context variable 'Tier'",
        "test case 5: the input 'P' of a prompt",
        "test case 5: the role 'User' of a message; it is written as the user's",
        "test case 5: that a message of the history has no text; it is written with an empty one",
        "test case 5: the topic 'T' of a message",
        "test case 5: the index 7 of a message; by its place it gets 0",
        "test case 5: the expectation 'topic_sequence_match'; a row expects one response only",
        "test case 5: the name 'output_validation'; it reads as 'bot_response_rating', which means the same",
        "test case 5: the label 'L' of 'output_validation'",
        "test case 5: the parameters of 'output_validation'",
        "test case 5: the type of the custom scorer 'output_validation'",
        "test case 5: the expectation 'bot_response_rating'; a row expects one response only",
        "test case 5: the expectation 'coherence'; a row expects one response only",
        "test case 5: the number 5; the test case gets the number 1 from its position",
    ]
