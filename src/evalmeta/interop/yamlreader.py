"""YAML to nodes that know their places; nothing of it is run, and aliases cannot make it grow without bound.

Scalars are told apart as YAML 1.2 does (Core Schema, section 10.3), for that is what
the sf CLI reads: `yes` and `on` are texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from evalmeta import limits
from evalmeta.interop.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yaml.events import Event

__all__ = ["Listing", "Mapping", "Scalar", "YamlNode", "read_yaml"]

_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER: Final = re.compile(
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
# Numbers that every reader writes back as they stand: JavaScript's integers end at 2**53.
_SETTLED: Final = re.compile(r"0|-?[1-9][0-9]{0,14}|-?(?:0|[1-9][0-9]{0,8})\.[0-9]{0,5}[1-9]")
_UTF8_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, number, boolean or null; `is_plain` says that it stands without quotes, which decides what it is."""

    line: int
    column: int
    text: str
    is_plain: bool
    size: int = 1

    @property
    def is_null(self) -> bool:
        """Says whether it is null, such as nothing at all behind a key."""
        return self.is_plain and self.text in _NULLS

    @property
    def boolean(self) -> bool | None:
        """Gives the boolean that it is, None when it is something else."""
        return _BOOLEANS.get(self.text) if self.is_plain else None

    @property
    def integer(self) -> int | None:
        """Gives the whole number that it is, None when it is something else."""
        if not self.is_plain or len(self.text) > limits.MAX_NUMBER_CHARS or not _INTEGER.fullmatch(self.text):
            return None
        return int(self.text)

    @property
    def is_unsettled(self) -> bool:
        """Says whether it is a number or boolean that another program may write otherwise, such as 007 or 1.0."""
        if not self.is_plain or _SETTLED.fullmatch(self.text):
            return False
        return self.text in _BOOLEANS.keys() - {"true", "false"} or _NUMBER.fullmatch(self.text) is not None


@dataclass(frozen=True, slots=True)
class Listing:
    """A list; `size` counts the nodes in it with itself, those behind an alias each time."""

    line: int
    column: int
    items: tuple[YamlNode, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in the order of the file; a key comes once."""

    line: int
    column: int
    entries: tuple[tuple[Scalar, YamlNode], ...]
    size: int


YamlNode: TypeAlias = Scalar | Listing | Mapping


def read_yaml(data: bytes, *, label: str) -> YamlNode:
    """Reads a file with one YAML document, JSON too.

    Raises:
        FormatError: it is no UTF-8 or no YAML, has several documents, tags, a key twice, or goes
            beyond `limits`: with line and column.
    """
    import yaml  # noqa: PLC0415 - only who reads YAML pays for it

    findings = Findings(label)
    builder = _Builder(findings)
    try:
        # libyaml is twenty times as fast; not every build of PyYAML has it.
        for event in yaml.parse(_decoded(data, findings), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        _refuse(findings, "yaml-syntax", f"this is no YAML: {error.problem or error.context}", place)
    except yaml.YAMLError as error:
        _refuse(findings, "yaml-syntax", f"this is no YAML: {str(error).splitlines()[0]}", (0, 0))
    return builder.document()


def _decoded(data: bytes, findings: Findings) -> str:
    if len(data) > limits.MAX_SPEC_BYTES:
        _refuse(findings, "yaml-limit", f"the file is larger than {limits.MAX_SPEC_BYTES:,} bytes", (0, 0))
    try:
        return data.decode().removeprefix(_UTF8_MARK)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _refuse(findings, "yaml-encoding", "the file is not UTF-8", (line, 0), hint="Save it in UTF-8.")


def _refuse(findings: Findings, code: str, message: str, place: tuple[int, int], *, hint: str = "") -> NoReturn:
    findings.add(code, message, line=place[0], column=place[1], hint=hint)
    findings.check()
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
    """Makes nodes of the parser's events without recursion: files may be nested as deep as they like."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._open: list[_Open] = [_Open(1, 1, None, is_mapping=False, children=[])]
        self._anchors: dict[str, YamlNode] = {}

    def document(self) -> YamlNode:
        [root, *_] = self._open[0].children or [Scalar(1, 1, "", is_plain=True)]
        return root

    def take(self, event: Event) -> None:
        from yaml import events  # noqa: PLC0415 - as in `read_yaml`

        match event:
            case events.DocumentStartEvent() if self._open[0].children:
                self._refuse(event, "yaml-documents", "a second document begins here", "One file has one test.")
            case events.ScalarEvent():
                text, tag = event.value, event.tag
                self._check_tag(event, tag)
                self._add(Scalar(*_place(event), text, is_plain=not event.style and tag is None), event, event.anchor)
            case events.AliasEvent():
                if (target := self._anchors.get(event.anchor or "")) is None:
                    self._refuse(event, "yaml-alias", f"*{event.anchor} names nothing that ends before it")
                self._add(target, event, None)
            case events.CollectionStartEvent():
                self._check_tag(event, event.tag)
                if len(self._open) > limits.MAX_YAML_DEPTH:
                    self._refuse(event, "yaml-limit", f"nested deeper than {limits.MAX_YAML_DEPTH} levels")
                is_mapping = isinstance(event, events.MappingStartEvent)
                self._open.append(_Open(*_place(event), event.anchor, is_mapping, []))
            case events.CollectionEndEvent():
                done = self._open.pop()
                self._add(self._closed(done), event, done.anchor)

    def _closed(self, done: _Open) -> YamlNode:
        if not done.is_mapping:
            return Listing(done.line, done.column, tuple(done.children), done.size)
        return Mapping(done.line, done.column, tuple(self._entries(done.children)), done.size)

    def _entries(self, children: list[YamlNode]) -> Iterator[tuple[Scalar, YamlNode]]:
        seen: set[str] = set()
        for key, value in zip(children[::2], children[1::2], strict=True):
            place = key.line, key.column
            if not isinstance(key, Scalar):
                _refuse(self._findings, "yaml-key", "a key is a list or a mapping", place)
            if key.text in seen:
                _refuse(self._findings, "yaml-key", f"the key {key.text!r} stands here a second time", place)
            seen.add(key.text)
            yield key, value

    def _add(self, node: YamlNode, event: Event, anchor: str | None) -> None:
        parent = self._open[-1]
        parent.size += node.size
        if parent.size > limits.MAX_SPEC_VALUES:
            message = f"more than {limits.MAX_SPEC_VALUES:,} values, those behind aliases counted each time"
            self._refuse(event, "yaml-limit", message)
        parent.children.append(node)
        if anchor:
            self._anchors[anchor] = node

    def _check_tag(self, event: Event, tag: str | None) -> None:
        if tag not in {None, "!", _TEXT_TAG}:
            self._refuse(event, "yaml-tag", f"the tag {tag!r} is not read", "Leave it out.")

    def _refuse(self, event: Event, code: str, message: str, hint: str = "") -> NoReturn:
        _refuse(self._findings, code, message, _place(event), hint=hint)


def _place(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (0, 0)
