"""The context of the turn that is asked, which adapters pass on to agents whose traces evalmeta receives."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class TurnContext(NamedTuple):
    """What an agent is told of the trace of a turn: its `traceparent`, and the environment of programs."""

    traceparent: str
    environment: Mapping[str, str]


TURN: Final[ContextVar[TurnContext | None]] = ContextVar("evalmeta_turn", default=None)
"""The context of the turn that is asked; None without traces."""
