"""Replacing what one check of a test spec expects, while all other bytes of the file stay the same."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from evalmeta.errors import FormatError
from evalmeta.model.checks import WHOLE_ANSWERS
from evalmeta.model.expectations import ACTIONS, OPERATORS, OUTCOME, TOPIC, canonical_name, parse_actions

if TYPE_CHECKING:
    from typing import NoReturn

    from yaml.nodes import Node

    from evalmeta.model.definition import Expectation


_KEYS: Final = {
    TOPIC: ("expectedTopic", "topic"),
    ACTIONS: ("expectedActions", "actions"),
    OUTCOME: ("expectedOutcome",),
    **{name: (name,) for name in WHOLE_ANSWERS},
}
# A text that YAML 1.1 and 1.2 read as itself without quotes: words that begin with a letter.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?: [A-Za-z0-9_.,]+)*", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
# YAML 1.2, section 5.1; NEL, LS and PS are line ends in YAML 1.1.
_UNPRINTABLE: Final = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def replace_expected(
    data: bytes, *, label: str, number: int, turn: int, expectation: Expectation, place: int, value: str
) -> bytes:
    """Return the bytes of a test spec, which `read_spec` has accepted, in which one check expects another value.

    `number` is that of the test case; `turn` and `place`, the check's index in its turn, count from 0. The value of
    actions is their list as `render_actions` writes it. Raise FormatError if the value is not in one place of the file.
    """
    text = data.decode()
    mark = len(text) - len(text.removeprefix("\ufeff"))
    root = yaml.compose(text[mark:], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    case = _case(root, number, label)
    case = _items(_value(case, "turns"))[turn] if _value(case, "turns") else case
    edit = _Edit(text, mark, label)
    if (name := canonical_name(expectation.name)) in OPERATORS:
        return edit.replace(*_expected_parameter(case, place, label, line=_line(case)), value)
    pair = next((pair for key in _KEYS.get(name, ()) if (pair := _pair(case, key))), None)
    if pair is None:
        _refuse(label, _line(case), f"the test case does not have its own key for {name}; it is in defaults")
    return edit.replace(*pair, value, items=parse_actions(value) if name == ACTIONS else None)


class _Edit:
    """The text of a file, and where its nodes begin."""

    def __init__(self, text: str, shift: int, label: str) -> None:
        self._text = text
        self._shift = shift
        self._label = label

    def replace(self, key: Node, node: Node, value: str, *, items: tuple[str, ...] | None = None) -> bytes:
        start = node.start_mark.index + self._shift
        # The end of a block list is after the comments that follow it.
        last = node.value[-1] if isinstance(node, SequenceNode) and node.value and not node.flow_style else node
        old = self._text[start : last.end_mark.index + self._shift].rstrip()
        if old[:1] in {"&", "!", "*"} or start < key.end_mark.index:
            _refuse(self._label, _line(node), "the value has an anchor, an alias or a tag")
        end = start + len(old)
        if isinstance(node, ScalarNode):
            can_be_plain = not node.style and not self._is_json
            is_text = items is None or (len(items) == 1 and old)
            written = (
                _text(items[0] if items else value, can_be_plain=can_be_plain) if is_text else self._flow(items or ())
            )
            written = f" {written}" if self._text[start - 1 : start] == ":" else written
        elif isinstance(node, SequenceNode) and items is not None:
            start, written = self._list(key, node, start, old, items)
        else:
            _refuse(self._label, _line(node), "the value is not a text")
        return (self._text[:start] + written + self._text[end:]).encode()

    def _flow(self, items: tuple[str, ...]) -> str:
        return "[" + ", ".join(_text(item, can_be_plain=not self._is_json) for item in items) + "]"

    def _list(self, key: Node, node: SequenceNode, start: int, old: str, items: tuple[str, ...]) -> tuple[int, str]:
        """Return where the new list begins, and its text."""
        if "#" in old:
            _refuse(self._label, _line(node), "the list may have comments, which would be lost")
        if node.flow_style:
            return start, self._flow(items)
        if not items:
            return key.end_mark.index + self._shift, ": []"
        line_end = "\r\n" if "\r\n" in self._text else "\n"
        between = f"{line_end}{' ' * node.start_mark.column}- "
        return start, "- " + between.join(_text(item, can_be_plain=True) for item in items)

    @property
    def _is_json(self) -> bool:
        return self._text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def _case(root: Node | None, number: int, label: str) -> Node:
    cases = [item for key in ("testCases", "cases") for item in _items(_value(root, key))]
    mappings = [case for case in cases if isinstance(case, MappingNode)]
    if number > len(mappings):
        _refuse(label, 1, f"test case {number} is in another file")
    return mappings[number - 1]


def _expected_parameter(case: Node, place: int, label: str, *, line: int) -> tuple[Node, Node]:
    criteria = _items(_value(case, "customEvaluations"))
    if place >= len(criteria):
        _refuse(label, line, "the test case does not have its own custom evaluation; it is in defaults")
    named = ((_value(item, "name"), item) for item in _items(_value(criteria[place], "parameters")))
    expected = (node for name, node in named if isinstance(name, ScalarNode) and name.value == "expected")
    pair = _pair(next(expected, None), "value")
    if pair is None:
        _refuse(label, _line(criteria[place]), "the custom evaluation has no expected value")
    return pair


def _items(node: Node | None) -> list[Node]:
    return node.value if isinstance(node, SequenceNode) else []


def _value(node: Node | None, key: str) -> Node | None:
    pair = _pair(node, key)
    return pair[1] if pair else None


def _pair(node: Node | None, key: str) -> tuple[Node, Node] | None:
    pairs: list[tuple[Node, Node]] = node.value if isinstance(node, MappingNode) else []
    return next((pair for pair in pairs if pair[0].value == key), None)


def _text(value: str, *, can_be_plain: bool) -> str:
    r"""Return a scalar; in double quotes, it is also a JSON string, except for `\Uxxxxxxxx`."""
    if can_be_plain and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", quoted)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refuse(label: str, line: int, reason: str) -> NoReturn:
    way_out = f"Edit {label}, line {line}, with a text editor."
    raise FormatError(f"{label}:{line}: the expected value cannot be replaced: {reason}", actions=[way_out])
