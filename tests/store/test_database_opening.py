from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import StoreError
from evalmeta.model.store import Store, read_store_url
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.sqlite  # the fixtures of a shared store need the driver
def test_without_the_extra_a_shared_store_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "evalmeta.store.postgres", raising=False)
    monkeypatch.delitem(sys.modules, "evalmeta.store.postgres_connections", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    store = Store(tmp_path, read_store_url("postgresql://me:hunter2@db/evals"))
    with pytest.raises(StoreError, match=r"^postgresql://db/evals needs psycopg, which is not installed$") as caught:
        open_database(store)
    assert caught.value.actions == ("Run: pip install 'evalmeta[postgres]'",)


def test_a_folder_loads_no_driver(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from evalmeta.store.database import open_database; "
        "open_database(pathlib.Path(sys.argv[1])).close(); print('psycopg' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
