"""Mappings of a file read by their keys: what does not fit becomes a problem with its place, and reading goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.interop.findings import foreign_character
from evalmeta.interop.yamlreader import Listing, Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.interop.findings import Findings
    from evalmeta.interop.yamlreader import YamlNode

__all__ = ["Record", "kind_of"]


class Record:
    """A mapping with known keys.

    Args:
        node: what should be a mapping.
        findings: takes the problems.
        known: the keys that may stand in it.
        called: what it is, for messages: `a test case`.
        hints: what to say of keys that people take for known ones.
    """

    def __init__(
        self,
        node: YamlNode,
        findings: Findings,
        known: Sequence[str],
        *,
        called: str,
        hints: dict[str, str] | None = None,
    ) -> None:
        self.node = node
        self._findings = findings
        self._called = called
        self._values: dict[str, YamlNode] = {}
        if not isinstance(node, Mapping):
            self.refuse(node, "spec-type", f"{called} is {kind_of(node)}, not keys and values")
            return
        for key, value in node.entries:
            if key.text in known:
                self._values[key.text] = value
                continue
            hint = (hints or {}).get(key.text) or findings.suggest(key.text, known)
            self.refuse(key, "spec-key", f"{called} has no key {key.text!r}", hint=hint)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> YamlNode:
        return self._values[name]

    def refuse(self, node: YamlNode, code: str, message: str, *, hint: str = "") -> None:
        """Notes a problem at a node."""
        self._findings.add(code, message, line=node.line, column=node.column, hint=hint)

    def text(self, name: str) -> str | None:
        """Gives a text; None when the key is missing or has no value."""
        node = self._values.get(name)
        return None if node is None else self._text(node, name)

    def required(self, name: str) -> str:
        """Gives a text that must be there; an empty one when it is not, and a problem."""
        text = self.text(name)
        if text is None and isinstance(self.node, Mapping) and _is_missing(self._values.get(name)):
            self.refuse(self.node, "spec-missing", f"{self._called} needs {name!r}")
        return text or ""

    def boolean(self, name: str) -> bool | None:
        """Gives true or false; None when the key is missing."""
        node = self._values.get(name)
        if node is None or (isinstance(node, Scalar) and (node.is_null or node.boolean is not None)):
            return node.boolean if node else None
        self.refuse(node, "spec-type", f"{name!r} is {kind_of(node)}, not true or false")
        return None

    def integer(self, name: str) -> int | None:
        """Gives a whole number; None when the key is missing."""
        node = self._values.get(name)
        if node is None or (isinstance(node, Scalar) and (node.is_null or node.integer is not None)):
            return node.integer if node else None
        self.refuse(node, "spec-type", f"{name!r} is {kind_of(node)}, not a whole number")
        return None

    def items(self, name: str) -> tuple[YamlNode, ...]:
        """Gives the items of a list; none when the key is missing or has no value."""
        node = self._values.get(name)
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return ()
        if isinstance(node, Listing):
            return node.items
        self.refuse(node, "spec-type", f"{name!r} is {kind_of(node)}, not a list", hint="Begin each item with '- '.")
        return ()

    def texts(self, name: str) -> Iterator[tuple[YamlNode, str]]:
        """Yields the texts of a list with their nodes."""
        for node in self.items(name):
            text = self._text(node, name)
            if text is None and isinstance(node, Scalar) and node.is_null:
                self.refuse(node, "spec-missing", f"an item of {name!r} is empty")
            if text is not None:
                yield node, text

    def is_null(self, name: str) -> bool:
        """Says whether the key is there without a value."""
        node = self._values.get(name)
        return isinstance(node, Scalar) and node.is_null

    def _text(self, node: YamlNode, name: str) -> str | None:
        if not isinstance(node, Scalar):
            self.refuse(node, "spec-type", f"{name!r} is {kind_of(node)}, not a text")
        elif node.is_unsettled:
            message = f"{name!r} is the {kind_of(node)[2:]} {node.text}, which may be written otherwise"
            self.refuse(node, "spec-number", message, hint=f'Put it in quotes: "{node.text}".')
        elif found := foreign_character(node.text):
            self.refuse(node, "spec-character", f"{name!r} has the character {found}, which XML has not")
        elif not node.is_null:
            return node.text
        return None


def kind_of(node: YamlNode) -> str:
    """Says in words what a node is."""
    if isinstance(node, Scalar):
        if node.is_null:
            return "nothing"
        if node.boolean is not None:
            return "a boolean"
        return "a number" if node.integer is not None or node.is_unsettled else "a text"
    return "a list" if isinstance(node, Listing) else "a mapping"


def _is_missing(node: YamlNode | None) -> bool:
    return node is None or (isinstance(node, Scalar) and node.is_null)
