from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.interfaces import NothingToClose, SimpleSubject
from evalmeta.engine.project_code import traceback_text
from evalmeta.engine.redaction import redacted_answer, with_redaction
from evalmeta.engine.subjects.objects import subject_of
from evalmeta.errors import SubjectBusy, SubjectError
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject

CARD = "4012-8888-8888-1881"
PATTERNS = [r"\b\d{4}(?:-\d{4}){3}\b", "Ada(?= Byron)"]
ANSWER = GeneratedData(
    f"Ada Byron pays with {CARD}.",
    "Payments",
    (Action("Pay", {"card": CARD, "amount": 3}, {"card": [CARD, {CARD: None}]}, 2.0, f"{CARD} expired"),),
    4.0,
    "session",
    Tokens(1, 2),
    {"raw": [CARD, True]},
    (Passage(f"file:///{CARD}", CARD), Passage("x")),
    state={"card": [CARD], CARD: {"paid": True}},
    handoffs=("Payments",),
)
HIDDEN = GeneratedData(
    "[secret] Byron pays with [secret].",
    "Payments",
    (
        Action(
            "Pay",
            {"card": "[secret]", "amount": 3},
            {"card": ["[secret]", {"[secret]": None}]},
            2.0,
            "[secret] expired",
        ),
    ),
    4.0,
    "session",
    Tokens(1, 2),
    {"raw": ["[secret]", True]},
    (Passage("file:///[secret]", "[secret]"), Passage("x")),
    state={"card": ["[secret]"], "[secret]": {"paid": True}},
    handoffs=("Payments",),
)


def ask(subject: Subject) -> GeneratedData:
    async def go() -> GeneratedData:
        session = await subject.open(Case(1, (Turn("Hi"),)))
        try:
            return await session.ask("Hi")
        finally:
            await session.close()
            await subject.close()

    return asyncio.run(go())


def test_everything_that_an_agent_says_is_redacted() -> None:
    def hide(text: str) -> str:
        return re.sub(PATTERNS[1], "[secret]", re.sub(PATTERNS[0], "[secret]", text))

    assert redacted_answer(ANSWER, hide) == HIDDEN
    assert redacted_answer(GeneratedData("x"), hide) == GeneratedData("x")


@pytest.mark.parametrize("answer", [ANSWER, {"outcome": ANSWER.outcome, "trace": ANSWER.trace}, ANSWER.outcome])
def test_answers_of_functions_are_redacted_in_any_form(tmp_path: Path, answer: object) -> None:
    def agent(_: str) -> object:
        return answer

    found = ask(with_redaction(subject_of(agent, root=tmp_path), PATTERNS))
    assert found.outcome == HIDDEN.outcome
    assert CARD not in str(found)


def test_answers_of_other_adapters_are_checked_and_redacted() -> None:
    class Answering(NothingToClose):
        async def ask(self, _: str) -> GeneratedData:
            return ANSWER

    assert ask(with_redaction(SimpleSubject(lambda _: Answering()), PATTERNS)) == HIDDEN


class Answering(NothingToClose):
    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def ask(self, _: str) -> str:
        raise self._error


def broken(error: BaseException) -> Subject:
    return SimpleSubject(lambda _: Answering(error))


def test_texts_of_errors_are_redacted_with_their_causes_and_tracebacks(tmp_path: Path) -> None:
    def agent(_: str) -> str:
        try:
            return {}[CARD]
        except KeyError as error:
            raise ValueError(f"paid with {CARD}") from error

    busy = SubjectBusy(f"{CARD} is limited", after=7.0, actions=[f"Wait for {CARD}"])
    agents = [subject_of(agent, root=tmp_path), broken(busy), broken(SystemExit(CARD)), broken(KeyError(CARD))]
    for subject in agents:
        with pytest.raises(SubjectError, match="secret") as caught:
            ask(with_redaction(subject, PATTERNS))
        texts = traceback_text(caught.value), caught.value.traceback, *caught.value.actions, str(caught.value)
        assert CARD not in str(texts)
        assert caught.value.__suppress_context__
    assert (busy.after, busy.actions) == (7.0, ("Wait for [secret]",))


def test_an_agent_that_cannot_be_opened_is_redacted_too() -> None:
    def open_session(_: object) -> NothingToClose:
        raise OSError(CARD)

    with pytest.raises(SubjectError, match=r"OSError: \[secret\]"):
        ask(with_redaction(SimpleSubject(open_session), PATTERNS))  # type: ignore[arg-type]


def test_without_patterns_a_subject_is_the_same(tmp_path: Path) -> None:
    subject = subject_of(lambda _: "Hello", root=tmp_path)
    assert with_redaction(subject, []) is subject
