"""Redaction of answers and errors by the patterns of a project, before anything judges, stores or reports them."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from evalmeta.engine.answers import generated_data
from evalmeta.engine.interfaces import PreparedSubject, WrappedSession
from evalmeta.engine.project_code import traceback_text
from evalmeta.errors import SubjectError
from evalmeta.model.redaction import HIDDEN, error_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.engine.traced import CompletedAnswer
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import Action, GeneratedData, Passage
    from evalmeta.model.json_value import JsonValue


_Given = TypeVar("_Given")


def with_redaction(subject: Subject, patterns: Sequence[str]) -> Subject:
    """Return a subject whose answers have `[secret]` instead of what a pattern matches; the same without patterns."""
    return _RedactedSubject(subject, tuple(map(re.compile, patterns))) if patterns else subject


def without_matches(text: str, patterns: Iterable[str | re.Pattern[str]]) -> str:
    """Return a text with `[secret]` instead of what patterns match."""
    for pattern in patterns:
        text = re.sub(pattern, HIDDEN, text)
    return text


def redacted_answer(answer: GeneratedData, hide: Callable[[str], str]) -> GeneratedData:
    """Return an answer whose texts are changed by a function: all but names of topics, actions and agents, and ids."""

    def action(done: Action) -> Action:
        inputs = {name: redacted_json(value, hide) for name, value in done.input.items()}
        error = None if done.error is None else hide(done.error)
        return replace(done, input=inputs, output=redacted_json(done.output, hide), error=error)

    def passage(found: Passage) -> Passage:
        return replace(found, uri=hide(found.uri), content=None if found.content is None else hide(found.content))

    state = answer.state and {hide(name): redacted_json(value, hide) for name, value in answer.state.items()}
    return replace(
        answer,
        outcome=hide(answer.outcome),
        actions=None if answer.actions is None else tuple(map(action, answer.actions)),
        trace=redacted_json(answer.trace, hide),
        retrieved=None if answer.retrieved is None else tuple(map(passage, answer.retrieved)),
        state=state,
    )


def redacted_json(value: JsonValue, hide: Callable[[str], str]) -> JsonValue:
    """Return JSON whose texts and names are changed by a function."""
    # Values of answers are nested at most as deeply as `generated_data` allows.
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [redacted_json(item, hide) for item in value]
    if isinstance(value, dict):
        return {hide(name): redacted_json(item, hide) for name, item in value.items()}
    return value


@contextmanager
def _hiding_errors(hide: Callable[[str], str]) -> Iterator[None]:
    """Change the texts of exceptions, also those of their tracebacks; errors of agents stay of their kind."""
    try:
        yield
    except SubjectError as error:
        error.args = tuple(hide(text) if isinstance(text, str) else text for text in error.args)
        error.actions, error.traceback = tuple(map(hide, error.actions)), hide(error.traceback)
        raise error from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - agents raise anything
        hidden = SubjectError(hide(error_text(error)), actions=tuple(map(hide, getattr(error, "actions", ()))))
        hidden.traceback = hide(traceback_text(error))
        raise hidden from None


class _RedactedSubject:
    def __init__(self, subject: Subject, patterns: Sequence[re.Pattern[str]]) -> None:
        self._subject = subject
        self._patterns = patterns

    async def open(self, case: Case) -> Session:
        with _hiding_errors(self._hide):
            return _RedactedSession(await self._subject.open(case), self._hide)

    async def prepare(self) -> None:
        if isinstance(self._subject, PreparedSubject):
            with _hiding_errors(self._hide):
                await self._subject.prepare()

    async def close(self) -> None:
        await self._subject.close()

    def _hide(self, text: str) -> str:
        return without_matches(text, self._patterns)


class _RedactedSession(WrappedSession):
    def __init__(self, session: Session, hide: Callable[[str], str]) -> None:
        super().__init__(session)
        self._hide = hide
        complete = getattr(session, "complete", None)
        if complete is not None:
            self.complete = partial(self._complete, complete)

    async def _ask(self, ask: Callable[[_Given], Awaitable[GeneratedData]], given: _Given) -> GeneratedData:
        with _hiding_errors(self._hide):
            answer = await ask(given)
            checked = answer if self.checks_answers else generated_data(answer)
        return redacted_answer(checked, self._hide)

    async def _complete(
        self,
        complete: Callable[[Sequence[GeneratedData]], Awaitable[Sequence[CompletedAnswer]]],
        answers: Sequence[GeneratedData],
    ) -> list[CompletedAnswer]:
        completed = await complete(answers)
        return [
            done._replace(answer=redacted_answer(done.answer, self._hide), note=self._hide(done.note))
            for done in completed
        ]
