"""What the newest results of tests are compared with: an earlier run of each, chosen by a word, a time or a run."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from evalmeta.api.runs.baselines import open_baseline
from evalmeta.api.runs.finding import is_run_id, is_run_name, runs_named
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.run import Verdict
from evalmeta.package.files import shown
from evalmeta.store.run_lists import ListedRun, distinct_values, find_listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evalmeta.model.comparison import KnownTests
    from evalmeta.model.login import User
    from evalmeta.package.project import Project
    from evalmeta.store.database import Database

    Choose = Callable[[Sequence[ListedRun]], ListedRun | None]

WORDS: Final = {
    "yesterday": "before the day of the newest run",
    "previous": "the previous run",
    "green": "the last run that passed",
    "branch": "the same branch",
    "main": "main",
}
"""The words for a base, with their titles."""
_MAINS: Final = ("main", "master")
_AGO: Final = re.compile(r"(\d{1,4})([hdw])")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Base:
    """What tests are compared with.

    Attributes:
        label: what it is, in words.
        choose: returns which of a test's runs of all cases, the newest last, it is compared with; None for none.
        missing: why a test has none.
        until: when runs of some cases belong to it at the latest, in seconds since the epoch.
        needs_verdicts: whether the choice depends on the verdicts of the runs.
        known: the tests of a baseline; None for runs.
    """

    label: str
    choose: Choose = lambda _: None
    missing: str = "it did not run before"
    until: float = math.inf
    needs_verdicts: bool = False
    known: KnownTests | None = None


def day_of(started: float) -> float:
    """Return when the day of a time began (UTC), in seconds since the epoch."""
    return datetime.fromtimestamp(started, UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def find_base(
    project: Project, database: Database, text: str, *, newest: float, now: float, user: User | None = None
) -> Base:
    """Return the base that a text means.

    It is a word of `WORDS`, a number of hours, days or weeks (`3d`), a day or a time, a run or its name, a branch, or
    the file of a baseline. `newest` is when the newest run started. Users who are not admins cannot name files.
    """
    if text in {"", *WORDS}:
        return _of_word(text, newest)
    if (time := _time_of(text, now)) is not None:
        return _before(f"the last runs before {_moment(time)}", time)
    is_admin = user is None or user.is_admin
    if is_run_id(text) or (is_admin and is_run_name(text)):
        return _of_run(project, database, text, user)
    if text in distinct_values(database, "branch", user=user):
        return _on_branch(text)
    path = project.root / text
    if is_admin and _is_file_in(project.root, path):
        known = open_baseline(project, path).tests
        return Base(f"the baseline {shown(path)}", missing="it is not in the baseline", known=known)
    raise UsageError(
        f"{text[:100]!r} is not a word, a time, a run, a branch or a baseline to compare with",
        actions=[f"Use one of {', '.join(WORDS)}; 3d, 2026-11-25, the id of a run, or a branch."],
    )


def _of_word(word: str, newest: float) -> Base:
    if word == "previous":
        return Base("the previous run of each test", lambda runs: runs[-2] if len(runs) > 1 else None)
    if word == "green":
        return Base(
            "the last run of each test that passed", _last_green, missing="no earlier run passed", needs_verdicts=True
        )
    if word in {"branch", "main"}:
        return _on_branch("" if word == "branch" else word)
    start = day_of(newest)
    return _before(f"the last runs before {_day(start)}", start)


def _is_file_in(root: Path, path: Path) -> bool:
    return path.suffix == ".json" and path.resolve().is_relative_to(root.resolve()) and path.is_file()


def _before(label: str, time: float) -> Base:
    def choose(runs: Sequence[ListedRun]) -> ListedRun | None:
        earlier = [run for run in runs if run.started < time]
        same = [run for run in earlier if run.branch == runs[-1].branch]
        return next(iter((same or earlier)[-1:]), None)

    return Base(label, choose, until=time)


def _last_green(runs: Sequence[ListedRun]) -> ListedRun | None:
    return next((run for run in reversed(runs[:-1]) if run.verdict is Verdict.PASS), None)


def _on_branch(name: str) -> Base:
    def choose(runs: Sequence[ListedRun]) -> ListedRun | None:
        names = (runs[-1].branch,) if not name else _MAINS if name in _MAINS else (name,)
        return next((run for run in reversed(runs[:-1]) if run.branch in names), None)

    label = f"the last run of each test on {name or 'the same branch'}"
    return Base(label, choose, missing=f"it did not run before on {name or 'this branch'}")


def _of_run(project: Project, database: Database, text: str, user: User | None) -> Base:
    ids = [run.id for run in runs_named(project, text)] if is_run_name(text) else [text]
    found = [run for run_id in ids if (run := find_listed(database, run_id, user=user))]
    if not found:
        raise NotFound(f"run {text!r} cannot be found", actions=["List the runs: evalmeta test history"])
    chosen, suites = {run.id for run in found}, {run.suite for run in found if run.suite}
    start = max(run.started for run in found)

    def choose(runs: Sequence[ListedRun]) -> ListedRun | None:
        own = [run for run in runs if run.id in chosen or run.suite in suites]
        return next(iter((own or [run for run in runs if run.started <= start])[-1:]), None)

    return Base(f"run {text}" if len(found) == 1 else f"the runs of {text}", choose, until=start)


def _time_of(text: str, now: float) -> float | None:
    """Return the time that a text means, in seconds since the epoch; None if it is not a time."""
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}).total_seconds()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _day(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%d %B %Y").lstrip("0")


def _moment(time: float) -> str:
    return f"{_day(time)} {datetime.fromtimestamp(time, UTC):%H:%M} (UTC)"
