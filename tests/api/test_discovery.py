from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import evaluate
from evalmeta.api.discovery import find_tests, others_note, source_note
from evalmeta.api.files import format_files, validate
from evalmeta.errors import FormatError, NotFound
from evalmeta.formats.baseline import write_baseline
from formats.discovery_corpus import FOREIGN, NEAR

if TYPE_CHECKING:
    from collections.abc import Callable

SPEC = """\
name: {name}
subjectType: AGENT
subjectName: {subject}
testCases:
  - utterance: Where is my order?
    expectedTopic: Orders
"""
TABLE = "Utterance,Expected Topic\nWhere is my order?,Orders\n"
DEFINITION = """\
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>{name}</name>
    <subjectName>Desk</subjectName>
    <subjectType>AGENT</subjectType>
    <testCase>
        <number>1</number>
        <inputs><utterance>Where is my order?</utterance></inputs>
        <expectation><name>topic_sequence_match</name><expectedValue>Orders</expectedValue></expectation>
    </testCase>
</AiEvaluationDefinition>
"""
FOLDER = Path("force-app/main/default/aiEvaluationDefinitions")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Callable[..., Path]:
    def write(path: str | Path, text: str, **names: str) -> Path:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.format(**names) if names else text)
        return Path(path)

    return write


@pytest.fixture
def project(write: Callable[..., Path]) -> None:
    write("sfdx-project.json", json.dumps({"packageDirectories": [{"path": "force-app"}]}))
    write(FOLDER / "Order_Desk_Test.aiEvaluationDefinition-meta.xml", DEFINITION, name="Order Desk Test")


def found(*paths: str) -> list[str]:
    return [path.as_posix() for path in find_tests([Path(each) for each in paths]).paths]


def test_specs_and_tables_in_folders_are_tests_and_files_of_other_programs_are_not(write: Callable[..., Path]) -> None:
    for name, content in FOREIGN.items():
        write(f"{'.github/' if name == 'ci.yml' else 'other/'}{name}", content)
    write("specs/orders.yaml", SPEC, name="Orders", subject="Desk")
    write("tables/orders.csv", TABLE)
    write("node_modules/x/orders.yaml", SPEC, name="Orders", subject="Desk")
    assert found(".") == ["specs/orders.yaml", "tables/orders.csv"]
    assert validate([Path()]).files == 2
    with pytest.raises(NotFound, match="there are no tests in 'other'"):
        find_tests([Path("other")])


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("path", "content", "names"),
    [
        ("specs/desk.yaml", SPEC, {"name": "Order Desk Test", "subject": "Desk"}),
        ("specs/desk.yaml", SPEC, {"name": "Order_Desk_Test", "subject": "Desk"}),
        ("specs/Order_Desk_Test-testSpec.yaml", SPEC, {"name": "Other", "subject": "Desk"}),
        ("tables/Order_Desk_Test.csv", TABLE, {}),
        ("specs/DESK.YAML", SPEC, {"name": "Order Desk Test", "subject": "Desk"}),
        ("tables/Order_Desk_Test.CSV", TABLE, {}),
    ],
)
def test_a_definition_and_the_file_that_it_was_made_from_run_once(
    write: Callable[..., Path], path: str, content: str, names: dict[str, str]
) -> None:
    write(path, content, **names)
    [definition] = found(".")
    assert definition.endswith("Order_Desk_Test.aiEvaluationDefinition-meta.xml")
    assert [*find_tests([Path()]).sources] == [Path(path)]
    assert found(str(Path(path).parent)) == [path]
    assert len(found(".", path)) == 2


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("check", "runs"), [("contains: way", False), ("not_contains: sorry", True)])
def test_a_spec_with_checks_that_its_definition_cannot_hold_is_run_too(
    write: Callable[..., Path], check: str, *, runs: bool
) -> None:
    write("specs/desk.yaml", f"name: Order Desk Test\nsubject: Desk\ntestCases:\n- input: Where?\n  {check}\n")
    assert ("specs/desk.yaml" in found(".")) is runs


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("content", "differs"),
    [
        (SPEC, False),
        (SPEC.replace("Where is", "Where  is"), False),
        (SPEC.replace("Topic: Orders", "Topic: Returns"), True),
    ],
)
def test_a_definition_that_differs_from_its_spec_is_reported(
    write: Callable[..., Path], content: str, *, differs: bool
) -> None:
    write("specs/desk.yaml", content, name="Order Desk Test", subject="Desk")
    [pair] = find_tests([Path()]).sources.items()
    assert ("but their test cases differ. Update the definition" in source_note(*pair)) is differs


def test_a_table_that_differs_from_its_definition_is_reported(write: Callable[..., Path]) -> None:
    definition = write("A.aiEvaluationDefinition", DEFINITION, name="A")
    same = write("a.csv", TABLE)
    assert "differ" not in source_note(same, definition)
    assert "differ" in source_note(write("a.csv", TABLE + "One more?,Orders\n"), definition)


@pytest.mark.usefixtures("project")
def test_a_spec_of_another_name_or_agent_runs_beside_a_definition(write: Callable[..., Path]) -> None:
    write("specs/a.yaml", SPEC, name="Order Desk Test", subject="Other")
    write("specs/b.yaml", SPEC, name="Returns", subject="Desk")
    write("specs/c.yaml", "name: Order Desk Test\nsubjectName: Desk\nsubjectType: [\n")
    assert found(".")[1:] == ["specs/a.yaml", "specs/b.yaml", "specs/c.yaml"]


@pytest.mark.usefixtures("project")
def test_a_project_is_validated_with_its_specs_and_tables(write: Callable[..., Path]) -> None:
    write("specs/a.yaml", SPEC, name="A", subject="Desk")
    write("specs/b.yaml", SPEC + "    expectedTopics: Orders\n", name="B", subject="Desk")
    write("tables/c.csv", "Utterance,Expected Topic,Topc\nHi,Orders,\n")
    write("tables/d.csv", "a,b\n1,2\n")
    write("tables/e.test.json", '{"a": 1}')
    checked = validate()
    located = [
        str(problem.location) for problem in checked.problems if problem.is_error and problem.code != "name-format"
    ]
    assert (checked.files, located) == (4, ["specs/b.yaml:7:5", "tables/c.csv:1"])
    assert format_files().files == 1


def test_a_named_file_of_every_format_is_validated(write: Callable[..., Path]) -> None:
    spec = write("a.yaml", SPEC + "    expectedTopics: Orders\n", name="A", subject="Desk")
    rows = write("rows.jsonl", '{"request": "a", "guidelines": 1}\n')
    assert [str(problem.location) for problem in validate([spec]).problems] == ["a.yaml:7:5"]
    assert [str(problem.location) for problem in validate([rows]).problems] == ["rows.jsonl:1:32"]
    for name in ("ci.yml", "docker-compose.yml", "chart.yaml", "sales.csv", "empty.csv"):
        with pytest.raises(FormatError, match=rf"{name} is (not a test spec|not a table of tests|empty)"):
            validate([write(name, FOREIGN[name])])


def test_a_damaged_spec_is_an_error_of_the_whole_folder(write: Callable[..., Path]) -> None:
    write("a.yaml", SPEC, name="A", subject="Desk")
    write("b.yaml", "subjectName: Desk\nsubjectType: AGENT\ntestCases:\n  - utterance: [\n")
    assert [problem.location.path for problem in validate([Path()]).problems] == ["b.yaml"]
    with pytest.raises(FormatError, match=r"b\.yaml"):
        evaluate([Path()], lambda utterance: utterance)


def test_evaluate_runs_the_specs_in_a_folder(write: Callable[..., Path]) -> None:
    write("specs/a.yaml", SPEC, name="A", subject="Desk")
    write("specs/b.csv", TABLE)
    runs = evaluate([Path("specs")], lambda utterance: {"answer": utterance, "topic": "Orders"})
    assert [(run.run.definition, run.summary.passed) for run in runs] == [("specs/a.yaml", 1), ("specs/b.csv", 1)]


def test_evaluate_tells_files_of_the_same_name_apart(write: Callable[..., Path], tmp_path: Path) -> None:
    for folder in ("specs/a", "specs/b"):
        write(f"{folder}/orders.csv", TABLE)
    runs = evaluate([Path("specs")], lambda utterance: utterance, journal=tmp_path / "journal")
    assert [run.run.definition for run in runs] == ["specs/a/orders.csv", "specs/b/orders.csv"]


def test_the_expectations_of_a_spec_keep_the_rules_of_definitions(write: Callable[..., Path]) -> None:
    criterion = """\
    customEvaluations:
      - name: string_comparison
        label: The answer names the order
        parameters:
          - {name: operator, value: ">=", isReference: false}
          - {name: actual, value: $.generatedData.latencyMs, isReference: true}
          - {name: expected, value: x, isReference: false}
"""
    file = write("a/orders.yaml", SPEC.format(name="Orders", subject="Desk") + criterion)
    found = [(problem.code, problem.location.line, problem.is_error) for problem in validate([file]).problems]
    assert found == [("operator-unknown", 5, True), ("reference-unreachable", 5, False)]


@pytest.fixture
def near(folder: Path) -> list[str]:
    """Writes every test with a mistake into the folder `tests`, and returns their names."""
    (folder / "tests").mkdir()
    for name, content in NEAR.items():
        (folder / "tests" / name).write_bytes(content.encode())
    return [f"tests/{name}" for name in sorted(NEAR)]


def test_validate_reports_every_test_with_a_mistake_in_a_folder_with_its_line(near: list[str]) -> None:
    checked = validate([Path("tests")])
    located = {problem.location.path for problem in checked.problems if problem.is_error and problem.location.line}
    assert (sorted(located), checked.files, checked.others) == (near, len(near), {})


def test_validate_reports_every_test_with_a_mistake_in_a_project_with_its_line(near: list[str], folder: Path) -> None:
    (folder / "evalmeta.toml").touch()
    assert sorted({problem.location.path for problem in validate().problems if problem.is_error}) == near


def test_evaluate_reports_every_test_with_a_mistake_in_a_folder_and_runs_nothing(near: list[str]) -> None:
    with pytest.raises(FormatError, match=f"{len(near)} files are not valid; nothing was run") as refused:
        evaluate([Path("tests")], lambda _: pytest.fail("the agent was asked"))
    assert sorted({problem.location.path for problem in refused.value.problems if problem.location.line}) == near


def test_files_of_other_programs_in_a_folder_are_named_with_their_reasons(write: Callable[..., Path]) -> None:
    for name, content in FOREIGN.items():
        write(f"other/{name}", content)
    write("tests/a.csv", TABLE)
    names = sorted(f"other/{name}" for name in FOREIGN if name not in {"sfdx-project.json", "test_config.json"})
    others = find_tests([Path()]).others
    assert sorted(other.as_posix() for other in others) == names
    assert sorted(other.as_posix() for other in validate([Path()]).others) == names
    assert all(f"{name}: it " in others_note(others, verbose=True) for name in names)


def test_a_closing_line_counts_the_files_that_are_not_tests(write: Callable[..., Path]) -> None:
    write("a.csv", TABLE)
    assert others_note(find_tests([Path()]).others, verbose=False) == ""
    write_baseline(Path("evalmeta-baseline.json"), {})
    assert others_note(find_tests([Path()]).others, verbose=True) == ""
    write("b.json", "{}")
    assert others_note(find_tests([Path()]).others, verbose=False) == "1 file was not a test: b.json; -v says why"
    for name in "cdef":
        write(f"{name}.json", "{}")
    text = "5 files were not tests: b.json, c.json, d.json and 2 more; -v says why"
    assert others_note(find_tests([Path()]).others, verbose=False) == text


@pytest.mark.parametrize(
    "spec",
    [
        "subject: desk\ndefaults: {{contains: Hi}}\ncases: {file}\n",
        '{{"cases": "{file}", "defaults": {{"contains": "Hi"}}}}\n',
        '{{"defaults": {{"contains": "Hi"}},\n "cases": ["{file}"]}}\n',
        "cases:\n- {file}\n",
    ],
)
@pytest.mark.parametrize("file", ["q.csv", "data/q.jsonl"])
def test_a_file_with_the_cases_of_a_spec_is_part_of_it(write: Callable[..., Path], spec: str, file: str) -> None:
    write(file, '{"input": "Hi", "contains": "Hi"}\n' if file.endswith("l") else "input,contains\nHi,Hi\n")
    assert found(".") == [file]
    write("all.yaml", spec.format(file=file))
    everything = find_tests([Path()])
    assert ([path.as_posix() for path in everything.paths], everything.others) == (["all.yaml"], {})
    checked = validate([Path()])
    assert (checked.files, checked.others, checked.is_valid) == (1, {}, True)
    assert found(".", file) == ["all.yaml", file]


def test_questions_without_checks_that_a_spec_names_are_not_listed(write: Callable[..., Path]) -> None:
    write("q.csv", "input\nHi\n")
    assert find_tests([write("x/a.csv", TABLE).parent, Path()]).others == {
        Path("q.csv"): "it has no check, such as contains; its columns are input"
    }
    write("all.yaml", "defaults: {contains: Hi}\ncases: q.csv\n")
    assert find_tests([Path()]).others == {}


def test_a_folder_without_tests_says_why_its_files_are_none(write: Callable[..., Path]) -> None:
    write("fixtures/a.json", '{"messages": []}')
    with pytest.raises(NotFound) as refused:
        find_tests([Path("fixtures")])
    assert refused.value.actions[0] == "fixtures/a.json: it has no test cases; its keys are messages"


def test_a_case_without_checks_is_a_finding_with_its_line(write: Callable[..., Path]) -> None:
    write("tests/a.yaml", "testCases:\n- input: Hi\n  contains: Hello\n- input: Bye\n- turns: [{input: Hi}]\n")
    write("tests/b.csv", "Utterance,Expected Topic\nHi,\n")
    found = [(str(problem.location), problem.code, problem.is_error) for problem in validate([Path("tests")]).problems]
    assert found == [
        ("tests/a.yaml:4", "expectations-missing", False),
        ("tests/a.yaml:5", "expectations-missing", False),
        ("tests/b.csv:2", "expectations-missing", False),
    ]
    write("evalmeta.toml", '[validate.rules]\nexpectations-missing = "error"\n')
    assert not validate([Path("tests")]).is_valid
