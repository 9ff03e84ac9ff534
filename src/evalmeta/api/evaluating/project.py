"""What `evaluate` reads of a project: tests in files, and the subjects and raters that settings or tables describe.

Definitions and files are checked before they are evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from evalmeta.api.agent_tests import RECORDED_ANSWERS, refuse_errors
from evalmeta.api.discovery import find_tests, read_all
from evalmeta.api.endpoints import endpoint_settings, is_url
from evalmeta.api.file_checks import validate_and_read
from evalmeta.engine.raters import bind_rater
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.replay import RecordedSubject
from evalmeta.errors import SettingsError, UsageError
from evalmeta.formats.document import reading_of
from evalmeta.formats.files import read_document
from evalmeta.model.entry_points import likely_target
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.python_objects import object_of
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION
from evalmeta.model.run_options import RunOptions, Scoring, Setup
from evalmeta.model.settings import RaterSettings, Settings, SubjectSettings
from evalmeta.org.runs import read_evaluation
from evalmeta.org.subjects import (
    agent_of,
    agent_settings,
    bind_settings,
    bind_subject,
    described_agent,
    rater_of,
    rater_settings,
)
from evalmeta.package.files import bytes_of, key_name, parse_test_name, shown
from evalmeta.package.project import version_in_force
from evalmeta.store.judgements import FolderRatings, find_check
from evalmeta.validation.rules import rule_policy
from evalmeta.validation.validator import validate_component
from evalmeta.version import __version__
from evalmeta.xmlio.definitions import write_definition

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from pydantic_core import ErrorDetails

    from evalmeta.api.evaluating.loaded import LoadedEvaluation, Roots
    from evalmeta.engine.interfaces import Rater, RatingCache, Subject
    from evalmeta.model.definition import Definition
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.store import Store


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
    reading = reading_of(settings, root=root.folder, is_asked=roots.subject_name is not None, columns=roots.columns)
    # Reports show the path of a file in its project or in the current folder.
    real, folder = file.parent.resolve() / file.name, root.folder if root.project else Path.cwd()
    path = real.relative_to(folder).as_posix() if real.is_relative_to(folder) else file.name
    document = read_document(file, label=shown(file), name=name or path, reading=reading)
    evaluation = document.evaluation
    # A file may name a Python function or a URL, which need no project.
    if not document.is_answered and ":" not in evaluation.subject_name:
        root = roots.root_of(file.parent)
    if not evaluation.subject_name:
        only = next(iter(settings.subjects)) if len(settings.subjects) == 1 else "My_Agent"
        default = RECORDED_ANSWERS if document.is_answered else only
        evaluation = replace(evaluation, subject_name=roots.subject_name or default)
    return root.loaded(evaluation, None, EVALUATION_DEFINITION)._replace(document=document)


_ARGUMENT: Final = "argument"


def project_subject(loaded: LoadedEvaluation) -> Subject:
    """Return the subject that the project or a URL binds to the evaluation's agent, or the answers in its file."""
    name, kind = loaded.evaluation.subject_name, loaded.evaluation.subject_type
    subjects = loaded.settings.subjects
    if name not in subjects and is_url(name) and (subject := described_subject(endpoint_settings(name), loaded.root)):
        return subject
    if loaded.document and loaded.document.is_answered and name not in subjects:
        return bind(RecordedSubject(adapter="recorded"), root=loaded.root)
    return bind_subject(subjects, name, root=loaded.root, subject_type=kind)


def subject_settings_of(loaded: LoadedEvaluation) -> SubjectSettings | Mapping[str, JsonValue]:
    """Return the settings or the table of the subject that `project_subject` returns, for another process."""
    name, subjects = loaded.evaluation.subject_name, loaded.settings.subjects
    if settings := agent_settings(subjects, name, root=loaded.root):
        return settings
    if is_url(name):
        return endpoint_settings(name)
    if loaded.document and loaded.document.is_answered:
        return RecordedSubject(adapter="recorded")
    return {"adapter": "python", "target": name}


def rater_settings_of(loaded: LoadedEvaluation, options: RunOptions) -> RaterSettings:
    """Return the settings of the rater that a run uses."""
    return rater_settings(loaded.settings.raters, options.scoring.rater, root=loaded.root)


def project_rater(loaded: LoadedEvaluation, name: str, cache: RatingCache) -> Rater:
    """Return the rater that the project's settings name."""
    return bind_rater(rater_settings(loaded.settings.raters, name, root=loaded.root), root=loaded.root, cache=cache)


def described_subject(described: object, root: Path) -> Subject | None:
    """Return the subject that a table or settings describe; None for anything else."""
    settings = _subject_settings(described)
    return None if settings is None else bind_settings(settings, root=root)


def _subject_settings(described: object) -> SubjectSettings | None:
    settings = _settings("subjects", described).subjects[_ARGUMENT] if isinstance(described, Mapping) else described
    return settings if isinstance(settings, SubjectSettings) else None


def described_rater(described: object, root: Path, cache: RatingCache) -> Rater | None:
    """Return the rater that a table or settings describe; None for anything else."""
    settings = _rater_settings(described)
    return None if settings is None else bind_rater(settings, root=root, cache=cache)


def _rater_settings(described: object) -> RaterSettings | None:
    settings = _settings("raters", described).raters[_ARGUMENT] if isinstance(described, Mapping) else described
    return settings if isinstance(settings, RaterSettings) else None


def model_of(loaded: LoadedEvaluation, subject: object) -> str:
    """Return the language model in the settings of an evaluation's agent; empty if they name none."""
    settings = _settings_of_subject(loaded, subject)
    return settings.language_model if settings else ""


def _settings_of_subject(loaded: LoadedEvaluation, subject: object) -> SubjectSettings | None:
    own = subject_settings_of(loaded) if subject is None else subject
    return _subject_settings(own) if isinstance(own, Mapping | SubjectSettings) else None


def described(
    loaded: LoadedEvaluation, subject: object, rater: object, options: RunOptions
) -> tuple[SubjectSettings | None, RaterSettings | None]:
    """Return the settings of the agent and of the rater, None for functions and objects."""
    judge = rater_settings_of(loaded, options) if rater is None else _rater_settings(rater)
    return _settings_of_subject(loaded, subject), judge


def setup_of(loaded: LoadedEvaluation, subject: object, rater: object, scoring: Scoring) -> Setup:
    """Return what answers and judges in a run, with the check of the rater that the project keeps."""
    if rater is None:
        settings: RaterSettings | None = rater_settings(loaded.settings.raters, scoring.rater)
    else:
        settings = _rater_settings(rater)
    judge = object_of(rater) if settings is None else rater_of(settings, root=loaded.root)
    check = find_check(loaded.project.state_dir, judge, scoring.threshold) if loaded.project else ""
    return Setup(*_agent_of(loaded, subject), *judge, __version__, check)


def _agent_of(loaded: LoadedEvaluation, subject: object) -> tuple[str, str]:
    """Return what identifies the agent of an evaluation, and a fingerprint of its source if that is known."""
    if subject is not None:
        settings = _subject_settings(subject)
        return object_of(subject) if settings is None else described_agent(settings, loaded.root)
    name, subjects = loaded.evaluation.subject_name, loaded.settings.subjects
    if name not in subjects and (settings := _subject_settings(endpoint_settings(name) or None)):
        return described_agent(settings, loaded.root)
    if name not in subjects and loaded.document and loaded.document.is_answered:
        return described_agent(RecordedSubject(adapter="recorded"), loaded.root)
    return agent_of(subjects, name, root=loaded.root)


def open_cache(store: Store | None, stack: AsyncExitStack) -> RatingCache:
    """Return the cache of ratings in a store; `stack` closes it."""
    cache = FolderRatings(store)
    stack.callback(cache.close)
    return cache


def _settings(group: str, table: Mapping[object, object]) -> Settings:
    try:
        return Settings.model_validate({group: {_ARGUMENT: dict(table)}})
    except ValidationError as error:
        # The values may be secrets, so they are left out.
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        lines = "; ".join(_fault(fault, table) for fault in faults)
        raise SettingsError(f"the {group[:-1]}'s settings are not valid: {lines}") from None


def _fault(fault: ErrorDetails, table: Mapping[object, object]) -> str:
    if fault["type"] == "string_pattern_mismatch" and fault["loc"][-1] == "target":
        return f"target {table['target']!r} is not a valid module:name; write {likely_target(str(table['target']))}"
    keys = [*fault["loc"][2:]] or (["adapter"] if fault["type"] == "adapter_missing" else [])
    return f"{key_name(keys)}: {fault['msg']}" if keys else fault["msg"]
