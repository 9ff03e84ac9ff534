"""A served org keeps what it promised to several clients at once; `make thorough-long` asks for much longer."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.package.project import find_project
from org.parts import SETTINGS, asked, opened_of
from soak.run import soak

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR = 3600
WRONG_CLOCK = Path(__file__).parent / "wrong_clock"


@pytest.mark.slow
def test_a_served_org_that_many_use_loses_nothing_while_workers_are_killed(tmp_path: Path) -> None:
    outcome = soak(tmp_path, seconds=10, runs=10, kill_every=2)

    assert outcome.wrong == []
    assert min(outcome.counts[each] for each in ("deployments", "retrieves", "runs", "pages", "workers killed")) > 0


@contextmanager
def jumping(clock: Path) -> Iterator[None]:
    """Set a clock forward and back by an hour, several times a second."""
    stopped = threading.Event()

    def jump() -> None:
        for hours in itertools.cycle((1, 0, -1, 0)):
            after = clock.with_suffix(".new")
            after.write_text(str(hours * HOUR))
            after.replace(clock)
            if stopped.wait(0.3):
                return

    clock.write_text("0")
    jumper = threading.Thread(target=jump)
    jumper.start()
    try:
        yield
    finally:
        stopped.set()
        jumper.join()


@pytest.mark.slow
def test_with_a_clock_that_jumps_by_an_hour_nothing_is_lost_asked_twice_or_late(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    with jumping(clock):
        outcome = soak(
            tmp_path,
            seconds=10,
            runs=12,
            kill_every=None,
            settings=f"[run]\nrate_limit = 50\n{SETTINGS}",
            environment={"PYTHONPATH": str(WRONG_CLOCK), "CLOCK": str(clock)},
        )

    assert outcome.wrong == []
    project = find_project(tmp_path / "project")
    with opened_of(project) as org:
        rows = org.database.query("SELECT run.status, count(*) FROM run JOIN case_result ON run_id = id GROUP BY 1")
        results = Counter(dict(rows))
        ended = [job.ended for job in org.jobs.history() if job.status == "Succeeded"]
        deployed = org.database.query("SELECT max(modified_at) FROM component")
    canceled = outcome.counts["runs canceled"]
    assert 0 <= len(asked(project)) - results["COMPLETED"] <= 5 * canceled
    assert ended == sorted(set(ended))
    assert deployed[0][0] <= max(ended)
