"""The subjects and raters of `evaluate` that settings describe: the project's, or tables that were passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from evalmeta.api.endpoints import endpoint_settings, is_url
from evalmeta.engine.raters.registry import bind_rater
from evalmeta.engine.subjects.registry import bind
from evalmeta.engine.subjects.replay import RecordedSubject
from evalmeta.errors import SettingsError
from evalmeta.model.fingerprints import object_of
from evalmeta.model.python_target import likely_target
from evalmeta.model.settings import RaterSettings, Settings, SubjectSettings
from evalmeta.org import setups
from evalmeta.org.subjects import bind_subject, rater_settings, sign_in
from evalmeta.package.config_file import key_name
from evalmeta.store.judgements import FolderRatings, find_check

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from evalmeta.api.evaluating.loaded import LoadedEvaluation
    from evalmeta.engine.interfaces import Rater, RatingCache, Subject


_ARGUMENT: Final = "argument"


def project_subject(loaded: LoadedEvaluation) -> Subject:
    """Return the subject that the project binds to the evaluation's agent, or the answers that its file contains.

    A name can also be the URL of an endpoint.
    """
    name, kind = loaded.evaluation.subject_name, loaded.evaluation.subject_type
    subjects = loaded.settings.subjects
    if name not in subjects and is_url(name) and (subject := described_subject(endpoint_settings(name), loaded.root)):
        return subject
    if loaded.document and loaded.document.is_answered and name not in subjects:
        return bind(RecordedSubject(adapter="recorded"), root=loaded.root)
    return bind_subject(subjects, name, root=loaded.root, subject_type=kind)


def project_rater(loaded: LoadedEvaluation, name: str, cache: RatingCache) -> Rater:
    """Return the rater that the project's settings name."""
    return bind_rater(rater_settings(loaded.settings.raters, name, root=loaded.root), root=loaded.root, cache=cache)


def described_subject(described: object, root: Path) -> Subject | None:
    """Return the subject that a table or settings describe; None for anything else."""
    settings = _subject_settings(described)
    return None if settings is None else bind(settings, root=root, sign_in=sign_in)


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


def agent_of(loaded: LoadedEvaluation, subject: object) -> tuple[str, str]:
    """Return what identifies the agent of an evaluation, and a fingerprint of its source if that is known."""
    if subject is not None:
        settings = _subject_settings(subject)
        return object_of(subject) if settings is None else setups.described_agent(settings, loaded.root)
    name, subjects = loaded.evaluation.subject_name, loaded.settings.subjects
    if name not in subjects and (settings := _subject_settings(endpoint_settings(name) or None)):
        return setups.described_agent(settings, loaded.root)
    if name not in subjects and loaded.document and loaded.document.is_answered:
        return setups.described_agent(RecordedSubject(adapter="recorded"), loaded.root)
    return setups.agent_of(subjects, name, root=loaded.root)


def rater_of(loaded: LoadedEvaluation, rater: object, name: str) -> tuple[str, str]:
    """Return what identifies the rater of an evaluation, and a fingerprint of its prompts or source if it is known."""
    settings = rater_settings(loaded.settings.raters, name) if rater is None else _rater_settings(rater)
    return object_of(rater) if settings is None else setups.rater_of(settings, root=loaded.root)


def check_of(loaded: LoadedEvaluation, judge: tuple[str, str], threshold: float) -> str:
    """Return the check of a rater that the project of an evaluation keeps; empty if there is none."""
    return "" if loaded.project is None else find_check(loaded.project.state_dir, judge, threshold)


def open_cache(state_dir: Path | None, stack: AsyncExitStack) -> RatingCache:
    """Return the cache of ratings in a state folder; `stack` closes it."""
    cache = FolderRatings(state_dir)
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
