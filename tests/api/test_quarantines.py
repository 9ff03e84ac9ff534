from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from evalmeta.api import quarantines
from evalmeta.api.files import validate
from evalmeta.api.quarantines import listed_problems
from evalmeta.model.evaluation import today
from evalmeta.package.project import find_project
from org.parts import definition

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.formats.document import Document, Reading

YESTERDAY = today() - timedelta(days=1)
SPEC = "subject: a:b\ntestCases:\n- name: late\n  input: Where is it?\n  contains: here\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a definition Orders of two cases and a spec."""
    (tmp_path / "aiEvaluationDefinitions").mkdir()
    file = tmp_path / "aiEvaluationDefinitions" / "Orders.aiEvaluationDefinition"
    file.write_bytes(definition("Orders", cases=2))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "desk.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problems(folder: Path, test: str, case: str, until: object = None) -> list[str]:
    entry = f'\n[[quarantine]]\ntest = "{test}"\ncase = {case}\nreason = "flaky"\nuntil = {until or today()}\n'
    (folder / "evalmeta.toml").write_text(entry)
    return [f"{problem} {problem.hint}" for problem in listed_problems(find_project(folder))]


@pytest.mark.parametrize(
    ("test", "case"),
    [
        ("Orders", "2"),
        ("AiEvaluationDefinition:Orders", '"Orders 1"'),
        ("tests/desk.yaml", "1"),
        ("desk.yaml", '"late"'),
        ("desk", '"Where is it?"'),
    ],
)
def test_a_quarantine_that_names_a_case_of_the_project_is_no_problem(folder: Path, test: str, case: str) -> None:
    assert problems(folder, test, case) == []


def test_a_quarantine_of_an_unknown_test_or_case_is_a_warning(folder: Path) -> None:
    assert problems(folder, "Order", "2") == [
        (
            "evalmeta.toml:2:3: warning: the quarantine names 'Order', and the project has no such test "
            "[quarantine-test] Did you mean 'Orders'?"
        )
    ]
    assert problems(folder, "Orders", "3") == [
        (
            "evalmeta.toml:2:3: warning: the quarantine names case 3, which Orders does not have [quarantine-case] "
            "Correct its number, utterance or label, or remove the quarantine."
        )
    ]


def test_a_case_of_a_file_with_errors_is_not_missing(folder: Path) -> None:
    (folder / "tests" / "desk.yaml").write_text(SPEC + "  contians: here\n")
    assert problems(folder, "desk", "7") == []


def test_a_test_with_several_quarantines_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    read_document = quarantines.read_document

    def counted(path: Path, *, label: str, name: str, reading: Reading) -> Document:
        read.append(path)
        return read_document(path, label=label, name=name, reading=reading)

    monkeypatch.setattr(quarantines, "read_document", counted)
    entry = '[[quarantine]]\ntest = "desk"\ncase = {}\nreason = "flaky"\nuntil = {}\n'
    (folder / "evalmeta.toml").write_text("".join(entry.format(case, today()) for case in (1, 2, 3)))
    assert [problem.code for problem in listed_problems(find_project(folder))] == ["quarantine-case"] * 2
    assert read == [folder / "tests" / "desk.yaml"]


def test_a_quarantine_that_has_ended_is_a_warning(folder: Path) -> None:
    assert problems(folder, "Orders", "2", YESTERDAY) == [
        (
            f"evalmeta.toml:2:3: warning: the quarantine of case 2 of Orders ended on {YESTERDAY}, so its result "
            "counts again [quarantine-ended] Remove the quarantine, or give it a later day."
        )
    ]


def test_validate_shows_what_is_wrong_with_quarantines_and_stays_valid(folder: Path) -> None:
    problems(folder, "Orders", "3", YESTERDAY)
    quarantine = f"  quarantine: {{reason: flaky, until: {YESTERDAY}}}\n"
    (folder / "tests" / "desk.yaml").write_text(SPEC + quarantine)
    found = validate()
    assert [
        (problem.code, str(problem.location)) for problem in found.problems if problem.code.startswith("quarantine")
    ] == [
        ("quarantine-case", "evalmeta.toml:2:3"),
        ("quarantine-ended", "evalmeta.toml:2:3"),
        ("quarantine-ended", "tests/desk.yaml:3"),
    ]
    assert found.is_valid


def test_an_ended_quarantine_in_a_table_has_the_line_of_its_row(folder: Path) -> None:
    row = f'"{{""reason"": ""flaky"", ""until"": ""{YESTERDAY}""}}"'
    (folder / "tests" / "more.csv").write_text(f"input,contains,quarantine\nWho?,me,\nHow?,so,{row}\n")
    (folder / "tests" / "desk.yaml").write_text("subject: a:b\ncases: more.csv\n")
    [problem] = validate([folder / "tests" / "desk.yaml"]).problems
    assert (problem.code, str(problem.location)) == ("quarantine-ended", "tests/more.csv:3")
