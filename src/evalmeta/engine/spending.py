"""What a case uses while it is run, and what it costs: a ledger of its replies, and their prices."""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.prices import Prices
from evalmeta.errors import CostLimitReached, CostUnknown
from evalmeta.model.run import COST_LIMIT, UNKNOWN_COST
from evalmeta.model.spending import Role, Spent, dollars_text, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from evalmeta.model.evaluation import WorkItem
    from evalmeta.model.generated_data import Tokens
    from evalmeta.model.run import CaseResult


class Ledger:
    """The replies to one case, also those of attempts and samples that came to nothing."""

    __slots__ = ("_is_reported", "_rows", "_unreported")

    def __init__(self) -> None:
        self._rows: list[Spent] = []
        self._unreported = 0
        self._is_reported = False

    def add(self, role: Role, model: str, tokens: Tokens | None) -> None:
        """Add a reply; without tokens, its cost is not known."""
        self._rows.append(_reply(role, model, tokens))

    def reuse(self, role: Role, model: str = "") -> None:
        """Add a recorded answer or a stored judgement, which costs nothing."""
        self._is_reported |= role == "agent"
        self._rows.append(Spent(role, model, reused=1))

    def answered(self, tokens: Tokens | None, *, is_recorded: bool) -> None:
        """Add an answer of the agent, or one that was recorded earlier."""
        if is_recorded:
            self.reuse("agent", tokens.model if tokens else "")
        elif tokens is None:
            # The usual agent reports no tokens, and then this is all that happens.
            self._unreported += 1
        else:
            self._is_reported = True
            self.add("agent", tokens.model, tokens)

    def failed(self) -> None:
        """Add a question that was sent and brought no answer: the agent may have used tokens for it."""
        self._is_reported = True
        self._unreported += 1

    def rows(self) -> tuple[Spent, ...]:
        """Return a row for each reply; nothing of an agent that answered everything and reports no tokens."""
        if not self._is_reported and not self._rows:
            # The usual agent reports no tokens.
            return ()
        unreported = self._unreported if self._is_reported else 0
        if not unreported:
            return tuple(self._rows)
        return (*self._rows, Spent("agent", replies=unreported, unknown=unreported))


def _reply(role: Role, model: str, tokens: Tokens | None) -> Spent:
    if tokens is None or tokens.input is None or tokens.output is None:
        known = (tokens.input or 0, tokens.output or 0, tokens.cached or 0) if tokens else ()
        return Spent(role, model, 1, 1, *known)
    return Spent(role, model, 1, 0, tokens.input, tokens.output, tokens.cached or 0)


CURRENT: Final[ContextVar[Ledger | None]] = ContextVar("evalmeta_ledger", default=None)
"""The ledger of the case that is run, for a rater that many cases use at the same time."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What the results of a run cost, and how much they may.

    `model` is the agent's in its settings, for answers that name none.
    """

    prices: Prices = field(default_factory=Prices)
    model: str = ""
    limit: CostLimit | None = None

    async def load_prices(self, result: CaseResult) -> None:
        """Load the list of prices if a result is the first to need it.

        It is loaded in a thread, so that no latency of another case has it, and not before the first question, because
        the usual agent reports no tokens.
        """
        reported = (row for row in result.spent if row.replies > row.unknown)
        if not self.prices.is_loaded and not all(self.prices.own(models_of(row, self.model)) for row in reported):
            await asyncio.to_thread(self.prices.load)

    def priced(self, result: CaseResult) -> CaseResult:
        """Return a result whose replies have prices, as far as these are known, with a row for each model."""
        priced = result._replace(spent=merged(map(self._priced, result.spent)))
        if self.limit is not None:
            self.limit.add(priced)
        return priced

    def _priced(self, row: Spent) -> Spent:
        models = models_of(row, self.model)
        named = row._replace(model=next(filter(None, models), ""))
        if row.replies <= row.unknown:
            return named
        amount = self.prices.amount(models, row)
        return named._replace(unknown=row.replies) if amount is None else named._replace(amount=amount)


def models_of(row: Spent, settings_model: str) -> tuple[str, ...]:
    """Return the models of which the first with a price has that of a reply: the reported one, then the settings'.

    The reported name may be a version of the agent's model in its settings that nobody lists.
    """
    return (row.model, settings_model) if row.role == "agent" else (row.model,)


class CostLimit:
    """Stops starting cases when the runs of a command have spent `limit` picodollars.

    `here` has what each run of the command in this process has spent, by its `run`; this one has spent `spent` before.
    `exchange` tells other processes what this run has spent, and returns what the runs there have. Cases that are under
    way are finished, so the sum may exceed the limit by what these cost.
    """

    def __init__(
        self,
        limit: int,
        *,
        run: Hashable,
        here: dict[Hashable, int],
        spent: int = 0,
        exchange: Callable[[int], int] | None = None,
    ) -> None:
        self._limit = limit
        self._run = run
        self._here = here
        self._exchange = exchange
        self._elsewhere = self._unknown = 0
        self._is_known = spent > 0
        self._stopped = ""
        here[run] = spent
        self.exchange()

    def items(self, items: Iterator[WorkItem]) -> Iterator[WorkItem]:
        """Yield items as long as the limit is not reached."""
        for item in items:
            if why := self._why():
                self._stopped = why
                return
            yield item

    def add(self, result: CaseResult) -> None:
        """Add what a case result cost."""
        self._here[self._run] += sum(row.amount for row in result.spent)
        self._is_known |= any(row.replies > row.unknown or row.reused for row in result.spent)
        if not any(row.role == "agent" for row in result.spent):
            self._unknown += len(result.earlier) + (result.generated is not None)
        self._unknown += sum(row.unknown for row in result.spent)

    def exchange(self) -> None:
        """Tell other processes what this run has spent, and read what the runs there have."""
        self._seen, self._runs = time.monotonic(), len(self._here)
        if self._exchange is not None:
            self._elsewhere = self._exchange(self._here[self._run])

    def check(self) -> None:
        """Raise CostLimitReached if cases were left out because of the limit, or because no cost is known."""
        self.exchange()
        if self._stopped:
            kind = CostLimitReached if self._stopped.startswith(COST_LIMIT) else CostUnknown
            raise kind(self._stopped)

    def _why(self) -> str:
        """Return why no other case may start; empty if one may."""
        if not self._is_known and self._unknown >= limits.ANSWERS_WITHOUT_PRICE:
            return f"{UNKNOWN_COST}: none of the first {self._unknown:,} answers has a price (max_cost)"
        # What a run has spent before it started here is part of what was spent elsewhere, until the next look.
        if len(self._here) != self._runs or time.monotonic() - self._seen > limits.SPENDING_SECONDS:
            self.exchange()
        spent = sum(self._here.values()) + self._elsewhere
        if spent < self._limit:
            return ""
        return f"{COST_LIMIT} of {dollars_text(self._limit)} reached, {dollars_text(spent)} spent (max_cost)"
