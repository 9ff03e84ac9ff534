"""What tests are compared with: the run of each that a word, a time or a run chooses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.runs.change_bases import Base, day_of, find_base
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.login import User
from evalmeta.model.run import RunStatus
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import ListedRun
from org.parts import make_project, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.package.project import Project
    from evalmeta.store.database import Database

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC).timestamp()
HOUR = 3_600.0
USER = User("005000000000002AAA", "Ada", "ada@example.com")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


@pytest.fixture
def database(project: Project) -> Iterator[Database]:
    with open_database(project.store) as opened:
        yield opened


def listed(number: int, *, hours_ago: float, branch: str = "main", verdict: str = "FAILURE") -> ListedRun:
    return ListedRun(
        *("", "", f"run {number}", "Orders", "Agent", RunStatus.COMPLETED, NOW - hours_ago * HOUR, None, 1),
        *("", branch, None, "", "", "", ("", verdict), b"{}"),
    )


RUNS = (
    listed(1, hours_ago=50, verdict="PASS"),
    listed(2, hours_ago=30, branch="fix"),
    listed(3, hours_ago=20),
    listed(4, hours_ago=2, branch="fix"),
)


def base(project: Project, database: Database, text: str, *, user: User | None = None) -> Base:
    return find_base(project, database, text, newest=RUNS[-1].started, now=NOW, user=user)


@pytest.mark.parametrize(
    ("text", "chosen", "label"),
    [
        ("previous", "run 3", "the previous run of each test"),
        ("green", "run 1", "the last run of each test that passed"),
        ("branch", "run 2", "the last run of each test on the same branch"),
        ("main", "run 3", "the last run of each test on main"),
        ("", "run 2", "the last runs before 26 November 2026"),
        ("yesterday", "run 2", "the last runs before 26 November 2026"),
        ("25h", "run 2", "the last runs before 25 November 2026 11:00 (UTC)"),
        ("2d", "run 1", "the last runs before 24 November 2026 12:00 (UTC)"),
        ("1w", None, "the last runs before 19 November 2026 12:00 (UTC)"),
        ("2026-11-25T08:30:00+02:00", "run 2", "the last runs before 25 November 2026 06:30 (UTC)"),
        ("2026-11-25", "run 1", "the last runs before 25 November 2026 00:00 (UTC)"),
    ],
)
def test_a_word_or_a_time_chooses_an_earlier_run_of_the_same_branch_if_there_is_one(
    project: Project, database: Database, text: str, chosen: str | None, label: str
) -> None:
    found = base(project, database, text)
    run = found.choose(RUNS)
    assert (run and run.id, found.label) == (chosen, label)


@pytest.mark.parametrize("text", ["previous", "green", "branch", "main", "yesterday", "1h"])
def test_a_test_that_ran_only_once_is_compared_with_nothing(project: Project, database: Database, text: str) -> None:
    assert base(project, database, text).choose([listed(1, hours_ago=0)]) is None


def test_a_run_is_compared_with_itself_and_other_tests_with_their_last_run_before_it(
    project: Project, database: Database
) -> None:
    run_id = started(project, cases=1)
    found = base(project, database, run_id)
    assert found.label == f"run {run_id}"
    # It started after all of them.
    assert found.choose(RUNS) == RUNS[-1]
    with pytest.raises(NotFound, match="run '4KB00000000000ZGAA' cannot be found"):
        base(project, database, "4KB00000000000ZGAA")


def test_a_text_that_is_nothing_of_all_that_says_what_it_can_be(project: Project, database: Database) -> None:
    (project.root / "baseline.json").write_text("{}")
    for text, user in (("nonsense", None), ("missing.json", None), ("baseline.json", USER)):
        with pytest.raises(
            UsageError, match=f"'{text}' is not a word, a time, a run, a branch or a baseline"
        ) as caught:
            base(project, database, text, user=user)
        assert caught.value.actions[0].startswith("Use one of yesterday, previous, green, branch, main; 3d,")


def test_a_day_begins_at_midnight_in_utc() -> None:
    assert day_of(NOW) == datetime(2026, 11, 26, tzinfo=UTC).timestamp()
    assert day_of(day_of(NOW)) == day_of(NOW)
