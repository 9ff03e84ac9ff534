from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import FormatError
from evalmeta.formats.yaml_source import YamlMapping, YamlScalar, YamlSequence, json_value, read_yaml


def refused(data: bytes) -> str:
    with pytest.raises(FormatError) as caught:
        read_yaml(data, label="f.yaml")
    return str(caught.value)


def test_nodes_know_their_places() -> None:
    root = read_yaml("\ufeffa:\n  - b\n  - 'c'\n".encode(), label="f").root

    assert isinstance(root, YamlMapping)
    [(key, items)] = root.entries
    assert (key, items) == (
        YamlScalar(1, 1, "a", is_plain=True),
        YamlSequence(2, 3, (YamlScalar(2, 5, "b", is_plain=True), YamlScalar(3, 5, "c", is_plain=False)), 3),
    )


def test_an_alias_repeats_what_its_anchor_names() -> None:
    root = read_yaml(b"- &x [1]\n- *x\n- &y 2\n- *y\n", label="f").root

    assert isinstance(root, YamlSequence)
    assert root.items[0] == root.items[1]
    assert root.items[2] == root.items[3]


@pytest.mark.parametrize("tag", ["!!str 7", "! 7"])
def test_a_tag_can_make_a_text_of_a_number(tag: str) -> None:
    assert read_yaml(tag.encode(), label="f").root == YamlScalar(1, 1, "7", is_plain=False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: [1\n", "f.yaml:2:1: this is not valid YAML: "),
        (b"a: b: c\n", "f.yaml:1:5: this is not valid YAML: mapping values are not allowed in this context"),
        (b"a: \x01\n", "f.yaml: this is not valid YAML: "),
        (b"a: 1\nb: \xff\n", "f.yaml:2: the file is not UTF-8"),
        (b"a: 1\n---\nb: 1\n", "f.yaml:2:1: a second document begins here"),
        (b"a: 1\nb: 1\na: 2\n", "f.yaml:3:1: the key 'a' is repeated"),
        (b"? [a]\n: 1\n", "f.yaml:1:3: a key is a list or a mapping"),
        (b"a: *x\n", "f.yaml:1:4: *x refers to an anchor that is not defined before it"),
        (b"a: &x [*x]\n", "f.yaml:1:8: *x refers to an anchor that is not defined before it"),
        (b"a: !!python/object:os.system x\n", "f.yaml:1:4: the tag 'tag:yaml.org,2002:python/object:os.system' is not"),
        (b"a: !x {}\n", "f.yaml:1:4: the tag '!x' is not read"),
        (b"[" * 40, "f.yaml:1:33: nested deeper than 32 levels"),
        (b"#" * 5_000_001, "f.yaml: the file is larger than 5,000,000 bytes"),
    ],
)
def test_what_is_not_valid_yaml_is_reported_with_its_place(data: bytes, message: str) -> None:
    assert refused(data).startswith(message)


def test_aliases_cannot_make_a_file_grow_without_bound() -> None:
    levels = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 30)]

    assert "more than 200,000 values, those behind aliases counted each time" in refused(b"\n".join(levels))


@given(st.binary(max_size=60) | st.text("ab:-?&*![]{}#|>'\"\n ,%@`~", max_size=40).map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    try:
        read_yaml(data, label="f")
    except FormatError as error:
        assert error.problems  # noqa: PT017 - either may happen


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r'{"a": "\ud83d\ude00"}', "\U0001f600"),
        (r'{"a": "\\ud83d\\ude00"}', r"\ud83d\ude00"),
        (r'{"a": "\\\uD83D\uDE00 \/ \u00e9"}', "\\\U0001f600 / \u00e9"),
        ('{\n\t"a":\t"b"\n}', "b"),
        (r"{a: '\ud83d\ude00'}", r"\ud83d\ude00"),
        (r"a: '\ud83d\ude00'", r"\ud83d\ude00"),
    ],
)
def test_json_is_read_as_json_with_all_its_escapes(text: str, read: str) -> None:
    value = read_yaml(text.encode(), label="a.yaml").value
    assert isinstance(value, dict)
    assert json_value(value["a"]) == read


@pytest.mark.parametrize("text", [r'{"a": "\ud83d"}', r'{"a": "\ud83d\ude00",, }', r'a: "\ud83d\ude00"'])
def test_half_a_pair_is_an_error(text: str) -> None:
    with pytest.raises(FormatError, match="not valid YAML"):
        read_yaml(text.encode(), label="a.yaml")
