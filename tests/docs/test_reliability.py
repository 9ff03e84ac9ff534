from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import PROMISE, PROMISES

ROOT = Path(__file__).parents[2]
ROWS = {row: held for row, _, held in PROMISE.findall(PROMISES.read_text())}
# How many rows of each letter there are at least: a promise that was made is not taken back unnoticed.
LEAST = {"A": 13, "D": 8, "E": 7, "L": 3, "M": 1, "P": 3, "R": 9, "S": 13, "U": 5, "V": 82, "X": 4, "Z": 3}


def test_the_page_has_every_row_once() -> None:
    numbers: dict[str, list[int]] = {}
    for row, _, _ in PROMISE.findall(PROMISES.read_text()):
        numbers.setdefault(row[0], []).append(int(row[1:]))
    assert all(sorted(own) == list(range(1, len(own) + 1)) for own in numbers.values()), numbers
    assert [letter for letter, least in LEAST.items() if len(numbers.get(letter, ())) < least] == []


@pytest.mark.parametrize("row", sorted(ROWS))
def test_each_promise_names_tests_that_exist(row: str) -> None:
    tests = re.findall(r"`(tests/\S+?)::(\w+)`", ROWS[row])
    missing = [name for path, name in tests if f"def {name}(" not in (ROOT / path).read_text()]
    assert (bool(tests) or row in {"S4", "P2"}, missing) == (True, [])
