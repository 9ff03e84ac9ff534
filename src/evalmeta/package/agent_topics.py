"""The agents that the files of a project name, with their topics: bundles, scripts, bots, and tests."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import EvalmetaError
from evalmeta.package.files import parse_test_name, read_file
from evalmeta.package.folders import files_below
from evalmeta.xmlio.agent_topics import Topic, read_planner, read_plugin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


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
    plugins = {found[1]: path for path in files if (found := _PLUGIN.fullmatch(path.name))}
    for path in sorted(files):
        tested.update(_tested_by(path))
        for kind in (_BOT, _SCRIPT, _PLANNER):
            if found := kind.fullmatch(path.name):
                of_agent = topics.setdefault(found[1], {})
                of_agent |= {topic.name: topic for topic in _topics_in(path, plugins)}
    return ProjectAgents(frozenset(tested), {name: tuple(topic.values()) for name, topic in topics.items()})


def _tested_by(path: Path) -> list[str]:
    """Return the agent that a definition or a test spec names."""
    pattern = _SUBJECT if parse_test_name(path.name) else _SPEC if path.suffix in {".yaml", ".yml"} else None
    found = pattern.search(_text(path)) if pattern else None
    return [found[1]] if found else []


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
        elif topic and not topic.utterance and (found := _DESCRIPTION.fullmatch(line)):
            topic = topic._replace(utterance=found[1].strip("| "))
    if topic:
        yield topic


def _of_planner(path: Path, plugins: dict[str, Path]) -> Iterator[Topic]:
    with suppress(EvalmetaError):
        topics, names = read_planner(read_file(path), label=path.name)
        yield from topics
        for name in names:
            if name in plugins:
                topic = read_plugin(read_file(plugins[name]), label=name)
                yield topic if topic.name else topic._replace(name=name)


def _text(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8", "replace")
    except EvalmetaError:
        return ""
