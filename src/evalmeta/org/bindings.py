"""Whom a run asks and who rates for it: subjects and raters, by the names that settings have for them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from evalmeta.errors import EvalmetaError, SettingsError, SubjectError, SubjectNotBound
from evalmeta.model.settings import AgentforceSubject, RulesRater
from evalmeta.org.files import bound_subjects
from evalmeta.org.sessions import check_login, sign_in
from evalmeta.package.configfile import key_name
from evalmeta.package.markers import SETTINGS_FILE
from evalmeta.store.ratings import Ratings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from evalmeta.engine.raters.rater import Rater
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import RunOptions
    from evalmeta.model.settings import RaterSettings, SubjectSettings
    from evalmeta.org.organization import Organization

__all__ = ["bind_subject", "check_subject", "rater_of", "rater_settings", "rater_settings_of", "subject_of_run"]


def check_subject(org: Organization, evaluation: Evaluation, content: bytes) -> None:
    """Makes sure that the agent of an evaluation, which a run's content stands for, can be asked.

    Raises:
        SubjectNotBound: no adapter is bound to it.
        SettingsError: the adapter cannot be used.
    """
    bind_subject(
        bound_subjects(org.subjects, evaluation.subject_name, content),
        evaluation.subject_name,
        root=org.root,
        subject_type=evaluation.subject_type,
        settings_name=org.settings_name,
    )


def bind_subject(
    subjects: Mapping[str, SubjectSettings],
    subject_name: str,
    *,
    root: Path,
    subject_type: str = "AGENT",
    settings_name: str = SETTINGS_FILE,
) -> Subject:
    """Gives the subject that is bound to an agent's or a prompt template's name in the settings that are named.

    Raises:
        SubjectNotBound: no adapter is bound to it.
        SettingsError: the adapter cannot be used.
    """
    settings = subjects.get(subject_name)
    if settings is None:
        lines = f'[{key_name(["subjects", subject_name])}]\nadapter = "python"\ntarget = "my_agent:answer"'
        message = f"no adapter is bound to the agent {subject_name!r}"
        if subject_type == "PROMPT":
            message = f"the prompt template {subject_name!r} cannot be asked here: no adapter is bound to it"
        raise SubjectNotBound(
            message, actions=[f"Add these lines to {settings_name}, with your agent's module and name:\n\n{lines}"]
        )
    from evalmeta.engine.subjects import bind  # noqa: PLC0415 - only runs need it

    if isinstance(settings, AgentforceSubject) and settings.org:
        check_login(settings.org)
    return bind(settings, root=root, sign_in=sign_in)


def rater_settings(
    raters: Mapping[str, RaterSettings], name: str, *, settings_name: str = SETTINGS_FILE
) -> RaterSettings:
    """Gives the settings of the rater of a name; the rater `rules` needs none.

    Raises:
        SettingsError: no such rater is bound.
    """
    if name in raters:
        return raters[name]
    if name == "rules":
        return RulesRater(adapter="rules")
    lines = f'[raters.{name}]\nadapter = "llm"\nmodel = "openai:gpt-4.1-mini"'
    raise SettingsError(f"no rater is called {name!r}", actions=[f"Add these lines to {settings_name}:\n\n{lines}"])


def rater_settings_of(org: Organization, options: RunOptions) -> RaterSettings:
    """Gives the settings of the rater that a run names; raises like `rater_settings`."""
    return rater_settings(org.raters, options.scoring.rater, settings_name=org.settings_name)


@asynccontextmanager
async def rater_of(org: Organization, options: RunOptions) -> AsyncIterator[Rater]:
    """Gives the rater that a run names, and closes it, as `close` does: what goes wrong there spoils nothing.

    Raises:
        SettingsError: no such rater is bound, or it cannot be used.
    """
    from evalmeta.engine.conversation import close  # noqa: PLC0415 - only runs need it
    from evalmeta.engine.raters import bind_rater  # noqa: PLC0415 - likewise

    rater = bind_rater(rater_settings_of(org, options), root=org.root, cache=Ratings(org.database))
    try:
        yield rater
    finally:
        await close(rater)


def subject_of_run(org: Organization, subject_name: str, content: bytes) -> Subject:
    """Gives whom a run asks; one that cannot be used any more makes every case ERROR and tells why."""
    try:
        return bind_subject(bound_subjects(org.subjects, subject_name, content), subject_name, root=org.root)
    except EvalmetaError as error:
        return _Unusable(org.without_paths(str(error)))


class _Unusable:
    """A subject that was there when the run began and cannot be used now: every case becomes ERROR."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def open(self, case: Case) -> Session:
        raise SubjectError(f"case {case.number} cannot be asked: {self._reason}")

    async def close(self) -> None:
        pass
