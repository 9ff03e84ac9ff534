"""An org of its own for every test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from org.parts import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.org.organization import Organization


@pytest.fixture
def waiting(org: Organization) -> Organization:
    """The org with a queue that nobody works on."""
    return replace(org, wake=lambda: None)


@pytest.fixture
def org(tmp_path: Path) -> Iterator[Organization]:
    with opened(tmp_path) as made:
        yield made
