from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from evalmeta.formats.discovery import is_spec, is_table, is_test, may_be_spec
from evalmeta.formats.short_forms import SHORT_FORMS
from formats.specs import SPEC, STUDIO_SPEC

if TYPE_CHECKING:
    from pathlib import Path

FOREIGN = {
    "ci.yml": "name: CI\non: [push]\njobs:\n  test:\n    steps:\n      - run: evalmeta test run\n",
    "docker-compose.yml": "services:\n  web:\n    image: web\n",
    "chart.yaml": "apiVersion: v2\nname: desk\ndescription: A chart\n",
    "agentSpec.yaml": "agentType: customer\ncompanyName: Desk\ntopics:\n  - name: Orders\n",
    "cases.yaml": "name: other tool\ntestCases:\n  - input: 1\n",
    "nested.yaml": "tests:\n  testCases: []\n  subjectName: x\n  subjectType: AGENT\n",
    "sales.csv": "date,amount\n2026-01-01,3\n",
    "training.csv": "utterance,intent\nHello,greeting\n",
    "results.csv": "definition,run,case,utterance,answer,expected\nO,4KB,1,Hi,Hello,Hello\n",
    "empty.csv": "",
    "package.json": '{"name": "x", "testCases": [], "subjectName": "y"}',
    "rows.json": '[{"query": "a"}]',
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_programs_are_not_tests(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FOREIGN[name])
    assert not is_test(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", SPEC.encode()),
        ("a.yml", b"\xef\xbb\xbf" + STUDIO_SPEC.replace("\n", "\r\n").encode()),
        ("utf16.yaml", SPEC.encode("utf-16")),
        ("quoted.yaml", b"'subjectName': Desk\n\"testCases\":\n  - utterance: Hi\n"),
        ("damaged.yaml", b"subjectType: AGENT\nsubjectName: [\ntestCase:\n"),
        ("a.csv", b"Utterance,Expected Topic\nHi,Orders\n"),
        ("german.csv", b"\xef\xbb\xbfUtterance;Expected Response\nHi;Hello\n"),
        ("damaged.csv", b'utterance,  expected   actions \n"Hi'),
        ("variables.csv", b"Context Variable CaseId,Utterance\n5,Hi\n"),
        ("payload.json", b'{"tests": [{"steps": [{"type": "agent.create_session", "id": "cs"},'),
        ("a.test.json", b"{"),
        ("a.evalset.json", b"{}"),
    ],
)
def test_our_files_are_tests_even_if_they_are_damaged(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert is_test(tmp_path / name)


def test_only_the_beginning_of_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_bytes(b"# a comment\n" * 100_000 + SPEC.encode())
    assert not is_test(tmp_path / "large.yaml")
    assert is_spec(SPEC.encode() + b"\0" * 10)
    assert is_table(b"Utterance,Expected Topic" + b"\n\xff" * 10)


def test_a_pipe_and_a_folder_are_not_tests(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.csv").mkdir()
    assert not is_test(tmp_path / "pipe.yaml")
    assert not is_test(tmp_path / "folder.csv")


@pytest.mark.parametrize("text", ["testcases:\n", "- utterance: Hi\n", "{ subjectName: x }", "agentType: customer\n"])
def test_a_spec_with_mistakes_may_be_a_spec(text: str) -> None:
    assert may_be_spec(text.encode())
    assert not is_spec(text.encode())


OWN = {
    "testCases": "testCases:\n- input: Hi\n  contains: Hello\n",
    "flow": "cases: [{name: a, input: Hi, equals: Hello}]\n",
    "turns": "cases:\n- turns:\n  - utterance: Hi\n    topic: A\n",
    "file": "subject: desk\ncases: data/q.csv\n",
    "files": "cases: [a.jsonl]\n",
    **{key: f"testCases:\n- input: Hi\n  {key}: 7\n" for key in SHORT_FORMS},
}


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_a_spec_without_a_subject_is_recognised_by_its_cases(text: str) -> None:
    assert is_spec(text.encode())


@pytest.mark.parametrize(
    "text", ["cases:\n- inputs: {a: 1}\n  evaluators: [Contains]\n", "cases: 7\n", "input: a\nequals: b\n"]
)
def test_cases_of_other_programs_are_not_specs(text: str) -> None:
    assert not is_spec(text.encode())
