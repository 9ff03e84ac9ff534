"""The agents in the files of a project: their names, topics and actions, and the context variables they declare."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import EvalmetaError, FormatError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.files import parse_test_name, read_file, read_text, shown
from evalmeta.package.folders import files_below
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.planner_files import planner_agent, planner_files, planner_parts
from evalmeta.xmlio.reader import NAMESPACE, read_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.agent_script.names import AgentNames, PlacedName
    from evalmeta.agent_script.nodes import Script, SyntaxProblem
    from evalmeta.model.agent_parts import AgentPart
    from evalmeta.model.coverage import Inventory
    from evalmeta.package.planner_files import PlannerFiles
    from evalmeta.package.project import Project


SCRIPT_SUFFIX: Final = ".agent"
RULES: Final = "rules"
"""The folder with the rules that choose the steps of agents in Agent Script instead of a model, `rules/AGENT.yaml`."""
DOUBLES: Final = "actions"
"""The usual folder with rows that answer for actions: `actions/ACTION.yaml`, or `actions/AGENT/ACTION.yaml`."""
_AGENT: Final = re.compile(r"(\w+)\.(?:bot|bot-meta\.xml|agent)")
_VERSION: Final = re.compile(r"\w+\.botVersion(?:-meta\.xml)?")
_DECLARATIONS: Final = ("contextVariables", "conversationVariables")
_SCRIPT: Final = re.compile(r"(\w+)\.agent")
_SPEC: Final = re.compile(r"""^subjectName:\s*["']?(\w+)""", re.MULTILINE)
_SUBJECT: Final = re.compile(r"<subjectName>\s*(\w+)\s*</")


class AgentFiles:
    """The agents in some folders, which are searched when the first agent is asked for."""

    def __init__(
        self, folders: Sequence[Path], *, bound: Iterable[str] = (), has_org: bool = False, namespace: str = ""
    ) -> None:
        """Take the folders, such as the package directories of a project.

        `bound` are the agents that settings bind, and `has_org` says whether they name an org, which has more agents.
        With a `namespace`, `namespace__Agent` is the agent `Agent` of the files.
        """
        self._folders = tuple(folders)
        self._namespace = namespace
        self._bound = frozenset(bound)
        self._has_org = has_org
        self._found: _Found | None = None
        self._scripts: dict[str, dict[Path, Script] | None] = {}
        self._names: dict[str, AgentNames | None] = {}

    def declared_variables(self, agent: str) -> frozenset[str] | None:
        """Return the context variables of an agent in lower case; None if it is not there, or cannot be read.

        They are declared in the agent's Bot and its versions, and as linked variables of its Agent Script.
        """
        agent = self._name_in_files(agent)
        scripts = self._scripts_of(agent)
        paths = self._files().agents.get(agent, ())
        declarations = [path for path in paths if not (path.suffix == SCRIPT_SUFFIX or planner_agent(path))]
        if scripts is None or not (scripts or declarations):
            return None
        variables = (variable for script in scripts.values() for variable in script.variables if variable.is_linked)
        try:
            names = [name for path in declarations for name in _declared_in(path)]
        except EvalmetaError:
            return None
        return frozenset(name.casefold() for name in (*names, *(variable.name for variable in variables)))

    def agent_names(self, agent: str) -> AgentNames | None:
        """Return the names in an agent's Agent Script and classic metadata; None if it has none, or not all are read.

        A script that cannot be read is reported by itself.
        """
        agent = self._name_in_files(agent)
        if agent not in self._names:
            self._names[agent] = self._read_names(agent)
        return self._names[agent]

    def missing_agent(self, agent: str) -> PlacedName | None:
        """Return the agent of the project that a test probably means, and its place, if the project has not this one.

        Return None if settings bind the agent, or name an org, and if no name differs in one or two letters only:
        projects have tests for agents that are in an org only.
        """
        agents = self._files().agents
        if self._has_org or self._name_in_files(agent) in agents or agent in self._bound or not agents:
            return None
        near = _misspelt(agent, agents)
        if near is None or agent in self._developer_names():
            return None
        from evalmeta.agent_script.names import PlacedName

        return PlacedName(near, shown(agents[near][0]))

    def agents(self) -> list[str]:
        """Return the sorted names of the agents whose topics and actions are in Agent Script or classic metadata."""
        agents = self._files().agents.items()
        return sorted(name for name, paths in agents if any(planner_agent(path) or _is_script(path) for path in paths))

    def reads(self, path: Path) -> bool:
        """Return whether a file of the project has the rules of one of its agents, or answers for one of its actions.

        `path` is relative to the project.
        """
        match path.parent.parts:
            case (folder,) if folder == RULES:
                return path.stem in self._files().agents
            case (folder, *agent) if folder == DOUBLES and len(agent) <= 1:
                known = map(self.agent_names, agent or self.agents())
                return any(path.stem in (names.actions or ()) for names in known if names)
        return False

    def inventory(self, agent: str) -> Inventory:
        """Return the parts of an agent; without parts if the folders do not have it.

        Raises:
            FormatError: a script cannot be read; `problems` says where.
            EvalmetaError: another file of the agent cannot be read.
        """
        from evalmeta.agent_script.parts import script_parts
        from evalmeta.model.coverage import Inventory

        parts: list[AgentPart] = []
        start = ""
        paths = self._files().agents.get(agent, ())
        for path in filter(_is_script, paths):
            script, problems = _parsed(path)
            if problems:
                raise _unreadable(shown(path), problems)
            parts += script_parts(script, shown(path))
            start = script.start.name if script.start else start
        known = {(part.kind, part.name) for part in parts}
        for path in filter(planner_agent, paths):
            of_planner = planner_parts(path, self._files().planner_files).parts
            parts += (part for part in of_planner if (part.kind, part.name) not in known)
        return Inventory(tuple(dict.fromkeys(parts)), start)

    def _read_names(self, agent: str) -> AgentNames | None:
        scripts, found = self._scripts_of(agent), self._files()
        planners = [path for path in found.agents.get(agent, ()) if planner_agent(path)]
        if scripts is None or not (scripts or planners):
            return None
        from evalmeta.agent_script.names import merge_names, names_of, names_of_parts

        try:
            read = [planner_parts(path, found.planner_files) for path in planners]
        except EvalmetaError:
            return None
        classic = [names_of_parts(planner.parts, has_all_actions=not planner.elsewhere) for planner in read]
        return merge_names([*classic, *(names_of(script, shown(path)) for path, script in scripts.items())])

    def _developer_names(self) -> set[str]:
        """Return the names of agents in Agent Script that their bundles do not have."""
        from evalmeta.agent_script.names import names_in_config

        scripts = (script for agent in self._files().agents for script in (self._scripts_of(agent) or {}).values())
        return {name for script in scripts for name in names_in_config(script)}

    def _scripts_of(self, agent: str) -> dict[Path, Script] | None:
        """Return the Agent Scripts of an agent; None if some of them cannot be read."""
        if agent not in self._scripts:
            paths = self._files().agents.get(agent, ())
            parsed = {path: _parsed(path) for path in paths if _is_script(path)}
            is_read = not any(problems for _, problems in parsed.values())
            self._scripts[agent] = {path: script for path, (script, _) in parsed.items()} if is_read else None
        return self._scripts[agent]

    def _files(self) -> _Found:
        if self._found is None:
            self._found = _find_agents(self._folders)
        return self._found

    def _name_in_files(self, agent: str) -> str:
        """Return the name of an agent in the files, which have it without the namespace of the project."""
        agents = self._files().agents
        own = agent.removeprefix(f"{self._namespace}__") if self._namespace else agent
        return own if agent not in agents and own in agents else agent


def agents_of(project: Project) -> AgentFiles:
    """Return the agents in the files of a project, with what its settings say about others."""
    settings = project.declared
    if settings is None:
        return AgentFiles(project.package_directories, namespace=project.namespace)
    # Only a project with settings needs it.
    from evalmeta.model.login import EMBEDDED

    has_org = settings.org.default not in {"", EMBEDDED}
    return AgentFiles(
        project.package_directories, bound=settings.subjects, has_org=has_org, namespace=project.namespace
    )


class _Found(NamedTuple):
    """The files of agents by the names of agents, and the files of topics and actions of their planners."""

    agents: Mapping[str, Sequence[Path]]
    planner_files: PlannerFiles


def _find_agents(folders: Sequence[Path]) -> _Found:
    agents: dict[str, list[Path]] = {}
    files = [path for folder in folders for path in files_below(folder)]
    for path in files:
        if match := _AGENT.fullmatch(path.name):
            agents.setdefault(match[1], []).append(path)
        elif _VERSION.fullmatch(path.name):
            agents.setdefault(path.parent.name, []).append(path)
        elif agent := planner_agent(path):
            agents.setdefault(agent, []).append(path)
    return _Found(agents, planner_files(files))


# One or two letters of a name: a project often has a sales agent in its files, and a service agent in an org only.
_SIMILAR: Final = 0.88
_DIGITS: Final = re.compile(r"\d+")


def _misspelt(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant; names whose digits differ are versions, not mistakes."""
    by_letters = {_letters(other): other for other in known if _DIGITS.findall(other) == _DIGITS.findall(name)}
    close = get_close_matches(_letters(name), by_letters, n=1, cutoff=_SIMILAR)
    return by_letters[close[0]] if close else None


def _letters(name: str) -> str:
    return name.replace("_", "").casefold()


def _declared_in(path: Path) -> Iterator[str]:
    root = read_xml(read_file(path), label=path.name).root
    paths = (f".//{{{NAMESPACE}}}{kind}/{{{NAMESPACE}}}developerName" for kind in _DECLARATIONS)
    return ((name.text or "").strip() for steps in paths for name in root.iterfind(steps))


def _is_script(path: Path) -> bool:
    return path.suffix == SCRIPT_SUFFIX


def _unreadable(label: str, found: Sequence[SyntaxProblem]) -> FormatError:
    problems = [
        Problem("script-syntax", Severity.ERROR, Location(label, *problem.position), problem.message, problem.hint)
        for problem in found
    ]
    return FormatError(f"the script {label} is not valid", problems=problems)


def _parsed(path: Path) -> tuple[Script, Sequence[SyntaxProblem]]:
    """Return an Agent Script with what cannot be read; the whole file is a problem if it is too large or not UTF-8."""
    from evalmeta.agent_script.nodes import Position, SyntaxProblem
    from evalmeta.agent_script.parser import parse_script

    try:
        return parse_script(read_text(path, raises=FormatError, max_bytes=limits.MAX_SCRIPT_BYTES))
    except EvalmetaError as error:
        return parse_script("")[0], [SyntaxProblem(str(error), Position(1, 1))]


def find_script(folders: Iterable[Path], agent: str) -> Path | None:
    """Return the Agent Script of an agent, `AGENT.agent` in some folders; None if it has none."""
    file_name = f"{agent}.agent"
    return next((path for folder in folders for path in sorted(files_below(folder)) if path.name == file_name), None)


def project_script(root: Path, agent: str) -> Path | None:
    """Return the Agent Script of an agent of a project; None if it has none."""
    return find_script(source_folders(root), agent)


def source_folders(root: Path) -> tuple[Path, ...]:
    """Return the package directories of a project, or the folder itself without a project."""
    from evalmeta.package.project import find_project

    try:
        return tuple(find_project(root, with_settings=False).package_directories)
    except EvalmetaError:
        return (root,)


def ignored_script(project: Project, agent: str) -> str:
    """Return that `.forceignore` ignores the Agent Script of an agent; empty if it does not."""
    ignore, file_name = read_forceignore(project.root), f"{agent}.agent"
    for folder in project.package_directories:
        for where, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
            path = Path(where) / file_name
            if file_name in files and (line := ignore.find_line(path)):
                return f"{shown(path)} is ignored by {line}."
    return ""


def find_scripts(root: Path) -> list[str]:
    """Return the sorted names of the agents in Agent Script below a folder."""
    return sorted({match[1] for path in files_below(root) if (match := _SCRIPT.fullmatch(path.name))})


class Topic(NamedTuple):
    """A topic of an agent, and what users say about it: the first example in its file, or else its description."""

    name: str
    utterance: str


class ProjectAgents(NamedTuple):
    """The agents of a project by name: those of its tests, and the topics of those of its bundles, scripts and bots.

    `defined` are the agents of definitions, which orgs can run.
    """

    tested: frozenset[str]
    topics: dict[str, tuple[Topic, ...]]
    defined: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Return the names of all agents, sorted."""
        return sorted({*self.tested, *self.topics})


NO_AGENTS: Final = ProjectAgents(frozenset(), {})


def find_agents(root: Path) -> ProjectAgents:
    """Return the agents that the files below a folder name; files that cannot be read name none."""
    tested: set[str] = set()
    defined: set[str] = set()
    topics: dict[str, dict[str, Topic]] = {}
    files = list(files_below(root)) if root.is_dir() else []
    plugins = planner_files(files)
    for path in sorted(files):
        subjects = _tested_by(path)
        tested.update(subjects)
        defined.update(subjects if parse_test_name(path.name) else ())
        agent = planner_agent(path)
        if match := _AGENT.fullmatch(path.name):
            agent = match[1]
        if agent:
            topics.setdefault(agent, {}).update({topic.name: topic for topic in _topics_in(path, plugins)})
    by_name = {name: tuple(topic.values()) for name, topic in topics.items()}
    return ProjectAgents(frozenset(tested), by_name, frozenset(defined))


def _tested_by(path: Path) -> list[str]:
    """Return the agent that a definition or a test spec names."""
    pattern = _SUBJECT if parse_test_name(path.name) else _SPEC if path.suffix in {".yaml", ".yml"} else None
    match = pattern.search(_text(path)) if pattern else None
    return [match[1]] if match else []


def _topics_in(path: Path, plugins: PlannerFiles) -> Iterable[Topic]:
    if path.suffix == SCRIPT_SUFFIX:
        return _of_script(path)
    return _of_planner(path, plugins) if planner_agent(path) else ()


def _of_script(path: Path) -> Iterator[Topic]:
    """Yield the topics of an Agent Script that can be read, except the one that starts it."""
    script, _ = _parsed(path)
    for subagent in script.subagents:
        if subagent is not script.start:
            yield Topic(subagent.name, " ".join(subagent.description.split()))


def _of_planner(path: Path, plugins: PlannerFiles) -> Iterator[Topic]:
    """Yield the topics in a planner that can be read, except those that are in an org only."""
    with suppress(EvalmetaError):
        planner = planner_parts(path, plugins)
        for part in planner.parts:
            if part.kind == "topic" and part.name not in planner.elsewhere:
                yield Topic(part.name, part.utterance or part.description)


def _text(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8", "replace")
    except EvalmetaError:
        return ""
