from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.spending import (
    PICODOLLARS,
    Spent,
    cost_lines,
    costs_json,
    dollars_text,
    merged,
    picodollars,
    total_of,
    usd_text,
)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (PICODOLLARS * 1_234, "$1,234.00"),
        (PICODOLLARS * 123 // 10, "$12.30"),
        (PICODOLLARS // 2, "$0.50"),
        (421_300_000, "$0.0004213"),
        (500_000_000, "$0.0005"),
        (1, "$0.000000000001"),
    ],
)
def test_amounts_have_cents_or_four_digits(amount: int, text: str) -> None:
    assert dollars_text(amount) == text


def test_a_million_amounts_have_an_exact_sum() -> None:
    row = Spent("agent", "m", replies=1, amount=picodollars(0.1) // 10**6)
    total = Spent("agent")
    for _ in range(1_000):
        total = total.plus(row)
    millions = Spent("agent", replies=10**6, amount=total.amount * 1_000)

    assert usd_text(millions.amount) == "0.1"
    assert sum(0.1 / 10**6 for _ in range(10**6)) != 0.1


@given(st.integers(0, 10**15))
def test_an_amount_survives_as_text(amount: int) -> None:
    assert picodollars(float(usd_text(amount))) == amount


ROWS = (
    Spent("agent", "a", replies=3, unknown=1, input=200, output=20, amount=PICODOLLARS),
    Spent("rater", "j", replies=2, input=700, output=90, cached=100, amount=PICODOLLARS // 4, reused=5),
)


def test_a_sum_with_unknown_parts_says_at_least() -> None:
    assert list(cost_lines(ROWS)) == [
        "cost of the agent (a): at least $1.00, 1 request without a price; 200 tokens in, 20 out",
        "cost of the rater (j): $0.25 (5 from the cache); 700 tokens in (100 of them cached), 90 out",
    ]


def test_what_has_no_price_is_unknown_and_never_0() -> None:
    rows = [Spent("agent", "a", replies=2, unknown=2, input=200, output=20)]

    assert list(cost_lines(rows)) == [
        "cost of the agent (a): unknown, 2 requests without a price; 200 tokens in, 20 out"
    ]
    assert costs_json(rows)["agent"] == {
        "usd": None,
        "isComplete": False,
        "replies": 2,
        "withoutPrice": 2,
        "reused": 0,
        "tokens": {"input": 200, "output": 20, "cached": 0},
    }


def test_nothing_is_said_of_agents_that_report_nothing() -> None:
    rows = [Spent("agent", replies=7, unknown=7)]

    assert (list(cost_lines(rows)), costs_json(rows)) == ([], {})


def test_recorded_answers_do_not_make_the_cost_of_others_worth_a_line() -> None:
    silent = Spent("agent", replies=18, unknown=18)

    assert list(cost_lines([silent, Spent("agent", reused=3)])) == []
    assert list(cost_lines([silent._replace(input=5), Spent("agent", reused=3)])) == [
        "cost of the agent: unknown, 18 requests without a price (3 recorded); 5 tokens in, 0 out"
    ]


def test_what_was_recorded_costs_nothing_and_is_said_to_be_recorded() -> None:
    assert list(cost_lines([Spent("agent", reused=3)])) == ["cost of the agent: $0.00 (3 recorded)"]


def test_rows_of_a_role_and_a_model_become_one() -> None:
    assert merged([*ROWS, *ROWS]) == tuple(row.plus(row) for row in ROWS)
    assert total_of([*ROWS, ROWS[0]._replace(model="b")], "agent").amount == 2 * PICODOLLARS
