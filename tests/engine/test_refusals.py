from __future__ import annotations

import pytest

from evalmeta.engine.refusals import is_refusal


@pytest.mark.parametrize(
    "text",
    [
        "申し訳ございませんが、お答えできません。",
        "抱歉，我无法回答这个问题。",
        "답변을 드릴 수 없습니다.",
        "मैं मदद नहीं कर सकता।",
        "عذرًا، لا أستطيع مساعدتك.",
    ],
)
def test_refusals_in_other_scripts_are_known(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", ["No idea why, but it is $20.", "It is $20.", "You need to ask for a receipt."])
def test_answers_are_not_non_answers(text: str) -> None:
    assert not is_refusal(text)
