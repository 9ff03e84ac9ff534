"""Agents in classic metadata: the topics and actions in planners (GenAiPlannerBundle, GenAiPlanner) and plugins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.agent_parts import AgentPart
from evalmeta.package.files import read_file, shown
from evalmeta.xmlio.reader import NAMESPACE, read_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from lxml.etree import _Element as Element

_META: Final = r"(?:-meta\.xml)?"
# The bundle of an agent's version has the version in its name.
_PLANNER: Final = re.compile(rf"(\w+?)(?:_v\d+)?\.genAiPlanner(?:Bundle)?{_META}")
_PLUGIN: Final = re.compile(rf"(\w+)\.genAiPlugin{_META}")
_FUNCTION: Final = re.compile(rf"(\w+)\.genAiFunction{_META}")
# The names of a local topic or action; in an org, all but the first also have an id.
_NAMES: Final = ("localDeveloperName", "developerName", "fullName")
_LABEL: Final = "masterLabel"


class PlannerFiles(NamedTuple):
    """The files of plugins (topics) and functions (actions) by their names."""

    plugins: dict[str, Path]
    functions: dict[str, Path]


class PlannerParts(NamedTuple):
    """The topics and actions of a planner, and the topics whose plugins, with their actions, are in no file."""

    parts: tuple[AgentPart, ...]
    elsewhere: frozenset[str]


def planner_agent(path: Path) -> str:
    """Return the agent whose planner a file is, without the version; empty if it is another file."""
    match = _PLANNER.fullmatch(path.name)
    return match[1] if match else ""


def planner_files(paths: Iterable[Path]) -> PlannerFiles:
    """Return the plugins and functions among files."""
    found = PlannerFiles({}, {})
    for path in paths:
        if match := _PLUGIN.fullmatch(path.name):
            found.plugins[match[1]] = path
        elif match := _FUNCTION.fullmatch(path.name):
            found.functions[match[1]] = path
    return found


def planner_parts(path: Path, files: PlannerFiles) -> PlannerParts:
    """Return the topics and actions of a planner; raise EvalmetaError if it, or a file of it, cannot be read."""
    root = _root(path)
    parts = [*_actions(root, "", path, files)]
    for element in _children(root, "localTopics"):
        parts += _topic(element, "", path, files)
    elsewhere: set[str] = set()
    for link in _children(root, "genAiPlugins"):
        name = _text(link, "genAiPluginName")
        customized = next(_children(link, "genAiCustomizedPlugin"), None)
        if customized is not None:
            parts += _topic(customized, name, path, files)
        elif name in files.plugins:
            parts += _topic(_root(files.plugins[name]), name, files.plugins[name], files)
        elif name:
            elsewhere.add(name)
            parts.append(AgentPart("topic", name, place=_place(path, link), words=(name,)))
    return PlannerParts(tuple(parts), frozenset(elsewhere))


def _topic(element: Element, named: str, path: Path, files: PlannerFiles) -> Iterator[AgentPart]:
    """Yield a topic and its actions; `named` is what the planner calls it, if it is not a local one."""
    names = _names(element)
    name = names[0] if names else named
    if not name:
        return
    example = next(_children(element, "aiPluginUtterances"), None)
    yield AgentPart(
        "topic",
        name,
        place=_place(path, element),
        description=_text(element, "description"),
        utterance="" if example is None else _text(example, "utterance"),
        words=tuple(filter(None, (*names, named, _text(element, _LABEL)))),
    )
    yield from _actions(element, name, path, files)


def _actions(element: Element, topic: str, path: Path, files: PlannerFiles) -> Iterator[AgentPart]:
    """Yield the actions of a planner or a topic: those that it has, then those that it only names."""
    known: set[str] = set()
    for local in (*_children(element, "localActions"), *_children(element, "plannerActions")):
        names = _names(local)
        known.update(names)
        if names:
            words = tuple(filter(None, (*names, _text(local, _LABEL))))
            yield AgentPart("action", names[0], topic, _place(path, local), _text(local, "description"), words=words)
    for link in (*_children(element, "genAiFunctions"), *_children(element, "localActionLinks")):
        name = _text(link, "functionName") or _text(link, "genAiFunctionName")
        if not name or name in known:
            continue
        known.add(name)
        root = _root(files.functions[name]) if name in files.functions else None
        label, description = ("", "") if root is None else (_text(root, _LABEL), _text(root, "description"))
        yield AgentPart(
            "action", name, topic, _place(path, link), description, words=tuple(filter(None, (name, label)))
        )


def _names(element: Element) -> list[str]:
    return [name for key in _NAMES if (name := _text(element, key))]


def _root(path: Path) -> Element:
    return read_xml(read_file(path), label=path.name).root


def _children(element: Element, name: str) -> Iterator[Element]:
    return element.iterfind(f"{{{NAMESPACE}}}{name}")


def _text(element: Element, name: str) -> str:
    return " ".join((element.findtext(f"{{{NAMESPACE}}}{name}") or "").split())


def _place(path: Path, element: Element) -> str:
    return f"{shown(path)}:{element.sourceline or 1}"
