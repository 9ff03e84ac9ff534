"""Where words of expectations are in a test spec: the line and column of a topic, an action or a context variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from evalmeta.formats.expectation_edits import EXPECTATION_KEYS
from evalmeta.model.agent_parts import plain_name
from evalmeta.model.expectations import canonical_name

if TYPE_CHECKING:
    from collections.abc import Iterator


class SpecPlaces:
    """The places of words in the test cases of a spec that could be read."""

    def __init__(self, data: bytes) -> None:
        text = data.decode("utf-8-sig", "replace")
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        cases = [case for key in ("testCases", "cases") for node in _below(root, (key,)) for case in _items(node)]
        self._cases = [case for case in cases if isinstance(case, MappingNode)]

    def find(self, number: int, name: str, word: str) -> tuple[int, int] | None:
        """Return line and column of a word below a check or a key of a case; None if it is elsewhere."""
        if not 0 < number <= len(self._cases):
            return None
        keys = EXPECTATION_KEYS.get(canonical_name(name), (name,))
        for value in _below(self._cases[number - 1], keys):
            for scalar in _scalars(value):
                if word in {scalar.value, plain_name(scalar.value), scalar.value.removeprefix("$Context.")}:
                    return scalar.start_mark.line + 1, scalar.start_mark.column + 1
        return None


def _items(node: Node) -> list[Node]:
    return node.value if isinstance(node, SequenceNode) else []


def _below(root: Node | None, keys: tuple[str, ...]) -> Iterator[Node]:
    """Yield the values of keys, wherever they are below a node, in the order of the file."""
    for node in _nodes(root):
        if isinstance(node, MappingNode):
            yield from (value for key, value in node.value if key.value in keys)


def _scalars(root: Node) -> Iterator[ScalarNode]:
    return (node for node in _nodes(root) if isinstance(node, ScalarNode))


def _nodes(root: Node | None) -> Iterator[Node]:
    """Yield a node and those below it; a node that aliases repeat is yielded once."""
    waiting = [root] if root else []
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, MappingNode):
            waiting += [part for pair in reversed(node.value) for part in reversed(pair)]
        elif isinstance(node, SequenceNode):
            waiting += reversed(node.value)
