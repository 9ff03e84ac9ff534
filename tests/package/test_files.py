from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta import limits
from evalmeta.errors import ProjectError, SettingsError
from evalmeta.package.files import (
    key_name,
    put_file,
    put_folder,
    put_pieces,
    read_file,
    read_text,
    sweep_unfinished,
    write_below,
    write_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.package.project import Project

# Writes a file or a folder, and is killed when the first part of it has been written.
KILLED: Final = """
import os, signal, sys
from pathlib import Path
from evalmeta.package import files

class Entries(dict):
    def items(self):
        yield "first", b"half"
        os.kill(os.getpid(), signal.SIGKILL)

def pieces():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

path = Path(sys.argv[2])
files.put_pieces(path, pieces()) if sys.argv[1] == "file" else files.put_folder(path, Entries())
"""


def write_file(project: Project, path: Path, content: bytes) -> None:
    assert list(write_files(project.root, [(path, content)])) == [path]


def test_whoever_reads_a_file_while_it_is_written_has_the_earlier_content(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    put_file(path, b"before")
    with path.open("rb") as file:
        put_file(path, b"after")
        assert (file.read(), path.read_bytes()) == (b"before", b"after")


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


@pytest.fixture
def unfinished(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """What a killed process has left behind that wrote `target`."""
    command = [sys.executable, "-c", KILLED, request.param, str(tmp_path / "target")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert left.name.startswith(".target.")
    os.utime(left, (0, 0))
    return left


@pytest.mark.parametrize("unfinished", ["file"], indirect=True)
def test_the_next_file_takes_away_what_a_killed_process_wrote(unfinished: Path) -> None:
    target = unfinished.parent / "target"
    put_pieces(target, [b"whole"])
    assert {path: path.read_bytes() for path in target.parent.iterdir()} == {target: b"whole"}


@pytest.mark.parametrize("unfinished", ["folder"], indirect=True)
def test_the_next_folder_takes_away_what_a_killed_process_wrote(unfinished: Path) -> None:
    target = unfinished.parent / "target"
    put_folder(target, {"first": b"1", "deep/second": b"2"})
    assert list(target.parent.iterdir()) == [target]
    assert (target / "first").read_bytes() + (target / "deep" / "second").read_bytes() == b"12"


@pytest.mark.parametrize("unfinished", ["file", "folder"], indirect=True)
def test_what_another_process_writes_is_left_alone(unfinished: Path) -> None:
    descriptor = os.open(unfinished, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    sweep_unfinished(unfinished.parent, lambda _: True)
    assert unfinished.exists()
    os.close(descriptor)
    sweep_unfinished(unfinished.parent, lambda _: True)
    assert not unfinished.exists()


@pytest.mark.parametrize("unfinished", ["file"], indirect=True)
def test_only_named_files_that_are_not_new_are_swept(unfinished: Path) -> None:
    others = [unfinished.with_name(name) for name in (".target.old", ".target.12345678.txt", "target.12345678")]
    for other in others:
        other.touch()
        os.utime(other, (0, 0))
    link = unfinished.with_name(".target.abcdefgh")
    link.symlink_to(others[0])
    sweep_unfinished(unfinished.parent, lambda name: name == "another")
    os.utime(unfinished)
    sweep_unfinished(unfinished.parent, lambda _: True)
    assert {*unfinished.parent.iterdir()} == {unfinished, link, *others}


def test_a_file_that_is_being_written_is_locked(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        [unfinished] = tmp_path.iterdir()
        os.utime(unfinished, (0, 0))
        sweep_unfinished(tmp_path, lambda _: True)
        yield b" and half"

    put_pieces(tmp_path / "target", pieces())
    assert (tmp_path / "target").read_bytes() == b"half and half"


def test_a_folder_that_cannot_be_written_as_a_whole_does_not_appear(tmp_path: Path) -> None:
    entries: Mapping[str, bytes] = {"first": b"1", "first/second": b"2"}
    with pytest.raises(ProjectError, match="cannot be written"):
        put_folder(tmp_path / "target", entries)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced to the disk: files and folders, in their order."""
    kinds: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        kinds.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return kinds


def test_a_file_is_synced_and_then_its_name(tmp_path: Path, synced: list[str]) -> None:
    put_file(tmp_path / "target", b"new")
    assert synced == ["file", "folder"]


def test_many_files_are_synced_and_then_each_folder_once(plain_project: Project, synced: list[str]) -> None:
    names = ("a/1", "a/2", "b/1")
    assert len(list(write_files(plain_project.root, [(plain_project.root / name, b"new") for name in names]))) == len(
        names
    )
    assert synced == ["file"] * 3 + ["folder"] * 2


def test_macos_is_asked_to_empty_the_cache_of_the_disk(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda _, command: calls.append(command))
    put_file(tmp_path / "target", b"new")
    assert (calls, synced) == ([51, 51], [])


def test_a_network_disk_of_macos_is_synced_as_it_can_be(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", -1, raising=False)
    put_file(tmp_path / "target", b"new")
    assert synced == ["file", "folder"]


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf{}")
    assert read_text(tmp_path / "f", raises=ProjectError) == "{}"


def test_a_missing_file_raises_the_requested_error(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="the file does not exist"):
        read_text(tmp_path / "f", raises=ProjectError)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.truncate(limits.MAX_SETTINGS_BYTES + 1)
    with pytest.raises(SettingsError, match=r"larger than 1,000,000 bytes"):
        read_text(tmp_path / "f", raises=SettingsError)


def test_invalid_utf_8_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\nb\n\xff")
    with pytest.raises(SettingsError, match=r"f:3: is not UTF-8"):
        read_text(tmp_path / "f", raises=SettingsError)


def test_a_path_that_cannot_be_opened_raises_the_requested_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_text(tmp_path / ("x" * 300), raises=SettingsError)


def test_keys_are_quoted_as_in_their_files() -> None:
    assert key_name(("run", "concurrency")) == "run.concurrency"
    assert key_name(("subjects", "My Agent", "target")) == 'subjects."My Agent".target'
    assert key_name(("packageDirectories", 0, "path")) == "packageDirectories[0].path"


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    device = Path(os.ttyname(theirs))
    before = device.stat().st_rdev
    assert put_file(device, b"one") == "Created"
    put_pieces(device, [b"t", b"wo"])
    assert os.read(ours, 100) + (b"" if select.select([ours], [], [], 0)[0] == [] else os.read(ours, 100)) == b"onetwo"
    assert (device.stat().st_rdev, stat.S_ISCHR(device.stat().st_mode)) == (before, True)
    for descriptor in (ours, theirs):
        os.close(descriptor)
    assert list(tmp_path.iterdir()) == []
