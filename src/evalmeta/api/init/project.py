"""New projects: settings, first tests, and an agent to test, in a folder that may have files already."""

from __future__ import annotations

import json
import shlex
import tomllib
from contextlib import suppress
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.api.discovery import find_tests
from evalmeta.api.endpoints import is_url, named_settings
from evalmeta.api.init.agents import (
    AgentChoice,
    NewAgent,
    adapter_of_command,
    check_choice,
    new_agent,
    real_agents,
    script_agents,
)
from evalmeta.errors import EvalmetaError, NotFound, UsageError
from evalmeta.formats.baseline import read_baseline
from evalmeta.formats.files import kind_of_file
from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase
from evalmeta.model.expectations import TOPIC
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION, PARAMETER_API_VERSION
from evalmeta.package.agent_files import NO_AGENTS, ProjectAgents, find_agents, find_scripts
from evalmeta.package.files import read_file, shown, write_below
from evalmeta.package.folders import files_below, target_path
from evalmeta.package.project import PROJECT_FILE, SETTINGS_FILE, Project, find_project, has_project, version_in_force
from evalmeta.package.settings import load_settings
from evalmeta.package.trust import STATE_FOLDER
from evalmeta.report.text import count
from evalmeta.xmlio.definitions import write_definition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.settings import SubjectSettings


CiSystem = Literal["github", "gitlab", "azure"]
InitState = Literal["Created", "Added to", "Kept"]

CI_FILES: Final = {
    "github": ".github/workflows/agent-tests.yml",
    "gitlab": ".gitlab-ci.yml",
    "azure": "azure-pipelines.yml",
}
# The variables of a step, and each of them; GitLab gives all variables to all jobs.
_CI_KEYS: Final = {
    "github": ("\n      env:", "\n        {0}: ${{{{ secrets.{0} }}}}"),
    "gitlab": ("", ""),
    "azure": ("\n  env:", "\n    {0}: $({0})"),
}
_DX_FOLDER: Final = "force-app"
_DX_FILE: Final = """\
{
  "packageDirectories": [{ "path": "%s", "default": true }],
  "sourceApiVersion": "%s"
}
"""
_SAMPLE: Final = AgentChoice()
_TESTS: Final = ("answers", "conversation")
_PROPOSED: Final = "Proposed from the topics in the project: replace each utterance with what users say"
_REPLACE: Final = "replace them in the folder actions, then remove review"
_PYTEST_FILES: Final = ("conftest.py", "test_*.py", "*_test.py")
_OWN_FORMATS: Final = frozenset({"definition", "testspec", "csv", None})
# In each folder.
_MAX_LINES: Final = 5
_IGNORED: Final = f"{STATE_FOLDER}/\n"
# Where the workflows write reports.
_CI_IGNORED: Final = "results/\n"
_BASELINE: Final = "evalmeta-baseline.json"


class NewFile(NamedTuple):
    """A file of a new project, by its absolute path; one that existed is kept, or gets lines at its end.

    `missing` are the lines that a file which was kept needs.
    """

    path: Path
    content: str
    state: InitState = "Created"
    missing: str = ""


class NewProject(NamedTuple):
    """What `init` did: to each file, and the name that the settings give to the agent.

    `tests` are the paths of the tests, or their folder if it has no others, relative to the project's folder; empty for
    all tests of the project. `commands` run an example; the tests of other projects are run by `evalmeta run`.
    """

    root: Path
    subject_name: str
    files: tuple[NewFile, ...]
    tests: tuple[str, ...]
    notes: tuple[str, ...]
    is_dx: bool
    commands: tuple[str, ...] = ()


def init_project(
    folder: Path, choice: AgentChoice = _SAMPLE, *, is_dx: bool = False, ci: CiSystem | None = None
) -> NewProject:
    """Write the files of a new project, and return what was done; existing files are never overwritten.

    A folder inside a Salesforce DX project stands for the project. Without a choice, the agent is the one in the folder
    or a sample. In a Salesforce DX project, they are those in Agent Script, and a double of each other agent that its
    files name.
    """
    if is_url(choice.target) and not choice.url:
        choice = choice._replace(target="", url=choice.target)
    elif adapter_of_command(choice.target) and not choice.command:
        choice = choice._replace(target="", command=choice.target)
    check_choice(choice)
    root, is_dx = _root_of(folder, is_dx=is_dx)
    settings = root / SETTINGS_FILE
    subjects = load_settings(settings).subjects if settings.is_file() else {}
    real = find_agents(root) if is_dx else NO_AGENTS
    if choice.is_for_scripts:
        agent = script_agents(find_scripts(root) if is_dx else [], choice)
    elif bound := _bound_name(subjects, choice):
        agent = NewAgent(bound, "")
    elif names := real.names if choice == _SAMPLE else []:
        agent = real_agents(names, _bundled(root))
    else:
        agent = new_agent(root, choice)
        name = _api_name(real, agent) if is_dx else agent.name
        agent = agent._replace(name=f"{name}_2" if name in subjects else name)
    # A spec can name a Python agent that the existing settings do not bind.
    is_unbound = settings.is_file() and agent.settings != ""
    subject = choice.target if is_unbound and choice.target else agent.name
    is_real = choice.is_for_scripts or (choice == _SAMPLE and bool(real.names))
    tests = list(
        _proposals(root, real) if is_real else _definitions(root, agent) if is_dx else _specs(root, agent, subject)
    )
    ignored = f"{_IGNORED}{_CI_IGNORED if ci else ''}"
    doubles = list(_doubles(root)) if is_dx and is_real else []
    files = [*_project_files(root, agent, ignored, is_dx=is_dx), *doubles, *tests]
    # Tests of real agents, and those that are there already, may be anywhere in the project.
    paths = () if is_real or (not is_dx and _has_tests(root)) else _test_paths(root, [test.path for test in tests])
    if ci:
        files.append(_workflow(root, ci, choice, paths))
    done = tuple(map(written, files, [root] * len(files)))
    kept = [] if choice == _SAMPLE else [file.path for file in done if file.state == "Kept"]
    created = sum(file.state == "Created" for file in done if file.path in {double.path for double in doubles})
    notes = (
        agent.note,
        f"{count(created, 'action')} will answer with example outputs: {_REPLACE}" if created else "",
        *(_kept_note(path, subject) for path in kept if path.suffix == ".yaml"),
    )
    return NewProject(root, agent.name, done, paths, tuple(filter(None, notes)), is_dx)


def _doubles(root: Path) -> Iterator[NewFile]:
    """Yield files with example outputs of the actions of scripts; none of a script with errors, which tests report."""
    # Other projects do not need it.
    from evalmeta.org.subjects import agent_settings

    for name in sorted(_bundled(root)):
        settings = agent_settings({}, name, root=root)
        with suppress(EvalmetaError):
            files = settings.proposed_doubles(root) if settings else {}
            yield from (NewFile(path, content.decode()) for path, content in files.items())


def _bundled(root: Path) -> set[str]:
    """Return the agents whose Agent Script runs in a project, by their names."""
    folders = find_project(root).package_directories if (root / PROJECT_FILE).is_file() else ()
    return {name for folder in folders if folder.is_dir() for name in find_scripts(folder)}


def _kept_note(path: Path, subject: str) -> str:
    """Return that a test spec was kept that tests another agent than the chosen one; empty for other files."""
    from evalmeta.formats.testspec import read_spec_file

    try:
        asked = read_spec_file(path, label=shown(path)).definition.subject_name
    except EvalmetaError:
        return ""
    if asked in {"", subject}:
        return ""
    return f"{shown(path)} was kept and tests {asked}; write subject: {subject} in it to test the chosen agent"


def _root_of(folder: Path, *, is_dx: bool) -> tuple[Path, bool]:
    """Return the project's folder, and whether it is a Salesforce DX project; one around the folder comes first."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", actions=["Name a folder, or leave it out for the current one."])
    above = next((path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir()), Path.cwd())
    if has_project(above):
        project = find_project(above)
        if project.is_dx or project.root == folder.resolve():
            return project.root, is_dx or project.is_dx
    return Path(folder.resolve()), is_dx


def _bound_name(subjects: Mapping[str, SubjectSettings], choice: AgentChoice) -> str:
    """Return the name of the chosen agent in existing settings; empty if they do not bind it."""
    if choice == _SAMPLE:
        return next(iter(subjects), "")
    named = named_settings(choice.url, api_key_env=None, option="--agent").get("url", "")
    command = choice.command.removeprefix(f"{adapter_of_command(choice.command)}:")
    wanted = {choice.target, choice.url, command, named} - {""}
    for name, subject in subjects.items():
        keys = subject.model_dump()
        if wanted & {keys.get("target"), keys.get("url"), shlex.join(keys.get("command", ()))}:
            return name
    return ""


def _api_name(real: ProjectAgents, agent: NewAgent) -> str:
    """Return the API name of the project's agent, or a name for a new one; a sample never stands for a real agent."""
    if names := [] if agent.is_sample else [*sorted(real.topics), *sorted(real.tested)]:
        return names[0]
    return "_".join(word[:1].upper() + word[1:] for word in agent.name.split("_"))


def _project_files(root: Path, agent: NewAgent, ignored: str, *, is_dx: bool) -> Iterator[NewFile]:
    if is_dx and not (root / PROJECT_FILE).is_file():
        yield NewFile(root / PROJECT_FILE, _DX_FILE % (_DX_FOLDER, NEWEST_API_VERSION))
    lines = agent.settings.replace("[subjects.my_agent.", f"[subjects.{agent.name}.")
    table = f"[subjects.{agent.name}]\n{lines}" if lines else ""
    yield NewFile(root / SETTINGS_FILE, _filled("settings", name=agent.name, lines=lines), missing=table)
    if agent.template:
        yield NewFile(root / agent.path, _filled(agent.template, **dict(agent.values)))
    yield from (NewFile(root / path, content) for path, content in agent.files)
    yield NewFile(root / ".gitignore", f"# State and results of evalmeta\n{ignored}")


def _specs(root: Path, agent: NewAgent, subject: str) -> Iterator[NewFile]:
    kind = "sample" if agent.is_sample else "own"
    folder = root / _tests_folder(root)
    if agent.inputs:
        cases = "".join(map(_call_case, agent.inputs))
        yield NewFile(folder / "calls.yaml", _filled("own_calls", name=subject, cases=cases.rstrip("\n")))
        return
    for test in _TESTS:
        yield NewFile(folder / f"{test}.yaml", _filled(f"{kind}_{test}", name=subject))


def _call_case(inputs: JsonObject) -> str:
    """Return a test case for a call of a tool that must not end in an error."""
    tool = json.dumps(inputs.get("tool"))
    return f"- input: {json.dumps(inputs, ensure_ascii=False)}\n  actions: [{{name: {tool}, error: false}}]\n"


def _tests_folder(root: Path) -> str:
    """Return the folder of the tests: `tests`, or a folder of their own inside the folder of pytest's tests."""
    places = [*_testpaths(root), "tests", "test"]
    for place in places:
        folder = root / place
        is_inside = folder.resolve().is_relative_to(root)
        if is_inside and folder.is_dir() and any(next(folder.rglob(pattern), None) for pattern in _PYTEST_FILES):
            return f"{place.rstrip('/')}/agent"
    return "tests"


def _testpaths(root: Path) -> list[str]:
    file = root / "pyproject.toml"
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        paths = table["tool"]["pytest"]["ini_options"]["testpaths"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [path for path in ([paths] if isinstance(paths, str) else paths) if isinstance(path, str)]


def _definitions(root: Path, agent: NewAgent) -> Iterator[NewFile]:
    kind = "sample" if agent.is_sample else "own"
    project = find_project(root) if (root / PROJECT_FILE).is_file() else None
    is_old = project is not None and version_in_force(project) < PARAMETER_API_VERSION
    check = _filled(f"{kind}_definition_check{'_63' if is_old else ''}")
    for kind_of_test in _TESTS:
        test = f"{agent.name}_{kind_of_test.capitalize()}"
        path = _definition_path(root, project, test)
        yield NewFile(path, _filled(f"{kind}_definition_{kind_of_test}", name=agent.name, test=test, check=check))


def _proposals(root: Path, real: ProjectAgents) -> Iterator[NewFile]:
    """Yield a definition for each agent without one: a case for each topic that the project's files say enough of."""
    project = find_project(root) if (root / PROJECT_FILE).is_file() else None
    for agent, topics in sorted(real.topics.items()):
        asked = [topic for topic in topics if topic.utterance]
        if asked and agent not in real.defined:
            test = f"{agent}_Topics"
            cases = tuple(
                TestCase(Inputs(topic.utterance), (Expectation(TOPIC, topic.name),), number)
                for number, topic in enumerate(asked, 1)
            )
            definition = Definition(test, agent, test_cases=cases, description=_PROPOSED)
            path = _definition_path(root, project, test)
            yield NewFile(path, write_definition(definition).decode())


def _definition_path(root: Path, project: Project | None, test: str) -> Path:
    if project is not None:
        return target_path(project, EVALUATION_DEFINITION, test)
    kind = EVALUATION_DEFINITION
    return root / _DX_FOLDER / "main" / "default" / kind.directory / f"{test}.{kind.suffix}-meta.xml"


def _has_tests(root: Path) -> bool:
    """Return whether a folder has tests in the format of another tool, such as eval sets of ADK."""
    try:
        found = find_tests([root]).paths if root.is_dir() else []
    except NotFound:
        return False
    kinds = (kind_of_file(path) for path in found)
    return any(kind is not None and kind.format not in _OWN_FORMATS for kind in kinds)


def _test_paths(root: Path, tests: list[Path]) -> tuple[str, ...]:
    """Return the tests' folder if it has no other files, or else their own paths."""
    folder = tests[0].parent
    others = set(files_below(folder)) - set(tests) if folder.is_dir() else ()
    return tuple(test.relative_to(root).as_posix() for test in (tests if others else [folder]))


def _workflow(root: Path, ci: CiSystem, choice: AgentChoice, tests: tuple[str, ...]) -> NewFile:
    requirements = (root / "requirements.txt").is_file()
    is_package = (root / "pyproject.toml").is_file()
    others = " -r requirements.txt" if requirements else " ." if is_package else ""
    install = f"python -m pip install evalmeta{others}"
    baseline = f" --baseline {shlex.quote(found)}" if (found := _baseline(root)) else ""
    run = f"{' '.join(('evalmeta run', *tests))}{baseline}"
    head, line = _CI_KEYS[ci]
    lines = "".join(map(line.format, _key_variables(root, choice)))
    content = _filled(ci, install=install, run=run, key=f"{head}{lines}" if lines else "")
    return NewFile(root / CI_FILES[ci], content, missing=content)


def _baseline(root: Path) -> str:
    """Return the path of the baseline in the project's folder or beside its tests; empty if there is none."""
    files = [path for folder in (root, root / _tests_folder(root)) for path in sorted(folder.glob("*.json"))]
    # The name that the documentation uses comes first.
    files.sort(key=lambda file: file.name != _BASELINE)
    return next((file.relative_to(root).as_posix() for file in files if _is_baseline(file)), "")


def _is_baseline(file: Path) -> bool:
    try:
        return bool(read_baseline(file))
    except EvalmetaError:
        return False


def _key_variables(root: Path, choice: AgentChoice) -> list[str]:
    """Return the variables with the keys of the chosen agent, of those that settings bind, and of their rater."""
    variables = [choice.api_key_env] if choice.api_key_env else []
    if (root / SETTINGS_FILE).is_file():
        settings = load_settings(root / SETTINGS_FILE)
        tables = [*settings.subjects.values(), settings.raters.get(settings.run_options().scoring.rater)]
        variables += [name for table in tables if table for name in table.key_variables()]
    return list(dict.fromkeys(variables))


def _filled(template: str, **values: str) -> str:
    text = (resources.files("evalmeta.api") / "project_files" / f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def written(file: NewFile, root: Path) -> NewFile:
    """Write a file that does not exist; only .gitignore gets lines at its end."""
    if not (file.path.exists() or file.path.is_symlink()):
        _write(root, file.path, file.content)
        return file._replace(missing="")
    if file.path.name == ".gitignore":
        return _ignored(file, root)
    same = file.path.is_file() and file.path.read_bytes() == file.content.encode()
    return file._replace(state="Kept", missing="" if same else file.missing)


def _ignored(file: NewFile, root: Path) -> NewFile:
    if not file.path.is_file():
        return file._replace(state="Kept")
    # Line endings are kept.
    before = read_file(file.path).decode(errors="surrogateescape")
    known = {line.strip().strip("/") for line in before.splitlines()}
    missing = [line for line in file.content.splitlines() if not line.startswith("#") and line.strip("/") not in known]
    if not missing:
        return file._replace(state="Kept")
    line_end = "\r\n" if "\r\n" in before else "\n"
    end = "" if before.endswith("\n") or not before else line_end
    _write(root, file.path, line_end.join([f"{before}{end}{missing[0]}", *missing[1:], ""]))
    return file._replace(state="Added to")


def _write(root: Path, path: Path, text: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    write_below(root, path, text.encode(errors="surrogateescape"), called="the project")


def describe(project: NewProject) -> list[str]:
    """Return a line for each file: what was done to it; many files in one folder share a line."""
    return list(state_lines(project.files))


def state_lines(files: Iterable[NewFile]) -> Iterator[str]:
    """Yield what was done to files, as `describe` does."""
    groups: dict[tuple[Path, InitState], list[Path]] = {}
    for file in files:
        groups.setdefault((file.path.parent, file.state), []).append(file.path)
    for (folder, state), paths in groups.items():
        whole = [f"{len(paths)} files in {shown(folder)}"]
        yield from (f"{state:<8} {line}" for line in (whole if len(paths) > _MAX_LINES else map(shown, paths)))
