from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from evalmeta.store.database import open_database
from evalmeta.store.paces import Pace

if TYPE_CHECKING:
    from pathlib import Path

RESERVE = """
import sys
from pathlib import Path
from evalmeta.store.database import open_database
from evalmeta.store.paces import Pace
with open_database(Path(sys.argv[1])) as database:
    pace = Pace(database, "Agent", clock=lambda: 1000.0)
    print(*[pace.reserve(interval=0.5) for _ in range(50)])
"""


def test_slots_of_several_processes_are_never_closer_than_the_interval(tmp_path: Path) -> None:
    with open_database(tmp_path):
        command = [sys.executable, "-c", RESERVE, str(tmp_path)]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        slots = sorted(float(part) for process in processes for part in process.communicate()[0].split())
    assert slots[0] == 0.0
    assert len(slots) == 200
    assert {later - earlier for earlier, later in pairwise(slots)} == {0.5}


def test_a_pause_moves_the_next_slot_and_agents_have_slots_of_their_own(tmp_path: Path) -> None:
    with open_database(tmp_path) as database:
        pace = Pace(database, "A", clock=lambda: 1000.0)
        pace.pause(30)
        pace.pause(10)
        assert pace.pause_left() == 30
        assert [pace.reserve(interval=2) for _ in range(2)] == [30, 32]
        assert Pace(database, "B", clock=lambda: 1000.0).reserve(interval=2) == 0


@pytest.mark.parametrize("back", [10, 3_600, 1_000_000])
@pytest.mark.parametrize("interval", [0.1, 6])
def test_a_clock_that_is_set_back_changes_neither_the_pause_nor_the_interval(
    tmp_path: Path, back: float, interval: float
) -> None:
    with open_database(tmp_path) as database:
        before = Pace(database, "A", clock=lambda: 2_000_000.0)
        before.pause(30)
        before.reserve(interval=interval)
        after = Pace(database, "A", clock=lambda: 2_000_000.0 - back)
        assert after.pause_left() == 30
        assert [after.reserve(interval=interval) for _ in range(2)] == pytest.approx([30 + interval, 30 + 2 * interval])


def test_a_clock_that_is_set_forward_ends_a_pause_and_keeps_the_interval(tmp_path: Path) -> None:
    with open_database(tmp_path) as database:
        Pace(database, "A", clock=lambda: 1000.0).pause(30)
        after = Pace(database, "A", clock=lambda: 4600.0)
        assert [after.reserve(interval=2) for _ in range(2)] == [0, 2]


def test_slots_after_a_pause_keep_the_interval(tmp_path: Path) -> None:
    with open_database(tmp_path) as database:
        pace = Pace(database, "A", clock=lambda: 1000.0)
        pace.pause(60)
        assert [round(pace.reserve(interval=0.001), 3) for _ in range(3)] == [60, 60.001, 60.002]
