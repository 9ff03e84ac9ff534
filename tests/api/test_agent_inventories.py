from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.api.agent_inventories import find_inventory, has_changed, kept_inventory, listing_agents
from evalmeta.package.project import Project, find_project
from systems.mcp.tool_server import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Gives a project with a server of MCP, and agents that list nothing."""
    command = ", ".join(f'"{word}"' for word in PROGRAM)
    (tmp_path / "evalmeta.toml").write_text(
        f'[subjects."my/shop"]\nadapter = "mcp"\ncommand = [{command}]\n'
        '[subjects.remote]\nadapter = "a2a"\nurl = "http://127.0.0.1:9"\n'
        '[subjects.code]\nadapter = "python"\ntarget = "desk:answer"\n'
    )
    return find_project(tmp_path)


def only_file(project: Project) -> Path:
    [file] = (project.root / ".evalmeta/agent_parts").iterdir()
    return file


def test_what_an_agent_listed_last_is_kept_without_descriptions(shop: Project) -> None:
    assert kept_inventory(shop, "my/shop") is None
    found = find_inventory(shop, "my/shop")
    kept = kept_inventory(shop, "my/shop")
    assert kept is not None
    assert [part.words for part in kept.inventory.parts] == [part.words for part in found.parts]
    assert any(part.description for part in found.parts)
    assert not any(part.description for part in kept.inventory.parts)
    assert not has_changed(shop, kept)


def test_a_list_is_outdated_when_the_settings_of_its_agent_have_changed(shop: Project) -> None:
    find_inventory(shop, "my/shop")
    settings = shop.root / "evalmeta.toml"
    settings.write_text(settings.read_text().replace('"mcp"\ncommand = [', '"mcp"\ncommand = ["env", '))
    kept = kept_inventory(shop, "my/shop")
    assert kept is not None
    assert has_changed(find_project(shop.root), kept)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"agent": "my/shop", "inventory": {"parts": [1]}}', b"\xff"])
def test_a_damaged_list_counts_as_none(shop: Project, content: bytes) -> None:
    find_inventory(shop, "my/shop")
    only_file(shop).write_bytes(content)
    assert kept_inventory(shop, "my/shop") is None


def test_a_list_of_another_agent_counts_as_none(shop: Project) -> None:
    find_inventory(shop, "my/shop")
    file = only_file(shop)
    file.write_bytes(file.read_bytes().replace(b"my/shop", b"others!"))
    assert kept_inventory(shop, "my/shop") is None


def test_agents_that_may_list_their_tools_are_those_whose_adapters_can(shop: Project) -> None:
    assert listing_agents(shop) == ["my/shop", "code"]
