from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definitions import files_of
from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import TEST_TYPES
from evalmeta.xmlio.definitions import read_definition, read_manifest, write_definition
from evalmeta.xmlio.formatter import format_definition, format_manifest, replace_text
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from strategies import definitions, documents

if TYPE_CHECKING:
    from random import Random

    from evalmeta.model.definition import Definition


SAMPLES = Path(__file__).parent.parent.parent / "metadata-samples"
FILES = [path for row in TEST_TYPES for path in SAMPLES.rglob(f"*.{row.suffix}*") if "invalid" not in path.parts]
HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<AiEvaluationDefinition xmlns="{NAMESPACE}">'
FIELDS = "<name>A</name>\n<subjectName>B</subjectName>\n<subjectType>AGENT</subjectType>"


def formatted(inside: str, *, before: str = "", after: str = "") -> str:
    """Formats a definition with this inside and gives the lines of what came out, without the root's."""
    text = f'{before}<AiEvaluationDefinition xmlns="{NAMESPACE}">{inside}</AiEvaluationDefinition>{after}'
    lines = format_definition(text.encode(), label="A").decode()
    return lines.removeprefix(HEAD + "\n").removesuffix("</AiEvaluationDefinition>\n")


def case(inside: str) -> str:
    return f"<name>A</name><subjectName>B</subjectName><subjectType>AGENT</subjectType><testCase>{inside}</testCase>"


def manifest(inside: str) -> str:
    text = f'<Package xmlns="{NAMESPACE}">{inside}</Package>'
    return format_manifest(text.encode(), label="package.xml").decode()


def definition_of(data: bytes) -> Definition:
    return read_definition(read_xml(data, label="A"))


def comments_of(data: bytes) -> list[bytes]:
    return sorted(re.findall(rb"<!--.*?-->|<\?keep.*?\?>", data, re.DOTALL))


@settings(deadline=None)
@given(definition=definitions(), chance=st.randoms())
def test_formatting_keeps_the_meaning_and_the_comments_and_is_done_once(definition: Definition, chance: Random) -> None:
    before = files_of(definition, chance)

    after = format_definition(before, label="A")

    assert definition_of(after) == definition_of(before) == definition
    assert comments_of(after) == comments_of(before)
    assert format_definition(after, label="A") == after


@settings(deadline=None)
@given(st.sampled_from(TEST_TYPES).flatmap(documents))
def test_whatever_fits_the_type_can_be_formatted_and_nothing_else(text: str) -> None:
    before = text.encode()
    try:
        definition = definition_of(before)
    except InvalidMetadata:
        with pytest.raises(InvalidMetadata):
            format_definition(before, label="A")
        return

    assert definition_of(format_definition(before, label="A")) == definition


@settings(deadline=None)
@given(definition=definitions())
def test_what_an_org_would_write_is_canonical(definition: Definition) -> None:
    data = write_definition(definition)

    assert format_definition(data, label="A") == data


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_sample_is_formatted_as_an_org_writes_it(path: Path) -> None:
    data = path.read_bytes()

    after = format_definition(data, label=path.name)

    assert comments_of(after) == comments_of(data)
    assert re.sub(rb" *<!--.*?-->\n?", b"", after, flags=re.DOTALL) == write_definition(
        replace(definition_of(data), source=None)
    )


def test_a_custom_scorer_is_formatted_as_an_org_writes_it() -> None:
    path = SAMPLES / "studio/aiAgentScorerDefinitions/Polite_Tone.aiAgentScorerDefinition"
    data = path.read_bytes()
    shuffled = data.replace(b"    <scorerType>OpenEnded</scorerType>\n", b"").replace(
        b"    <dataType>", b"  <scorerType>OpenEnded</scorerType>\n<dataType>"
    )

    assert format_definition(shuffled, label="A") == data
    with pytest.raises(InvalidMetadata):
        format_definition(data.replace(b"Archived", b"Old"), label="A")


def test_elements_come_in_the_order_of_an_org() -> None:
    inside = (
        "<number>1</number><inputs><utterance>Hi</utterance></inputs><expectation><name>coherence</name></expectation>"
    )

    assert re.findall(r"<(\w+)>", formatted(case(inside)).partition("<testCase>")[2]) == [
        "expectation",
        "name",
        "inputs",
        "utterance",
        "number",
    ]


def test_blanks_in_texts_stay_and_those_between_elements_are_made_anew() -> None:
    inside = "\n\n<number> 1 </number>\t<inputs>  <utterance>\n  Where\n\tis it? </utterance></inputs>"

    assert formatted(case(inside)).partition("<testCase>\n")[2] == (
        "        <inputs>\n            <utterance>\n  Where\n\tis it? </utterance>\n        </inputs>\n"
        "        <number> 1 </number>\n    </testCase>\n"
    )


def test_texts_are_escaped_as_an_org_does() -> None:
    inside = case('<inputs><utterance>It\'s <![CDATA["5 < 6" & so]]>&#x20;on</utterance></inputs>')

    assert "<utterance>It&apos;s &quot;5 &lt; 6&quot; &amp; so on</utterance>" in formatted(inside)


def test_a_comment_moves_with_the_element_it_precedes() -> None:
    inside = "<!-- the agent -->\n<subjectName>B</subjectName>\n<subjectType>AGENT</subjectType>\n<name>A</name>"

    assert formatted(f"\n{inside}\n") == (
        "    <name>A</name>\n    <!-- the agent -->\n    <subjectName>B</subjectName>\n"
        "    <subjectType>AGENT</subjectType>\n"
    )


def test_a_comment_at_the_end_of_a_line_stays_with_the_element_before_it() -> None:
    inside = "<subjectName>B</subjectName> <!-- the agent -->\n<name>A</name><subjectType>AGENT</subjectType>"

    assert "    <subjectName>B</subjectName> <!-- the agent -->\n" in formatted(inside)


def test_a_comment_behind_a_start_tag_stays_there() -> None:
    inside = case(" <!-- returns -->\n<number>1</number><inputs><utterance>Hi</utterance></inputs>")

    assert "    <testCase> <!-- returns -->\n        <inputs>\n" in formatted(inside)


def test_comments_before_an_end_tag_stay_the_last() -> None:
    assert formatted(f"{FIELDS}\n<!-- more\nto come -->\n").endswith("</subjectType>\n    <!-- more\nto come -->\n")


def test_comments_around_the_root_stay_around_it() -> None:
    text = (
        f'<!-- one --><?two 2?><AiEvaluationDefinition xmlns="{NAMESPACE}">{FIELDS}</AiEvaluationDefinition><!-- 3 -->'
    )

    lines = format_definition(text.encode(), label="A").decode().splitlines()

    assert lines[:3] == ['<?xml version="1.0" encoding="UTF-8"?>', "<!-- one -->", "<?two 2?>"]
    assert lines[-1] == "<!-- 3 -->"


def test_many_comments_on_one_line_take_no_more_time_each() -> None:
    comments = "<!--x-->" * 100_000

    assert formatted(f"{FIELDS}{comments}").count("    <!--x-->\n") == 100_000


@pytest.mark.parametrize("inside", ["<name>A</nam>", "<name>A</name>", f"{FIELDS}<labels/>", f"{FIELDS} stray"])
def test_what_does_not_fit_the_type_is_refused(inside: str) -> None:
    with pytest.raises(InvalidMetadata):
        formatted(inside)


def test_a_manifest_is_sorted() -> None:
    inside = (
        "<version>64.0</version><types><name>B</name><members>z</members><members>*</members></types>"
        "<types><members>y</members><name>A</name></types><fullName>All</fullName>"
    )

    assert re.findall(r"<(?:members|name|version|fullName)>([^<]*)", manifest(inside)) == [
        *("All", "y", "A", "*", "z", "B", "64.0")
    ]


def test_members_with_comments_among_them_keep_their_order() -> None:
    inside = "<types><!-- ours --><members>b</members><members>a</members><name>A</name></types><version>64.0</version>"

    assert re.findall(r"<!-- ours -->|<members>\w", manifest(inside)) == ["<!-- ours -->", "<members>b", "<members>a"]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ABC"), st.lists(st.text("ab*", min_size=1, max_size=3), max_size=4)), max_size=4
    )
)
def test_a_formatted_manifest_names_the_same_and_is_formatted_once(types: list[tuple[str, list[str]]]) -> None:
    blocks = [
        "<types><name>" + name + "</name>" + "".join(f"<members>{member}</members>" for member in members) + "</types>"
        for name, members in types
    ]

    text = manifest("".join(blocks))

    found = read_manifest(read_xml(text.encode(), label="A"))
    assert sorted((kind.name, sorted(kind.members)) for kind in found.types) == sorted(
        (name, sorted(members)) for name, members in types
    )
    assert format_manifest(text.encode(), label="A").decode() == text


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
