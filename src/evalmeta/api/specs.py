"""Definitions from and to other formats: test specs and tables of the Testing Center."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalmeta.api.metadata import bytes_of, shown
from evalmeta.errors import FormatError, InvalidMetadata, UsageError
from evalmeta.interop.formats import recognise
from evalmeta.interop.losses import Written
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.package.convert import target_path
from evalmeta.package.files import put_file, state_of
from evalmeta.package.resolver import api_version_of, find_components
from evalmeta.validation.definition_rules import is_api_name
from evalmeta.validation.validator import judgement_of, validate_component
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.interop.formats import SourceFormat
    from evalmeta.interop.losses import Loss
    from evalmeta.model.definition import Definition
    from evalmeta.model.problem import Problem
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project

__all__ = ["Answers", "Draft", "convert_file", "draft_test", "put_converted", "read_source", "save_draft", "write_as"]


@dataclass(frozen=True, slots=True)
class Answers:
    """What a table does not say of its definition, as the Testing Center's wizard asks for it.

    Attributes:
        name: None for the file's name.
    """

    name: str | None = None
    subject_name: str | None = None
    subject_version: str | None = None

    @property
    def is_nothing(self) -> bool:
        """Says whether nothing was answered."""
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


def read_source(path: Path, answers: Answers = Answers()) -> Definition:
    """Reads a definition, a test spec or a table of the Testing Center, told apart by their content.

    Raises:
        NotFound: there is no such file.
        FormatError: it fits none of the formats; `problems` says why and where.
        UsageError: a table without a subject; or answers to what the file says itself.
    """
    from evalmeta.interop.testing_center_csv import read_testing_center_csv  # noqa: PLC0415 - one format of several
    from evalmeta.interop.testspec import read_testspec  # noqa: PLC0415 - likewise

    data, label = bytes_of(path), shown(path)
    source_format = recognise(data)
    if source_format != "csv" and not answers.is_nothing:
        raise UsageError(f"{label} says itself what it is called and what it tests.")
    if source_format == "definition":
        return _read_definition(data, label)
    if source_format == "testspec":
        return read_testspec(data, label=label)
    if not answers.subject_name:
        raise UsageError(
            f"{label} is a table, which does not say what it tests.",
            actions=["Name the agent: --subject-name My_Agent."],
        )
    return read_testing_center_csv(
        data,
        label=label,
        name=answers.name or path.stem,
        subject_name=answers.subject_name,
        subject_version=answers.subject_version,
    )


def write_as(definition: Definition, target: SourceFormat) -> Written:
    """Writes a definition in a format, and says what the format cannot hold of it."""
    from evalmeta.interop.testing_center_csvwriter import write_testing_center_csv  # noqa: PLC0415 - one of several
    from evalmeta.interop.testspecwriter import write_testspec  # noqa: PLC0415 - likewise

    if target == "definition":
        return Written(write_definition(definition))
    return write_testspec(definition) if target == "testspec" else write_testing_center_csv(definition)


def convert_file(path: Path, target: SourceFormat, *, answers: Answers = Answers(), strict: bool = False) -> Written:
    """Reads a file of any known format and writes it in another; nothing is put on disk.

    Args:
        path: the file.
        target: the format to write.
        answers: what a table does not say.
        strict: refuse to lose anything.

    Raises:
        FormatError: it cannot be read; or, with `strict`, something would be lost.
        EvalmetaError: as `read_source`.
    """
    written = write_as(read_source(path, answers), target)
    if strict and written.losses:
        raise FormatError(
            f"{shown(path)} cannot be written as {target} without a loss:{_listed(written.losses)}",
            actions=["Convert it without --strict to leave that out."],
        )
    return written


def put_converted(path: Path, content: bytes, *, overwrite: bool) -> FileState:
    """Writes a file, unless it has the content already.

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
    """Makes a definition a component of a project, checks it, and writes nothing.

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
        judgement=judgement_of(project.declared),
        api_version=api_version_of(project),
    )
    return Draft(path, content, f"{definition.type.name}:{api_name}", tuple(problems))


def save_draft(draft: Draft, *, overwrite: bool) -> FileState:
    """Writes a draft into its project.

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
