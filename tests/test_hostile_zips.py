"""Hostile zips from an org and to an org: nothing is written but what was asked for, where it belongs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evalmeta
from client.servers import TOKEN, replying
from evalmeta import limits
from evalmeta.client.connection import Connection
from evalmeta.client.metadata import deploy
from evalmeta.errors import ArchiveError, EvalmetaError, ProjectError
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.package.archive import build_zip
from evalmeta.package.project import find_project
from evalmeta.protocol.metadata_api import AsyncResult, RetrieveResult
from evalmeta.protocol.soap import write_results
from examples import at_most
from hostile_zips import HOSTILE_ZIPS, SUFFIX
from package.handmade import Entry, zip_of

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD = build_zip([(f"unpackaged/aiEvaluationDefinitions/Good{SUFFIX}", b"theirs")])
FOLDER = Path("force-app/main/default/aiEvaluationDefinitions")


@pytest.fixture(autouse=True)
def project(copy_samples: Callable[[str], Path]) -> Path:
    """Goes to a project; what stands beside it is not to be touched."""
    found = copy_samples("dx-project")
    (found.parent / "beside").mkdir()
    (found.parent / "beside" / "theirs").write_bytes(b"theirs")
    return found


def retrieve(zip_file: bytes) -> None:
    """Retrieves everything from an org on loopback that sends this zip."""

    async def go() -> None:
        found = RetrieveResult("09S", "Succeeded", done=True, success=True, zip_file=zip_file)
        receipt = write_results("retrieve", [AsyncResult(done=False, id="09S")])
        async with (
            replying(receipt, write_results("checkRetrieveStatus", [found])) as url,
            Connection(url=url, token=TOKEN, api_version=NEWEST_API_VERSION) as connection,
        ):
            await evalmeta.retrieve(connection, find_project(Path.cwd()))

    asyncio.run(go())


def files(folder: Path) -> dict[Path, bytes]:
    """Gives every file in a folder but the state of evalmeta itself."""
    return {
        path: b"" if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or (path.is_file() and ".evalmeta" not in path.parts)
    }


def test_what_an_honest_org_sends_is_written() -> None:
    retrieve(GOOD)
    assert (FOLDER / f"Good{SUFFIX}-meta.xml").read_bytes() == b"theirs"


@pytest.mark.slow
def test_a_hostile_zip_from_an_org_writes_nothing(project: Path) -> None:
    before = files(project.parent)
    assert len(HOSTILE_ZIPS) >= 20
    for data in HOSTILE_ZIPS.values():
        with pytest.raises(ArchiveError):
            retrieve(data)
    assert files(project.parent) == before


@pytest.mark.slow
def test_a_hostile_zip_to_an_org_changes_nothing() -> None:
    async def go(zip_file: bytes) -> tuple[bool, str | None]:
        async with evalmeta.connect(find_project(Path.cwd())) as connection:
            result = await deploy(connection, zip_file)
        return result.success, result.error_message

    for data in HOSTILE_ZIPS.values():
        success, message = asyncio.run(go(data))
        assert (success, (message or "")[:8]) == (False, "The zip ")


@pytest.mark.slow
@settings(max_examples=at_most(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(alphabet="./\\:aC~ \0", max_size=12) | st.text(max_size=8))
def test_whatever_an_entry_is_called_it_is_written_into_the_project_or_not_at_all(project: Path, name: str) -> None:
    before = files(project.parent).keys()
    with suppress(EvalmetaError):
        retrieve(zip_of(Entry(f"{name}{SUFFIX}".encode("utf-8", "replace"))))
    new = files(project.parent).keys() - before
    assert all(path.parent == project / FOLDER for path in new)
    for path in new:
        path.unlink()


@pytest.mark.parametrize("planted", ["file", "dangling file", "folder", "folder above"])
def test_a_retrieve_never_writes_through_a_link_that_leads_out(project: Path, planted: str) -> None:
    beside = project.parent / "beside"
    place, target = {
        "file": (FOLDER / f"Good{SUFFIX}-meta.xml", beside / "theirs"),
        "dangling file": (FOLDER / f"Good{SUFFIX}-meta.xml", beside / "gone"),
        "folder": (FOLDER, beside),
        "folder above": (FOLDER.parent, beside),
    }[planted]
    if place.is_dir():
        place.rename("moved")
    place.symlink_to(target)
    before = files(project.parent)
    with pytest.raises(ProjectError, match="a link leads out of the project"):
        retrieve(GOOD)
    assert files(project.parent) == before


READ_ALL = """
import resource, sys
from evalmeta.errors import ArchiveError
from evalmeta.package.archive import read_zip
from hostile_zips import HOSTILE_ZIPS

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1_024)

before, refused = peak(), 0
for data in HOSTILE_ZIPS.values():
    try:
        read_zip(data)
    except ArchiveError:
        refused += 1
print(refused, peak() - before)
"""


def test_refusing_hostile_zips_takes_little_memory() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", READ_ALL]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    refused, growth = map(int, child.stdout.split())
    assert refused == len(HOSTILE_ZIPS)
    assert growth <= 2 * limits.MAX_ZIP_BYTES
