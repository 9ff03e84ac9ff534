"""The context of the turn that is asked, which adapters pass on to agents whose traces evalmeta receives."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class TurnContext(NamedTuple):
    """The `traceparent` that an agent receives with a turn, and the environment variables that programs need."""

    traceparent: str
    environment: Mapping[str, str]


TURN: Final[ContextVar[TurnContext | None]] = ContextVar("evalmeta_turn", default=None)
"""The context of the turn that is asked; None without traces."""
