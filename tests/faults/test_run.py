from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from faults.run import FAULTS, once, summary
from postgres_servers import postgres_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from postgres_servers import PostgresServers


@pytest.fixture(scope="module")
def durable_servers() -> Iterator[PostgresServers]:
    """Servers that tests kill, whose commits are on the disk."""
    with postgres_servers(durable=True) as servers:
        yield servers


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("fault", FAULTS)
def test_every_case_has_one_result_whatever_fails(
    durable_servers: PostgresServers, fault: str, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random()  # noqa: S311 - a moment, not a secret
    outcome = once(fault, durable_servers, cases=12_000, away=20, chance=chance)
    record_property("said", f"{fault} during 12,000 cases: {summary([outcome])}")
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert outcome.is_right, outcome
