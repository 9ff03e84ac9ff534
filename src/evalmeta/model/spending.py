"""What answers and judgements cost: tokens by model, and exact amounts, which are whole picodollars (10^-12 USD).

A price of up to six decimals for a million tokens is a whole number of picodollars for each token, so that sums over
any number of results are exact.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.json_value import JsonObject

Role = Literal["agent", "rater"]
ROLES: Final[tuple[Role, ...]] = ("agent", "rater")
PICODOLLARS: Final = 10**12
"""How many there are in a dollar."""
_CENTS: Final = 2
_LEAST_DIGITS: Final = 4


class Spent(NamedTuple):
    """What an agent or a rater used of one model.

    Attributes:
        model: the model; empty if it is not known.
        replies: the replies that were requested, also those that could not be used; `unknown` of them have no price.
        input: the tokens of the requests, as far as they are known; `cached` of them had the provider in its cache.
        output: the tokens of the replies.
        amount: what the replies with a price cost, in picodollars.
        reused: recorded answers and stored judgements, which cost nothing.
    """

    role: Role
    model: str = ""
    replies: int = 0
    unknown: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    amount: int = 0
    reused: int = 0

    def plus(self, other: Spent) -> Spent:
        """Return the sum, with this role and model."""
        return Spent(self.role, self.model, *(one + another for one, another in zip(self[2:], other[2:], strict=True)))

    @property
    def is_known(self) -> bool:
        """Return whether anything is known of the cost: an amount, tokens, or that nothing was requested."""
        return bool(self.amount or self.input or self.output or self.reused or self.replies > self.unknown)


def merged(rows: Iterable[Spent]) -> tuple[Spent, ...]:
    """Return one row for each role and model, in the order of the first."""
    sums: dict[tuple[Role, str], Spent] = {}
    for row in rows:
        known = sums.get(row[:2])
        sums[row[:2]] = row if known is None else known.plus(row)
    return tuple(sums.values())


def total_of(rows: Iterable[Spent], role: Role) -> Spent:
    """Return the sum of a role over all its models."""
    total = Spent(role)
    for row in rows:
        if row.role == role:
            total = total.plus(row)
    return total


def picodollars(dollars: float | Decimal) -> int:
    """Return an amount in dollars, as it is written, as picodollars."""
    return int((Decimal(str(dollars)) * PICODOLLARS).to_integral_value())


def dollars(amount: int) -> float:
    """Return an amount for JSON, in dollars; only this last step rounds."""
    return amount / PICODOLLARS


def usd_text(amount: int) -> str:
    """Return an amount for programs: all its digits, in dollars."""
    return f"{Decimal(amount) / PICODOLLARS:f}"


def dollars_text(amount: int) -> str:
    """Return an amount for people, such as `$12.30` or `$0.0004213`: at least cents, else four digits of a part."""
    value = Decimal(amount) / PICODOLLARS
    places = _CENTS if not value or value >= 1 else max(_CENTS, _LEAST_DIGITS - value.adjusted() - 1)
    text = f"{value:,.{places}f}"
    while places > _CENTS and text.endswith("0"):
        text, places = text[:-1], places - 1
    return f"${text}"


def costs_json(rows: Sequence[Spent]) -> JsonObject:
    """Return what each role cost as JSON; empty if nothing is known of it."""
    # Most results have none, and a run can have a million.
    totals = (total_of(rows, role) for role in ROLES if rows)
    return {total.role: _cost_json(total) for total in totals if total.is_known}


def _cost_json(total: Spent) -> JsonObject:
    """Return a sum as JSON; the amount is null if no reply has a price."""
    is_priced = total.replies > total.unknown or not total.replies
    return {
        "usd": dollars(total.amount) if is_priced else None,
        "isComplete": total.unknown == 0,
        "replies": total.replies,
        "withoutPrice": total.unknown,
        "reused": total.reused,
        "tokens": {"input": total.input, "output": total.output, "cached": total.cached},
    }


def cost_lines(rows: Sequence[Spent], *, of: str = "cost") -> Iterator[str]:
    """Yield what agent and rater cost, with their tokens, for people; nothing of those that report none."""
    for role in ROLES:
        total = total_of(rows, role)
        models = ", ".join(dict.fromkeys(row.model for row in rows if row.role == role and row.model))
        # Recorded answers say nothing of what the others cost.
        is_reported = models or total.input or total.output or total.replies > total.unknown
        if is_reported or (total.reused and not total.replies):
            cached = f" ({total.cached:,} of them cached)" if total.cached else ""
            used = f"; {total.input:,} tokens in{cached}, {total.output:,} out" if total.input or total.output else ""
            yield f"{of} of the {role}{models and f' ({models})'}: {_cost_text(total)}{used}"


def _cost_text(total: Spent) -> str:
    """Return what a role cost, such as `at least $1.20, 3 requests without a price` or `$0.00 (40 from the cache)`."""
    lacking = f"{total.unknown:,} request{'' if total.unknown == 1 else 's'} without a price"
    source = "recorded" if total.role == "agent" else "from the cache"
    reused = f" ({total.reused:,} {source})" if total.reused else ""
    if not total.unknown:
        return f"{dollars_text(total.amount)}{reused}"
    if total.unknown == total.replies:
        return f"unknown, {lacking}{reused}"
    return f"at least {dollars_text(total.amount)}, {lacking}{reused}"
