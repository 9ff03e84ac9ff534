from __future__ import annotations

import pytest

from evalmeta.model.problem import Location, Problem, Severity


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (Location("a.xml"), "a.xml"),
        (Location("a.xml", 3), "a.xml:3"),
        (Location("a.xml", 3, 7), "a.xml:3:7"),
        (Location("a.xml", 0, 7), "a.xml"),
    ],
)
def test_a_place_leaves_out_what_is_unknown(location: Location, text: str) -> None:
    assert str(location) == text


def test_places_are_in_the_order_of_the_file() -> None:
    places = [Location("a", 1, 2), Location("a", 2, 1), Location("a", 10, 1), Location("b")]
    assert sorted(places[2:] + places[:2]) == places


def test_a_problem_is_one_line() -> None:
    problem = Problem("history-order", Severity.ERROR, Location("a.xml", 3, 7), "it is wrong", "Make it right.")
    assert str(problem) == "a.xml:3:7: error: it is wrong [history-order]"


@pytest.mark.parametrize(("severity", "stops"), [(Severity.ERROR, True), (Severity.WARNING, False)])
def test_only_an_error_stops_a_deployment(severity: Severity, stops: bool) -> None:  # noqa: FBT001 - a table's column
    assert Problem("c", severity, Location("a"), "m").is_error is stops
