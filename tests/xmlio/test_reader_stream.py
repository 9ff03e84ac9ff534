from __future__ import annotations

import pytest
from lxml import etree

from evalmeta.xmlio.reader import find_fault, read_xml

XS = "http://www.w3.org/2001/XMLSchema"
SCHEMA = etree.XMLSchema(
    etree.fromstring(
        f'<xs:schema xmlns:xs="{XS}"><xs:element name="a"><xs:complexType><xs:sequence>'
        '<xs:element name="b" type="xs:int" maxOccurs="unbounded"/>'
        "</xs:sequence></xs:complexType></xs:element></xs:schema>"
    )
)
GOOD = "<b>1</b><!-- \u00e9 --><b><![CDATA[2]]></b>" * 1_000


def fault(text: str) -> str | None:
    found = find_fault(read_xml(text.encode(), label="d"), SCHEMA)
    return found and found.message


def test_a_document_that_fits_has_no_fault() -> None:
    assert fault(f"\ufeff<?xml version='1.0'?><a>{GOOD}</a>") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<a>{GOOD}<b>x</b>{GOOD}</a>", "Element 'b': 'x' is not a valid value of the atomic type 'xs:int'."),
        (f"<a>{GOOD}<c/></a>", "Element 'c': This element is not expected. Expected is ( b )."),
        ("<a/>", "Element 'a': Missing child element(s). Expected is ( b )."),
    ],
    ids=["in the middle", "near the end", "at the end"],
)
def test_the_first_fault_is_found(text: str, message: str) -> None:
    assert fault(text) == message
