"""Of the same opinions of a judge, evalmeta makes the scores and verdicts of google-adk, and the same output file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from journeys.adk.adk_project import copy_project, run_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_each_row_of_the_table_has_the_score_and_verdict_of_google_adk(tmp_path: Path) -> None:
    project = copy_project(tmp_path)
    done = run_in(project, "python", "judged_table.py")

    assert done.returncode == 0, done.stdout + done.stderr
    table = json.loads((project / "table.json").read_text())
    assert {row["original"]["eval_status"] for row in table} == {"PASSED", "FAILED"}
    assert {row["original"]["failed"] for row in table} == {True, False}
    for row in table:
        assert row["ours"] == row["original"], row["samples"]
