"""Orgs served for real, and clients of Salesforce orgs that were written elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.node import CLIENTS, Sf
from clients_elsewhere.orgs import idle_org, served_org
from clients_elsewhere.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clients_elsewhere.orgs import Org


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder: it needs programs that `make thorough` installs."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.npm)


@pytest.fixture(scope="session", autouse=True)
def _clients() -> None:
    assert (CLIENTS / "ready").exists(), "The clients are not installed. Install them: make .venv/node/ready"


@pytest.fixture(scope="session")
def org(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Org]:
    """An org that all tests of this process share; what they deploy has names of its own."""
    with served_org(tmp_path_factory.mktemp("org") / "project") as served:
        yield served


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Org]:
    """An org whose jobs wait until the test carries them out."""
    with idle_org(tmp_path / "idle") as served:
        yield served


@pytest.fixture(scope="session")
def sf(org: Org, tmp_path_factory: pytest.TempPathFactory) -> Sf:
    """The sf CLI, logged in to the org as `desk`."""
    cli = Sf(tmp_path_factory.mktemp("home"), org)
    done = cli(
        *("org", "login", "access-token", "--instance-url", org.url, "--alias", "desk", "--no-prompt", "--json"),
        env={"SF_ACCESS_TOKEN": org.token},
    )
    assert done.code == 0, done.out
    return cli


@pytest.fixture
def workspace(sf: Sf, tmp_path: Path) -> Workspace:
    """A Salesforce DX project."""
    return Workspace(tmp_path / "workspace", sf)
