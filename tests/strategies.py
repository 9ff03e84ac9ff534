"""Hypothesis strategies that several rooms share: definitions, and documents that are nearly right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
)
from evalmeta.model.registry import (
    AUTHORING_BUNDLE,
    EVALUATION_DEFINITION,
    SCORER_DEFINITION,
    TEST_TYPES,
    TESTING_DEFINITION,
)
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.registry import MetadataType

_NOT_XML = "".join(map(chr, {*range(32), 0xFFFE, 0xFFFF} - {9, 10, 13}))
_INTS = st.integers(-(2**31), 2**31 - 1)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
xml_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=_NOT_XML), max_size=12)
_maybe = st.none() | xml_texts

_parameters = st.builds(Parameter, xml_texts, xml_texts, st.none() | st.booleans())
_expectations = st.builds(Expectation, xml_texts, _maybe, _maybe, st.lists(_parameters, max_size=2).map(tuple))
_variables = st.lists(st.builds(ContextVariable, xml_texts, xml_texts), max_size=2).map(tuple)
_messages = st.lists(st.builds(HistoryMessage, _maybe, _maybe, _maybe, st.none() | _INTS), max_size=2).map(tuple)
_test_cases = st.builds(
    TestCase, st.builds(Inputs, xml_texts, _variables, _messages), st.lists(_expectations, max_size=3).map(tuple)
)
_scorers = st.builds(
    Expectation, xml_texts, _maybe, scorer_type=st.none() | st.sampled_from(["Standard", "OOTB", "Custom"])
)
_prompt_inputs = st.lists(st.builds(PromptInput, xml_texts, xml_texts), max_size=2).map(tuple)
_scored_cases = st.builds(
    TestCase,
    st.builds(Inputs, xml_texts, _variables, _messages, _prompt_inputs),
    st.lists(_scorers, max_size=3).map(tuple),
)


@st.composite
def definitions(draw: st.DrawFn, kind: MetadataType | None = None) -> Definition:
    """Draws any definition that the type allows; without one it draws the type too."""
    kind = kind or draw(st.sampled_from(TEST_TYPES))
    is_testing = kind == TESTING_DEFINITION
    cases = draw(st.lists(_scored_cases if is_testing else _test_cases, max_size=3))
    numbers = draw(st.lists(_INTS, min_size=len(cases), max_size=len(cases), unique=True))
    kept = draw(st.lists(st.just(value=True) if is_testing else st.booleans(), min_size=3, max_size=3))
    numbered = tuple(
        replace(case, number=number if keep else None) for case, number, keep in zip(cases, numbers, kept, strict=False)
    )
    subject_type = draw(st.sampled_from(kind.subject_types))
    return Definition(draw(xml_texts), draw(xml_texts), subject_type, draw(_maybe), draw(_maybe), numbered, kind)


_CHILDREN = {
    "contextVariable": ("variableName", "variableValue"),
    "conversationHistory": ("index", "message", "role", "topic"),
    "parameter": ("isReference", "name", "value"),
    "promptInput": ("referenceName", "value"),
}
_ROOT = ("description", "name", "subjectName", "subjectType", "subjectVersion", "testCase")
CHILDREN = {
    EVALUATION_DEFINITION: {
        **_CHILDREN,
        "AiEvaluationDefinition": _ROOT,
        "testCase": ("expectation", "inputs", "number"),
        "expectation": ("expectedValue", "label", "name", "parameter"),
        "inputs": ("contextVariable", "conversationHistory", "utterance"),
    },
    TESTING_DEFINITION: {
        **_CHILDREN,
        "AiTestingDefinition": _ROOT,
        "testCase": ("inputs", "number", "scorer"),
        "scorer": ("expectedValue", "name", "scorerType"),
        "inputs": ("contextVariable", "conversationHistory", "promptInput", "utterance"),
    },
    SCORER_DEFINITION: {
        "AiAgentScorerDefinition": ("dataType", "inputScope", "lightningType", "scorerType", "scorerVersion"),
        "scorerVersion": (
            *("agentAssociation", "description", "engine", "label"),
            *("outputEnumValue", "specification", "status", "versionNumber"),
        ),
        "agentAssociation": ("agentApiName", "inputScope", "isActive", "samplingRate"),
        "engine": ("engineRef", "engineType", "engineValue"),
        "outputEnumValue": ("isFallback", "isSystemFallback", "outcomeType", "value"),
        "specification": ("valueSpecification",),
        "valueSpecification": ("max", "min", "step", "threshold"),
    },
    AUTHORING_BUNDLE: {"AiAuthoringBundle": ("bundleType", "target", "versionDescription", "versionTag")},
}
_REQUIRED = {
    *("name", "subjectName", "subjectType", "inputs", "value", "variableName", "variableValue", "referenceName")
}
_REQUIRED_IN = {
    EVALUATION_DEFINITION: {*_REQUIRED, "utterance"},
    TESTING_DEFINITION: {*_REQUIRED, "number"},
    SCORER_DEFINITION: {
        *("dataType", "inputScope", "engine", "engineType", "label", "status", "versionNumber"),
        *("agentApiName", "isActive", "outcomeType", "value"),
    },
    AUTHORING_BUNDLE: {"bundleType"},
}
_REPEATED = {
    *("testCase", "expectation", "parameter", "contextVariable", "conversationHistory", "scorer", "promptInput"),
    *("scorerVersion", "agentAssociation", "outputEnumValue", "specification", "valueSpecification"),
}
_NAMES = {
    kind: sorted({*children, *(name for names in children.values() for name in names), "testCases", "x"})
    for kind, children in CHILDREN.items()
}

# What xmlschema takes for a number, a boolean or a blank, although XML Schema does not.
QUIRKS = ("1_0", "\uff11", "\u0661", "\xa01", "\u2003true", "\x85", "\u3000", "&#160;")
_NUMBERS = ("0", "1", "01", "+1", " 2 ", "\n3\t", "-4", "2147483647", "-2147483648", "0" * 30 + "5")
_BOOLEANS = ("true", "false", "1", "0", " true ", "\n0\n")
_ODD_TEXTS = (
    *("", " ", "x", "1.0", "1e1", "--1", "+", "0x1", "1 0", "2147483648", "-2147483649", "9" * 40, "NaN"),
    *("True", "FALSE", "yes", "tr ue", " AGENT ", "agent", *QUIRKS),
)
_INSERTS = (
    *(" ", "\n\t", "x", "\u200b", "&#32;", "&#49;", "&amp;", "<!-- x -->", "<?x y?>", *QUIRKS),
    *("<![CDATA[]]>", "<![CDATA[ ]]>", "<![CDATA[1]]>", "<x/>", "<name>y</name>", '<name xmlns="urn:other">y</name>'),
)
_ATTRIBUTES = (
    *(("id", "1"), ("xml:lang", "en"), ("xsi:nil", "true"), ("xsi:nil", "false"), ("xsi:nil", "x"), ("xsi:other", "1")),
    *(("xsi:schemaLocation", "a b"), ("xsi:schemaLocation", "a"), ("xsi:noNamespaceSchemaLocation", "c.xsd")),
    *(("xmlns:p", "urn:p"), ("xmlns", "urn:other"), ("xmlns", "")),
)


@dataclass(slots=True)
class Part:
    """An element that can be spoilt."""

    name: str
    content: list[Part | str]
    attributes: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        attributes = "".join(f' {name}="{value}"' for name, value in self.attributes.items())
        return f"<{self.name}{attributes}>{''.join(map(str, self.content))}</{self.name}>"

    def walk(self) -> Iterator[Part]:
        yield self
        for child in self.content:
            if isinstance(child, Part):
                yield from child.walk()


@st.composite
def _parts(draw: st.DrawFn, name: str, kind: MetadataType) -> Part:
    """Draws an element that fits the type, but for numbers that may come twice."""
    if name not in CHILDREN[kind]:
        return Part(name, [draw(_texts_of(name, kind))])
    content: list[Part | str] = []
    for child in draw(st.permutations(CHILDREN[kind][name])):
        count = draw(st.integers(int(child in _REQUIRED_IN[kind]), 2 if child in _REPEATED else 1))
        content += [draw(_parts(child, kind)) for _ in range(count)]
    return Part(name, content)


def _texts_of(name: str, kind: MetadataType) -> st.SearchStrategy[str]:
    values = {
        "number": _NUMBERS,
        "index": _NUMBERS,
        "versionNumber": _NUMBERS,
        **dict.fromkeys(("isReference", "isActive", "isFallback", "isSystemFallback"), _BOOLEANS),
        "inputScope": ("Session", "Intent", "Interaction", "Moment"),
        "engineType": ("Manual", "PromptTemplate", "Expression"),
        "status": ("Draft", "Available", "Archived"),
        "outcomeType": ("Pass", "Fail", "NotApplicable"),
        "subjectType": kind.subject_types,
        "scorerType": ("Standard", "OOTB", "Custom"),
    }
    return st.sampled_from(values.get(name, ("", " ", "a", "b\nc", "\u00e9\U0001d11e")))


@st.composite
def documents(draw: st.DrawFn, kind: MetadataType = EVALUATION_DEFINITION) -> str:
    """Draws a document with up to three mistakes, or things that look like mistakes."""
    root = draw(_parts(kind.name, kind))
    root.attributes |= {"xmlns": NAMESPACE, "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance"}
    for _ in range(draw(st.integers(0, 3))):
        _spoil(draw, root, kind)
    return str(root)


def _spoil(draw: st.DrawFn, root: Part, kind: MetadataType) -> None:
    part = draw(st.sampled_from(list(root.walk())))
    place = draw(st.integers(0, len(part.content)))
    match draw(st.sampled_from(["drop", "repeat", "rename", "reorder", "text", "insert", "attribute"])):
        case "drop":
            del part.content[place:]
        case "repeat":
            part.content += part.content[place:]
        case "rename":
            part.name = draw(st.sampled_from(_NAMES[kind]))
        case "reorder":
            part.content[:] = draw(st.permutations(part.content))
        case "text":
            part.content[:] = [draw(st.sampled_from(_ODD_TEXTS))]
        case "insert":
            part.content.insert(place, draw(st.sampled_from(_INSERTS)))
        case _:
            part.attributes.update([draw(st.sampled_from(_ATTRIBUTES))])
