from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.api.agent_tests import read_test
from evalmeta.model.evaluation import Turn
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest

FEW = 12


def read_files(folder: Path, count: int) -> list[FileTest]:
    """Read files with three cases each."""
    for number in range(count):
        rows = (f'{{"input": "kept {number} {place}", "contains": "x"}}' for place in range(3))
        (folder / f"{number}.jsonl").write_text("\n".join(rows))
    project = find_project(folder, or_folder=True)
    return [read_test(project, folder / f"{number}.jsonl", subject="desk:answer") for number in range(count)]


def utterances(test: FileTest) -> list[str]:
    return [case.turns[0].utterance for case in test.evaluation.cases]


@pytest.mark.slow
def test_tests_of_many_files_keep_the_cases_of_few_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REMEMBERED_CASES", FEW)
    tests = read_files(tmp_path, 20)

    gc.collect()
    kept = [one for one in gc.get_objects() if isinstance(one, Turn) and one.utterance.startswith("kept ")]

    assert len(kept) <= FEW
    assert [utterances(test) for test in tests] == [[f"kept {n} {place}" for place in range(3)] for n in range(20)]
    assert {tuple(test.expectations.items()) for test in tests} == {(("contains", 3),)}


def test_cases_that_are_read_again_are_those_of_the_file_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_REMEMBERED_CASES", 3)
    first, *_ = read_files(tmp_path, 2)
    before = first.path.read_text()

    first.path.write_text('{"input": "new", "contains": "x"}')
    assert utterances(first) == ["new"]
    first.path.write_text(before)
    assert utterances(first) == [f"kept 0 {place}" for place in range(3)]
