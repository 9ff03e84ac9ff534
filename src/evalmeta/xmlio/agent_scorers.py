"""Files of custom scorers: XML to the model, their texts by path, and the texts of their prompt templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.agent_scorer import (
    AgentAssociation,
    AgentScorer,
    OutputValue,
    ScorerVersion,
    ValueRange,
    read_number,
)
from evalmeta.model.registry import SCORER_DEFINITION
from evalmeta.xmlio.definitions import invalid_file, parse_definition
from evalmeta.xmlio.reader import NAMESPACE, Document, local_name, read_xml
from evalmeta.xmlio.structure import BOOLEANS, XML_BLANKS, parse_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element as Element


# The child that tells repeated elements apart.
_KEYS: Final = {"scorerVersion": "versionNumber", "agentAssociation": "agentApiName", "outputEnumValue": "value"}


def read_agent_scorer(document: Document) -> AgentScorer:
    """Return what can be read of a scorer: all of one that fits its schema, except labels and descriptions."""
    root = document.root
    versions = tuple(map(_version, _all(root, "scorerVersion")))
    return AgentScorer(_text(root, "dataType") or "", _text(root, "lightningType"), versions)


def check_agent_scorer(document: Document) -> None:
    """Raise InvalidMetadata, with all problems, if a document does not fit the schema of scorers."""
    _, problems = parse_definition(document, SCORER_DEFINITION)
    if problems:
        raise invalid_file(document, [problem.problem for problem in problems])


def texts_by_path(document: Document) -> dict[tuple[str, ...], str]:
    """Return the texts of a scorer by their paths, such as `("scorerVersion 1", "label")`."""
    return dict(_texts(document.root, ()))


def _texts(element: Element, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for child in element:
        name = local_name(child)
        key = _text(child, _KEYS[name]) if name in _KEYS else None
        below = (*path, name if key is None else f"{name} {key.strip(XML_BLANKS)}")
        if len(child):
            yield from _texts(child, below)
        else:
            yield below, child.text or ""


def read_template_text(data: bytes, *, label: str) -> str | None:
    """Return the text of a prompt template's version in use; None if it has none.

    That is the version of `activeVersionIdentifier`, or else the last one that is Published, or else the last one
    (Metadata API Developer Guide, GenAiPromptTemplate). Raise InvalidMetadata if the file cannot be read.
    """
    root = read_xml(data, label=label).root
    if root.tag != f"{{{NAMESPACE}}}GenAiPromptTemplate":
        return None
    versions = [*root.iterchildren(f"{{{NAMESPACE}}}templateVersions")]
    active = _text(root, "activeVersionIdentifier")
    chosen = [version for version in versions if active and _text(version, "versionIdentifier") == active]
    published = [version for version in versions if _text(version, "status") == "Published"]
    used = (chosen or published or versions)[-1:]
    return (_text(used[0], "content") or None) if used else None


def _version(element: Element) -> ScorerVersion:
    engine = next(_all(element, "engine"), None)
    kind, reference = ("" if engine is None else _text(engine, name) or "" for name in ("engineType", "engineRef"))
    return ScorerVersion(
        parse_integer(_text(element, "versionNumber") or ""),
        _text(element, "status") or "",
        kind,
        reference,
        tuple(map(_output, _all(element, "outputEnumValue"))),
        tuple(map(_association, _all(element, "agentAssociation"))),
        _values(element),
    )


def _values(element: Element) -> ValueRange:
    """Return the range of scores, which samples have in `valueSpecification` and the field table beside it."""
    numbers: dict[str, float] = {}
    for specification in _all(element, "specification"):
        for holder in (specification, *_all(specification, "valueSpecification")):
            for name in ("min", "max", "step", "threshold"):
                if (number := read_number(_text(holder, name))) is not None:
                    numbers[name] = number
    return ValueRange(numbers.get("min"), numbers.get("max"), numbers.get("step"), numbers.get("threshold"))


def _output(element: Element) -> OutputValue:
    value, outcome = (_text(element, name) or "" for name in ("value", "outcomeType"))
    return OutputValue(value, outcome, _flag(element, "isFallback"), _flag(element, "isSystemFallback"))


def _association(element: Element) -> AgentAssociation:
    agent = _text(element, "agentApiName") or ""
    return AgentAssociation(agent, _flag(element, "isActive"), _text(element, "samplingRate"))


def _all(element: Element, name: str) -> Iterator[Element]:
    return element.iterchildren(f"{{{NAMESPACE}}}{name}")


def _text(element: Element, name: str) -> str | None:
    child = next(_all(element, name), None)
    return None if child is None else child.text or ""


def _flag(element: Element, name: str) -> bool:
    return BOOLEANS.get((_text(element, name) or "").strip(XML_BLANKS), False)
