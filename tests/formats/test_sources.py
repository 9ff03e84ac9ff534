from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import FormatError
from evalmeta.formats.sources import read_json

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


def paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], object]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(path, value), *(found for key, inner in pairs for found in paths(inner, (*path, key)))]


@given(values, st.sampled_from([None, 2]))
def test_every_value_is_found_where_it_stands(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    file = read_json(text.encode(), label="x.json")
    lines = text.split("\n")
    for path, inner in paths(value):
        line, column = file.place(path)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == inner


def test_the_lines_of_a_list_are_those_of_its_items() -> None:
    file = read_json(b'{"cases": [\n  {"a": [1,\n 2]},\n\n  3, "]"\n]}', label="x.json")
    assert file.lines_of(("cases",)) == [2, 5, 5]
    assert file.lines_of(()) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1,\n "b": }', "x.json:2:7: this is not valid JSON: "),
        (b"", "x.json:1:1: this is not valid JSON: "),
        (b"[" * 2000 + b"]" * 2000, "x.json:1"),
        (b'{"a": 1,\n "b\xc3\xa9": "\xff"}', "x.json:2:9: the file is not UTF-8 from here on"),
        ('{"a": 1}'.encode("utf-16"), "x.json:1:1: the file is UTF-16, not UTF-8"),
        (b'{"a": NaN}', "x.json:1:7: this is not valid JSON: "),
        (b'{"a": 1e999}', "x.json:1:7: this is not valid JSON: "),
        (b'{"a": "\\ud800"}', "x.json:1:"),
        (b'{"a": 1}\n{"a": 2}', "x.json:2:1: this is not valid JSON: "),
    ],
)
def test_what_is_no_json_is_told_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_json(data, label="x.json")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,\n "a": 2}', "x.json:2:2: the key 'a' is repeated"),
        ('{"a": [{"b": 1}, {"b": 1, "\\u0062" : 2}]}', "x.json:1:27: the key 'b' is repeated"),
        (
            '{"a": {"\\"}": "{"}, "\\"}": {"x": "x:"}, "\\"}": 1}',
            "x.json:1:41: the key '\"}' is repeated in one object",
        ),
    ],
)
def test_a_key_that_stands_twice_is_a_problem_with_its_place(text: str, place: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_json(text.encode(), label="x.json")
    assert str(caught.value).startswith(place)


@given(st.lists(st.tuples(texts, values), max_size=4), st.sampled_from([None, 2]))
def test_keys_are_told_to_stand_twice_exactly_when_they_do(pairs: list[tuple[str, object]], indent: int | None) -> None:
    inner = ", ".join(f"{json.dumps(key)} : {json.dumps(value, indent=indent)}" for key, value in pairs)
    data = f'[{{"a": {{{inner}}}}}]'.encode()
    if len(dict(pairs)) == len(pairs):
        assert read_json(data, label="x.json").value == [{"a": dict(pairs)}]
        return
    with pytest.raises(FormatError, match="is repeated"):
        read_json(data, label="x.json")


def test_values_are_found_in_any_order_beside_the_first_line_of_the_file() -> None:
    file = read_json(b'{"a": [\n 1,\n {"d":\n 2, "b": 3}],\n "c": 4}', label="x.jsonl", first_line=5)
    wanted = {
        ("a", 1, "b"): (8, 10),
        ("c",): (9, 7),
        ("a", 0): (6, 2),
        (): (5, 1),
        ("a", 7): (5, 7),
        ("a", "b"): (5, 7),
    }
    assert {path: file.place(path) for path in wanted} == wanted


def test_integers_of_more_than_64_bits_keep_their_digits() -> None:
    assert read_json(b'{"id": 1180591620717411303425}', label="a.json").value == {"id": "1180591620717411303425"}
