"""The worst files within the limits: as large, wide, deep and wrong as they may be, with what must be told of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFINITIONS", "Worst", "worst_definitions", "worst_manifests"]

HEAD = "<name>N</name><subjectName>S</subjectName><subjectType>AGENT</subjectType>"
INPUTS = "<inputs><utterance>u</utterance></inputs>"
WIDE = limits.MAX_XML_CHILDREN - 10
LARGE = limits.MAX_XML_BYTES - 1_000
CASES = 999
PER_CASE = limits.MAX_XML_ELEMENTS // CASES - 10
LOGGED = limits.MAX_LOGGED_ELEMENTS - 20
ATTRIBUTES = limits.MAX_XML_ATTRIBUTES - 10


class Worst(NamedTuple):
    """A file: its name here, its bytes, and a code that must be told of it."""

    name: str
    data: bytes
    code: str


def worst_definitions(group: str) -> Iterator[Worst]:
    """Yields the definitions of a group one by one; all are well-formed and wrong."""
    for name, (code, body) in DEFINITIONS[group]().items():
        text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{body}</AiEvaluationDefinition>'
        yield Worst(name, text.encode(), code)


def worst_manifests() -> Iterator[Worst]:
    """Yields manifests one by one; all are well-formed and wrong."""
    names = "".join(f"<types><members>A</members><name>Type{number}</name></types>" for number in range(WIDE))
    version = "<version>64.0</version>"
    bodies = {
        "empty members": ("manifest-member-empty", f"<types>{'<members/>' * WIDE}<name>X</name></types>{version}"),
        "unknown types": ("manifest-type-unknown", names + version),
        "a long type": ("manifest-type-unknown", f"<types><name>{'A' * LARGE}</name></types>{version}"),
        "types without a name": ("element-missing", "<types><members>A</members></types>" * WIDE),
        "names of one type": ("element-repeated", f"<types>{'<name>A</name>' * WIDE}</types>"),
        "unknown elements": ("element-unknown", "<type/>" * WIDE),
        "versions": ("element-repeated", version * WIDE),
        "a long version": ("manifest-version-invalid", f"<version>{'9' * LARGE}</version>"),
    }
    for name, (code, body) in bodies.items():
        yield Worst(name, f'<Package xmlns="{NAMESPACE}">{body}</Package>'.encode(), code)


def _wide() -> dict[str, tuple[str, str]]:
    number = f"<testCase>{INPUTS}<number>1</number></testCase>"
    parameters = f"<expectation><name>coherence</name>{'<parameter/>' * WIDE}</expectation>"
    return {
        "unknown elements": ("element-unknown", HEAD + "<x/>" * WIDE),
        "descriptions": ("element-repeated", HEAD + "<description/>" * WIDE),
        "empty cases": ("element-missing", HEAD + "<testCase/>" * WIDE),
        "text between cases": ("text-stray", HEAD + "x<testCase/>" * WIDE),
        "numbers of one case": (
            "element-repeated",
            f"{HEAD}<testCase>{INPUTS}{'<number>x</number>' * WIDE}</testCase>",
        ),
        "inputs of one case": ("element-repeated", f"{HEAD}<testCase>{INPUTS * WIDE}</testCase>"),
        "one number for all cases": ("number-duplicate", HEAD + number * WIDE),
        "elements in a text": ("element-unknown", f"{HEAD}<description>{'<x/>' * WIDE}</description>"),
        "empty parameters": ("element-missing", f"{HEAD}<testCase>{INPUTS}{parameters * 7}</testCase>"),
        "on lines of their own": ("element-unknown", HEAD + "\n" * 100_000 + "<x/>\n" * WIDE),
    }


def _full_cases() -> dict[str, tuple[str, str]]:
    """Gives definitions of as many cases as an org takes, with a fault in each."""
    good = "<parameter><name>actual</name><value>v</value></parameter>" * (PER_CASE // 3)
    full = f"<expectation><name>string_comparison</name>{good}</expectation>"
    boolean = "<expectation><parameter><isReference>yes</isReference></parameter></expectation>"
    faults = {
        "unknown element": ("element-unknown", f"{INPUTS}<expectations/>"),
        "no inputs": ("element-missing", ""),
        "no utterance": ("element-missing", "<inputs/>"),
        "bad number": ("value-invalid", f"{INPUTS}<number>two</number>"),
        "bad boolean": ("element-missing", f"{INPUTS}{boolean}"),
        "attribute": ("attribute-unknown", f'{INPUTS}<expectation id="1"><name>coherence</name></expectation>'),
        "other namespace": ("element-unknown", f'{INPUTS}<number xmlns="urn:x">1</number>'),
        "text": ("text-stray", f"{INPUTS}text"),
        "names missing": ("element-missing", INPUTS + "<expectation/>" * 5),
    }
    found = {
        name: (code, HEAD + f"<testCase>{fault}{full}</testCase>" * CASES) for name, (code, fault) in faults.items()
    }
    rules = f"<testCase>{INPUTS}{'<expectation><name/></expectation>' * (PER_CASE // 2)}</testCase>"
    found["rules"] = ("expectation-unknown", HEAD + rules * CASES)
    found["the last element"] = ("element-unknown", HEAD + f"<testCase>{INPUTS}{full}</testCase>" * CASES + "<x/>")
    return found


def _large() -> dict[str, tuple[str, str]]:
    numbers = {"digits": "9" * LARGE, "zeros": f"{'0' * (LARGE - 1)}x", "blanks": " " * LARGE}
    name = f"<expectation><name>{'x' * LARGE}</name></expectation>"
    return {
        **{
            f"a number of {kind}": ("value-invalid", f"{HEAD}<testCase>{INPUTS}<number>{text}</number></testCase>")
            for kind, text in numbers.items()
        },
        "long text": ("element-unknown", f"{HEAD}<description>{'x' * LARGE}</description><x/>"),
        "long expectation": ("expectation-unknown", f"{HEAD}<testCase>{INPUTS}{name}</testCase>"),
        "long names": ("element-unknown", HEAD + "".join(f"<{'subjectNam' * 400}{index}/>" for index in range(1_200))),
        "deep": ("element-unknown", HEAD + ("<x>" * 60 + "</x>" * 60) * (limits.MAX_XML_ELEMENTS // 61)),
        "line breaks": ("element-unknown", "\n" * LARGE + HEAD + "<x/>"),
        "comments": ("element-unknown", HEAD + "<!-- ' -->" * (LARGE // 10 - 100) + "<x/>"),
        "references": ("element-unknown", f"{HEAD}<description>{'&#65;' * (LARGE // 5 - 100)}</description><x/>"),
        "a long tag": ("element-unknown", f"{HEAD}<x{' ' * LARGE}/>"),
    }


def _attributes() -> dict[str, tuple[str, str]]:
    many = " ".join(f'a{number}=""' for number in range(ATTRIBUTES))
    namespaces = " ".join(f'xmlns:a{number}="u"' for number in range(limits.MAX_XML_NAMESPACES - 5))
    far = f'xmlns:p="{"u" * (limits.MAX_XML_NAMESPACE_CHARS - 20)}"'
    return {
        "attributes": ("attribute-unknown", f"{HEAD}<testCase {many}/>"),
        "attributes everywhere": ("attribute-unknown", HEAD + '<testCase a=""/>' * WIDE),
        "a long attribute": ("attribute-unknown", f"{HEAD}<description a='{'>' * LARGE}'/>"),
        "namespaces": ("element-unknown", f"{HEAD}<testCase {namespaces}>{'<x/>' * WIDE}</testCase>"),
        "a long namespace": ("element-unknown", f"{HEAD}<testCase {far}>{'<p:x/>' * WIDE}</testCase>"),
    }


def _logged() -> dict[str, tuple[str, str]]:
    """Return definitions of the largest size of which libxml2 logs every error."""
    case = f"<testCase>{INPUTS}{{}}</testCase>"
    parameters = f"<expectation>{'<parameter/>' * LOGGED}</expectation>"
    booleans = f"<expectation>{'<parameter><isReference/></parameter>' * (LOGGED // 2)}</expectation>"
    long_number = f"<number>{'0' * (LARGE // LOGGED * 3)}x</number>"
    return {
        "empty cases": ("text-stray", HEAD + "x<testCase/>" * LOGGED),
        "unknown elements": ("element-unknown", HEAD + "<x/>" * LOGGED),
        "empty parameters": ("element-missing", HEAD + case.format(parameters)),
        "empty booleans": ("value-invalid", HEAD + case.format(booleans)),
        "numbers": ("value-invalid", HEAD + case.format("<number>x</number>" * LOGGED)),
        "long numbers": ("value-invalid", HEAD + case.format(long_number) * (LOGGED // 4)),
    }


DEFINITIONS = {
    "wide": _wide,
    "full cases": _full_cases,
    "large": _large,
    "attributes": _attributes,
    "just below the stream limit": _logged,
}
"""The groups of definitions, made when they are asked for."""
