"""Where tests store runs: in a folder, or in the schema of Postgres that EVALMETA_STORE names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from evalmeta.model.store import STORE_VARIABLE, Store, read_store_url

if TYPE_CHECKING:
    from pathlib import Path


def store_in(folder: Path) -> Store:
    """Return the store of a state folder."""
    url = os.environ.get(STORE_VARIABLE)
    return Store(folder, read_store_url(url) if url else None)
