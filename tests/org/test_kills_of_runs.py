from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

KILLER = Path(__file__).parent / "killed_worker.py"


@pytest.mark.sqlite  # `make faults` does the same on a shared store
@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_a_suite_killed_at_random_moments_loses_and_repeats_nothing_that_was_reported(
    tmp_path: Path, kills: int, record_property: Callable[[str, object], None]
) -> None:
    command = [sys.executable, str(KILLER), str(tmp_path), str(kills), "1"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)
    record_property(
        "said",
        "killed the workers of suites of {runs} runs with {results} results {kills} times: {lost} lost, "
        "{repeated} repeated, {torn} runs torn; at most {unreported} asked again".format(**said),
    )

    assert said["kills"] >= kills
    assert (said["lost"], said["repeated"], said["torn"]) == (0, 0, 0)
    # After a kill, only what was in progress is asked again: at most as many cases as the agent answers at once.
    assert said["too_many"] == 0
