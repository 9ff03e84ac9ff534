"""The prices of language models: a project's table, and over it the list of the package `genai-prices`.

The list is the one of the installed package. Nothing is downloaded: only its `UpdatePrices`, which is not used here,
would do that.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta.model.spending import PICODOLLARS, Spent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.model.settings import PriceSettings


_MILLION: Final = 10**6
_NO_PRICES: Final[Mapping[str, PriceSettings]] = {}


class Prices:
    """What tokens cost; `table` has the project's own prices by model."""

    def __init__(self, table: Mapping[str, PriceSettings] = _NO_PRICES) -> None:
        self._table = table
        self.is_loaded = False

    def load(self) -> None:
        """Load the list, if it is installed."""
        _has_list()
        self.is_loaded = True

    @property
    def knows_any(self) -> bool:
        """Return whether any model has a price here."""
        return bool(self._table) or _has_list()

    def own(self, models: Iterable[str]) -> PriceSettings | None:
        """Return the project's own price for the first of the models that has one."""
        names = (name for model in models for name in (model, _bare(model)))
        return next((self._table[name] for name in names if name in self._table), None)

    def knows(self, model: str) -> bool:
        """Return whether a model has a price."""
        return self.amount([model], Spent("agent")) is not None

    def amount(self, models: Iterable[str], used: Spent) -> int | None:
        """Return the picodollars of one reply, by the first of the models that has a price; None if none has.

        The project's table goes before the list for all of them.
        """
        names = [*filter(None, models)]
        if own := self.own(names):
            cached = min(used.cached, used.input)
            of_cached = own.input if own.cached_input is None else own.cached_input
            cost = own.input * (used.input - cached) + of_cached * cached + own.output * used.output
            return int(cost * (PICODOLLARS // _MILLION))
        return next((listed for name in names if (listed := _listed(name, used)) is not None), None)


def _bare(model: str) -> str:
    """Return a model's name without its provider, such as `gpt-4.1` of `openai:gpt-4.1`."""
    return model.partition(":")[2] or model


@lru_cache
def _has_list() -> bool:
    try:
        import genai_prices  # noqa: F401
    except ImportError:
        return False
    return True


@lru_cache(maxsize=1_000)
def _reference(model: str) -> tuple[str, str | None] | None:
    """Return the name and the provider by which the list knows a model; None if it does not know it."""
    from genai_prices import Usage, calc_price

    provider, _, name = model.partition(":")
    pairs = [(name, provider), (name, None), (model, None)] if name else [(model, None)]
    for pair in pairs:
        try:
            calc_price(Usage(input_tokens=1, output_tokens=1), pair[0], provider_id=pair[1])
        except (LookupError, ValueError):
            continue
        return pair
    return None


def _listed(model: str, used: Spent) -> int | None:
    if not _has_list() or (reference := _reference(model)) is None:
        return None
    from genai_prices import Usage, calc_price

    name, provider = reference
    cached = min(used.cached, used.input)
    usage = Usage(input_tokens=used.input, output_tokens=used.output, cache_read_tokens=cached)
    try:
        price = calc_price(usage, name, provider_id=provider).total_price
    except (LookupError, ValueError):
        return None
    return int((price * PICODOLLARS).to_integral_value())
