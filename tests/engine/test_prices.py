from __future__ import annotations

import socket
import subprocess
import sys
import threading
from decimal import Decimal
from typing import NoReturn

import pytest

from evalmeta.engine.prices import Prices
from evalmeta.model.settings import PriceSettings
from evalmeta.model.spending import Spent, usd_text

USED = Spent("agent", replies=1, input=1_000, output=100, cached=200)
OWN = {"mine": PriceSettings(input=Decimal("0.4"), output=Decimal("1.6"), cached_input=Decimal("0.1"))}


def cost(prices: Prices, *models: str, used: Spent = USED) -> str | None:
    amount = prices.amount(models, used)
    return None if amount is None else usd_text(amount)


def test_the_table_of_the_project_has_prices_for_a_million_tokens() -> None:
    assert cost(Prices(OWN), "mine") == "0.0005"
    assert cost(Prices(OWN), "openai:mine") == "0.0005"
    assert cost(Prices({"mine": PriceSettings(input=Decimal(2), output=Decimal(0))}), "mine") == "0.002"


@pytest.mark.parametrize("model", ["gpt-4.1-mini", "openai:gpt-4.1-mini", "gpt-4.1-mini-2025-04-14"])
def test_public_models_have_the_listed_price(model: str) -> None:
    assert cost(Prices(), model) == "0.0005"


def test_the_table_goes_before_the_list_also_for_the_second_name() -> None:
    own = {"gpt-4.1-mini": PriceSettings(input=Decimal(1), output=Decimal(0))}

    assert cost(Prices(own), "gpt-4.1-mini-2025-04-14", "gpt-4.1-mini") == "0.001"
    assert cost(Prices(), "a-new-name", "gpt-4.1-mini") == "0.0005"


@pytest.mark.parametrize("model", ["", "scripted", "local:llama-of-ours"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert cost(Prices(OWN), model) is None


def test_more_cached_tokens_than_tokens_are_not_a_discount() -> None:
    assert cost(Prices(OWN), "mine", used=USED._replace(input=100, cached=500, output=0)) == "0.00001"


def test_prices_open_no_socket_and_start_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    before = threading.active_count()

    assert cost(Prices(), "o3") is not None
    assert threading.active_count() == before


def test_without_the_package_only_the_table_has_prices() -> None:
    program = """
import sys
sys.modules["genai_prices"] = None
from decimal import Decimal
from evalmeta.engine.prices import Prices
from evalmeta.model.settings import PriceSettings
from evalmeta.model.spending import Spent
used = Spent("agent", replies=1, input=10)
own = Prices({"mine": PriceSettings(input=Decimal(1), output=Decimal(1))})
print(own.amount(["mine"], used), own.amount(["gpt-4.1"], used), Prices().knows_any, own.knows_any)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["10000000", "None", "False", "True"]
