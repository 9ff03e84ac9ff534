from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from evalmeta import limits
from evalmeta.model.quarantine import Quarantine, Quarantines, day_of, end_fault, names_of_test, parse_day, today
from evalmeta.model.run import CaseResult, Verdict

END = date(2027, 1, 31)
LISTED = Quarantine("flaky since the move", END)


@pytest.mark.parametrize(
    ("day", "is_quarantined"), [(END - timedelta(days=1), True), (END, True), (END + timedelta(days=1), False)]
)
def test_a_quarantine_lasts_to_the_end_of_its_last_day(day: date, *, is_quarantined: bool) -> None:
    found = Quarantines(day, {1: LISTED}).find(None, 1)
    result = CaseResult(1, 1, "Hi", Verdict.FAILURE, 0.0, 0.0, quarantine=found)
    assert (result.is_quarantined, found.has_ended) == (is_quarantined, not is_quarantined)


def test_days_are_days_in_utc() -> None:
    last_second = datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert (day_of(last_second), day_of(last_second + 1)) == (END, END + timedelta(days=1))


@pytest.mark.parametrize("key", [1, "late", "Where is it?"])
def test_a_listed_case_is_known_by_number_label_or_utterance(key: int | str) -> None:
    quarantines = Quarantines(END, {key: LISTED})
    assert quarantines.find(None, 1, "late", "Where is it?") == LISTED
    assert quarantines.find(None, 2, "", "Who?") is None


def test_of_two_quarantines_the_later_one_counts() -> None:
    own = Quarantine("known", END - timedelta(days=9))
    assert Quarantines(END, {1: LISTED}).find(own, 1) == LISTED
    assert Quarantines(END, {1: own}).find(LISTED, 1) == LISTED


@pytest.mark.parametrize("text", ["", "soon", "2027-1-31", "20270131", "2027-02-30", "2027-01-31T00:00", "2027-W04-7"])
def test_only_a_whole_date_is_a_day(text: str) -> None:
    assert parse_day(text) is None


def test_an_end_is_at_most_a_year_away() -> None:
    latest = today() + timedelta(days=limits.MAX_QUARANTINE_DAYS)
    assert end_fault(latest) == ""
    assert end_fault(latest + timedelta(days=1)) == (
        f"{latest + timedelta(days=1)} is more than 366 days away; the latest is {latest}"
    )


def test_the_names_of_a_test_are_those_that_commands_take() -> None:
    assert names_of_test("tests/desk.yaml", "X") == {"tests/desk.yaml", "X:tests/desk.yaml", "desk.yaml", "desk"}
    assert names_of_test("Desk", "AiEvaluationDefinition") == {"Desk", "AiEvaluationDefinition:Desk"}
