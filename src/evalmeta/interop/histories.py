"""Histories as metadata takes them: pairs of question and answer, each answer with its topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.model.definition import HistoryMessage

__all__ = ["paired"]

_UNKNOWN_TOPIC: Final = "unknown"
_SHOWN_CHARS: Final = 60


def paired(messages: Sequence[HistoryMessage], lose: Callable[[str], None]) -> tuple[HistoryMessage, ...]:
    """Gives a history that keeps the rules history-role, history-order, history-index and history-topic.

    Left out is what belongs to no pair of a user's question and the agent's answer; an answer whose topic is not
    known gets one that says so, because definitions must name it.

    Args:
        messages: what was said, in its order.
        lose: takes what is lost, in words.
    """
    kept: list[HistoryMessage] = []
    asked: HistoryMessage | None = None
    for each in messages:
        if each.role == "user" and _is_said(each):
            _leave_out(asked, lose)
            asked = each
        elif each.role == "agent" and _is_said(each) and asked is not None:
            kept += (asked, each)
            asked = None
        else:
            _leave_out(each, lose)
    _leave_out(asked, lose)
    if any(_lacks_topic(each) for each in kept):
        lose(f"that the topic of an answer in the history is not known; it is written as {_UNKNOWN_TOPIC!r}")
    return tuple(
        replace(each, topic=_UNKNOWN_TOPIC if _lacks_topic(each) else each.topic, index=place)
        for place, each in enumerate(kept)
    )


def _leave_out(message: HistoryMessage | None, lose: Callable[[str], None]) -> None:
    if message is not None:
        text = (message.message or "")[:_SHOWN_CHARS]
        lose(f"the {message.role} message {text!r} of the history, which has only pairs of question and answer")


def _is_said(message: HistoryMessage) -> bool:
    return bool(message.message and message.message.strip())


def _lacks_topic(message: HistoryMessage) -> bool:
    return message.role == "agent" and not (message.topic and message.topic.strip())
