from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from faults.run import ADDRESSES, FAULTS, ON_RAY, once, summary
from postgres_servers import postgres_servers
from ray_nodes import ray_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from postgres_servers import PostgresServers
    from ray_nodes import Nodes

HERE = [name for name in FAULTS if not name.endswith(ON_RAY)]
THERE = [name for name in FAULTS if name.endswith(ON_RAY)]


@pytest.fixture(scope="module")
def durable_servers() -> Iterator[PostgresServers]:
    """Servers that tests kill, whose commits are on the disk."""
    with postgres_servers(durable=True) as servers:
        yield servers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    """Nodes of Ray that tests kill."""
    with ray_nodes(*ADDRESSES) as started:
        yield started


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("fault", HERE)
def test_every_case_has_one_result_whatever_fails(
    durable_servers: PostgresServers, fault: str, record_property: Callable[[str, object], None]
) -> None:
    check_fault(fault, durable_servers, None, record_property)


@pytest.mark.ray
@pytest.mark.postgres
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", THERE)
def test_every_case_has_one_result_whatever_fails_on_ray(
    durable_servers: PostgresServers, cluster: Nodes, fault: str, record_property: Callable[[str, object], None]
) -> None:
    check_fault(fault, durable_servers, cluster, record_property)


def check_fault(
    fault: str, servers: PostgresServers, nodes: Nodes | None, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random()  # noqa: S311 - a moment, not a secret
    outcome = once(fault, servers, nodes, cases=4_000, away=8, chance=chance)
    record_property("said", f"{fault} during 4,000 cases: {summary([outcome])}")
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert outcome.is_right, outcome
