from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.case_files import files_of
from evalmeta.formats.document import Reading
from evalmeta.formats.files import digest_of, read_document
from evalmeta.formats.testspec import read_spec
from evalmeta.model.checks import CHECKS
from evalmeta.model.evaluation import Quarantine, today
from formats.specs import shown

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.evaluation import Case


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "t.yaml"
    path.write_text("defaults: {not_contains: sorry}\ncases: data/q.csv\n")
    (tmp_path / "data").mkdir()
    return path


def cases_of(spec: Path, name: str, content: str) -> list[Case]:
    (spec.parent / "data" / name).write_text(content)
    spec.write_text(spec.read_text().replace("q.csv", name))
    return list(read_document(spec, label="t.yaml", name="t").evaluation.cases)


def checks(case: Case) -> list[tuple[str, str | None]]:
    return [(expectation.name, expectation.expected_value) for expectation in case.turns[0].expectations]


def way_out(title: str) -> str:
    return f"Rename it, map it with 'columns', or name it metadata.{title} to keep it as metadata."


def problems(spec: Path, name: str, content: str) -> list[str]:
    with pytest.raises(FormatError) as caught:
        cases_of(spec, name, content)
    return [shown(problem) for problem in caught.value.problems]


def test_the_columns_of_a_table_are_keys_of_test_cases(spec: Path) -> None:
    table = """\
input,contains,actions,latency_ms,tags,json
Where?,"Paris, France",,200,"smoke, geo","{""path"": ""$.a"", ""equals"": 1}"
Who?,"[""a"", ""b""]","A, B",,,
"""
    first, second = cases_of(spec, "q.csv", table)
    assert (first.number, first.label, first.tags) == (1, "data/q.csv:2", ("smoke", "geo"))
    assert checks(first) == [
        ("contains", "Paris, France"),
        ("not_contains", "sorry"),
        ("json", None),
        ("output_latency_milliseconds", "200"),
    ]
    assert first.turns[0].expectations[2].terms == {"path": "$.a", "operator": "equals", "expected": 1}
    assert checks(second)[::3] == [("contains", "a"), ("action_sequence_match", "['A', 'B']")]


@pytest.mark.parametrize("key", CHECKS)
def test_a_cell_of_each_check_is_read_as_in_a_spec(spec: Path, key: str) -> None:
    value = {"json": '{"path": "$.a"}', "function": "a:b", "state": '{"a": 7}'}.get(key, "7")
    cell = value.replace('"', '""')
    [case] = cases_of(spec, "q.csv", f'input,{key}\nHi,"{cell}"\n')
    [own] = read_spec(f"testCases:\n- input: Hi\n  {key}: {value}\n".encode(), label="t.yaml").cases
    assert own.turns[0].expectations[0] in case.turns[0].expectations


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", 'input,contains,quarantine\nHi,Hello,"{""reason"": ""flaky"", ""until"": ""DAY""}"\nBye,Bye,\n'),
        ("q.jsonl", '{"input": "Hi", "quarantine": {"reason": "flaky", "until": "DAY"}}\n{"input": "Bye"}\n'),
    ],
)
def test_a_quarantine_is_a_cell_with_json(spec: Path, name: str, content: str) -> None:
    found = cases_of(spec, name, content.replace("DAY", str(today())))
    assert [each.quarantine for each in found] == [Quarantine("flaky", today()), None]


def test_a_cell_with_half_a_quarantine_is_an_error(spec: Path) -> None:
    table = 'input,quarantine\nHi,"{""reason"": ""flaky""}"\nBye,flaky\n'
    assert problems(spec, "q.csv", table) == [
        "data/q.csv:2 a quarantine needs 'until' [spec-missing]",
        (
            "data/q.csv:3 a quarantine is a text, not a mapping [spec-type]"
            " Write quarantine: {reason: why it fails, until: 2027-01-31}."
        ),
    ]


def test_a_table_of_the_testing_center_can_be_named_too(spec: Path) -> None:
    [case] = cases_of(spec, "q.csv", "Utterance;Expected Topic;Expected Actions\nHi;Orders;['A']\n")
    assert checks(case)[1:] == [("topic_sequence_match", "Orders"), ("action_sequence_match", "['A']")]


def test_each_line_of_json_lines_is_a_test_case(spec: Path) -> None:
    lines = '{"input": "Hi", "contains": ["a"], "latency_ms": 9, "name": "greeting"}\n\n{"input": "\\ud83d\\ude00"}\n'
    first, second = cases_of(spec, "q.jsonl", lines)
    assert (first.label, second.label, second.turns[0].utterance) == ("greeting", "data/q.jsonl:3", "😀")
    assert checks(first)[0] == ("contains", "a")


def test_cases_of_files_follow_those_of_the_spec(spec: Path) -> None:
    (spec.parent / "data/q.csv").write_text("input\nTwo\n")
    spec.write_text("testCases: [{input: Zero}]\ncases:\n- input: One\n- data/q.csv\n")
    document = read_document(spec, label="t.yaml", name="t")
    assert [case.turns[0].utterance for case in document.evaluation.cases] == ["Zero", "One", "Two"]
    assert (document.lines, document.files) == ({1: 1, 2: 3, 3: 2}, {3: "data/q.csv"})


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        (
            "q.csv",
            "Question,contains\nHi,x\n",
            [
                (
                    "data/q.csv:1 column 1 has the unknown title 'Question' [csv-columns]"
                    f" Use input for the message to the agent. {way_out('Question')}"
                ),
                (
                    "data/q.csv:1 the column 'input' is missing [csv-columns]"
                    " The first line names the keys of the cells, such as input,contains."
                ),
            ],
        ),
        (
            "q.csv",
            "input,contian\nHi,x\n",
            [
                (
                    "data/q.csv:1 column 2 has the unknown title 'contian' [csv-columns]"
                    f" Did you mean 'contains'? {way_out('contian')}"
                )
            ],
        ),
        ("q.csv", "input,input\nHi,x\n", ["data/q.csv:1 column 2, 'input', is repeated [csv-columns]"]),
        ("q.csv", "", [("data/q.csv:1 the table is empty [csv-columns] Its first line names the keys of the cells.")]),
        (
            "q.csv",
            "input,contains\n",
            [
                (
                    "data/q.csv:1 the file has no test cases [spec-missing]"
                    " Write at least one: an input, and a check such as contains."
                )
            ],
        ),
        (
            "q.jsonl",
            "\n",
            [
                (
                    "data/q.jsonl:1 the file has no test cases [spec-missing]"
                    " Write at least one: an input, and a check such as contains."
                )
            ],
        ),
        (
            "q.csv",
            "input,contains\nHi,a,b\n",
            ["data/q.csv:2 the row has 3 cells for 2 columns [csv-cells] Put a text with commas in quotes."],
        ),
        (
            "q.csv",
            "input,latency_ms\nHi,fast\n",
            ["data/q.csv:2 'latency_ms' of a test case is a text, not a whole number [spec-type]"],
        ),
        ("q.csv", "input,contains\n,x\n", ["data/q.csv:2 a test case needs 'input' [spec-missing]"]),
        (
            "q.csv",
            f"input,json\nHi,{'[' * 1000}{']' * 1000}\n",
            ["data/q.csv:2 a check of JSON is a text, not a mapping [spec-type]"],
        ),
        ("q.csv", "input,json\nHi,$.a\n", [("data/q.csv:2 a check of JSON is a text, not a mapping [spec-type]")]),
        (
            "q.jsonl",
            '{"input": "a"}\n{"input": \n',
            [("data/q.jsonl:2:11 this is not valid JSON: unexpected end of data [json-syntax]")],
        ),
        ("q.jsonl", '["a"]\n', ["data/q.jsonl:1 a test case is a list, not a mapping [spec-type]"]),
        (
            "q.jsonl",
            '{"input": "a", "contian": "b"}\n',
            [
                (
                    "data/q.jsonl:1 a test case has no key 'contian' [spec-key]"
                    f" Did you mean 'contains'? {way_out('contian')}"
                )
            ],
        ),
    ],
)
def test_a_mistake_is_reported_with_the_file_and_the_line(
    spec: Path, name: str, content: str, found: list[str]
) -> None:
    assert problems(spec, name, content) == found


def test_a_run_notices_that_a_file_with_cases_has_changed(spec: Path) -> None:
    table = spec.parent / "data/q.csv"
    table.write_text("input\nHi\n")
    before = digest_of(spec, Reading())
    table.write_text("input\nBye\n")
    assert digest_of(spec, Reading()) != before
    assert files_of(spec) == [table]


@pytest.mark.parametrize("name", ["spec.yaml", "spec.json"])
@pytest.mark.parametrize("content", ['{"cases": "data/q.csv"}', '{"subject": "a",\n "cases": [\n  "data/q.csv"]}'])
def test_a_run_notices_that_a_file_with_cases_of_a_spec_in_json_has_changed(
    spec: Path, name: str, content: str
) -> None:
    file, table = spec.parent / name, spec.parent / "data/q.csv"
    file.write_text(content)
    table.write_text("input\nHi\n")
    before = digest_of(file, Reading())
    table.write_text("input\nBye\n")
    assert digest_of(file, Reading()) != before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", "input,contains\nHi,Hello\n"),
        ("q.csv", "input;tags\nHi;smoke\n"),
        ("q.jsonl", '{"input": "Hi", "contains": "Hello"}\n'),
        ("q.jsonl", '\n{"name": "a", "input": "Hi"}\n{"input": "Bye"}\n'),
    ],
)
def test_a_file_with_test_cases_is_a_test_of_its_own(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    document = read_document(tmp_path / name, label=name, name=name)
    cases = list(document.evaluation.cases)
    assert (cases[0].turns[0].utterance, document.evaluation.subject_name) == ("Hi", "")
    assert document.lines[len(cases)] == len(content.splitlines())


def test_a_mistake_in_such_a_file_is_reported_too(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("input,contian\nHi,x\n")
    with pytest.raises(FormatError, match="column 2 has the unknown title 'contian'"):
        read_document(tmp_path / "q.csv", label="q.csv", name="q")


def test_a_spec_names_a_limited_number_of_files(spec: Path) -> None:
    (spec.parent / "data/q.csv").write_text("input\nHi\n")
    spec.write_text(f"cases: [{', '.join(['data/q.csv'] * (limits.MAX_CASE_FILES + 1))}]\n")
    with pytest.raises(FormatError, match="more than 100 files with test cases"):
        read_document(spec, label="t.yaml", name="t")


def test_the_files_of_a_spec_have_a_limited_size_in_all(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CASE_FILES_BYTES", 20)
    (spec.parent / "data/q.csv").write_text("input\nHello\n")
    spec.write_text("cases: [data/q.csv, data/q.csv]\n")
    with pytest.raises(FormatError, match="have more than 20 bytes in all"):
        read_document(spec, label="t.yaml", name="t")


def test_a_file_of_cases_has_a_limited_size(spec: Path) -> None:
    found = problems(spec, "q.csv", "input\n" + "x" * limits.MAX_SPEC_BYTES)
    assert found == ["data/q.csv the file is larger than 5,000,000 bytes [csv-limit]"]


def test_flags_of_a_table_are_true_or_false(spec: Path) -> None:
    first, second = cases_of(spec, "q.csv", "input,empty,exact\nHi,TRUE,\nHi,,true\n")
    assert [case.turns[0].expectations[0].terms for case in (first, second)] == [{"empty": True}, {"exact": True}]


@pytest.fixture
def mapped(spec: Path) -> Path:
    spec.write_text("cases: data/q.csv\ncolumns: {input: Question, contains: Expected answer}\n")
    return spec


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", "name,Question , Expected answer\ngreeting,Hi,Hello\n"),
        ("q.jsonl", '{"name": "greeting", "Question": "Hi", "Expected answer": "Hello"}\n'),
    ],
)
def test_columns_with_other_titles_are_mapped_to_keys(mapped: Path, name: str, content: str) -> None:
    [case] = cases_of(mapped, name, content)
    assert (case.label, case.turns[0].utterance, checks(case)) == ("greeting", "Hi", [("contains", "Hello")])


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "q.csv",
            "Question,Expected\nHi,Hello\n",
            "data/q.csv:1 the column 'Expected answer', which 'columns' names for 'contains'",
        ),
        (
            "q.csv",
            "Question,Expected answer,contains\nHi,Hello,Hi\n",
            "data/q.csv:1 column 3, 'contains', is 'contains' as column 2, 'Expected answer', is [csv-columns]",
        ),
        (
            "q.jsonl",
            '{"input": "Hi", "Expected answer": "Hello"}\n',
            "data/q.jsonl:1 the column 'Question', which 'columns' names for 'input', does not exist",
        ),
        (
            "q.jsonl",
            '{"Question": "Hi", "input": "Ho", "Expected answer": "Hello"}\n',
            "data/q.jsonl:1 'input' is 'input', which the test case has already [spec-both]",
        ),
    ],
)
def test_a_column_that_is_missing_or_means_the_same_as_another_is_an_error(
    mapped: Path, name: str, content: str, problem: str
) -> None:
    assert problems(mapped, name, content)[0].startswith(problem)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("{inptu: Question}", "t.yaml:2:18 a test case has no key 'inptu' [spec-key] Did you mean 'input'?"),
        (
            "{input: Question, contains: Question}",
            "t.yaml:2:38 the column 'Question' is for 'input' already [spec-both] Keep one of them.",
        ),
    ],
)
def test_columns_name_keys_of_test_cases_once(spec: Path, columns: str, problem: str) -> None:
    spec.write_text(f"cases: data/q.csv\ncolumns: {columns}\n")
    assert problem in problems(spec, "q.csv", "Question\nHi\n")


def test_columns_without_a_file_are_an_error(spec: Path) -> None:
    spec.write_text("columns: {input: Question}\ncases: [{input: Hi}]\n")
    assert problems(spec, "q.csv", "")[0].startswith("t.yaml:1:10 'columns' is for files with test cases")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", 'input,contains,Region ,owner,metadata.topc,metadata\nHi,Hello,EU,,x,"{""sla"": 2}"\nBye,Bye,,,,\n'),
        (
            "q.jsonl",
            (
                '{"input": "Hi", "contains": "Hello", "Region": "EU", "metadata.topc": "x", "metadata": {"sla": 2}}\n'
                '{"input": "Bye", "contains": "Bye"}\n'
            ),
        ),
    ],
)
def test_other_columns_are_kept_as_metadata(spec: Path, name: str, content: str) -> None:
    first, second = cases_of(spec, name, content)
    assert (first.metadata, second.metadata) == ({"sla": 2, "Region": "EU", "topc": "x"}, {})
    assert checks(first) == [("contains", "Hello"), ("not_contains", "sorry")]


@pytest.mark.parametrize(
    "title",
    [
        *("contians", "Contains", "topc", "Expected Topic?", "expected_topic", "expected_anwser", "regex", "Answer"),
        *("response", "ground truth", "Latency", "Iteration", "min_pass_rate", "skip", "tool_calls"),
    ],
)
@pytest.mark.parametrize("lines", [False, True])
def test_a_title_that_may_be_meant_as_a_check_is_never_metadata(spec: Path, title: str, *, lines: bool) -> None:
    content = f'{{"input": "Hi", "{title}": "x"}}\n' if lines else f"input,{title} \nHi,x\n"
    [problem] = problems(spec, "q.jsonl" if lines else "q.csv", content)
    assert problem.endswith(way_out(title))


@pytest.mark.parametrize("title", ["category", "region", "owner", "priority", "id", "description", "language"])
def test_a_title_that_resembles_no_key_is_metadata(spec: Path, title: str) -> None:
    [case] = cases_of(spec, "q.csv", f"input,{title}\nHi,x\n")
    assert case.metadata == {title: "x"}


def test_a_spec_maps_a_column_to_metadata_and_has_metadata_of_its_own(spec: Path) -> None:
    spec.write_text(
        "cases:\n- data/q.csv\n- {input: Bye, metadata: {level: 3}}\ncolumns: {metadata.subject: Topc, input: Q}\n"
    )
    own, of_file = cases_of(spec, "q.csv", "Q,Topc\nHi,x\n")
    assert (own.metadata, of_file.metadata) == ({"level": 3}, {"subject": "x"})


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("q.csv", "input,\nHi,x\n", "data/q.csv:1 column 2 has no title [csv-columns] Write one, or remove it."),
        ("q.csv", "input,Area,Area\nHi,x,y\n", "data/q.csv:1 column 3, 'Area', is repeated [csv-columns]"),
        (
            "q.csv",
            'input,Area,metadata\nHi,x,"{""Area"": 1}"\n',
            "data/q.csv:2 the metadata of the test case has 'Area' twice [spec-both] Keep one of them.",
        ),
        (
            "q.csv",
            "input,metadata\nHi,x\n",
            "data/q.csv:2 'metadata' of a test case is a text, not a mapping [spec-type]",
        ),
        (
            "q.csv",
            f"input,Area\nHi,{'x' * limits.MAX_METADATA_BYTES}\n",
            (
                "data/q.csv:2 the metadata has 10,011 bytes as JSON; at most 10,000 are allowed [spec-limit]"
                " Keep only what reports or functions need."
            ),
        ),
        (
            "q.jsonl",
            json.dumps({"input": "Hi"} | {f"{number}-x": 1 for number in range(limits.MAX_METADATA_VALUES + 1)}),
            (
                "data/q.jsonl:1 the metadata has 101 values; at most 100 are allowed [spec-limit]"
                " Keep only what reports or functions need."
            ),
        ),
        (
            "q.csv",
            f"input,{','.join(f'{number}-x' for number in range(limits.MAX_CASE_NAMES))}\nHi\n",
            (
                "data/q.csv:1 the file has more than 1,000 different columns or keys [csv-limit]"
                " Put values of one kind into one JSON object."
            ),
        ),
        (
            "q.jsonl",
            "".join(f'{{"input": "Hi", "{number}-x": 1}}\n' for number in range(limits.MAX_CASE_NAMES)),
            (
                "data/q.jsonl:1000 the file has more than 1,000 different columns or keys [csv-limit]"
                " Put values of one kind into one JSON object."
            ),
        ),
    ],
)
def test_metadata_without_a_name_or_beyond_its_limits_is_an_error(
    spec: Path, name: str, content: str, problem: str
) -> None:
    assert problems(spec, name, content) == [problem]
