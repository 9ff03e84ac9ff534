from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.references import compile_reference, resolve
from evalmeta.model.session_state import state_path, state_reference


@pytest.mark.parametrize(
    ("path", "reference"),
    [
        ("order.items[0].id", "$['order']['items'][0]['id']"),
        (" user:name ", "$['user:name']"),
        ("items[*].a-b", "$['items'][*]['a-b']"),
        ("totals.*", "$['totals'].*"),
        ("*.total", "$.*['total']"),
        ("it's", r"$['it\'s']"),
        ("$.order.id", "$.order.id"),
        ("$", "$"),
    ],
)
def test_the_beginning_of_a_path_can_be_left_out(path: str, reference: str) -> None:
    assert state_reference(path) == reference


def test_a_plain_name_is_a_path() -> None:
    assert [state_path(name) for name in ("status", "user:name", "cart.total", "$x")] == [
        "status",
        "user:name",
        "$['cart.total']",
        "$['$x']",
    ]


@given(st.text(max_size=20))
def test_every_name_has_a_path_that_finds_its_value(name: str) -> None:
    assert resolve(compile_reference(state_reference(state_path(name))), {name: 7, f"{name}!": 8}) == (7,)
