from __future__ import annotations

import pytest

from evalmeta.xmlio.reader import read_xml
from evalmeta.xmlio.text_edits import replace_text


@pytest.mark.parametrize(
    ("old", "text", "new"),
    [
        ("<b>Old</b>", "a < b & c\n", "<b>a &lt; b &amp; c\n</b>"),
        ("<b/>", "New", "<b>New</b>"),
        ('<b x="/>" />', "New", '<b x="/>">New</b>'),
        ("<b><![CDATA[Old]]></b>", "<i>]]>", "<b><![CDATA[<i>]]]]><![CDATA[>]]></b>"),
        ("<b><![CDATA[Old]]></b>", "a\rb", "<b>a&#13;b</b>"),
        ("<b>Old<!-- </b> --></b>", "New", "<b>New<!-- </b> --></b>"),
    ],
)
def test_only_the_text_of_the_element_is_replaced(old: str, text: str, new: str) -> None:
    content = "<a><!-- <b> --><b>One</b>{}<b>Three</b></a>"
    document = read_xml(content.format(old).encode(), label="x")
    after = replace_text(document, document.root[1], text)
    assert after.decode() == content.format(new)
    assert read_xml(after, label="x").root[1].text == text


def test_an_element_with_children_has_no_text_to_replace() -> None:
    document = read_xml(b"<a><b/></a>", label="x")
    with pytest.raises(ValueError, match="<a> has children"):
        replace_text(document, document.root, "New")
