from __future__ import annotations

from evalmeta import limits
from evalmeta.engine.reasons import reason
from evalmeta.errors import SubjectError


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_an_error_is_told_with_its_type() -> None:
    assert reason(ValueError("no such order")) == "ValueError: no such order"
    assert reason(ValueError()) == "ValueError"


def test_an_error_raised_on_purpose_speaks_for_itself() -> None:
    assert reason(SubjectError("the agent is asleep")) == "the agent is asleep"
    assert reason(SubjectError("")) == "SubjectError"


def test_a_huge_error_is_cut() -> None:
    assert len(reason(ValueError("x" * 10_000_000))) == limits.MAX_ERROR_CHARS


def test_an_error_that_cannot_be_shown_is_still_named() -> None:
    assert reason(Mute()) == "Mute: the error cannot be shown"


def test_a_reason_is_valid_unicode() -> None:
    assert reason(ValueError("\ud800")).encode()
