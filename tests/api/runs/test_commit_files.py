from __future__ import annotations

import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from api.runs.test_origins import git
from evalmeta import limits
from evalmeta.api.runs.commit_files import CommitFiles

if TYPE_CHECKING:
    from pathlib import Path

# Lines that are much alike, so that git packs versions as deltas.
LINES = "".join(f"The same long line {number} about books, fees and rooms.\n" for number in range(200))
LARGE = "x" * (limits.MAX_COMMIT_BYTES + 1)


@pytest.fixture(params=["loose", "packed", "packed with names"])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> CommitFiles:
    """Gives the files of the second of four commits of a repository, however git stores them."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/large.txt").write_text(LARGE)
    (tmp_path / "folder/empty.txt").touch()
    for number in range(4):
        (tmp_path / "folder/lines.txt").write_text(f"{LINES}Version {number}\n")
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "--message", str(number))
    if request.param != "loose":
        offsets = "false" if "names" in request.param else "true"
        git(tmp_path, "-c", f"repack.useDeltaBaseOffset={offsets}", "repack", "-a", "-d", "-f", "--quiet")
        packs = map(str, (tmp_path / ".git/objects/pack").glob("*.idx"))
        listed = git(tmp_path, "verify-pack", "-v", *packs).splitlines()
        assert any(" blob " in line and len(line.split()) > 5 for line in listed), "no file is a delta"
    tree = git(tmp_path, "rev-parse", "main~2^{tree}").strip()
    return CommitFiles(tmp_path.resolve(), tmp_path / ".git", tree)


def test_a_file_is_read_as_it_was(files: CommitFiles, tmp_path: Path) -> None:
    path = tmp_path.resolve() / "folder/lines.txt"
    assert files.content(path) == f"{LINES}Version 1\n".encode()
    assert files.has_changed(path)
    path.write_text(f"{LINES}Version 1\n")
    assert not files.has_changed(path)


def test_a_file_that_is_too_large_or_unknown_has_no_content(files: CommitFiles, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "folder"
    assert files.content(folder / "large.txt") is None
    assert not files.has_changed(folder / "large.txt")
    assert files.content(folder / "missing.txt") is None
    assert files.content(tmp_path.parent / "elsewhere.txt") is None


def test_a_large_file_is_compared_in_pieces(files: CommitFiles, tmp_path: Path) -> None:
    path, size = tmp_path.resolve() / "folder/lines.txt", 8_000_000
    path.write_bytes(bytes(size))
    tracemalloc.start()
    try:
        assert files.has_changed(path)
        assert tracemalloc.get_traced_memory()[1] < size / 2
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has named pipes")
def test_a_pipe_in_place_of_a_file_is_a_change_and_is_not_waited_for(files: CommitFiles, tmp_path: Path) -> None:
    path = tmp_path.resolve() / "folder/lines.txt"
    path.unlink()
    os.mkfifo(path)
    assert files.has_changed(path)


def test_lost_files_are_those_of_the_commit_that_are_gone(files: CommitFiles, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "folder"
    assert files.lost_files(folder) == frozenset()
    (folder / "lines.txt").rename(folder / "others.txt")
    assert files.lost_files(folder) == {"lines.txt"}
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert files.lost_files(folder) == {"lines.txt", "large.txt", "empty.txt"}
    assert files.lost_files(folder / "none") == frozenset()


def test_a_folder_that_cannot_be_read_is_not_taken_for_complete(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a.txt").touch()
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    inner = git(tmp_path, "rev-parse", "main:folder").strip()
    (tmp_path / ".git/objects" / inner[:2] / inner[2:]).unlink()
    tree = git(tmp_path, "rev-parse", "main^{tree}").strip()
    assert CommitFiles(tmp_path.resolve(), tmp_path / ".git", tree).lost_files(tmp_path.resolve() / "folder") is None
