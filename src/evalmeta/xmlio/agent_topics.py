"""The topics of an agent in its planner (GenAiPlannerBundle, GenAiPlanner) and in plugins (GenAiPlugin)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.xmlio.reader import NAMESPACE, read_xml

if TYPE_CHECKING:
    from lxml.etree import _Element as Element


# The names of a local topic; in an org, all but the first also have an id.
_NAMES: Final = ("localDeveloperName", "developerName", "fullName")


class Topic(NamedTuple):
    """A topic of an agent, and what users say about it: the first example in its file, or else its description."""

    name: str
    utterance: str


def read_planner(data: bytes, *, label: str) -> tuple[list[Topic], list[str]]:
    """Return the topics in a planner, and the names of its plugins; raise InvalidMetadata if it is not valid XML."""
    root = read_xml(data, label=label).root
    topics = [_topic(element) for element in root.iterfind(f"{{{NAMESPACE}}}localTopics")]
    plugins = [_child(element, "genAiPluginName") for element in root.iterfind(f"{{{NAMESPACE}}}genAiPlugins")]
    return [topic for topic in topics if topic.name], plugins


def read_plugin(data: bytes, *, label: str) -> Topic:
    """Return the topic in a plugin; raise InvalidMetadata if it is not valid XML."""
    return _topic(read_xml(data, label=label).root)


def _topic(element: Element) -> Topic:
    name = next(filter(None, (_child(element, name) for name in _NAMES)), "")
    example = element.find(f"{{{NAMESPACE}}}aiPluginUtterances")
    said = "" if example is None else _child(example, "utterance")
    return Topic(name, said or _child(element, "description"))


def _child(element: Element, name: str) -> str:
    return " ".join((element.findtext(f"{{{NAMESPACE}}}{name}") or "").split())
