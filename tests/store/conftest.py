"""A database of its own for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.store.database import Database, open_database
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state folder, not there yet."""
    return tmp_path / "state"


@pytest.fixture
def database(folder: Path) -> Iterator[Database]:
    opened = open_database(store_in(folder))
    yield opened
    opened.close()
