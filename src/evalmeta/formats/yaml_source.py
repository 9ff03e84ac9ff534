"""YAML files, read into nodes that know their lines, and written.

Nothing in a file is executed, and aliases cannot make it grow without bound. Scalars have the types of YAML 1.2
(Core Schema, section 10.3), as in the sf CLI: `yes` and `on` are texts. YAML 1.1 and 1.2 read what is written alike.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, cast

import orjson
import yaml
from yaml import events

from evalmeta import limits
from evalmeta.formats.diagnostics import Diagnostics, Record, foreign_character, unquoted

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_TAGS: Final = frozenset({None, "!", _TEXT_TAG})
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_UNSETTLED: Final = frozenset(_BOOLEANS) - {"true", "false"}
_NUMBER: Final = re.compile(
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
# Numbers that every reader writes back as they stand: JavaScript's integers end at 2**53.
_SETTLED: Final = re.compile(r"0|-?[1-9][0-9]{0,14}|-?(?:0|[1-9][0-9]{0,8})\.[0-9]{0,5}[1-9]")
_UTF8_MARK: Final = "\ufeff"
_PAIR: Final = re.compile(r"\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}")
# All escapes, so that the second of two backslashes begins none.
_ESCAPE: Final = re.compile(rf"(?P<pair>{_PAIR.pattern})|\\.")


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """A text, number, boolean or null; without quotes, `is_plain`, its text decides its type."""

    line: int
    column: int
    text: str
    is_plain: bool
    size: int = 1

    def __str__(self) -> str:
        if self.boolean is not None:
            return "a boolean"
        return "a number" if self.number is not None or self.is_unsettled else "a text"

    @property
    def is_null(self) -> bool:
        """Return whether it is null, also as an empty value."""
        return self.is_plain and self.text in _NULLS

    @property
    def boolean(self) -> bool | None:
        """Return its boolean value; None when it is something else."""
        return _BOOLEANS.get(self.text) if self.is_plain else None

    @property
    def integer(self) -> int | None:
        """Return its whole number; None when it is something else."""
        if not self.is_plain or len(self.text) > limits.MAX_NUMBER_CHARS or not _INTEGER.fullmatch(self.text):
            return None
        return int(self.text)

    @property
    def number(self) -> float | None:
        """Return its number, also a whole one; None when it is something else, or not finite."""
        if not self.is_plain or len(self.text) > limits.MAX_NUMBER_CHARS or not _NUMBER.fullmatch(self.text):
            return None
        try:
            number = float(self.text)
        except ValueError:
            return None
        return number if math.isfinite(number) else None

    @property
    def is_unsettled(self) -> bool:
        """Return whether it is a number or boolean that other programs may write differently, such as 007 or 1.0."""
        if not self.is_plain or _SETTLED.fullmatch(self.text):
            return False
        return self.text in _UNSETTLED or _NUMBER.fullmatch(self.text) is not None


@dataclass(frozen=True, slots=True)
class YamlSequence:
    """A list; `size` counts the nodes in it with itself, those behind an alias each time."""

    line: int
    column: int
    items: tuple[YamlNode, ...]
    size: int


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """Keys and values in the order of the file; a key comes once."""

    line: int
    column: int
    entries: tuple[tuple[YamlScalar, YamlNode], ...]
    size: int


YamlNode: TypeAlias = YamlScalar | YamlSequence | YamlMapping


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A YAML document."""

    root: YamlNode  # its nodes
    value: JsonValue  # the same as dicts, lists and scalars; null is None
    folder: Path = Path()  # to which the names of files in it are relative

    def place(self, path: Sequence[str | int], *, of_key: bool = False) -> tuple[int, int]:
        """Return the line and column, from 1, of the value at keys and indexes, or of its key."""
        node = key = self.root
        for step in path:
            if isinstance(node, YamlMapping):
                key, node = next(((key, value) for key, value in node.entries if key.text == step), (node, node))
            elif isinstance(node, YamlSequence) and isinstance(step, int):
                key = node = node.items[step]
        return (key.line, key.column) if of_key else (node.line, node.column)


def read_yaml(data: bytes, *, label: str, folder: Path | None = None) -> YamlFile:
    """Read a file with one YAML document, JSON too, without tags and repeated keys; raise FormatError with a place."""
    diagnostics = Diagnostics(label)
    builder = _Builder(diagnostics)
    try:
        # libyaml is twenty times as fast; not every build of PyYAML has it.
        for event in yaml.parse(_decoded(data, diagnostics), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        _refuse(diagnostics, "yaml-syntax", f"this is not valid YAML: {error.problem or error.context}", place)
    except yaml.YAMLError as error:
        _refuse(diagnostics, "yaml-syntax", f"this is not valid YAML: {str(error).splitlines()[0]}", (0, 0))
    root = builder.document()
    return YamlFile(root, _plain(root), folder or Path())


def peek_yaml(text: str) -> JsonValue:
    """Return the first document of a text: all scalars as texts, null for aliases; tags and repeated keys are allowed.

    Raise ValueError if it is not YAML.
    """
    around: list[list[JsonValue]] = [[]]
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            match event:
                case events.DocumentEndEvent():
                    break
                case events.ScalarEvent():
                    around[-1].append(event.value)
                case events.AliasEvent():
                    around[-1].append(None)
                case events.CollectionStartEvent():
                    around.append([])
                case events.CollectionEndEvent():
                    done = around.pop()
                    if isinstance(event, events.MappingEndEvent):
                        pairs = zip(done[::2], done[1::2], strict=True)
                        around[-1].append({key: value for key, value in pairs if isinstance(key, str)})
                    else:
                        around[-1].append(done)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    return around[0][0] if around[0] else None


def json_value(value: object) -> JsonValue:
    """Return a value of a record with Python's types instead of scalars."""
    if isinstance(value, dict):
        return {key: json_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_value(inner) for inner in value]
    if not isinstance(value, YamlScalar) or value.is_null:
        return None
    typed = (value.boolean, value.integer, value.number, value.text)
    return next(value for value in typed if value is not None)


def record_value(value: JsonValue) -> JsonValue:
    """Return a value of JSON as a record has it, with scalars; the reverse of `json_value`."""
    if isinstance(value, dict):
        return {key: record_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [record_value(inner) for inner in value]
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return cast("JsonValue", YamlScalar(0, 0, text, is_plain=not isinstance(value, str)))


def _plain(node: YamlNode) -> JsonValue:
    if isinstance(node, YamlMapping):
        return {key.text: _plain(value) for key, value in node.entries}
    if isinstance(node, YamlSequence):
        return [_plain(item) for item in node.items]
    return None if node.is_null else cast("JsonValue", node)


def _decoded(data: bytes, diagnostics: Diagnostics) -> str:
    if len(data) > limits.MAX_SPEC_BYTES:
        _refuse(diagnostics, "yaml-limit", f"the file is larger than {limits.MAX_SPEC_BYTES:,} bytes", (0, 0))
    try:
        return _without_pairs(data.decode().removeprefix(_UTF8_MARK))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _refuse(diagnostics, "yaml-encoding", "the file is not UTF-8", (line, 0), hint="Save it in UTF-8.")


def _without_pairs(text: str) -> str:
    r"""Return JSON with the escapes of YAML instead of pairs such as `\ud83d\ude00`, which YAML does not know."""
    if not _PAIR.search(text) or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return _ESCAPE.sub(_yaml_escape, text)


def _yaml_escape(escape: re.Match[str]) -> str:
    if not escape["pair"]:
        return escape[0]
    character: str = json.loads(f'"{escape[0]}"')
    return f"\\U{ord(character):08X}"


def _refuse(diagnostics: Diagnostics, code: str, message: str, place: tuple[int, int], *, hint: str = "") -> NoReturn:
    diagnostics.error(code, message, line=place[0], column=place[1], hint=hint)
    diagnostics.check()
    raise AssertionError  # pragma: no cover - check() has raised


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    line: int
    column: int
    anchor: str | None
    is_mapping: bool
    children: list[YamlNode]
    size: int = 1


class _Builder:
    """Make nodes from the parser's events without recursion, so that no nesting exhausts the stack."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._open: list[_Open] = [_Open(1, 1, None, is_mapping=False, children=[])]
        self._anchors: dict[str, YamlNode] = {}

    def document(self) -> YamlNode:
        [root, *_] = self._open[0].children or [YamlScalar(1, 1, "", is_plain=True)]
        return root

    def take(self, event: events.Event) -> None:
        match event:
            case events.ScalarEvent():
                self._check_tag(event)
                is_plain = not event.style and event.tag is None
                self._add(YamlScalar(*_place(event), event.value, is_plain), event, event.anchor)
            case events.CollectionStartEvent():
                self._check_tag(event)
                if len(self._open) > limits.MAX_YAML_DEPTH:
                    self._refuse(event, "yaml-limit", f"nested deeper than {limits.MAX_YAML_DEPTH} levels")
                is_mapping = isinstance(event, events.MappingStartEvent)
                self._open.append(_Open(*_place(event), event.anchor, is_mapping, []))
            case events.CollectionEndEvent():
                done = self._open.pop()
                node: YamlNode = YamlSequence(done.line, done.column, tuple(done.children), done.size)
                if done.is_mapping:
                    node = YamlMapping(done.line, done.column, tuple(self._entries(done.children)), done.size)
                self._add(node, event, done.anchor)
            case events.AliasEvent():
                if (target := self._anchors.get(event.anchor or "")) is None:
                    message = f"*{event.anchor} refers to an anchor that is not defined before it"
                    self._refuse(event, "yaml-alias", message)
                self._add(target, event, None)
            case events.DocumentStartEvent() if self._open[0].children:
                self._refuse(event, "yaml-documents", "a second document begins here", "One file has one test.")

    def _entries(self, children: list[YamlNode]) -> Iterator[tuple[YamlScalar, YamlNode]]:
        seen: set[str] = set()
        for key, value in zip(children[::2], children[1::2], strict=True):
            place = key.line, key.column
            if not isinstance(key, YamlScalar):
                _refuse(self._diagnostics, "yaml-key", "a key is a list or a mapping", place)
            if key.text in seen:
                _refuse(self._diagnostics, "yaml-key", f"the key {key.text!r} is repeated", place)
            seen.add(key.text)
            yield key, value

    def _add(self, node: YamlNode, event: events.Event, anchor: str | None) -> None:
        parent = self._open[-1]
        parent.size += node.size
        if parent.size > limits.MAX_SPEC_VALUES:
            message = f"more than {limits.MAX_SPEC_VALUES:,} values, those behind aliases counted each time"
            self._refuse(event, "yaml-limit", message)
        parent.children.append(node)
        if anchor:
            self._anchors[anchor] = node

    def _check_tag(self, event: events.ScalarEvent | events.CollectionStartEvent) -> None:
        if event.tag not in _TAGS:
            self._refuse(event, "yaml-tag", f"the tag {event.tag!r} is not read", "Leave it out.")

    def _refuse(self, event: events.Event, code: str, message: str, hint: str = "") -> NoReturn:
        _refuse(self._diagnostics, code, message, _place(event), hint=hint)


def _place(event: events.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (0, 0)


@dataclass(frozen=True, slots=True)
class LineSource:
    """The place of a mapping that is one line of another file, such as a row of a table."""

    line: int
    folder: Path = Path()  # to which the names of files in it are relative

    def place(self, path: Sequence[str | int], *, of_key: bool = False) -> tuple[int, int]:
        """Return its line, whatever the path; the column is unknown."""
        return self.line, 0


class YamlRecord(Record):
    """A mapping of a YAML file, whose unknown keys are errors."""

    code = "spec"
    object_kind = "a mapping"
    list_hint = "Begin each item with '- '."
    source: YamlFile | LineSource

    def check_keys(self, *names: str, hints: Mapping[str, str] = MappingProxyType({})) -> None:
        """Report every other key, with its hint or the nearest of these names."""
        for key in self.values:
            if key not in names:
                hint = hints.get(key) or self.diagnostics.suggest(key, names)
                line, column = self.source.place((*self.path, key), of_key=True)
                message = f"{self.called} has no key {key!r}"
                self.diagnostics.error("spec-key", message, line=line, column=column, hint=hint)

    def boolean(self, *names: str) -> bool | None:
        """Return true or false; None when the key is missing."""
        return self._typed(names, lambda value: getattr(value, "boolean", None), "true or false")

    def integer(self, *names: str) -> int | None:
        """Return a whole number; None when the key is missing."""
        hint = self._unquoted(*names)
        return self._typed(names, lambda value: getattr(value, "integer", None), "a whole number", hint=hint)

    def number(self, *names: str) -> float | None:
        """Return a finite number; None when the key is missing."""
        return self._typed(names, lambda value: getattr(value, "number", None), "a number", hint=self._unquoted(*names))

    def _unquoted(self, *names: str) -> str:
        value: object = self.raw(*names)
        return unquoted(value.text) if isinstance(value, YamlScalar) and not value.is_plain else ""

    def one_or_more(self, key: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the text of a key, or the texts of its list, with the keys and indexes that lead to them."""
        if isinstance(self.raw(key), list):
            for place, item in self.texts(key):
                yield (key, place), item
        elif (text := self.text(key)) is not None:
            yield (key,), text

    def to_text(self, value: object, *steps: str | int) -> str | None:
        """Return the text of a scalar, also of a number or boolean that every program writes alike."""
        name = steps[0]
        if value is None:
            self.error("spec-missing", f"{name!r} of {self.called} has an empty item", *steps)
        elif not isinstance(value, YamlScalar):
            self.mistyped(cast("JsonValue", value), "a text", *steps)
        elif value.is_unsettled:
            message = f"{name!r} is the {str(value)[2:]} {value.text}, which other programs may write differently"
            self.error("spec-number", message, *steps, hint=f'Put it in quotes: "{value.text}".')
        elif character := foreign_character(value.text):
            self.error("spec-character", f"{name!r} has the character {character}, which XML cannot hold", *steps)
        else:
            return value.text
        return None


Yaml: TypeAlias = "str | int | float | bool | Sequence[Yaml] | Mapping[str, Yaml] | None"


# Begins with a letter and has nothing that means something: most names and sentences.
_PLAIN: Final = re.compile(r"[A-Za-z$][A-Za-z0-9_$()/.,;'?!+*=<>-]*(?: [A-Za-z0-9_$()/.,;'?!+*=<>&%-]+)*")
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# JSON leaves these as they are; YAML 1.1 breaks lines at them, or does not print them.
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def is_settled(number: float) -> bool:
    """Return whether all programs read and write a number in the same way, so that a file can hold it."""
    return _SETTLED.fullmatch(str(number)) is not None


def write_yaml(value: Mapping[str, Yaml] | Sequence[Yaml]) -> bytes:
    """Write a mapping or a list as a YAML document in UTF-8."""
    lines = _mapping(value) if isinstance(value, Mapping) else _sequence(value)
    return "".join(f"{line}\n" for line in lines).encode()


def _mapping(value: Mapping[str, Yaml]) -> Iterator[str]:
    for name, inner in value.items():
        key = _scalar(name)
        if isinstance(inner, Mapping) and inner:
            yield f"{key}:"
            yield from (f"  {line}" for line in _mapping(inner))
        elif isinstance(inner, Sequence) and not isinstance(inner, str) and inner:
            yield f"{key}:"
            yield from (f"  {line}" for line in _sequence(inner))
        else:
            yield f"{key}: {_scalar(inner)}".rstrip()


def _sequence(items: Sequence[Yaml]) -> Iterator[str]:
    for item in items:
        lines = iter([_scalar(item)])
        if isinstance(item, Mapping) and item:
            lines = _mapping(item)
        elif isinstance(item, Sequence) and not isinstance(item, str) and item:
            lines = _sequence(item)
        yield f"- {next(lines)}"
        yield from (f"  {line}" for line in lines)


def _scalar(value: Yaml) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return _UNSAFE.sub(lambda character: f"\\u{ord(character[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return "[]" if isinstance(value, Sequence) else "{}"
