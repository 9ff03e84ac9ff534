from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import ProjectError
from evalmeta.package.files import write_file

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project


def test_a_file_is_written_with_the_folders_it_needs(plain_project: Project) -> None:
    path = plain_project.root / "a" / "b" / "c.txt"
    write_file(plain_project, path, b"\r\nnew")
    assert path.read_bytes() == b"\r\nnew"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_replaced_keeps_its_permissions(plain_project: Project) -> None:
    path = plain_project.root / "c.txt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_file(plain_project, path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


def test_a_new_file_has_the_usual_permissions(plain_project: Project) -> None:
    ours, usual = plain_project.root / "ours", plain_project.root / "usual"
    write_file(plain_project, ours, b"")
    usual.touch()
    assert ours.stat().st_mode == usual.stat().st_mode


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that does not belong to the project."""
    return tmp_path_factory.mktemp("outside")


def test_a_file_that_is_a_link_is_not_written(plain_project: Project, outside: Path) -> None:
    (outside / "target").write_bytes(b"theirs")
    (plain_project.root / "link").symlink_to(outside / "target")
    with pytest.raises(ProjectError, match="a link leads out of the project"):
        write_file(plain_project, plain_project.root / "link", b"ours")
    assert (outside / "target").read_bytes() == b"theirs"


@pytest.mark.parametrize("inner", ["", "gone", "a/b"])
def test_nothing_is_made_behind_a_link_that_leads_out(plain_project: Project, outside: Path, inner: str) -> None:
    (plain_project.root / "link").symlink_to(outside)
    with pytest.raises(ProjectError, match="a link leads out of the project"):
        write_file(plain_project, plain_project.root / "link" / inner / "file", b"ours")
    assert list(outside.iterdir()) == []


def test_links_that_lead_to_each_other_are_told(plain_project: Project) -> None:
    root = plain_project.root
    (root / "a").symlink_to(root / "b")
    (root / "b").symlink_to(root / "a")
    with pytest.raises(ProjectError, match="file: cannot be written"):
        write_file(plain_project, root / "a" / "file", b"ours")


def test_a_file_in_a_folders_place_is_told(plain_project: Project) -> None:
    (plain_project.root / "a").write_bytes(b"theirs")
    with pytest.raises(ProjectError, match="cannot be written"):
        write_file(plain_project, plain_project.root / "a" / "file", b"ours")
    assert (plain_project.root / "a").read_bytes() == b"theirs"


def test_a_write_that_fails_leaves_nothing_behind(plain_project: Project) -> None:
    taken = plain_project.root / "taken"
    (taken / "inner").mkdir(parents=True)
    before = set(plain_project.root.rglob("*"))
    with pytest.raises(ProjectError, match="taken: cannot be written"):
        write_file(plain_project, taken, b"ours")
    assert set(plain_project.root.rglob("*")) == before
