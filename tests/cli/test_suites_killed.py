from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples import at_most

if TYPE_CHECKING:
    from collections.abc import Callable

KILLER = Path(__file__).parent / "killed_suites.py"


@pytest.mark.slow
def test_suites_killed_in_their_first_two_seconds_are_completed_without_loss_or_repetition(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kills = at_most(60)
    command = [sys.executable, str(KILLER), str(tmp_path), str(kills), "1"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=1700).stdout)
    record_property(
        "said",
        "killed {kills} suites of 100 definitions in their first two seconds, {partial} before every test had a run: "
        "{lost} lost, {repeated} repeated, {missing} missing; at most {again} asked again; killed {early} more "
        "before they were saved".format(**said),
    )

    assert said["kills"] >= kills
    assert (said["lost"], said["repeated"], said["missing"], said["failed"]) == (0, 0, 0, 0)
    assert said["partial"] > 0
    # Nothing is asked before the suite is saved, and only what was in progress is asked again.
    assert said["unsaved"] == 0
    assert said["again"] <= 4
