from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.packages import build_package, find_destructive
from evalmeta.errors import InvalidMetadata, NotFound, UsageError
from evalmeta.package.archive import read_zip
from evalmeta.package.project import Project, find_project
from evalmeta.package.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

TYPE = "AiEvaluationDefinition"
PACKAGE = '<Package xmlns="http://soap.sforce.com/2006/04/metadata">{}</Package>'
BLOCK = f"<types><members>{{}}</members><name>{TYPE}</name></types>"
ZIP = Path("dist/package.zip")
MANIFEST = Path("manifest/package.xml")


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Project:
    return find_project(copy_samples("dx-project"))


def test_a_package_has_the_files_of_the_metadata_format(project: Project) -> None:
    built = build_package(project, Selection(), ZIP)
    data = ZIP.read_bytes()
    entries = read_zip(data)
    names = [f"aiEvaluationDefinitions/{name}" for name in ("Meter_Conversations", "Outage_Desk", "Tariff_Criteria")]
    assert list(entries) == [*(f"{name}.aiEvaluationDefinition" for name in names), "package.xml"]
    assert (built.state, built.components, built.size) == ("Created", 3, len(data))
    assert built.sha256 == hashlib.sha256(data).hexdigest()
    assert entries["package.xml"] == MANIFEST.read_bytes().replace(b' standalone="yes"', b"")


@pytest.mark.slow
def test_the_same_files_give_the_same_bytes_anywhere(project: Project, tmp_path: Path) -> None:
    other = shutil.copytree(project.root, tmp_path / "elsewhere", copy_function=shutil.copyfile)
    here = build_package(project, Selection(), ZIP).sha256
    digests = set()
    for seed, zone in (("1", "UTC"), ("2", "Pacific/Auckland")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"}
        command = [Path(sys.executable).parent / "evalmeta", "package", "build"]
        run = subprocess.run(command, cwd=other, env=environment, capture_output=True, text=True, check=True)
        digests.add(run.stdout.split()[-1])
    assert digests == {here}


def test_destructive_changes_beside_the_manifest_go_with_it(project: Project) -> None:
    for name, member in (("destructiveChangesPre.xml", "Old"), ("destructiveChangesPost.xml", "Older")):
        MANIFEST.with_name(name).write_text(PACKAGE.format(BLOCK.format(member)))
    other = Path("later.xml")
    other.write_text(PACKAGE.format(BLOCK.format("Named")))
    destructive = find_destructive(MANIFEST, post=other)

    built = build_package(project, Selection(manifest=MANIFEST), ZIP, destructive=destructive)

    entries = read_zip(ZIP.read_bytes())
    assert built.destructive == ("destructiveChangesPost.xml", "destructiveChangesPre.xml")
    assert b"<members>Old<" in entries["destructiveChangesPre.xml"]
    assert entries["destructiveChangesPost.xml"] == other.read_bytes()


def test_an_empty_manifest_carries_destructive_changes(project: Project) -> None:
    MANIFEST.write_text(PACKAGE.format("<version>64.0</version>"))
    with pytest.raises(InvalidMetadata, match="selects nothing"):
        build_package(project, Selection(manifest=MANIFEST), ZIP)
    MANIFEST.with_name("destructiveChanges.xml").write_text(PACKAGE.format(BLOCK.format("Old")))
    destructive = find_destructive(MANIFEST)
    built = build_package(project, Selection(manifest=MANIFEST), ZIP, destructive=destructive)
    assert (built.components, built.destructive) == (0, ("destructiveChanges.xml",))


def test_a_wildcard_deletes_nothing(project: Project) -> None:
    Path("old.xml").write_text(PACKAGE.format(BLOCK.format("*")))
    destructive = find_destructive(MANIFEST, pre=Path("old.xml"))
    with pytest.raises(InvalidMetadata) as refused:
        build_package(project, Selection(manifest=MANIFEST), ZIP, destructive=destructive)
    assert [problem.code for problem in refused.value.problems] == ["destructive-wildcard"]
    assert not ZIP.exists()


def test_destructive_changes_need_a_manifest() -> None:
    assert find_destructive(None) == {}
    with pytest.raises(UsageError, match="need --manifest"):
        find_destructive(None, pre=Path("old.xml"))


def test_other_types_are_left_out_with_a_warning(project: Project) -> None:
    others = BLOCK.format("*").replace(TYPE, "ApexClass")
    MANIFEST.write_text(PACKAGE.format(f"{BLOCK.format('*')}{others}<version>64.0</version>"))
    Path("destructiveChanges.xml").write_text(PACKAGE.format(BLOCK.format("Old") + others.replace("*", "Older")))
    destructive = {"destructiveChanges.xml": Path("destructiveChanges.xml")}
    built = build_package(project, Selection(manifest=MANIFEST), ZIP, destructive=destructive)
    assert [warning.code for warning in built.warnings] == ["manifest-type-other"] * 2
    assert not any(b"Apex" in content for content in read_zip(ZIP.read_bytes()).values())


def test_an_empty_project_cannot_be_packed(project: Project) -> None:
    shutil.rmtree("force-app/main")
    with pytest.raises(NotFound, match="has no components"):
        build_package(project, Selection(), ZIP)
