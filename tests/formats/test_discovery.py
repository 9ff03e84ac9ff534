from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError
from evalmeta.formats.discovery import kind_of
from evalmeta.formats.document import SEARCHED, Reading
from evalmeta.formats.files import read_document
from evalmeta.formats.likeness import meant_key
from evalmeta.model.checks import CHECKS
from formats.discovery_corpus import FOREIGN, NEAR, VALID
from formats.specs import SPEC, STUDIO_SPEC

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", NEAR)
def test_a_test_with_a_mistake_is_a_test_and_its_reader_reports_the_mistake(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(NEAR[name].encode())
    assert kind_of(tmp_path / name).is_test
    with pytest.raises(FormatError):
        read_document(tmp_path / name, label=name, name=name, reading=Reading())


@pytest.mark.parametrize("name", VALID)
def test_a_test_without_a_mistake_is_a_test_and_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(VALID[name])
    assert kind_of(tmp_path / name).is_test
    assert [*read_document(tmp_path / name, label=name, name=name, reading=Reading()).evaluation.cases]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_program_is_not_a_test_and_has_a_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FOREIGN[name])
    assert kind_of(tmp_path / name).why_not.startswith("it ")


def test_the_corpus_has_at_least_60_files_of_both_kinds_in_every_format() -> None:
    assert min(len(NEAR), len(FOREIGN)) >= 60
    for files in (NEAR, FOREIGN):
        assert {f".{name.rpartition('.')[2].lower()}" for name in files} == {*SEARCHED}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", SPEC.encode()),
        ("a.yml", b"\xef\xbb\xbf" + STUDIO_SPEC.replace("\n", "\r\n").encode()),
        ("utf16.yaml", SPEC.encode("utf-16")),
        ("latin.yaml", "testCases:\n- input: Café\n  contains: é\n".encode("latin-1")),
        ("damaged.yaml", b"subjectType: AGENT\nsubjectName: [\ntestCase:\n"),
        ("german.csv", b"\xef\xbb\xbfUtterance;Expected Response\nHi;Hello\n"),
        ("excel.csv", "Utterance\tExpected Topic\nHi\tOrders\n".encode("utf-16")),
        ("damaged.csv", b'utterance,  expected   actions \n"Hi'),
        ("variables.csv", b"Context Variable CaseId,Utterance\n5,Hi\n"),
        ("payload.json", b'{"tests": [{"steps": [{"type": "agent.create_session", "id": "cs"},'),
        ("a.test.json", b"{"),
        ("a.evalset.json", b"{}"),
        ("empty.evalset.json", b""),
        ("large.yaml", b"# a comment\n" * 100_000 + SPEC.encode()),
        ("typo-after-much.yaml", b"description: |\n" + b"  a text\n" * 20_000 + b"testcases:\n- input: Hi\n"),
        ("large.jsonl", b'{"input": "Hi", "contians": "Hello"}\n' * 50_000),
        ("large-json.yaml", b'{"testcases": [' + b'{"input": "Hi", "contains": "Hello"},' * 50_000 + b"]}"),
        ("larger-json.yaml", b'{"testCases": [' + b'{"input": "Hi", "contians": "Hello"},' * 200_000 + b"]}"),
        ("large.json", b'{"testcases": [' + b'{"input": "Hi", "contains": "Hello"},' * 50_000 + b"]}"),
    ],
)
def test_tests_are_recognised_even_if_they_are_damaged_or_large(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert kind_of(tmp_path / name).is_test


@pytest.mark.parametrize("text", [f"cases:\n- input: Hi\n  {key}: 7\n" for key in CHECKS], ids=CHECKS)
def test_a_case_with_any_check_makes_a_spec(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert kind_of(tmp_path / "a.yaml").is_test


@pytest.mark.parametrize("text", ["subject: desk\ncases: data/q.csv\n", "cases: [a.jsonl]\n", '{"cases": "q.tsv"}'])
def test_a_spec_that_names_a_file_with_its_cases_is_a_test(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert kind_of(tmp_path / "a.yaml").is_test


def test_what_cannot_be_read_has_a_reason(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.json").symlink_to("missing.json")
    reasons = [kind_of(tmp_path / name).why_not for name in ("pipe.yaml", "folder.csv", "link.json")]
    assert [reason.partition("' ")[2] for reason in reasons] == [
        "is a pipe",
        "cannot be read: Is a directory",
        "cannot be found",
    ]


@pytest.mark.parametrize("text", ["[" * 100_000, "tests: " + "[" * 100_000, "a: &a [*a, *a]\ntests: *a\ninput: x\n"])
def test_hostile_yaml_is_not_a_test(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert kind_of(tmp_path / "a.yaml").why_not


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("contians", "contains"),
        ("contain", "contains"),
        ("Starts-With", "starts_with"),
        ("utterrance", "utterance"),
        ("subject_name", "subjectName"),
        ("testcase", "testCases"),
        ("containers", ""),
        ("contents", ""),
        ("output", "output"),
        ("cont", ""),
        ("import", ""),
    ],
)
def test_a_key_with_one_wrong_letter_is_recognised(word: str, meant: str) -> None:
    assert meant_key(word) == meant
