"""What an org has is retrieved and deployed again without an error, whatever it is."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta.api import deployments
from evalmeta.api.files import check_components
from evalmeta.api.org_targets import connect
from evalmeta.api.packages import pack_folder
from evalmeta.api.retrievals import PackageFile, retrieve, retrieve_package
from evalmeta.client import metadata
from evalmeta.errors import InvalidMetadata
from evalmeta.model.bundle_content import join_files
from evalmeta.model.registry import TYPES
from evalmeta.package.archive import build_zip
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.store.components import Components
from evalmeta.store.database import open_database
from evalmeta.xmlio.reader import NAMESPACE
from examples import at_most
from strategies import documents

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project

DX: Final = '{{"packageDirectories": [{{"path": "force-app"}}], "sourceApiVersion": "{}"}}'
SCRIPT: Final = 'config:\n    agent_name: "Desk"\nstart_agent desk:\n    description: "answers"\n'
FORMATS = st.sampled_from(["plain", "61.0", "63.0", "66.0"])


def project_in(folder: Path, form: str) -> Project:
    """Gives a new project: a plain folder, or a DX project with this sourceApiVersion."""
    if form == "plain":
        (folder / "evalmeta.toml").touch()
    else:
        (folder / "force-app").mkdir()
        (folder / "sfdx-project.json").write_text(DX.format(form))
    return find_project(folder)


def stored(project: Project, texts: list[str]) -> None:
    """Puts definitions into the project's org without checking them, as another org may have them."""
    with open_database(project.store) as database:
        for row in TYPES:
            ours = {
                f"T{place}": _content(row, f"T{place}", text)
                for place, text in enumerate(texts)
                if f"<{row.name}" in text
            }
            if ours:
                Components(database).save(row, ours, now=time.time(), by="005000000000001AAA")


def _content(row: MetadataType, full_name: str, text: str) -> bytes:
    if not row.is_bundle:
        return text.encode()
    script, metadata_file = row.bundle_files(full_name)
    return join_files({script: SCRIPT.encode(), metadata_file: text.encode()})


async def deploy_again(connection: Connection, project: Project) -> None:
    retrieved = await retrieve(connection, project)
    if retrieved.components:
        done = await deployments.deploy(connection, project, resolve(project))
        assert {component.state for component in done.components} == {"Unchanged"}
    package = PackageFile(project.root / "out.zip")
    await retrieve_package(connection, project, file=package)
    assert (await metadata.deploy(connection, pack_folder(package.path).zip_file)).status == "Succeeded"


@pytest.mark.slow
@settings(max_examples=at_most(50))
@given(st.lists(st.sampled_from(TYPES).flatmap(documents), min_size=1, max_size=3), FORMATS)
def test_what_an_org_has_is_deployed_to_it_again_in_both_formats(texts: list[str], form: str) -> None:
    async def run(project: Project) -> None:
        stored(project, texts)
        async with connect(project) as connection:
            await deploy_again(connection, project)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(project_in(Path(folder).resolve(), form)))


@pytest.mark.slow
@settings(max_examples=at_most(50))
@given(st.lists(documents(), min_size=1, max_size=3))
def test_what_an_org_accepted_is_accepted_in_every_other_project(texts: list[str]) -> None:
    async def run(project: Project, other: Project) -> None:
        files = [(f"aiEvaluationDefinitions/T{place}.aiEvaluationDefinition", text) for place, text in enumerate(texts)]
        members = "".join(f"<members>T{place}</members>" for place in range(len(texts)))
        manifest = f'<Package xmlns="{NAMESPACE}"><types>{members}<name>{TYPES[0].name}</name></types>'
        files.append(("package.xml", f"{manifest}<version>67.0</version></Package>"))
        zip_file = build_zip([(name, text.encode()) for name, text in files])
        async with connect(project) as connection:
            options = DeployOptions(rollback_on_error=False, single_package=True)
            await metadata.deploy(connection, zip_file, options=options)
            if (await retrieve(connection, other)).components:
                check_components(other, resolve(other))

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder).resolve()
        for name in ("one", "other"):
            (here / name).mkdir()
        asyncio.run(run(project_in(here / "one", "plain"), project_in(here / "other", "plain")))


def test_a_file_that_was_changed_after_a_retrieve_is_checked_again(tmp_path: Path) -> None:
    project = project_in(tmp_path, "66.0")
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}"><future>1</future></AiEvaluationDefinition>'
    stored(project, [text])

    async def run() -> None:
        async with connect(project) as connection:
            await retrieve(connection, project)
            await deployments.deploy(connection, project, resolve(project))
            [file] = project.root.rglob("T0.*")
            file.write_text(text.replace("1", "2"))
            with pytest.raises(InvalidMetadata) as caught:
                await deployments.deploy(connection, project, resolve(project))
            assert "element-unknown" in {problem.code for problem in caught.value.problems}

    asyncio.run(run())
