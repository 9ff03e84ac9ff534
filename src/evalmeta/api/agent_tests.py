"""Tests in an org and in files of any format; those in files with their agents."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from evalmeta import limits
from evalmeta.api.discovery import find_rule_problems, policy_at
from evalmeta.api.endpoints import endpoint_settings, is_url
from evalmeta.api.file_checks import validate_and_read
from evalmeta.api.runs.case_lines import CasePlaces, case_places
from evalmeta.client.metadata import list_components
from evalmeta.engine.project_code import own_modules
from evalmeta.errors import (
    AmbiguousTestDefinition,
    InvalidMetadata,
    NotFound,
    OrgFault,
    SubjectNotBound,
    Suggestion,
    UsageError,
)
from evalmeta.formats.document import SPEC_NAMES, Document, Reading, reading_of
from evalmeta.formats.files import digest_of, document_once, kind_of_file, read_document, recent_document, remember
from evalmeta.model.entry_points import is_target, likely_target
from evalmeta.model.evaluation import Evaluation, evaluation_of, workload
from evalmeta.model.registry import TEST_TYPES, MetadataType, metadata_type, type_of_run, types_at
from evalmeta.org.run_files import RunFile, content_key, run_file_of, test_in
from evalmeta.org.subjects import agent_settings, unbound_subject
from evalmeta.package.files import parse_test_name, shown
from evalmeta.package.project import SETTINGS_FILE, Project
from evalmeta.plugins import load_all
from evalmeta.store.components import Components
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.model.definition import Definition
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.problem import Problem
    from evalmeta.model.run import Run
    from evalmeta.model.run_options import RunOptions
    from evalmeta.protocol.metadata_api import FileProperties


AgentInFolder: TypeAlias = "Callable[[Path, str], JsonObject | None]"
"""Returns the settings of the agent in a folder of a project; None if it has none."""

RECORDED_ANSWERS: Final = "recorded answers"
"""The subject name of files that contain the agent's answers."""

_SHOWN_PROBLEMS: Final = 20
_SHOWN_AGENTS: Final = 3
_FILE: Final = re.compile(r"[/\\]|\.py:")
_ADDRESS: Final = re.compile(r"[\w.-]+:\d+(/.*)?")


@dataclass(frozen=True, slots=True)
class FileTest:
    """A test in a file, and the agent under test.

    `name` is the full name of a definition, or else the file, whose path is relative to the project's folder if it is
    inside. `subject` has the agent's settings, None if the project binds it by its name, and `unbound` is the error of
    a run if the agent is not known or has no adapter. `expectations` are their numbers, by name. `warnings` do not
    prevent a run.
    """

    path: Path
    name: str
    file: str
    type: MetadataType
    document: Document
    subject_name: str
    subject: JsonObject | None = None
    reading: Reading = field(default_factory=Reading)
    unbound: SubjectNotBound | None = None
    warnings: tuple[Problem, ...] = ()
    expectations: Mapping[str, int] = field(default_factory=dict)

    @property
    def evaluation(self) -> Evaluation:
        """Return the evaluation in the file."""
        return self.document.evaluation

    @property
    def request(self) -> JsonObject:
        """Return what starting a run of it in an org requires."""
        subject = {} if self.subject is None else {"subject": self.subject}
        return {"path": self.file, "subjectName": self.subject_name, "reading": self.reading.json(), **subject}


@dataclass(frozen=True, slots=True)
class _CasesInFile:
    """The cases of a file, which is read again when others have taken their place in memory."""

    path: Path
    name: str
    reading: Reading
    digest: str

    def __iter__(self) -> Iterator[Case]:
        document = recent_document(self._key(self.digest)) or document_once(
            # It may have changed meanwhile.
            self._key(digest_of(self.path, self.reading)),
            lambda: read_document(self.path, label=shown(self.path), name=self.name, reading=self.reading),
        )
        return iter(document.evaluation.cases)

    def _key(self, digest: str) -> Hashable:
        return content_key(self.path, digest, self.name, self.reading)


class AgentTest(NamedTuple):
    """A test in an org, or in a file that is not deployed; `modified` is when the org's definition changed last."""

    type: MetadataType
    full_name: str
    file: FileTest | None = None
    modified: str = ""

    @property
    def key(self) -> str:
        """Return `Type:FullName`, which is unique in an org."""
        return f"{self.type.name}:{self.full_name}"

    def options(self, options: RunOptions) -> RunOptions:
        """Return the options of its run: those of a call, and what its file says."""
        if self.file is None:
            return options
        applied = self.file.document.applied_to(options)
        return replace(applied, most_iterations=workload(self.file.evaluation, applied).most_iterations)


def read_test(
    project: Project,
    path: Path,
    *,
    subject: str | None = None,
    endpoint: JsonObject | None = None,
    is_asked: bool = True,
    config: Path | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> FileTest:
    """Read the test in a file, and find the agent under test; see `FileTest.unbound` if it `is_asked`.

    `subject` is a name that the project binds, `module:name` of a Python object, or a URL, whose agent may have the
    settings `endpoint`. By default, it is the agent that the file names, the answers in the file, or the only agent
    that the project binds. `config` is the file with the criteria of ADK's eval sets, by default the project's.
    `columns` are keys of test cases with columns of tables and JSON Lines, which replace the project's.
    """
    real, file = _place(project, path)
    kind, name = test_in(file)
    reading = reading_of(
        project.settings, root=project.root, is_asked=subject is not None, config=config, columns=columns
    )
    document, digest, warnings = _read(path, real, name, reading)
    subject_name, settings = _subject(project, document, subject, endpoint, label=shown(path))
    bound, unbound = project.settings.subjects, None
    if is_asked and settings is None and agent_settings(bound, subject_name, root=project.root) is None:
        unbound = _unbound(project, shown(path), subject_name, document, is_chosen=subject is not None)
    evaluation = replace(document.evaluation, subject_name=subject_name)
    names = Counter(one.name for case in evaluation.cases for turn in case.turns for one in turn.expectations)
    if isinstance(evaluation.cases, tuple):
        # A call may name so many files that their cases, and the lines of these, have no room in memory together.
        evaluation = replace(evaluation, cases=_CasesInFile(real, name, reading, digest))
    document = replace(document, evaluation=evaluation, lines={})
    return FileTest(real, name, file, kind, document, subject_name, settings, reading, unbound, tuple(warnings), names)


def test_name_of(project: Project, path: Path) -> str:
    """Return the name under which runs of a file are saved; the file need not exist."""
    return test_in(_place(project, path)[1])[1]


def _place(project: Project, path: Path) -> tuple[Path, str]:
    """Return the absolute path of a test's file, and the path from the project's folder if it is there."""
    # Other files of the test are next to a link, not next to the file that it leads to.
    real = path.parent.resolve() / path.name
    return real, real.relative_to(project.root).as_posix() if real.is_relative_to(project.root) else str(real)


def _read(path: Path, real: Path, name: str, reading: Reading) -> tuple[Document, str, Sequence[Problem]]:
    """Return the document of a file, its hash, and warnings about it, and remember it for the run; refuse errors."""
    # Readers refuse larger files. The hash comes first, so that a file that changes now is read again.
    is_large = path.exists() and path.stat().st_size > limits.MAX_JSON_BYTES
    digest = "" if is_large else digest_of(path, reading)
    warnings: Sequence[Problem] = ()
    definition: Definition | None = None
    if parse_test_name(path.name):
        validation, [definition] = validate_and_read([path])
        warnings = validation.problems
        refuse_errors(warnings)
    if definition is None:
        document = read_document(path, label=shown(path), name=name, reading=reading)
        warnings = tuple(find_rule_problems(path, document, reading, policy=policy_at(path)))
        refuse_errors(warnings)
    else:
        document = Document(evaluation_of(definition, name=name))
    remember(content_key(real, digest, name, reading), document)
    return document, digest, warnings


def _subject(
    project: Project, document: Document, chosen: str | None, endpoint: JsonObject | None, *, label: str
) -> tuple[str, JsonObject | None]:
    """Return the name of the agent under test, empty if unknown, and its settings if they are not the project's."""
    bound, named = project.settings.subjects, document.evaluation.subject_name
    is_named = chosen is None and ":" in named and named not in bound
    if is_named:
        chosen = named
    if chosen is not None and is_url(chosen):
        return chosen, endpoint or endpoint_settings(chosen)
    if chosen is not None and ":" in chosen:
        _check_target(chosen, file=label if is_named else None)
        return chosen, {"adapter": "python", "target": _target(project, chosen)}
    name = chosen or named
    settings = _in_folder(project.root, name) if name and name not in bound else None
    if settings or chosen is not None or named in bound:
        return name, settings
    if document.is_answered:
        return RECORDED_ANSWERS, {"adapter": "recorded"}
    if len(bound) == 1 and not named:
        return next(iter(bound)), None
    return named, None


def _in_folder(root: Path, name: str) -> JsonObject | None:
    """Return the settings of the agent in a folder that a name stands for; None if none is recognised."""
    if not (_has_module(root, name.partition(".")[0]) or _has_module(Path.cwd(), name) or Path(name).exists()):
        return None
    for settings_of in load_all("agent_folders").values():
        if settings := cast("AgentInFolder", settings_of)(root, name):
            return settings
    return None


def agents_in_folders(root: Path) -> list[str]:
    """Return the modules and packages of a project that `--agent` can name alone, such as those with agents of ADK."""
    return [name for name in sorted(own_modules(root)) if _in_folder(root, name)]


def _check_target(chosen: str, *, file: str | None) -> None:
    """Refuse what is not `module:name`; `file` is the file that names it, None for --agent."""
    if is_target(chosen):
        return
    likely, what = likely_target(chosen), "is not a valid module:name of a Python object"
    if _ADDRESS.fullmatch(chosen):
        likely, what = f"http://{chosen}", "is an address without http:// or https://"
    elif _FILE.search(chosen):
        what = "names a file instead of a module"
    named, write = ("", "Use --agent") if file is None else (f" in {file}", "Write subject:")
    raise UsageError(f"the agent {chosen!r}{named} {what}", actions=[f"{write} {likely}"])


def _target(project: Project, chosen: str) -> str:
    """Return a target relative to the project's folder; it may be given relative to the current folder."""
    module, here = chosen.split(":", 1)[0].split(".", 1)[0], Path.cwd().resolve()
    is_below = here != project.root and here.is_relative_to(project.root)
    if not is_below or _has_module(project.root, module) or not _has_module(here, module):
        return chosen
    return ".".join((*here.relative_to(project.root).parts, chosen))


def _has_module(folder: Path, module: str) -> bool:
    return (folder / f"{module}.py").is_file() or (folder / module).is_dir()


def _unbound(project: Project, label: str, name: str, document: Document, *, is_chosen: bool) -> SubjectNotBound:
    """Return the error for the agent that a file or --agent names, or for a file that names none."""
    bound = tuple(project.settings.subjects)
    is_definition = parse_test_name(Path(label).name) is not None
    found = unbound_subject(bound, name or "My_Agent", root=project.root, is_definition=is_definition)
    if is_chosen:
        return _unknown_choice(project, name, document, lines=found.actions[-1])
    agents = " or ".join(("my_agent:answer", *bound[:_SHOWN_AGENTS]))
    names = f", a Python function or a name in {SETTINGS_FILE}" if bound else ", a Python function"
    other = f"Name the agent under test{names}: --agent {agents}"
    message = str(found) if name else f"{label} does not name an agent"
    if document.why_asked:
        message = f"{message}, and {document.why_asked}"
    is_module = name in own_modules(project.root)
    write = [f"Write the agent into {label}: subject: {name if is_module else 'my_agent'}:answer"]
    is_spec = label.endswith(SPEC_NAMES) and (kind := kind_of_file(Path(label))) and kind.format in {None, "testspec"}
    if not is_spec or (name and not is_module):
        write = []
    actions = [*write, *found.actions[0 if name else -1 :], other]
    return SubjectNotBound(message, problems=document.notes, actions=actions)


def _unknown_choice(project: Project, name: str, document: Document, *, lines: str) -> SubjectNotBound:
    """Return the error for a value of --agent that is neither bound by settings nor `module:name`."""
    bound = tuple(project.settings.subjects)
    known = f"there is no {SETTINGS_FILE}" if project.declared is None else f"{SETTINGS_FILE} does not bind it"
    near = get_close_matches(name, bound, n=1)
    way_out = f"Did you mean --agent {near[0]}?" if near else _function_like(project.root, name)
    others = [f"{SETTINGS_FILE} binds {', '.join(bound[:_SHOWN_AGENTS])}."] if bound and not near else []
    return SubjectNotBound(
        f"--agent {name!r} is not module:name of a Python object, and {known}",
        problems=document.notes,
        actions=[way_out, *others, lines],
    )


def _function_like(root: Path, name: str) -> str:
    """Return how to name the function that was probably meant by a word without a colon."""
    modules = sorted(own_modules(root))
    near = get_close_matches(name, modules, n=1)
    if near and _in_folder(root, near[0]):
        return f"Did you mean --agent {near[0]}?"
    if not near and (name.endswith(".py") or "." in name or "/" in name or "\\" in name):
        return f"Did you mean --agent {likely_target(name)}?"
    return f"Did you mean --agent {near[0]}:answer?" if near else "Name a Python function: --agent my_agent:answer"


def refuse_same_names(tests: Iterable[FileTest]) -> None:
    """Refuse to run two files whose results would be those of one test."""
    known: dict[tuple[MetadataType, str], FileTest] = {}
    for test in (test for test in tests if parse_test_name(test.path.name)):
        other = known.setdefault((test.type, test.name.casefold()), test)
        if other is not test:
            raise UsageError(
                f"{shown(other.path)} and {shown(test.path)} have the same full name, {test.name!r}",
                actions=["Rename or leave out one of them: the history and baselines identify definitions by name."],
            )


def file_of_run(project: Project, run_id: str) -> str | None:
    """Return the path of a run's file, as in `FileTest`; None if the run is not here, or of a deployed definition."""
    recorded = _run_file(project, run_id)
    return recorded.file if recorded else None


def subject_of_run(project: Project, run_id: str) -> JsonObject:
    """Return the settings of the agent that the run of a file names itself; empty if the project binds it."""
    recorded = _run_file(project, run_id)
    return recorded.subject.model_dump(exclude_unset=True) if recorded and recorded.subject else {}


def columns_of_run(project: Project, run_id: str) -> list[tuple[str, str]]:
    """Return the columns that the call of a file's run named, each with its key; empty for those of the settings."""
    recorded = _run_file(project, run_id)
    columns = recorded.reading.columns if recorded else ()
    return [(key, title) for key, title in columns if project.settings.columns.get(key) != title]


def _run_file(project: Project, run_id: str) -> RunFile | None:
    with open_database(project.store) as database:
        runs = Runs(database)
        return run_file_of(runs.content(run_id)) if runs.get(run_id) else None


def place_of_run(project: Project, run_id: str) -> tuple[Path, CasePlaces] | None:
    """Return the file of a run and the places of its cases; None if the run had no file or it does not exist any more.

    A file that this process has not read is read when the first line is needed, unless it is large.
    """
    recorded = _run_file(project, run_id)
    if recorded is None or not (path := project.root / recorded.file).is_file():
        return None
    key = content_key(path, recorded.digest, test_in(recorded.file)[1], recorded.reading)
    return path, case_places(path, recent_document(key), recorded.reading)


def is_deployed(project: Project, run: Run) -> bool:
    """Return whether the definition of a run is in the project's own org."""
    kind = type_of_run(run.id)
    with open_database(project.store) as database:
        return kind is not None and Components(database).content(kind.name, run.definition) is not None


def refuse_errors(problems: Sequence[Problem]) -> None:
    """Refuse to run definitions with errors."""
    errors = [problem for problem in problems if problem.is_error]
    if not errors:
        return
    lines = [f"{error} {error.hint}".rstrip() for error in errors[:_SHOWN_PROBLEMS]]
    if len(errors) > _SHOWN_PROBLEMS:
        lines.append(f"and {len(errors) - _SHOWN_PROBLEMS:,} more")
    message = "\n".join(["the definitions have errors; nothing was run:", *lines])
    raise InvalidMetadata(message, problems=problems)


async def list_tests(connection: Connection) -> list[FileProperties]:
    """List the definitions in the org by type and name."""
    return [
        properties
        for kind in types_at(connection.api_version)
        if kind.is_test
        for properties in await _list(connection, kind)
    ]


async def select_tests(connection: Connection, names: Sequence[str] = ()) -> list[AgentTest]:
    """Return the tests in the org with these names, such as `Name` or `Type:Name`, or all tests."""
    listed = await list_tests(connection)
    known = [
        AgentTest(kind, properties.full_name, modified=properties.last_modified_date)
        for properties in listed
        if (kind := metadata_type(properties.type))
    ]
    if not known:
        way = "Deploy definitions first, also in each CI job, because a fresh checkout has an empty org"
        files = "Or run test files without deploying them: evalmeta run FOLDER"
        spec = "Or make a test spec a definition and deploy it: evalmeta test create --spec FILE --api-name NAME"
        raise NotFound("the org has no agent tests", actions=[Suggestion(way, "deploy"), spec, files])
    return list(dict.fromkeys(_named(name, known) for name in names)) or known


async def _list(connection: Connection, kind: MetadataType) -> list[FileProperties]:
    try:
        return await list_components(connection, kind.name)
    except OrgFault as fault:
        # Orgs where Agentforce Studio testing is not enabled do not know its type.
        if fault.code == "INVALID_TYPE" and kind != TEST_TYPES[0]:
            return []
        raise


def _named(name: str, tests: Sequence[AgentTest]) -> AgentTest:
    found = [test for test in tests if name in (test.full_name, test.key)]
    if len(found) == 1:
        return found[0]
    if found:
        actions = [f"Say which: --api-name {agent_test.key}" for agent_test in found]
        types = " and ".join(agent_test.type.name for agent_test in found)
        raise AmbiguousTestDefinition(f"{name!r} is the name of an {types}", actions=actions)
    known = [test.key if ":" in name else test.full_name for test in tests]
    close = get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"In the org: {', '.join(known)}."
    raise NotFound(f"the org has no agent test {name!r}", actions=[hint, Suggestion("Deploy it first", "deploy")])
