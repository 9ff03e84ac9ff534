"""Files of custom scorers: XML to the model, and their texts by path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.agent_scorer import AgentAssociation, AgentScorer, OutputValue, ScorerVersion
from evalmeta.model.registry import SCORER_DEFINITION
from evalmeta.xmlio.definitions import invalid_file, parse_definition
from evalmeta.xmlio.reader import NAMESPACE, local_name
from evalmeta.xmlio.structure import BOOLEANS, XML_BLANKS, parse_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element as Element

    from evalmeta.xmlio.reader import Document


# The child that tells repeated elements apart.
_KEYS: Final = {"scorerVersion": "versionNumber", "agentAssociation": "agentApiName", "outputEnumValue": "value"}


def read_agent_scorer(document: Document) -> AgentScorer:
    """Return what can be read of a scorer: all that rules need of one that fits its schema."""
    root = document.root
    versions = tuple(_version(each) for each in _all(root, "scorerVersion"))
    return AgentScorer(_text(root, "dataType") or "", _text(root, "lightningType"), versions)


def check_agent_scorer(document: Document) -> None:
    """Raise InvalidMetadata, with all problems, if a document does not fit the schema of scorers."""
    _, found = parse_definition(document, SCORER_DEFINITION)
    if found:
        raise invalid_file(document, [each.problem for each in found])


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


def _version(element: Element) -> ScorerVersion:
    engine = next(_all(element, "engine"), None)
    return ScorerVersion(
        parse_integer(_text(element, "versionNumber") or ""),
        _text(element, "status") or "",
        "" if engine is None else _text(engine, "engineType") or "",
        "" if engine is None else _text(engine, "engineRef") or "",
        tuple(_output(each) for each in _all(element, "outputEnumValue")),
        tuple(_association(each) for each in _all(element, "agentAssociation")),
    )


def _output(element: Element) -> OutputValue:
    return OutputValue(_text(element, "value") or "", _text(element, "outcomeType") or "", _flag(element, "isFallback"))


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
