from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta.api.packages import manifest_from_org, manifest_from_project, manifest_to_retrieve
from evalmeta.api.selections import resolve
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.registry import ApiVersion, Manifest, ManifestTypes
from evalmeta.package.project import Project, find_project
from evalmeta.package.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

TYPE = "AiEvaluationDefinition"
ALL = ("Meter_Conversations", "Outage_Desk", "Tariff_Criteria")


def manifest(*members: str) -> Manifest:
    return Manifest((ManifestTypes(TYPE, members),) if members else (), "64.0")


def entries(*names: str) -> Selection:
    return Selection(metadata=tuple(f"{TYPE}:{name}" for name in names))


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Project:
    return find_project(copy_samples("dx-project"))


@pytest.mark.parametrize(
    ("selection", "members"),
    [
        (Selection(), ALL),
        (Selection(source_dirs=(Path("force-app"),)), ALL),
        (Selection(manifest=Path("manifest/package.xml")), ALL),
        (entries("Tariff*", "Outage_Desk"), ("Outage_Desk", "Tariff_Criteria")),
        (entries("*"), ("*",)),
        (entries("*", "Outage_Desk"), ("*",)),
    ],
)
def test_a_manifest_names_what_is_selected(project: Project, selection: Selection, members: tuple[str, ...]) -> None:
    assert manifest_from_project(project, selection) == manifest(*members)


def test_without_wildcards_each_component_is_named(project: Project) -> None:
    assert manifest_from_project(project, entries("*"), deletes=True) == manifest(*ALL)


def test_the_version_can_be_chosen(project: Project) -> None:
    assert manifest_from_project(project, Selection(), api_version=ApiVersion(66)).version == "66.0"


async def _from_org(project: Project, selection: Selection, *deployed: str, retrieve: bool = False) -> Manifest | None:
    async with evalmeta.connect(project) as connection:
        if deployed:
            await evalmeta.deploy(connection, project, resolve(project, entries(*deployed)))
        make = manifest_to_retrieve if retrieve else manifest_from_org
        return await make(connection, project, selection)


def from_org(project: Project, selection: Selection, *deployed: str, retrieve: bool = False) -> Manifest | None:
    return asyncio.run(_from_org(project, selection, *deployed, retrieve=retrieve))


def test_a_manifest_from_the_org_names_what_the_org_has(project: Project) -> None:
    assert from_org(project, Selection(), *ALL[:2]) == manifest(*ALL[:2])
    assert from_org(project, entries("*_Desk")) == manifest("Outage_Desk")


def test_an_empty_org_gives_an_empty_manifest(project: Project) -> None:
    assert from_org(project, Selection()) == manifest()


def test_what_the_org_lacks_is_answered_with_the_nearest(project: Project) -> None:
    with pytest.raises(NotFound, match="the org has no") as caught:
        from_org(project, entries("Outage_Dsk"), "Outage_Desk")
    assert caught.value.actions == (f"Did you mean {TYPE}:Outage_Desk?",)


def test_files_do_not_select_from_the_org(project: Project) -> None:
    with pytest.raises(UsageError, match="--from-org"):
        from_org(project, Selection(source_dirs=(Path("force-app"),)))


@pytest.mark.parametrize(
    ("selection", "members"),
    [
        (Selection(manifest=Path("manifest/package.xml")), ALL),
        (Selection(source_dirs=(Path("force-app"),)), ALL),
        (Selection(metadata=(TYPE,)), ("*",)),
        (entries("Not_Here"), ("Not_Here",)),
        (entries("Outage*", "Not_Here"), ("Not_Here", "Outage_Desk")),
    ],
)
def test_the_manifest_to_retrieve_follows_the_selection(
    project: Project, selection: Selection, members: tuple[str, ...]
) -> None:
    assert from_org(project, selection, "Outage_Desk", retrieve=True) == manifest(*members)


def test_without_a_selection_there_is_no_manifest_to_retrieve(project: Project) -> None:
    assert from_org(project, Selection(), retrieve=True) is None
