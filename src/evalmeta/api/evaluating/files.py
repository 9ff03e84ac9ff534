"""The files and definitions of `evaluate`, which are checked before they are evaluated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.api.agent_tests import RECORDED_ANSWERS, refuse_errors
from evalmeta.api.discovery import find_tests, read_all
from evalmeta.api.files import bytes_of, validate_and_read
from evalmeta.errors import UsageError
from evalmeta.formats.document import reading_of
from evalmeta.formats.files import read_document
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION
from evalmeta.org.runs import read_evaluation
from evalmeta.package.files import parse_test_name, shown
from evalmeta.package.resolver import version_in_force
from evalmeta.validation.rules import rule_policy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import write_definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.evaluating.loaded import LoadedEvaluation, Root, Roots
    from evalmeta.model.definition import Definition


def load_one_file(path: Path, name: str | None, roots: Roots) -> LoadedEvaluation:
    """Load the test that a path stands for; `name` replaces its name."""
    files = find_tests([path]).paths
    if len(files) != 1:
        raise UsageError(
            f"{str(path)!r} has {len(files)} tests, and one is expected: pass a list, [Path({str(path)!r})]"
        )
    return _load_files(files, roots, name)[0]


def load_tests(path: Path, roots: Roots) -> list[LoadedEvaluation]:
    """Load all tests of a file or folder."""
    return _load_files(find_tests([path]).paths, roots)


def load_definition(definition: Definition, name: str | None, roots: Roots) -> LoadedEvaluation:
    """Load a definition; raise InvalidMetadata if it has errors."""
    root, full_name, content = roots.root_of(), name or definition.name, write_definition(definition)
    problems = validate_component(
        definition.type,
        content,
        label=full_name,
        full_name=full_name,
        policy=rule_policy(root.project.declared if root.project else None),
        api_version=version_in_force(root.project) if root.project else NEWEST_API_VERSION,
    )
    refuse_errors(problems)
    return root.loaded(evaluation_of(definition, name=full_name), content, definition.type)


def _load_files(files: Sequence[Path], roots: Roots, name: str | None = None) -> list[LoadedEvaluation]:
    named = [file for file in files if parse_test_name(file.name)]
    validation, definitions = validate_and_read(named)
    refuse_errors(validation.problems)
    read = dict(zip(named, definitions, strict=True))
    return read_all(files, lambda file: _load_file(file, roots, name, read.get(file))._replace(file=file))


def _load_file(file: Path, roots: Roots, name: str | None, read: Definition | None) -> LoadedEvaluation:
    parsed = parse_test_name(file.name)
    if parsed is None:
        return _load_document(file, roots, name)
    content, (kind, full_name) = bytes_of(file), parsed
    title = name or full_name
    evaluation = evaluation_of(read, name=title) if read else read_evaluation(content, title)
    return roots.root_of(file.parent).loaded(evaluation, content, kind)


def _load_document(file: Path, roots: Roots, name: str | None) -> LoadedEvaluation:
    root = roots.root_of(file.parent, may_be_none=True)
    settings = root.settings
    reading = reading_of(settings, root=root.folder, is_asked=roots.subject_name is not None)
    document = read_document(file, label=shown(file), name=name or _name_in(root, file), reading=reading)
    evaluation = document.evaluation
    # A file may name a Python function or a URL, which need no project.
    if not document.is_answered and ":" not in evaluation.subject_name:
        root = roots.root_of(file.parent)
    if not evaluation.subject_name:
        only = next(iter(settings.subjects)) if len(settings.subjects) == 1 else "My_Agent"
        default = RECORDED_ANSWERS if document.is_answered else only
        evaluation = replace(evaluation, subject_name=roots.subject_name or default)
    return root.loaded(evaluation, None, EVALUATION_DEFINITION)._replace(document=document)


def _name_in(root: Root, file: Path) -> str:
    """Return the path of a file in its project or in the current folder, as reports show it; else its name."""
    real = file.parent.resolve() / file.name
    folder = root.folder if root.project else Path.cwd()
    return real.relative_to(folder).as_posix() if real.is_relative_to(folder) else file.name
