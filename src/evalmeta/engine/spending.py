"""What a case uses while it is run, and what it costs: a ledger of its replies, and their prices."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta.engine.prices import Prices
from evalmeta.model.spending import Role, Spent, merged

if TYPE_CHECKING:
    from evalmeta.model.generated_data import Tokens
    from evalmeta.model.run import CaseResult


class Ledger:
    """The replies to one case, also those of attempts and samples that came to nothing."""

    __slots__ = ("_is_told", "_rows", "_untold")

    def __init__(self) -> None:
        self._rows: list[Spent] = []
        self._untold = 0
        self._is_told = False

    def add(self, role: Role, model: str, tokens: Tokens | None) -> None:
        """Add a reply; without tokens, its cost is not known."""
        self._rows.append(_reply(role, model, tokens))

    def reuse(self, role: Role, model: str = "") -> None:
        """Add a recorded answer or a stored judgement, which costs nothing."""
        self._is_told |= role == "agent"
        self._rows.append(Spent(role, model, reused=1))

    def answered(self, tokens: Tokens | None, *, is_recorded: bool) -> None:
        """Add an answer of the agent, or one that was recorded earlier."""
        if is_recorded:
            self.reuse("agent", tokens.model if tokens else "")
        elif tokens is None:
            # The usual agent reports no tokens, and then this is all that happens.
            self._untold += 1
        else:
            self._is_told = True
            self.add("agent", tokens.model, tokens)

    def failed(self) -> None:
        """Add a question that was sent and brought no answer: the agent may have used tokens for it."""
        self._is_told = True
        self._untold += 1

    def rows(self) -> tuple[Spent, ...]:
        """Return a row for each reply; nothing of an agent that answered everything and reports no tokens."""
        if not self._rows and not self._is_told:
            return ()
        untold = (Spent("agent", replies=self._untold, unknown=self._untold),) if self._untold and self._is_told else ()
        return (*self._rows, *untold)


def _reply(role: Role, model: str, tokens: Tokens | None) -> Spent:
    if tokens is None or tokens.input is None or tokens.output is None:
        known = (tokens.input or 0, tokens.output or 0, tokens.cached or 0) if tokens else ()
        return Spent(role, model, 1, 1, *known)
    return Spent(role, model, 1, 0, tokens.input, tokens.output, tokens.cached or 0)


CURRENT: Final[ContextVar[Ledger | None]] = ContextVar("evalmeta_ledger", default=None)
"""The ledger of the case that is run, for a rater that many cases use at the same time."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What the results of a run cost; `model` is the agent's in its settings, for answers that name none."""

    prices: Prices = field(default_factory=Prices)
    model: str = ""

    async def priced(self, result: CaseResult) -> CaseResult:
        """Return a result whose replies have prices, as far as these are known, with a row for each model.

        The list of prices is loaded in a thread when it is first needed, so that no latency of another case has it.
        """
        told = (row for row in result.spent if row.replies > row.unknown)
        if not self.prices.is_loaded and not all(self.prices.own(self._models(row)) for row in told):
            await asyncio.to_thread(self.prices.load)
        return result._replace(spent=merged(map(self._priced, result.spent)))

    def _priced(self, row: Spent) -> Spent:
        models = self._models(row)
        named = row._replace(model=next(filter(None, models), ""))
        if row.replies <= row.unknown:
            return named
        amount = self.prices.amount(models, row)
        return named._replace(unknown=row.replies) if amount is None else named._replace(amount=amount)

    def _models(self, row: Spent) -> tuple[str, ...]:
        # The name in the settings has the price if the reported one is a version of it that nobody lists.
        return (row.model, self.model) if row.role == "agent" else (row.model,)
