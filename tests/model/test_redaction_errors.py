from __future__ import annotations

from evalmeta import limits
from evalmeta.errors import SubjectError
from evalmeta.model.redaction import error_text


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_an_error_is_shown_with_its_type() -> None:
    assert error_text(ValueError("no such order")) == "ValueError: no such order"
    assert error_text(ValueError()) == "ValueError"


def test_an_error_raised_on_purpose_speaks_for_itself() -> None:
    assert error_text(SubjectError("the agent is asleep")) == "the agent is asleep"
    assert error_text(SubjectError("")) == "SubjectError"


def test_a_huge_error_is_cut() -> None:
    assert len(error_text(ValueError("x" * 10_000_000))) == limits.MAX_ERROR_CHARS


def test_an_error_that_cannot_be_shown_is_still_named() -> None:
    assert error_text(Mute()) == "Mute: the error cannot be shown"


def test_a_reason_is_valid_unicode() -> None:
    assert error_text(ValueError("\ud800")).encode()
