"""What evaluations are run with: a subject and a rater, given as Python objects, as settings, or by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from pydantic import ValidationError

from evalmeta.engine.conversation import close
from evalmeta.engine.raters import bind_rater
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.python import subject_of
from evalmeta.errors import SettingsError
from evalmeta.model.settings import (
    RATER_ADAPTERS,
    SUBJECT_ADAPTERS,
    PluginRater,
    PluginSubject,
    RecordedSubject,
    Settings,
)
from evalmeta.org.bindings import bind_subject, rater_settings
from evalmeta.org.sessions import sign_in
from evalmeta.package.configfile import key_name

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from evalmeta.api.assignments import Assignment
    from evalmeta.engine.raters.cache import RatingCache
    from evalmeta.engine.raters.rater import Rater, Rating, Rubric
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.run import RunOptions
    from evalmeta.model.settings import RaterSettings, SubjectSettings

__all__ = ["Bindings"]

_SUBJECT_SETTINGS: Final[tuple[type, ...]] = (*SUBJECT_ADAPTERS.values(), PluginSubject)
_RATER_SETTINGS: Final[tuple[type, ...]] = (*RATER_ADAPTERS.values(), PluginRater)
_GIVEN: Final = "given"


class Bindings:
    """The subjects and raters of one call, each made once, shared by its runs, and closed at its end.

    Args:
        stack: what closes them.
        subject: an agent, a table of settings or a subject; None binds them by name.
        rater: a function, a table of settings or a rater; None takes those that options name.
        cache: keeps what language models say.
    """

    def __init__(self, stack: AsyncExitStack, subject: object, rater: object, cache: RatingCache | None) -> None:
        self._stack = stack
        self._subject = subject
        self._rater = rater
        self._cache = cache
        self._subjects: dict[tuple[Path, str] | None, Subject] = {}
        self._raters: dict[tuple[Path, str] | None, Rater] = {}

    def subject(self, assignment: Assignment) -> Subject:
        """Gives the subject of an assignment, which stays open when a run closes it.

        Raises:
            SubjectNotBound: none was given, and no adapter is bound to the agent's name.
            SettingsError: what was given is no subject, or cannot be used.
        """
        key = (assignment.root, assignment.evaluation.subject_name) if self._subject is None else None
        if key not in self._subjects:
            self._subjects[key] = found = self._new_subject(assignment)
            self._stack.push_async_callback(close, found)
        return _Shared(self._subjects[key])

    def rater(self, assignment: Assignment, options: RunOptions) -> Rater:
        """Gives the rater of an assignment.

        Raises:
            SettingsError: what was given is no rater, none has the name, or it cannot be used.
        """
        key = (assignment.root, options.scoring.rater) if self._rater is None else None
        if key not in self._raters:
            self._raters[key] = found = self._new_rater(assignment, options.scoring.rater)
            self._stack.push_async_callback(close, found)
        return self._raters[key]

    def _new_subject(self, assignment: Assignment) -> Subject:
        if self._subject is not None:
            return _given_subject(self._subject, assignment.root)
        name, kind = assignment.evaluation.subject_name, assignment.evaluation.subject_type
        if assignment.document and assignment.document.is_answered and name not in assignment.settings.subjects:
            return bind(RecordedSubject(adapter="recorded"), root=assignment.root)
        return bind_subject(assignment.settings.subjects, name, root=assignment.root, subject_type=kind)

    def _new_rater(self, assignment: Assignment, name: str) -> Rater:
        if self._rater is not None:
            return _given_rater(self._rater, assignment.root, self._cache)
        return bind_rater(rater_settings(assignment.settings.raters, name), root=assignment.root, cache=self._cache)


class _Shared:
    """A subject that several runs ask; whoever made it closes it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    async def open(self, case: Case) -> Session:
        return await self._subject.open(case)

    async def close(self) -> None:
        """Leaves the subject to whoever made it."""


class _Function:
    """A function that rates, with nothing to let go of."""

    def __init__(self, rate: object) -> None:
        self._rate = rate

    def __call__(self, rubric: Rubric, /) -> Rating | Awaitable[Rating] | None:
        return cast("Rater", self._rate)(rubric)

    async def close(self) -> None:
        """Has nothing to let go of."""


def _given_subject(subject: object, root: Path) -> Subject:
    settings = _subject_table(subject) if isinstance(subject, Mapping) else subject
    if isinstance(settings, _SUBJECT_SETTINGS):
        return bind(cast("SubjectSettings", settings), root=root, sign_in=sign_in)
    return cast("Subject", subject) if _is_subject(subject) else subject_of(subject, root=root)


def _given_rater(rater: object, root: Path, cache: RatingCache | None) -> Rater:
    settings = _rater_table(rater) if isinstance(rater, Mapping) else rater
    if isinstance(settings, _RATER_SETTINGS):
        return bind_rater(cast("RaterSettings", settings), root=root, cache=cache)
    if not callable(rater) or inspect.isclass(rater):
        raise SettingsError(
            f"the rater is neither a function nor settings: {type(rater).__name__}",
            actions=('Give a function of a rubric that gives a Rating, or a table such as {"adapter": "llm", ...}.',),
        )
    return cast("Rater", rater) if callable(getattr(rater, "close", None)) else _Function(rater)


def _is_subject(thing: object) -> bool:
    """Tells the engine's subjects, whose `open` takes a case, from agents, whose `open` takes history and context."""
    opener, closer = getattr(thing, "open", None), getattr(thing, "close", None)
    if inspect.isclass(thing) or not (inspect.iscoroutinefunction(opener) and inspect.iscoroutinefunction(closer)):
        return False
    needed = [each.name for each in inspect.signature(opener).parameters.values() if each.default is each.empty]
    return len(needed) == 1 and needed[0] not in {"history", "context"}


def _subject_table(table: Mapping[object, object]) -> SubjectSettings:
    return _settings("subjects", table).subjects[_GIVEN]


def _rater_table(table: Mapping[object, object]) -> RaterSettings:
    return _settings("raters", table).raters[_GIVEN]


def _settings(group: str, table: Mapping[object, object]) -> Settings:
    try:
        return Settings.model_validate({group: {_GIVEN: dict(table)}})
    except ValidationError as error:
        # The values themselves may be secrets.
        found = error.errors(include_url=False, include_input=False, include_context=False)
        lines = "; ".join(f"{key_name([*each['loc'][3:]]) or 'adapter'}: {each['msg']}" for each in found)
        raise SettingsError(f"the {group[:-1]}'s settings are wrong: {lines}") from None
