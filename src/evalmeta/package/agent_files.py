"""The agents in the files of a project: the context variables that they declare, and their topics."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import EvalmetaError
from evalmeta.package.files import parse_test_name, read_file
from evalmeta.package.folders import files_below
from evalmeta.xmlio.reader import NAMESPACE, read_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from lxml.etree import _Element as Element


_AGENT: Final = re.compile(r"(\w+)\.(?:bot|bot-meta\.xml|agent)")
_VERSION: Final = re.compile(r"\w+\.botVersion(?:-meta\.xml)?")
_DECLARATIONS: Final = ("contextVariables", "conversationVariables")
_LINKED: Final = re.compile(r"\s+(\w+)\s*:\s*linked\b")
_META: Final = r"(?:-meta\.xml)?"
_BOT: Final = re.compile(rf"(\w+)\.bot{_META}")
_SCRIPT: Final = re.compile(r"(\w+)\.agent")
# The bundle of an agent's version has the version in its name.
_PLANNER: Final = re.compile(rf"(\w+?)(?:_v\d+)?\.genAiPlanner(?:Bundle)?{_META}")
_PLUGIN: Final = re.compile(rf"(\w+)\.genAiPlugin{_META}")
_SPEC: Final = re.compile(r"""^subjectName:\s*["']?(\w+)""", re.MULTILINE)
_SUBJECT: Final = re.compile(r"<subjectName>\s*(\w+)\s*</")
_BLOCK: Final = re.compile(r"(?:topic|subagent)\s+(\w+)\s*:")
_DESCRIPTION: Final = re.compile(r"""\s+description\s*:\s*["']?(.*?)["']?\s*""")
# The names of a local topic; in an org, all but the first also have an id.
_NAMES: Final = ("localDeveloperName", "developerName", "fullName")


class AgentFiles:
    """The agents in some folders, which are searched when the first agent is asked for."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Take the folders, such as the package directories of a project."""
        self._folders = tuple(folders)
        self._files: Mapping[str, Sequence[Path]] | None = None

    def declared_variables(self, agent: str) -> frozenset[str] | None:
        """Return the context variables of an agent in lower case; None if it is not there, or cannot be read.

        They are declared in the agent's Bot and its versions, and as linked variables of its Agent Script.
        """
        if self._files is None:
            self._files = _find_agents(self._folders)
        paths = self._files.get(agent, ())
        try:
            return frozenset(name.casefold() for path in paths for name in _declared_in(path)) if paths else None
        except (EvalmetaError, UnicodeDecodeError):
            return None


def _find_agents(folders: Sequence[Path]) -> dict[str, list[Path]]:
    agents: dict[str, list[Path]] = {}
    for path in (path for folder in folders for path in files_below(folder)):
        if match := _AGENT.fullmatch(path.name):
            agents.setdefault(match[1], []).append(path)
        elif _VERSION.fullmatch(path.name):
            agents.setdefault(path.parent.name, []).append(path)
    return agents


def _declared_in(path: Path) -> Iterator[str]:
    data = read_file(path)
    if path.suffix == ".agent":
        return _linked_variables(data.decode())
    root = read_xml(data, label=path.name).root
    paths = (f".//{{{NAMESPACE}}}{kind}/{{{NAMESPACE}}}developerName" for kind in _DECLARATIONS)
    return ((name.text or "").strip() for steps in paths for name in root.iterfind(steps))


def _linked_variables(script: str) -> Iterator[str]:
    """Yield the variables of an Agent Script that its session sets (Agent Script reference, "Linked Variables")."""
    is_inside = False
    for line in script.splitlines():
        if line[:1].strip() and not line.startswith("#"):
            is_inside = line.startswith("variables:")
        elif is_inside and (match := _LINKED.match(line)):
            yield match[1]


class Topic(NamedTuple):
    """A topic of an agent, and what users say about it: the first example in its file, or else its description."""

    name: str
    utterance: str


class ProjectAgents(NamedTuple):
    """The agents of a project by name: those of its tests, and the topics of those of its bundles, scripts and bots."""

    tested: frozenset[str]
    topics: dict[str, tuple[Topic, ...]]

    @property
    def names(self) -> list[str]:
        """Return the names of all agents, sorted."""
        return sorted({*self.tested, *self.topics})


NO_AGENTS: Final = ProjectAgents(frozenset(), {})


def find_agents(root: Path) -> ProjectAgents:
    """Return the agents that the files below a folder name; files that cannot be read name none."""
    tested: set[str] = set()
    topics: dict[str, dict[str, Topic]] = {}
    files = list(files_below(root)) if root.is_dir() else []
    plugins = {match[1]: path for path in files if (match := _PLUGIN.fullmatch(path.name))}
    for path in sorted(files):
        tested.update(_tested_by(path))
        for kind in (_BOT, _SCRIPT, _PLANNER):
            if match := kind.fullmatch(path.name):
                of_agent = topics.setdefault(match[1], {})
                of_agent |= {topic.name: topic for topic in _topics_in(path, plugins)}
    return ProjectAgents(frozenset(tested), {name: tuple(topic.values()) for name, topic in topics.items()})


def _tested_by(path: Path) -> list[str]:
    """Return the agent that a definition or a test spec names."""
    pattern = _SUBJECT if parse_test_name(path.name) else _SPEC if path.suffix in {".yaml", ".yml"} else None
    match = pattern.search(_text(path)) if pattern else None
    return [match[1]] if match else []


def _topics_in(path: Path, plugins: dict[str, Path]) -> Iterable[Topic]:
    if _SCRIPT.fullmatch(path.name):
        return _of_script(_text(path))
    return _of_planner(path, plugins) if _PLANNER.fullmatch(path.name) else ()


def _of_script(script: str) -> Iterator[Topic]:
    """Yield the topics of an Agent Script, except the one that starts it."""
    topic: Topic | None = None
    for line in script.splitlines():
        if line[:1].strip() and not line.startswith("#"):
            if topic:
                yield topic
            block = _BLOCK.match(line)
            topic = Topic(block[1], "") if block else None
        elif topic and not topic.utterance and (match := _DESCRIPTION.fullmatch(line)):
            topic = topic._replace(utterance=match[1].strip("| "))
    if topic:
        yield topic


def _of_planner(path: Path, plugins: dict[str, Path]) -> Iterator[Topic]:
    """Yield the topics in a planner (GenAiPlannerBundle, GenAiPlanner) and in its plugins (GenAiPlugin)."""
    with suppress(EvalmetaError):
        root = read_xml(read_file(path), label=path.name).root
        topics = (_topic(element) for element in root.iterfind(f"{{{NAMESPACE}}}localTopics"))
        yield from (topic for topic in topics if topic.name)
        for element in root.iterfind(f"{{{NAMESPACE}}}genAiPlugins"):
            name = _child(element, "genAiPluginName")
            if name in plugins:
                topic = _topic(read_xml(read_file(plugins[name]), label=name).root)
                yield topic if topic.name else topic._replace(name=name)


def _topic(element: Element) -> Topic:
    name = next(filter(None, (_child(element, name) for name in _NAMES)), "")
    example = element.find(f"{{{NAMESPACE}}}aiPluginUtterances")
    said = "" if example is None else _child(example, "utterance")
    return Topic(name, said or _child(element, "description"))


def _child(element: Element, name: str) -> str:
    return " ".join((element.findtext(f"{{{NAMESPACE}}}{name}") or "").split())


def _text(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8", "replace")
    except EvalmetaError:
        return ""
