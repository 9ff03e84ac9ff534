from __future__ import annotations

import math

import orjson
import pytest

from evalmeta import limits
from evalmeta.model.json_value import is_too_deep, plain_value, read_json

MOST = limits.MAX_JSON_DEPTH


@pytest.mark.parametrize("ends", [("[", "]"), ('{"a":', "}"), ("[1,", ",2]")])
@pytest.mark.parametrize("innermost", ["[]", "{}", '["["]'])
def test_levels_are_counted_up_to_the_limit(ends: tuple[str, str], innermost: str) -> None:
    for levels, too_deep in ((MOST, False), (MOST + 1, True), (MOST + 300, True)):
        nested = ends[0] * (levels - 1) + innermost + ends[1] * (levels - 1)
        assert is_too_deep(orjson.loads(nested)) is too_deep


@pytest.mark.parametrize("value", [None, 1, "[" * 1_000, [], {}, [[], {"a": {}}] * 1_000])
def test_what_is_flat_is_not_too_deep(value: object) -> None:
    assert not is_too_deep(value)


@pytest.mark.parametrize("number", [0, -(2**63), 2**63, 2**64 - 1, 1_700_000_000_000_000_000])
def test_integers_of_64_bits_are_read_as_numbers(number: int) -> None:
    assert read_json(f'{{"a": [{number}]}}') == {"a": [number]}


@pytest.mark.parametrize("digits", [str(2**64), str(2**64 + 1), str(-(2**63) - 1), "1" * 300])
def test_longer_integers_are_read_as_their_digits(digits: str) -> None:
    for source in (f'{{"a": [{digits}, 1.5]}}', f'{{"a": [{digits}, 1.5]}}'.encode()):
        value = read_json(source)
        assert value == {"a": [digits, 1.5]}
        assert read_json(orjson.dumps(value)) == value


@pytest.mark.parametrize("source", ["[NaN, 12345678901234567890123]", "[12345678901234567890123", '"\\ud800"', ""])
def test_only_valid_json_is_read(source: str) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        read_json(source)


def test_long_digits_in_texts_and_fractions_stay() -> None:
    assert read_json('{"12345678901234567890123": "12345678901234567890123", "b": 0.12345678901234567890123}') == {
        "12345678901234567890123": "12345678901234567890123",
        "b": 0.12345678901234567890123,
    }


def test_what_is_too_deep_is_still_read() -> None:
    nested = "[" * (MOST + 700) + "12345678901234567890123" + "]" * (MOST + 700)
    assert is_too_deep(read_json(nested))


def test_what_json_cannot_hold_becomes_its_text_and_the_rest_stays() -> None:
    endless: list[object] = []
    endless.append(endless)

    assert plain_value({"kept": [1, "a"], "set": {1}, "nan": math.nan}) == {"kept": [1, "a"], "set": "{1}", "nan": None}
    assert plain_value(endless) == "[[...]]"
