from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.store.database import full_id, next_ids, with_checksum

if TYPE_CHECKING:
    from evalmeta.store.database import Database


@pytest.mark.parametrize(
    ("id15", "id18"),
    [
        ("4KB000000000007", "4KB000000000007GAA"),
        ("0Af000000000001", "0Af000000000001CAA"),
        ("09S000000000004", "09S000000000004EAA"),
        ("00D000000000001", "00D000000000001EAA"),
        ("a" * 15, "a" * 15 + "AAA"),
        ("A" * 15, "A" * 15 + "555"),
    ],
)
def test_the_checksum_encodes_which_characters_are_capitals(id15: str, id18: str) -> None:
    assert with_checksum(id15) == id18


@given(st.text("abcXYZ019", min_size=15, max_size=15), st.text("abcXYZ019", min_size=15, max_size=15))
def test_ids_that_differ_in_case_differ_for_readers_that_ignore_case(one: str, other: str) -> None:
    assert (with_checksum(one).lower() == with_checksum(other).lower()) == (one == other)


def test_ids_count_up_for_each_prefix(database: Database) -> None:
    assert next_ids(database, "4KB") == ["4KB000000000001GAA"]
    assert next_ids(database, "0Af", 2) == ["0Af000000000001CAA", "0Af000000000002CAA"]
    assert next_ids(database, "4KB") == ["4KB000000000002GAA"]


def test_ids_of_a_failed_transaction_are_used_again(database: Database) -> None:
    def fail() -> None:
        with database.transaction():
            next_ids(database, "4KB")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert next_ids(database, "4KB") == ["4KB000000000001GAA"]


@pytest.mark.parametrize("text", ["", "4KB", "4KB000000000007GAA", "x" * 100])
def test_only_ids_of_15_characters_are_completed(text: str) -> None:
    assert full_id(text) == text
    assert full_id("4KB000000000007") == "4KB000000000007GAA"
