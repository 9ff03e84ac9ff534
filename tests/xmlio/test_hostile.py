"""Documents that try to read a file, open a connection or use up the machine: refused, each with one problem."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.nodes import read_node
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from examples import EXAMPLES
from hostile_xml import DOCTYPES, HINTS, SECRET, Bait, baited, laid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROLOGUE = ("\ufeff", "<?xml version='1.0'?>", " ", "\n", "<!--", "-->", "-", "<?x ", "?>", "?", ">", "x", "<!-- y -->")
BODIES = ("<a>&e;</a>", '<a x="&e;"/>', "<a>&l9;</a>", f"<a>{'&q;' * 1_000}</a>", "<a/>")


@pytest.fixture
def bait(tmp_path: Path) -> Iterator[Bait]:
    with laid(tmp_path) as made:
        yield made


def refusal(data: bytes) -> InvalidMetadata:
    with pytest.raises(InvalidMetadata) as caught:
        read_xml(data, label="hostile.xml")
    return caught.value


@pytest.mark.parametrize("body", BODIES, ids=["text", "attribute", "laughs", "quadratic", "nothing"])
@pytest.mark.parametrize("doctype", DOCTYPES.values(), ids=DOCTYPES)
def test_a_doctype_is_refused_before_anything_in_it_is_read(doctype: str, body: str, bait: Bait) -> None:
    error = refusal(f'<?xml version="1.0"?>\n{baited(doctype, bait)}{body}'.encode())
    (problem,) = error.problems
    assert problem.code == "xml-doctype"
    assert SECRET not in f"{error} {problem} {problem.hint} {error.actions}"


@pytest.mark.parametrize("doctype", DOCTYPES.values(), ids=DOCTYPES)
def test_every_entrance_refuses_a_doctype(doctype: str, bait: Bait) -> None:
    data = f"{baited(doctype, bait)}<a>&e;</a>".encode()
    with pytest.raises(InvalidMetadata):
        read_node(data, label="message")
    found = [
        *validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D"),
        *validate_manifest(data, label="m")[1],
    ]
    assert [problem.code for problem in found] == ["xml-doctype"] * 2


@pytest.mark.parametrize("template", HINTS.values(), ids=HINTS)
def test_nothing_that_a_document_points_to_is_fetched(template: str, bait: Bait) -> None:
    text = baited(template, bait)
    assert SECRET not in str(read_node(text.encode(), label="message"))
    for root in ("AiEvaluationDefinition", "Package"):
        data = text.replace("<a", f'<{root} xmlns="{NAMESPACE}"').replace("</a>", f"</{root}>").encode()
        found = [
            *validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D"),
            *validate_manifest(data, label="m")[1],
        ]
        assert SECRET not in str(found)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.sampled_from(PROLOGUE), max_size=8).map("".join))
def test_wherever_libxml2_sees_a_doctype_it_is_refused(prologue: str) -> None:
    data = f"{prologue}<!DOCTYPE a><a/>".encode()
    with suppress(etree.XMLSyntaxError):
        etree.fromstring(data)
        assert refusal(data).problems[0].code == "xml-doctype"


def test_a_doctype_is_reported_at_its_location() -> None:
    error = refusal("<?xml version='1.0'?>\r\n<!-- é\n -->  <!DOCTYPE a><a/>".encode())
    assert str(error) == "hostile.xml:3:7: the file has a DOCTYPE [xml-doctype]"


@pytest.mark.parametrize("data", [b"<a><![CDATA[<!DOCTYPE a>]]></a>", b"<a><!-- <!DOCTYPE a> --></a>"])
def test_a_word_in_text_is_not_a_doctype(data: bytes) -> None:
    assert read_xml(data, label="d").root.tag == "a"


@pytest.mark.parametrize("name", ["e", "nbsp", "xxe"])
def test_an_undeclared_entity_is_refused(name: str) -> None:
    assert refusal(f"<a>&{name};</a>".encode()).problems[0].code == "xml-malformed"


def test_the_five_entities_and_character_references_are_read() -> None:
    root = read_xml(b"<a>&amp;&lt;&gt;&apos;&quot;&#65;&#x1F600;</a>", label="d").root
    assert root.text == "&<>'\"A\U0001f600"


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "cp037", "utf-7", "latin-1"]
)
def test_no_other_encoding_is_read(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><a>\u00e4</a>'
    assert refusal(text.encode(encoding)).problems[0].code == "xml-encoding"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be", "cp037", "latin-1"])
def test_an_encoding_that_is_not_declared_is_found_out(encoding: str) -> None:
    assert refusal("<a>\u00e4</a>".encode(encoding)).problems[0].code == "xml-encoding"


@pytest.mark.parametrize("declared", ["ISO-8859-1", "utf-16", "EBCDIC-CP-US", "x", "x" * 4_000_000, ""])
def test_the_declared_encoding_is_used(declared: str) -> None:
    for mark in ("", "\ufeff"):
        error = refusal(f"{mark}<?xml version='1.0' encoding='{declared}'?><a/>".encode())
        assert error.problems[0].code == "xml-encoding"
        assert len(str(error)) < 200


@pytest.mark.parametrize("declared", ["UTF-8", "utf-8", "UTF8", "us-ascii", "ASCII"])
def test_utf_8_has_several_names(declared: str) -> None:
    assert read_xml(f'<?xml version="1.0" encoding="{declared}"?><a/>'.encode(), label="d").root.tag == "a"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<a>\n \xc3\xa9 \xe9</a>", "hostile.xml:2:4: the byte 0xE9 is not valid UTF-8; metadata must be UTF-8"),
        (b"\xef\xbb\xbf<a>\xff</a>", "hostile.xml:1:4: the byte 0xFF is not valid UTF-8; metadata must be UTF-8"),
        (b"<a>\xed\xa0\x80</a>", "hostile.xml:1:4: the byte 0xED is not valid UTF-8; metadata must be UTF-8"),
        (b"<a>\xc0\xbc</a>", "hostile.xml:1:4: the byte 0xC0 is not valid UTF-8; metadata must be UTF-8"),
        (
            b'<?xml version="1.0" encoding="ASCII"?><a>\xc3\xa9</a>',
            "hostile.xml:1:42: the byte 0xC3 is not valid ASCII",
        ),
    ],
)
def test_a_byte_that_does_not_belong_is_shown(data: bytes, message: str) -> None:
    assert str(refusal(data)).startswith(message)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"\xef\xbb\xbf",
        b"\x00",
        b"<a>x\x00y</a>",
        b"<a/>\x00",
        b"<a>\x01</a>",
        b"<a>&#0;</a>",
        b"<a>&#xD800;</a>",
        b"<a>&#x110000;</a>",
        "<a>\ufffe</a>".encode(),
        b"PK\x03\x04",
        b"\x7fELF",
        b"{}",
        b"<a>",
        b"<a></b>",
        b"<a/><a/>",
        b"<a b='1' b='2'/>",
        b"<a:b/>",
        b"<a & b='1'/>",
        b"<" + b"a" * 100_000 + b"/>",
    ],
)
def test_invalid_xml_has_one_problem_with_a_location(data: bytes) -> None:
    (problem,) = refusal(data).problems
    assert problem.code in {"xml-malformed", "xml-encoding"}
    assert (problem.location.line, problem.location.column) >= (1, 1)
    assert "\n" not in problem.message
    assert len(problem.message) < 300


@pytest.mark.parametrize("depth", [65, 100, 255, 257, 2_047, 2_049, 89_999])
def test_an_element_nested_too_deeply_is_reported_at_its_location(depth: int) -> None:
    (problem,) = refusal(b"<a>" * depth + b"</a>" * depth).problems
    assert (problem.code, problem.location.line) == ("xml-too-deep", 1)


@pytest.mark.parametrize("depth", [65, 2_049, 200_000])
def test_a_message_is_not_nested_deeply_either(depth: int) -> None:
    with pytest.raises(InvalidMetadata, match="xml-too-deep"):
        read_node(b"<a>" * depth + b"</a>" * depth, label="message")


def test_the_first_level_too_deep_is_shown() -> None:
    (problem,) = refusal(b"<a>\n" * 65 + b"</a>" * 65).problems
    assert (problem.location.line, problem.location.column) == (65, 1)


def test_as_many_levels_as_are_allowed_are_read() -> None:
    depth = limits.MAX_XML_DEPTH
    assert read_xml(b"<a>" * depth + b"</a>" * depth, label="d").root.tag == "a"


def test_a_file_may_be_as_large_as_the_limit_and_no_larger() -> None:
    data = b"<a>" + b" " * (limits.MAX_XML_BYTES - 7) + b"</a>"
    assert read_xml(data, label="d").data is data
    (problem,) = refusal(data + b" ").problems
    assert problem.message == "the file has 5,000,001 bytes; at most 5,000,000 are allowed"


@pytest.mark.parametrize(
    ("data", "way_out"),
    [
        (b"", "Write a definition into the file"),
        (b"\n", "Begin the file with an element"),
        (b"\n<?xml version='1.0'?><a/>", "Move the XML declaration"),
        (b"<name>a\0</name>", "Remove the control character"),
        (b"<a>&#0;</a>", "Remove the control character"),
        (b"<a/><b/>", "Keep one root element"),
        (b"<a><b></a>", "Close every tag in order"),
    ],
)
def test_each_malformed_file_has_its_own_hint(data: bytes, way_out: str) -> None:
    with pytest.raises(InvalidMetadata) as caught:
        read_xml(data, label="d")
    assert caught.value.actions[0].startswith(way_out)
