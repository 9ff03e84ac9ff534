"""The context variables that agents declare in the files of a project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.errors import EvalmetaError
from evalmeta.package.files import read_file
from evalmeta.package.folders import files_below
from evalmeta.xmlio.reader import NAMESPACE, read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


_AGENT: Final = re.compile(r"(\w+)\.(?:bot|bot-meta\.xml|agent)")
_VERSION: Final = re.compile(r"\w+\.botVersion(?:-meta\.xml)?")
_DECLARATIONS: Final = ("contextVariables", "conversationVariables")
_LINKED: Final = re.compile(r"\s+(\w+)\s*:\s*linked\b")


class AgentFiles:
    """The agents in some folders, which are searched when the first agent is asked for."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Take the folders, such as the package directories of a project."""
        self._folders = tuple(folders)
        self._found: Mapping[str, Sequence[Path]] | None = None

    def declared_variables(self, agent: str) -> frozenset[str] | None:
        """Return the context variables of an agent in lower case; None if it is not there, or cannot be read.

        They are declared in the agent's Bot and its versions, and as linked variables of its Agent Script.
        """
        if self._found is None:
            self._found = _find_agents(self._folders)
        paths = self._found.get(agent, ())
        try:
            return frozenset(name.casefold() for path in paths for name in _declared_in(path)) if paths else None
        except (EvalmetaError, UnicodeDecodeError):
            return None


def _find_agents(folders: Sequence[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in (path for folder in folders for path in files_below(folder)):
        if match := _AGENT.fullmatch(path.name):
            found.setdefault(match[1], []).append(path)
        elif _VERSION.fullmatch(path.name):
            found.setdefault(path.parent.name, []).append(path)
    return found


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
