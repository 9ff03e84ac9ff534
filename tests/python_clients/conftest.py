"""An org that is served for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.orgs import served_org

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clients_elsewhere.orgs import Org


@pytest.fixture(scope="module")
def org(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Org]:
    """An org that the tests of a module share."""
    with served_org(tmp_path_factory.mktemp("org") / "project") as served:
        yield served
