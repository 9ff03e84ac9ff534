from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import ProjectError
from evalmeta.package.files import put_file, read_file, write_below, write_file

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
def test_nothing_is_created_behind_a_link_that_leads_out(plain_project: Project, outside: Path, inner: str) -> None:
    (plain_project.root / "link").symlink_to(outside)
    with pytest.raises(ProjectError, match="a link leads out of the project"):
        write_file(plain_project, plain_project.root / "link" / inner / "file", b"ours")
    assert list(outside.iterdir()) == []


def test_loops_of_links_are_reported(plain_project: Project) -> None:
    root = plain_project.root
    (root / "a").symlink_to(root / "b")
    (root / "b").symlink_to(root / "a")
    with pytest.raises(ProjectError, match="file: cannot be written"):
        write_file(plain_project, root / "a" / "file", b"ours")


def test_a_file_instead_of_a_folder_is_reported(plain_project: Project) -> None:
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


def test_a_named_file_is_written_and_its_state_returned(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.zip"
    states = [put_file(path, content) for content in (b"one", b"one", b"two", b"longer")]
    assert states == ["Created", "Unchanged", "Changed", "Changed"]
    assert path.read_bytes() == b"longer"


def test_a_named_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    put_file(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_file_is_written_only_below_its_folder(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(ProjectError, match="leads out of"):
        write_below(tmp_path, tmp_path / "link" / "file", b"ours", durable=False)
    write_below(tmp_path, tmp_path / "file", b"ours", durable=False)
    assert (tmp_path / "file").read_bytes() == b"ours"


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    assert read_file(tmp_path / "file", max_bytes=4) == b"1234"
    with pytest.raises(ProjectError, match="is larger than 3 bytes"):
        read_file(tmp_path / "file", max_bytes=3)
    with pytest.raises(ProjectError, match="gone: cannot be read"):
        read_file(tmp_path / "gone")


def test_a_link_that_stays_inside_is_followed(plain_project: Project) -> None:
    link, target = plain_project.root / "link", plain_project.root / "a" / "target"
    link.symlink_to(target)
    write_file(plain_project, link, b"ours")
    assert link.is_symlink()
    assert target.read_bytes() == b"ours"


def test_a_link_to_itself_is_reported(plain_project: Project) -> None:
    (plain_project.root / "link").symlink_to("link")
    with pytest.raises(ProjectError, match="links form a loop"):
        write_file(plain_project, plain_project.root / "link", b"ours")
    assert (plain_project.root / "link").is_symlink()
