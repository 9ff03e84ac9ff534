from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.xmlio.nodes import children, find, read_node, text_of
from evalmeta.xmlio.writer import Node, node, render
from strategies import xml_texts

MESSAGE = b"""<?xml version="1.0"?>
<s:Envelope xmlns:s="urn:s" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <s:Body><!-- c --><r id="1"><n>1</n><n>2</n><gone xsi:nil="true"/><e/><t> x </t></r></s:Body>
</s:Envelope>"""

trees = st.recursive(
    st.builds(node, st.sampled_from(["a", "b"]), xml_texts),
    lambda inner: st.builds(node, st.sampled_from(["c", "d"]), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=8,
)


def root() -> Node:
    return read_node(MESSAGE, label="m")


def test_names_lose_their_namespaces_and_elements_their_attributes() -> None:
    reply = find(root(), "Body", "r")
    assert root().name == "Envelope"
    assert reply
    assert (reply.name, reply.attributes) == ("r", {})


def test_the_first_of_a_name_is_found() -> None:
    assert text_of(find(root(), "Body", "r", "n")) == "1"


@pytest.mark.parametrize("way", [("r",), ("Body", "x"), ("Body", "r", "n", "deeper"), ("Body", "r", "gone")])
def test_a_way_that_ends_leads_nowhere(way: tuple[str, ...]) -> None:
    assert find(root(), *way) is None


def test_children_come_in_order_without_those_that_are_nil() -> None:
    reply = find(root(), "Body", "r")
    assert reply
    assert [child.name for child in children(reply)] == ["n", "n", "e", "t"]


def test_a_text_has_no_children_and_a_parent_no_text() -> None:
    reply = find(root(), "Body", "r")
    assert reply
    assert list(children(node("a", "text"))) == []
    assert text_of(reply) == text_of(None) == ""


def test_text_is_not_changed() -> None:
    assert (text_of(find(root(), "Body", "r", "t")), text_of(find(root(), "Body", "r", "e"))) == (" x ", "")


@pytest.mark.parametrize("inner", [b"<a/>" * limits.MAX_ENVELOPE_ELEMENTS, b" " * limits.MAX_ENVELOPE_BYTES])
def test_a_message_beyond_a_limit_is_refused(inner: bytes) -> None:
    with pytest.raises(InvalidMetadata, match=r"at most [\d,]+ are allowed \[xml-too-large\]"):
        read_node(b"<r>" + inner + b"</r>", label="m")


@given(trees)
def test_what_is_written_is_read_back(tree: Node) -> None:
    assert read_node(render(tree), label="m") == tree


@given(st.binary(max_size=100))
def test_any_bytes_are_a_message_or_a_problem(data: bytes) -> None:
    with suppress(InvalidMetadata):
        assert read_node(b"<" + data, label="m").name
