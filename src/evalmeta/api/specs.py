"""Definitions from and to other formats.

Test specs made of a few words: the same expectations for every question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from evalmeta.api.files import bytes_of
from evalmeta.errors import FormatError, InvalidMetadata, UsageError
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.diagnostics import Written, did_you_mean
from evalmeta.formats.document import read_bytes
from evalmeta.formats.files import format_of, read_document
from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase
from evalmeta.model.expectations import ACTIONS, METRICS, OUTCOME, TOPIC, render_actions, scorer_kind, scorer_names
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.package.files import put_file, shown, state_of, target_path
from evalmeta.package.resolver import api_version_of, find_components
from evalmeta.validation.definition_rules import is_api_name
from evalmeta.validation.rules import rule_policy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evalmeta.formats.adk.reader import Dialect
    from evalmeta.formats.diagnostics import Loss
    from evalmeta.formats.document import SourceFormat, TargetFormat
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project


@dataclass(frozen=True, slots=True)
class Answers:
    """What a table, or an evaluation set of another system, does not say of its definition.

    Attributes:
        name: None for the file's name.
    """

    name: str | None = None
    subject_name: str | None = None
    subject_version: str | None = None

    @property
    def is_nothing(self) -> bool:
        """Return whether nothing was answered."""
        return self == Answers()


@dataclass(frozen=True, slots=True)
class Draft:
    """A definition that is to be a component of a project.

    Attributes:
        problems: what the check finds, as `evalmeta validate` would.
    """

    path: Path
    content: bytes
    component: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A definition that was read from a file of any format.

    Attributes:
        losses: what a definition cannot hold of the file.
        notes: warnings about the file.
    """

    definition: Definition
    losses: tuple[Loss, ...] = ()
    notes: tuple[Problem, ...] = ()


def read_source(path: Path, answers: Answers = Answers(), *, needs_subject: bool = True) -> Source:
    """Read a file of any format as a definition; the format shows in the content.

    Args:
        path: the file.
        answers: what the file does not say.
        needs_subject: whether it becomes metadata: then it must be known which agent is tested, and histories
            keep the rules.

    Raises:
        NotFound: there is no such file.
        FormatError: it fits none of the formats; `problems` says why and where.
        UsageError: nobody says which agent is tested; or answers to what the file says itself.
    """
    label = shown(path)
    source_format = format_of(path, label=label)
    if source_format in {"definition", "testspec"}:
        if not answers.is_nothing:
            raise UsageError(f"{label} says itself what it is called and what it tests.")
        return Source(_read_metadata(path, label, source_format))
    if source_format == "csv":
        return Source(_read_table(path, label, answers, needs_subject=needs_subject))
    document = read_document(path, label=label, name=answers.name or path.name.split(".")[0])
    subject_name = answers.subject_name or document.evaluation.subject_name
    if needs_subject and not subject_name:
        raise _no_subject(f"{label} does not say")
    definition, losses = definition_of(document, subject_name=subject_name or "agent", is_metadata=needs_subject)
    return Source(replace(definition, subject_version=answers.subject_version), losses, document.notes)


def _read_metadata(path: Path, label: str, source_format: SourceFormat) -> Definition:
    data = bytes_of(path)
    if source_format == "definition":
        return _read_definition(data, label)
    from evalmeta.formats.testspec import read_testspec  # noqa: PLC0415 - one format of several

    return read_testspec(data, label=label)


def _read_table(path: Path, label: str, answers: Answers, *, needs_subject: bool) -> Definition:
    from evalmeta.formats.testing_center_csv import read_testing_center_csv  # noqa: PLC0415 - one format of several

    if needs_subject and not answers.subject_name:
        raise _no_subject(f"{label} is a table, which does not say")
    return read_testing_center_csv(
        bytes_of(path),
        label=label,
        name=answers.name or path.stem,
        subject_name=answers.subject_name or "agent",
        subject_version=answers.subject_version,
    )


def _no_subject(what: str) -> UsageError:
    return UsageError(f"{what} what it tests.", actions=["Name the agent: --subject-name My_Agent."])


def write_as(definition: Definition, target: TargetFormat, *, dialect: Dialect = "python") -> Written:
    """Write a definition in a format, and says what the format cannot hold of it; `dialect` is ADK's."""
    # A format is loaded when it is written.
    match target:
        case "definition":
            return Written(write_definition(definition))
        case "testspec":
            from evalmeta.formats.testspec_writer import write_testspec  # noqa: PLC0415

            return write_testspec(definition)
        case "csv":
            from evalmeta.formats.testing_center_csv import write_testing_center_csv  # noqa: PLC0415

            return write_testing_center_csv(definition)
        case "adk":
            from evalmeta.formats.adk.writer import write_adk  # noqa: PLC0415

            return write_adk(definition, dialect=dialect)
        case "databricks":
            from evalmeta.formats.databricks.writer import write_databricks  # noqa: PLC0415

            return write_databricks(definition)


def convert_file(
    path: Path, target: TargetFormat, *, answers: Answers = Answers(), strict: bool = False, dialect: Dialect = "python"
) -> Written:
    """Read a file of any known format and writes it in another; nothing is put on disk.

    Args:
        path: the file.
        target: the format to write.
        answers: what a table, or an evaluation set of another system, does not say.
        strict: refuse to lose anything; a file that has the format already keeps all that it says.
        dialect: which of ADK's programs reads what is written.

    Raises:
        FormatError: it cannot be read; or, with `strict`, something would be lost.
        EvalmetaError: as `read_source`.
    """
    written = _copied(path, target, answers, dialect) or _converted(path, target, answers, dialect)
    if strict and written.losses:
        raise FormatError(
            f"{shown(path)} cannot be written as {target} without a loss:{_listed(written.losses)}",
            actions=["Convert it without --strict to leave that out."],
        )
    return written


def _converted(path: Path, target: TargetFormat, answers: Answers, dialect: Dialect) -> Written:
    source = read_source(path, answers, needs_subject=target in {"definition", "testspec"})
    written = write_as(source.definition, target, dialect=dialect)
    return replace(written, losses=(*source.losses, *written.losses))


def _copied(path: Path, target: TargetFormat, answers: Answers, dialect: Dialect) -> Written | None:
    """Write what has the format already, with all that definitions cannot hold; None of what has another one."""
    label = shown(path)
    if target not in {"adk", "databricks"} or format_of(path, label=label) != target:
        return None
    if not answers.is_nothing:
        raise UsageError(f"{label} is a file of {target} already, and names of definitions have no place in it.")
    if target == "adk":
        from evalmeta.formats.adk.writer import respell  # noqa: PLC0415 - one format of several

        return respell(read_bytes(path), label=label, name=path.name.split(".")[0], dialect=dialect)
    from evalmeta.formats.databricks.reader import copy_rows  # noqa: PLC0415 - likewise

    return Written(copy_rows(path, label=label))


def put_converted(path: Path, content: bytes, *, overwrite: bool) -> FileState:
    """Write a file, unless it has the content already.

    Raises:
        UsageError: it has other content, and `overwrite` is not set.
        ProjectError: it cannot be written.
    """
    if state_of(path, content) == "Changed" and not overwrite:
        raise UsageError(
            f"{shown(path)} has other content, and nothing was written.", actions=["Overwrite it with --force."]
        )
    return put_file(path, content)


def draft_test(project: Project, definition: Definition, api_name: str) -> Draft:
    """Make a definition a component of a project, checks it, and writes nothing.

    A component that the project has already keeps its place. Agentforce Studio takes a
    test's name for its API name, so that name becomes the definition's.

    Raises:
        UsageError: the API name is none.
        ProjectError: the project cannot be read.
    """
    if not is_api_name(api_name):
        raise UsageError(
            f"{api_name!r} is no API name.",
            actions=["Use letters, digits and single underscores; begin with a letter and end with no underscore."],
        )
    if definition.type == TESTING_DEFINITION:
        definition = replace(definition, name=api_name)
    content = write_definition(definition)
    path = _place(project, definition, api_name)
    problems = validate_component(
        definition.type,
        content,
        label=shown(path),
        full_name=api_name,
        policy=rule_policy(project.declared),
        api_version=api_version_of(project),
    )
    return Draft(path, content, f"{definition.type.name}:{api_name}", tuple(problems))


def save_draft(draft: Draft, *, overwrite: bool) -> FileState:
    """Write a draft into its project.

    Raises:
        InvalidMetadata: the draft has errors.
        UsageError: the file has other content, and `overwrite` is not set.
        ProjectError: the file cannot be written.
    """
    if any(problem.is_error for problem in draft.problems):
        raise InvalidMetadata("the definition has errors; nothing was written", problems=draft.problems)
    return put_converted(draft.path, draft.content, overwrite=overwrite)


def _place(project: Project, definition: Definition, api_name: str) -> Path:
    key = f"{definition.type.name}:{api_name}".casefold()
    known = next((each for each in find_components(project) if each.key.casefold() == key), None)
    return known.path if known else target_path(project, definition.type, api_name)


def _read_definition(data: bytes, label: str) -> Definition:
    try:
        return read_definition(read_xml(data, label=label))
    except InvalidMetadata as error:
        raise FormatError(str(error), problems=error.problems, actions=error.actions) from None


def _listed(losses: Sequence[Loss]) -> str:
    return "".join(f"\n  {each}" for each in losses)


TestRunner = Literal["testing-center", "agentforce-studio"]


@dataclass(frozen=True, slots=True)
class Outline:
    """What a spec is made of.

    Attributes:
        utterances: questions, each a test case.
        topic: expected of every test case, as `actions`, `outcome` and `metrics` are where they are given.
    """

    name: str | None = None
    subject_name: str | None = None
    subject_version: str | None = None
    description: str | None = None
    test_runner: TestRunner = "testing-center"
    utterances: tuple[str, ...] = ()
    topic: str | None = None
    actions: tuple[str, ...] = ()
    outcome: str | None = None
    metrics: tuple[str, ...] = ()


def outlined_definition(outline: Outline) -> Definition:
    """Make the definition that an outline describes.

    Raises:
        UsageError: it has no name, subject or question, or names a metric that the runner does not know.
    """
    if not (outline.name and outline.subject_name and outline.utterances):
        raise UsageError(
            "A spec needs a name, a subject and a question.",
            actions=["Give --name, --subject-name and --utterance, or a file: --from-definition."],
        )
    kind = TESTING_DEFINITION if outline.test_runner == "agentforce-studio" else EVALUATION_DEFINITION
    expectations = tuple(_expectations(outline, kind))
    cases = tuple(TestCase(Inputs(text), expectations, number) for number, text in enumerate(outline.utterances, 1))
    return Definition(
        outline.name,
        outline.subject_name,
        subject_version=outline.subject_version,
        description=outline.description,
        test_cases=cases,
        type=kind,
    )


def _expectations(outline: Outline, kind: MetadataType) -> Iterator[Expectation]:
    if outline.topic is not None:
        yield Expectation(TOPIC, outline.topic)
    if outline.actions:
        yield Expectation(ACTIONS, render_actions(outline.actions))
    if outline.outcome is not None:
        yield Expectation(OUTCOME, outline.outcome)
    known = METRICS if kind == EVALUATION_DEFINITION else _studio_metrics()
    for name in outline.metrics:
        if name not in known:
            raise UsageError(f"{name!r} is no metric of {kind.name}.", actions=[did_you_mean(name, known)])
        yield Expectation(name)


def _studio_metrics() -> tuple[str, ...]:
    kinds = ((name, scorer_kind(name)) for name in scorer_names("AGENT"))
    return tuple(name for name, kind in kinds if kind is not None and kind.needs == "nothing")
