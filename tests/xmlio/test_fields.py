from __future__ import annotations

import pytest

from evalmeta.xmlio.fields import Misfit, Parts, odd_attributes
from evalmeta.xmlio.reader import NAMESPACE, read_xml

KNOWN = frozenset({"text", "number", "flag"})
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def parts(body: str, *, strict: bool = True, attributes: str = "") -> Parts:
    text = f'<a xmlns="{NAMESPACE}" {XSI} {attributes}>{body}</a>'
    return Parts(read_xml(text.encode(), label="d").root, KNOWN, strict=strict)


def read_all(body: str) -> tuple[str | None, int | None, bool | None]:
    found = parts(body)
    return found.text("text"), found.integer("number"), found.boolean("flag")


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        ("<x/>", "element-unknown"),
        ('<text xmlns="urn:x"/>', "element-unknown"),
        ('<text xmlns=""/>', "element-unknown"),
        ("<text>a<b/></text>", "element-unknown"),
        ("<text/><text/>", "element-repeated"),
        ("stray<text/>", "text-stray"),
        ("<text/>stray", "text-stray"),
        ("<text/>\xa0", "text-stray"),
        ('<text id="1"/>', "attribute-unknown"),
        ('<text xsi:nil="true"/>', "attribute-unknown"),
        ("<number/>", "value-invalid"),
        ("<number>1.0</number>", "value-invalid"),
        ("<flag>TRUE</flag>", "value-invalid"),
    ],
)
def test_a_strict_reading_names_the_rule_that_is_broken(body: str, broken: str) -> None:
    with pytest.raises(Misfit) as caught:
        read_all(body)
    assert caught.value.code == broken


@pytest.mark.parametrize("body", ["<x/><text>a</text>", "<text>a</text><text>b</text>", "s<text>a</text>t"])
def test_a_lenient_reading_takes_what_it_can(body: str) -> None:
    assert parts(body, strict=False).text("text") == "a"


def test_a_lenient_reading_passes_over_values_that_are_none() -> None:
    found = parts("<number>x</number><flag>x</flag><text><b/></text>", strict=False)
    assert (found.integer("number"), found.boolean("flag"), found.required("text")) == (None, None, "")
    assert found.required("missing") == ""


def test_a_required_text_must_be_there() -> None:
    with pytest.raises(Misfit, match="<text> is missing"):
        parts("").required("text")


@pytest.mark.parametrize("body", ["", " \n\t\r", "<!-- c -->", "<?p i?>", "<![CDATA[ ]]>", "&#32;"])
def test_blanks_comments_and_instructions_are_nothing(body: str) -> None:
    assert parts(body).text("text") is None


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<text/>", ""),
        ("<text> a\n b </text>", " a\n b "),
        ("<text>a<!-- c -->b</text>", "ab"),
        ("<text>a<?p i?>b</text>", "ab"),
        ("<text><![CDATA[<a>]]> &amp;</text>", "<a> &"),
        ("<text>\r\n</text>", "\n"),
        ("<text>&#13;</text>", "\r"),
    ],
)
def test_text_is_what_xml_says_it_is(body: str, text: str) -> None:
    assert parts(body).text("text") == text


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("+01", 1), (" -2\n", -2), ("-0", 0), ("2147483647", 2**31 - 1)]
)
def test_numbers(text: str, number: int) -> None:
    assert parts(f"<number>{text}</number>").integer("number") == number


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("1", True), (" false\n", False), ("0", False)])
def test_booleans(text: str, flag: bool) -> None:  # noqa: FBT001 - a table's column
    assert parts(f"<flag>{text}</flag>").boolean("flag") is flag


def test_only_hints_at_a_schema_are_no_odd_attributes() -> None:
    hints = 'xsi:schemaLocation="a b" xsi:noNamespaceSchemaLocation="c" xml:lang="en" id="1" xsi:type="t"'
    found = odd_attributes(parts("", strict=False, attributes=hints).element)
    assert found == ["{http://www.w3.org/XML/1998/namespace}lang", "id", "xsi:type"]
