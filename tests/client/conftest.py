"""An org of its own for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from org.parts import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.org.organization import Organization


@pytest.fixture
def org(tmp_path: Path) -> Iterator[Organization]:
    with opened(tmp_path) as made:
        yield made
