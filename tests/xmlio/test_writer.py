from __future__ import annotations

import re

import pytest
from hypothesis import given

from evalmeta.xmlio.reader import read_xml
from evalmeta.xmlio.writer import Stream, node, optional, render, stream
from strategies import texts, xml_texts

DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>'


def written(text: str) -> str:
    return render(node("a", text)).removeprefix(DECLARATION).decode()


def test_a_document_is_a_declaration_and_an_element() -> None:
    assert render(node("a")) == DECLARATION + b"<a/>"


def test_with_an_indent_every_element_has_its_line_and_the_file_ends_with_one() -> None:
    tree = node("a", [node("b", "x"), node("c", [node("d")])])
    assert render(tree, indent=4) == DECLARATION + b"\n<a>\n    <b>x</b>\n    <c>\n        <d/>\n    </c>\n</a>\n"


def test_without_one_no_blank_is_added() -> None:
    assert render(node("a", [node("b", "x"), node("c")])) == DECLARATION + b"<a><b>x</b><c/></a>"


def test_text_is_escaped_as_an_org_does() -> None:
    assert written("<&>'\"\n\t\r") == "<a>&lt;&amp;&gt;&apos;&quot;\n\t&#13;</a>"


@pytest.mark.parametrize("text", ["\x00", "\x08", "\x0b", "\x1b", "\x1f", "\ufffe", "\uffff", "\ud800"])
def test_what_xml_cannot_hold_becomes_a_replacement_character(text: str) -> None:
    assert written(f"x{text}y") == "<a>x\ufffdy</a>"


@pytest.mark.parametrize("text", ["\x7f", "\x85", "\u2028", "\ufeff", "\ufffd", "\U0010ffff", "\u202e"])
def test_what_xml_can_hold_is_kept(text: str) -> None:
    assert written(text) == f"<a>{text}</a>"


@given(xml_texts)
def test_text_comes_back_as_it_was(text: str) -> None:
    assert (read_xml(render(node("a", text)), label="d").root.text or "") == text


@given(xml_texts)
def test_an_attribute_comes_back_as_it_was(text: str) -> None:
    assert read_xml(render(node("a", x=text)), label="d").root.get("x") == text


@given(texts | xml_texts.map(lambda text: f"{text}\x00\ud800"))
def test_any_text_can_be_written_and_read(text: str) -> None:
    expected = re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
    assert (read_xml(render(node("a", text, x=text)), label="d").root.text or "") == expected


@given(texts)
def test_the_same_text_gives_the_same_bytes(text: str) -> None:
    assert render(node("a", text), indent=2) == render(node("a", text), indent=2)


def test_attributes_and_prefixes_are_written_as_they_are_given() -> None:
    tree = node("s:a", [node("s:b")], **{"xmlns:s": "urn:s", "x": "\n\t<"})
    assert render(tree).endswith(b'<s:a xmlns:s="urn:s" x="&#10;&#9;&lt;"><s:b/></s:a>')


def test_a_text_of_none_is_not_written() -> None:
    assert list(optional("a", None)) == []
    assert list(optional("a", "")) == [node("a", "")]


def test_a_streamed_document_is_the_same_as_one_that_is_written_at_once() -> None:
    children = [node("b", "text", key="<&"), node("b", [node("c")])]
    whole = node("a", [node("inner", children, n="1"), node("empty")], name="x")
    streamed = Stream("a", iter([Stream("inner", iter(children), {"n": "1"}), Stream("empty", (), {})]), {"name": "x"})
    assert "".join(stream(streamed, indent=2)).encode() == render(whole, indent=2)
