"""Whom a run asks and who rates for it: subjects and raters, by the names that settings have for them.

Sessions with other orgs, for subjects that live in one: from the user's stored logins.

The subjects and raters of an org that is served: those that its project's settings bind now.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from evalmeta.errors import EvalmetaError, NotFound, SettingsError, SubjectError, SubjectNotBound
from evalmeta.model.login import SignedIn
from evalmeta.model.settings import AgentforceSubject, RulesRater, Settings
from evalmeta.org.run_files import bound_subjects
from evalmeta.package.config_file import key_name
from evalmeta.package.project import SETTINGS_FILE
from evalmeta.package.settings import load_settings
from evalmeta.store.judge_cache import Ratings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from evalmeta.engine.raters.judge import Rater
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import RunOptions
    from evalmeta.model.settings import RaterSettings, SubjectSettings
    from evalmeta.org.organization import Organization


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
    from evalmeta.engine.subjects.registry import bind  # noqa: PLC0415 - only runs need it

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
    from evalmeta.engine.case_run import close  # noqa: PLC0415 - only runs need it
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


def check_login(org: str) -> None:
    """Sees to it that the user has a login with an alias or username; nothing is sent.

    Raises:
        SettingsError: there is none.
        UsageError: several orgs have the username, or stored logins are open to others.
    """
    from evalmeta.client.logins import user_logins  # noqa: PLC0415 - as in sign_in

    try:
        user_logins().find(org)
    except NotFound as error:
        actions = (*error.actions, "Or correct the subject's org in evalmeta.toml.")
        raise SettingsError(f"the subject's org cannot be asked: {error}", actions=actions) from None


async def sign_in(org: str, *, instead_of: str = "") -> SignedIn:
    """Gives the session of the user's login with an alias or username, a new one in place of a token that has ended.

    Raises:
        NotFound: no login has that name.
        LoginFailed: the keyring does not give the secrets, or the session has ended and is not renewed.
        UsageError: stored logins are open to others.
    """
    # Only agents in other orgs need them, and httpx takes 117 ms.
    from evalmeta.client.auth import renew_secrets  # noqa: PLC0415
    from evalmeta.client.logins import user_logins  # noqa: PLC0415

    logins = user_logins()
    login = logins.find(org)
    secrets = logins.secrets_of(login)
    if instead_of and secrets.access_token == instead_of:
        secrets = await renew_secrets(login, logins, instead_of=instead_of)
    return SignedIn(login.url, secrets.access_token)


_T = TypeVar("_T")


def live_subjects(root: Path) -> Mapping[str, SubjectSettings]:
    """Gives the subjects that `evalmeta.toml` in a folder binds; the file is read again once it has changed.

    Every look at them may raise SettingsError: the file cannot be read, or holds what evalmeta does not know.
    """
    return _Live(root, lambda settings: settings.subjects)


def live_raters(root: Path) -> Mapping[str, RaterSettings]:
    """Gives the raters that `evalmeta.toml` in a folder binds, as `live_subjects` does."""
    return _Live(root, lambda settings: settings.raters)


class _Live(Mapping[str, _T]):
    def __init__(self, root: Path, choose: Callable[[Settings], Mapping[str, _T]]) -> None:
        self._file = root / SETTINGS_FILE
        self._choose = choose
        self._read: Mapping[str, _T] = {}
        self._version: tuple[int, int, int] | None = None

    def __getitem__(self, name: str) -> _T:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> Mapping[str, _T]:
        version = self._version_on_disk()
        if version != self._version:
            self._read = self._choose(Settings() if version is None else load_settings(self._file))
            self._version = version
        return self._read

    def _version_on_disk(self) -> tuple[int, int, int] | None:
        with suppress(FileNotFoundError):
            found = self._file.stat()
            return found.st_mtime_ns, found.st_size, found.st_ino
        return None
