from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.api.runs.case_lines import case_lines

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE = Path("aiEvaluationDefinitions/my_test_n1.aiEvaluationDefinition")


def test_a_case_is_found_by_its_number(copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    lines = case_lines(SAMPLE)
    assert (dict(lines), lines.get(3)) == ({1: 8, 2: 29}, None)


def test_a_file_is_read_when_a_line_is_needed(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    lines = case_lines(Path("later"))

    shutil.copy(SAMPLE, "later")
    assert lines[2] == 29


def test_a_file_that_cannot_be_read_has_no_lines(tmp_path: Path) -> None:
    assert not case_lines(tmp_path / "absent")
