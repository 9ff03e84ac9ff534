"""A cluster of Ray that tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ray_nodes import ray_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ray_nodes import Nodes


@pytest.fixture(scope="package")
def nodes() -> Iterator[Nodes]:
    """A cluster with three nodes."""
    with ray_nodes("127.0.0.2", "127.0.0.3", "127.0.0.4") as started:
        yield started


@pytest.fixture
def cluster(nodes: Nodes) -> Nodes:
    """The cluster, in which nodes that an earlier test killed run again."""
    nodes.start("127.0.0.3", "127.0.0.4")
    return nodes
