from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.api.packages import pack_folder, pack_project
from evalmeta.errors import ArchiveError, InvalidMetadata, NotFound
from evalmeta.model.registry import ApiVersion
from evalmeta.package.archive import build_zip, read_zip
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Copy = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("package.xml", "sub/a", ".hidden/b", ".c"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_folder_is_packed_below_another_as_sf_does(folder: Path) -> None:
    package = pack_folder(folder)
    assert read_zip(package.zip_file) == {"zip/package.xml": b"package.xml", "zip/sub/a": b"sub/a"}
    assert (package.single_package, package.components) == (False, ())


def test_a_single_package_is_packed_without_a_folder(folder: Path) -> None:
    package = pack_folder(folder, single_package=True)
    assert (read_zip(package.zip_file).keys(), package.single_package) == ({"package.xml", "sub/a"}, True)


def test_a_zip_is_sent_byte_for_byte(tmp_path: Path) -> None:
    made = build_zip([("any/package.xml", b"x")])
    (tmp_path / "made.zip").write_bytes(made)
    assert pack_folder(tmp_path / "made.zip").zip_file == made


@pytest.mark.parametrize("entries", [[], [("other.xml", b"x")]])
def test_a_package_without_a_manifest_is_not_found(tmp_path: Path, entries: list[tuple[str, bytes]]) -> None:
    (tmp_path / "made.zip").write_bytes(build_zip(entries))
    for path in (tmp_path / "made.zip", tmp_path, tmp_path / "absent"):
        with pytest.raises(NotFound):
            pack_folder(path)


def test_an_invalid_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "made.zip").write_bytes(b"no zip")
    with pytest.raises(ArchiveError):
        pack_folder(tmp_path / "made.zip")


def test_a_package_near_the_limits_has_a_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ZIP_ENTRIES", 2)
    assert "2 files, 100% of the 2" in pack_folder(folder).messages[0]


def test_a_newer_version_than_the_orgs_is_lowered_with_a_message(copy_samples: Copy) -> None:
    project = find_project(copy_samples("dx-project"))
    package = pack_project(project, resolve(project), newest=ApiVersion(63))
    assert "API version 63.0 is used" in package.messages[0]
    assert b"<version>63.0</version>" in read_zip(package.zip_file)["package.xml"]


def test_invalid_components_are_not_packed(copy_samples: Copy) -> None:
    root = copy_samples("dx-project")
    [file] = root.rglob("Tariff_Criteria*")
    file.write_text(file.read_text().replace("AGENT", "BOT"))
    project = find_project(root)
    with pytest.raises(InvalidMetadata):
        pack_project(project, resolve(project))
