"""Converting definitions from and to other formats, and creating them from a template or a spec."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from evalmeta.api.discovery import reading_at
from evalmeta.errors import FormatError, InvalidMetadata, UsageError, did_you_mean
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.document import check_columns
from evalmeta.formats.files import format_of, read_document
from evalmeta.formats.registry import Format, all_formats, format_to_write
from evalmeta.formats.testing_center_csv import read_testing_center_csv
from evalmeta.formats.testspec import read_spec_file, spec_definition
from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase
from evalmeta.model.expectations import ACTIONS, METRICS, OUTCOME, TOPIC, render_actions, scorer_kind, scorer_names
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, MetadataType
from evalmeta.package.files import FileState, bytes_of, put_file, shown, state_of
from evalmeta.package.folders import find_components, target_path
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.project import Project, api_version_of
from evalmeta.validation.definition_rules import is_api_name
from evalmeta.validation.rules import rule_policy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from evalmeta.formats.diagnostics import Loss, Written
    from evalmeta.model.problem import Problem


@dataclass(frozen=True, slots=True)
class DefinitionNames:
    """The names of a definition that files of some formats do not contain; `name` is the file's name by default."""

    name: str | None = None
    subject_name: str | None = None
    subject_version: str | None = None


_NO_NAMES: Final = DefinitionNames()


@dataclass(frozen=True, slots=True)
class Draft:
    """A definition that can become a component of a project; `problems` are those that `evalmeta validate` finds."""

    path: Path
    content: bytes
    component: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A definition that was read from a file of any format, what it cannot express of the file, and warnings."""

    definition: Definition
    losses: tuple[Loss, ...] = ()
    notes: tuple[Problem, ...] = ()


def read_source(
    path: Path,
    names: DefinitionNames = _NO_NAMES,
    *,
    needs_subject: bool = True,
    kept_checks: Collection[str] = (),
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Source:
    """Read a file of any format as a definition; the format is detected from the content.

    `needs_subject` says whether the definition becomes metadata, which must name its agent and have valid histories.
    `kept_checks` names checks that are kept for another format although definitions cannot hold them.
    `columns` are keys of test cases with columns of tables and JSON Lines, which replace those of the file's project.
    """
    label, reading = shown(path), reading_at(path, columns)
    check_columns(columns, [path])
    source_format = format_of(path, label=label, reading=reading)
    spec = None
    if source_format == "testspec":
        spec = read_spec_file(path, label=label, columns=reading.columns)
        if spec.is_own:
            subject_name = names.subject_name or spec.definition.subject_name
            if needs_subject and not subject_name:
                raise _no_subject(label)
            definition, losses = spec_definition(
                spec, name=names.name, subject_name=subject_name or "agent", kept_checks=kept_checks
            )
            version = names.subject_version or definition.subject_version
            return Source(replace(definition, subject_version=version), losses, spec.notes)
    if spec is not None or source_format == "definition":
        if names != _NO_NAMES:
            raise UsageError(f"{label} contains its own name and agent; leave out the options for them")
        return Source(spec.definition if spec else _read_definition(bytes_of(path), label))
    if source_format == "csv":
        if needs_subject and not names.subject_name:
            raise _no_subject(label)
        definition = read_testing_center_csv(
            bytes_of(path),
            label=label,
            name=names.name or path.stem,
            subject_name=names.subject_name or "agent",
            subject_version=names.subject_version,
        )
        return Source(definition)
    document = read_document(path, label=label, name=names.name or path.name.split(".")[0])
    subject_name = names.subject_name or document.evaluation.subject_name
    if needs_subject and not subject_name:
        raise _no_subject(label)
    definition, losses = definition_of(
        document, subject_name=subject_name or "agent", is_metadata=needs_subject, kept_checks=kept_checks
    )
    return Source(replace(definition, subject_version=names.subject_version), losses, document.notes)


def _no_subject(label: str) -> UsageError:
    return UsageError(f"{label} does not name an agent", actions=["Name the agent: --subject-name My_Agent"])


def write_as(definition: Definition, target: str, *, dialect: str = "python") -> Written:
    """Write a definition in a format, and report what the format cannot express; `dialect` is ADK's."""
    return format_to_write(target).in_dialect(dialect).write(definition)


def convert_file(
    path: Path,
    target: str,
    *,
    names: DefinitionNames = _NO_NAMES,
    strict: bool = False,
    dialect: str = "python",
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Written:
    """Return the content of a file of any known format in another format; `strict` refuses losses.

    `columns` are those of `read_source`.
    """
    target_format = format_to_write(target).in_dialect(dialect)
    written = None if columns else _rewritten(path, target_format, names) or _written_spec(path, target, names)
    if written is None:
        is_metadata, kept_checks = target in {"definition", "testspec"}, target_format.kept_checks
        source = read_source(path, names, needs_subject=is_metadata, kept_checks=kept_checks, columns=columns)
        written = target_format.write(source.definition)
        written = replace(written, losses=(*source.losses, *written.losses))
    if strict and written.losses:
        listed = "".join(f"\n  {loss}" for loss in written.losses)
        raise FormatError(
            f"{shown(path)} cannot be written as {target} without losses:{listed}",
            actions=["Convert it without --strict to leave these out."],
        )
    return written


def _rewritten(path: Path, target: Format, names: DefinitionNames) -> Written | None:
    """Rewrite a file that has the format already, with what definitions cannot express; None for other files."""
    label = shown(path)
    if format_of(path, label=label, reading=reading_at(path)) != target.name:
        return None
    if names != _NO_NAMES and not target.takes_names:
        raise UsageError(f"{label} is a file of {target.name} already, which has no names of definitions")
    return target.rewrite(path, label=label)


def _written_spec(path: Path, target: str, names: DefinitionNames) -> Written | None:
    """Write a file as a test spec, with what definitions cannot express; None for other files and formats."""
    if target != "testspec":
        return None
    label = shown(path)
    source = all_formats()[format_of(path, label=label, reading=reading_at(path))]
    return source.write_spec(path, label=label, subject=names.subject_name)


def write_converted(path: Path, content: bytes, *, overwrite: bool) -> FileState:
    """Write a file, unless it has the content already."""
    if state_of(path, content) == "Changed" and not overwrite:
        raise UsageError(
            f"{shown(path)} has different content, and nothing was written.", actions=["Overwrite it with --force."]
        )
    return put_file(path, content)


def draft_test(project: Project, definition: Definition, api_name: str) -> Draft:
    """Validate a definition as a component of a project, without writing it.

    A component that the project has already keeps its path. Agentforce Studio uses a
    test's name as its API name, so the API name becomes the definition's name.
    """
    if not is_api_name(api_name):
        raise UsageError(
            f"{api_name!r} is not a valid API name",
            actions=["Use letters, digits and single underscores; start with a letter; do not end with _."],
        )
    if definition.type == TESTING_DEFINITION:
        definition = replace(definition, name=api_name)
    content = write_definition(definition)
    path = _place(project, definition, api_name)
    if line := read_forceignore(project.root).find_line(path):
        raise UsageError(
            f"{shown(path)} is ignored by {line}", actions=["Choose another --api-name, or change .forceignore."]
        )
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
    """Write a draft into its project."""
    if any(problem.is_error for problem in draft.problems):
        raise InvalidMetadata("the definition has errors; nothing was written", problems=draft.problems)
    return write_converted(draft.path, draft.content, overwrite=overwrite)


def _place(project: Project, definition: Definition, api_name: str) -> Path:
    key = f"{definition.type.name}:{api_name}".casefold()
    # The default package directory is created with the file.
    default, *others = project.package_directories
    existing = project if default.is_dir() else replace(project, package_directories=tuple(others))
    known = next((component for component in find_components(existing) if component.key.casefold() == key), None)
    return known.path if known else target_path(project, definition.type, api_name)


def _read_definition(data: bytes, label: str) -> Definition:
    try:
        return read_definition(read_xml(data, label=label))
    except InvalidMetadata as error:
        raise FormatError(str(error), problems=error.problems, actions=error.actions) from None


TestRunner = Literal["testing-center", "agentforce-studio"]


@dataclass(frozen=True, slots=True)
class SpecTemplate:
    """A test with the same expectations for all test cases, one for each utterance; None is no expectation."""

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


def definition_from_template(template: SpecTemplate) -> Definition:
    """Create the definition of a template."""
    if not (template.name and template.subject_name and template.utterances):
        raise UsageError(
            "a spec requires a name, a subject and an utterance",
            actions=["Add --name, --subject-name and --utterance, or a file with --from-definition."],
        )
    kind = TESTING_DEFINITION if template.test_runner == "agentforce-studio" else EVALUATION_DEFINITION
    expectations = tuple(_expectations(template, kind))
    cases = tuple(TestCase(Inputs(text), expectations, number) for number, text in enumerate(template.utterances, 1))
    return Definition(
        template.name,
        template.subject_name,
        subject_version=template.subject_version,
        description=template.description,
        test_cases=cases,
        type=kind,
    )


def _expectations(template: SpecTemplate, kind: MetadataType) -> Iterator[Expectation]:
    if template.topic is not None:
        yield Expectation(TOPIC, template.topic)
    if template.actions:
        yield Expectation(ACTIONS, render_actions(template.actions))
    if template.outcome is not None:
        yield Expectation(OUTCOME, template.outcome)
    known = METRICS
    if kind != EVALUATION_DEFINITION:
        kinds = ((name, scorer_kind(name)) for name in scorer_names("AGENT"))
        known = tuple(name for name, scorer in kinds if scorer is not None and scorer.needs == "nothing")
    for name in template.metrics:
        if name not in known:
            raise UsageError(f"{name!r} is not a metric of {kind.name}", actions=[did_you_mean(name, known)])
        yield Expectation(name)
