from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.problem import Location
from evalmeta.xmlio.reader import Document, line_and_column, local_name, read_xml
from strategies import documents


def places(text: str) -> list[tuple[int, int]]:
    document = read_xml(text.encode(), label="d")
    found = (document.location(element) for element in document.root.iter())
    return [(place.line, place.column) for place in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<a><b/></a>", [(1, 1), (1, 4)]),
        ("<a>\n  <b/>\n\t<c/></a>", [(1, 1), (2, 3), (3, 2)]),
        ("<a>\r\n<b/>\r\n <c/></a>", [(1, 1), (2, 1), (3, 2)]),
        ("\ufeff<a><b/></a>", [(1, 1), (1, 4)]),
        ("<?xml version='1.0'?><a/>", [(1, 22)]),
        ("<?xml version='1.0'?>\n\n<a/>\n", [(3, 1)]),
        ("<a><!-- <x> --><b/></a>", [(1, 1), (1, 16)]),
        ("<!-- <x>\n--><a/><!-- <x> -->", [(2, 4)]),
        ("<a><![CDATA[<x>]]]]><b/></a>", [(1, 1), (1, 21)]),
        ("<a><?p <x> ?><b/></a>", [(1, 1), (1, 14)]),
        ("<a x='>'><b y=\"'>'\"/><c/></a>", [(1, 1), (1, 10), (1, 22)]),
        ("<a\n x='1'\n><b\n/>\n<c/></a>", [(1, 1), (3, 2), (5, 1)]),
        ("<a>\u00e9\u4e2d<b/></a>", [(1, 1), (1, 6)]),
        ("<a>\U0001f600<b/></a>", [(1, 1), (1, 5)]),
        ("<\u00e9><b/></\u00e9>", [(1, 1), (1, 4)]),
        ("<a>' \" > ]]&gt; <b/>\"<c/>'</a>", [(1, 1), (1, 17), (1, 22)]),
        ("<a>\u2028\x85<b/></a>", [(1, 1), (1, 6)]),
        ("<a ></a >", [(1, 1)]),
    ],
)
def test_every_start_tag_has_its_place(text: str, found: list[tuple[int, int]]) -> None:
    assert places(text) == found


@given(documents())
def test_a_place_is_where_the_tag_begins(text: str) -> None:
    lines = text.split("\n")
    document = read_xml(text.encode(), label="d")
    for element in document.root.iter():
        place = document.location(element)
        assert lines[place.line - 1][place.column - 1 :].startswith(f"<{local_name(element)}")


@given(st.text(st.sampled_from("<>&'\"-!?[]/ab \n\u00e9\U0001f600"), max_size=30))
def test_text_never_moves_a_place(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")
    written = f"<a>{escaped}<b/></a>"
    assert places(written)[1] == line_and_column(written, written.rindex("<b/>"))


def test_kept_comments_do_not_change_locations() -> None:
    document = read_xml(b"<a><!-- x --><?p i?><b/></a>", label="d", keep_comments=True)
    assert document.location(document.find([("b", 0)])).column == 21


def test_without_an_element_the_root_is_shown() -> None:
    assert read_xml(b"\n<a/>", label="d.xml").location() == Location("d.xml", 2, 1)


@pytest.fixture
def document() -> Document:
    return read_xml(b'<a xmlns="urn:a"><b/><c><d/></c><c><d>1</d></c><x:c xmlns:x="urn:x"/></a>', label="d")


@pytest.mark.parametrize(
    ("steps", "name", "column"),
    [
        ([], "a", 1),
        ([("b", 0)], "b", 18),
        ([("c", 1)], "c", 33),
        ([("c", 1), ("d", 0)], "d", 36),
        ([("c", 0), ("d", 0)], "d", 25),
        ([("c", 2)], "a", 1),
        ([("z", 0), ("d", 0)], "a", 1),
        ([("c", 0), ("d", 1)], "c", 22),
    ],
)
def test_steps_lead_to_the_deepest_element_that_exists(
    document: Document, steps: list[tuple[str, int]], name: str, column: int
) -> None:
    found = document.find(steps)
    assert (local_name(found), document.location(found).column) == (name, column)


def test_an_element_without_namespace_has_children_without_one() -> None:
    found = read_xml(b'<a><b xmlns="urn:x"/><b/></a>', label="d").find([("b", 0)])
    assert found.tag == "b"


@given(st.text(max_size=30), st.data())
def test_lines_and_columns_count_from_one(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    line, column = line_and_column(text, offset)
    before = text.split("\n")[: line - 1]
    assert sum(len(each) + 1 for each in before) + column - 1 == offset


@pytest.mark.parametrize(
    "between", ["", "\n", "<!-- <b> -->\n", "\n<![CDATA[<b>]]>", "<?p <b>\n?>", "<bb/>\n", "<x:b\nxmlns:x='x'/>"]
)
@pytest.mark.parametrize("child", ["<b/>", "<b\n/>", "<b><b/></b>\n", "\r\n<b>\n</b>"])
def test_lines_are_those_of_the_locations(between: str, child: str) -> None:
    text = f"<?xml version='1.0'?><a>{between}{child}{between}{child}</a>"
    document = read_xml(text.encode(), label="d")
    assert document.lines_of("b") == [document.location(each).line for each in document.root.iterchildren("b")]


@given(documents())
def test_lines_of_any_child_are_those_of_its_locations(text: str) -> None:
    document = read_xml(text.encode(), label="d")
    for name in {local_name(each) for each in document.root}:
        children = document.root.iterchildren(f"{str(document.root.tag).removesuffix(local_name(document.root))}{name}")
        assert document.lines_of(name) == [document.location(child).line for child in children]
