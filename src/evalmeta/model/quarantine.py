"""Quarantine: known flaky or broken cases that are run and shown, and count again after a date.

Dates are days in UTC. Whether a quarantine has ended is decided by the day on which its run started, and recorded with
each case result, so that a run keeps its verdict whenever it is resumed, rescored or reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.model.problem import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.problem import Location

    Key = int | str


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Quarantine(NamedTuple):
    """The quarantine of one case.

    Attributes:
        reason: why its result does not count, for people.
        until: the last day on which it does not count.
        has_ended: whether the run of the case started after that day, so that its result counts.
    """

    reason: str
    until: date
    has_ended: bool = False

    def on(self, day: date) -> Quarantine:
        """Return the quarantine as it is on a day."""
        return self._replace(has_ended=day > self.until)


def day_of(seconds: float) -> date:
    """Return the day in UTC of a time in seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).date()


def today() -> date:
    """Return the day in UTC."""
    return datetime.now(UTC).date()


def parse_day(text: str) -> date | None:
    """Return a day such as 2027-01-31; None if the text is not one."""
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def end_fault(until: date) -> str:
    """Return why a quarantine must not end on a day; empty if it may."""
    latest = today() + timedelta(days=limits.MAX_QUARANTINE_DAYS)
    return f"{until} is more than {limits.MAX_QUARANTINE_DAYS} days away; the latest is {latest}" * (until > latest)


_NONE: Final[Mapping[Key, Quarantine]] = {}


@dataclass(frozen=True, slots=True)
class Quarantines:
    """The quarantines of the cases of one run.

    Attributes:
        day: the day on which the run started.
        listed: those that the project's settings list for the test, by the number, the label or the utterance of the
            case.
    """

    day: date
    listed: Mapping[Key, Quarantine] = field(default_factory=lambda: _NONE)

    def find(self, own: Quarantine | None, *keys: Key) -> Quarantine | None:
        """Return the quarantine of a case on this day: its file's own or a listed one, whichever ends later.

        The keys of the case are its number, its label and its utterances.
        """
        known = [quarantine for quarantine in (own, *map(self.listed.get, keys)) if quarantine is not None]
        return max(known, key=lambda quarantine: quarantine.until).on(self.day) if known else None


def names_of_test(test: str, kind: str) -> frozenset[str]:
    """Return what the settings may call a test: the API name of a definition, or the path of another file."""
    file = PurePath(test).name
    return frozenset({test, f"{kind}:{test}", file, file.split(".", 1)[0]})


def ended_problem(location: Location, case: str, until: date) -> Problem:
    """Return the warning that the quarantine of a case has ended."""
    message = f"the quarantine of {case} ended on {until}, so its result counts again"
    hint = "Remove the quarantine, or give it a later day."
    return Problem("quarantine-ended", Severity.WARNING, location, message, hint)
