"""Whether tracked files are those of the commit, which is read from git's index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from api.runs.test_origins import git
from evalmeta import limits
from evalmeta.api.runs.origins import new_origin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(params=["sha1", "sha256"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Gives a repository with some committed files in folders, of which one is empty and one is a link."""
    git(tmp_path, "init", "--quiet", f"--object-format={request.param}")
    for number in range(12):
        path = tmp_path / "tests" / "more" / f"{'order' * number}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Where is it? " * number)
    (tmp_path / "agent.py").write_text("one")
    (tmp_path / "linked.py").symlink_to("agent.py")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    # Files are older than the index, as they are if nobody commits in the same moment.
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    git(tmp_path, "update-index", "--refresh")
    return tmp_path


def is_clean(folder: Path) -> bool:
    return new_origin(folder).is_clean


def test_committed_files_are_clean(repository: Path) -> None:
    assert is_clean(repository)
    assert is_clean(repository / "tests" / "more")

    (repository / "untracked.py").write_text("two")
    (repository / "agent.py").touch()
    assert is_clean(repository)


def test_a_linked_working_tree_has_files_of_its_own(repository: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "other", "other")
    (repository / "other" / "linked.py").unlink()
    git(repository / "other", "commit", "--quiet", "--all", "--message", "Without link")
    assert is_clean(repository / "other")

    (repository / "other" / "agent.py").write_text("two")
    assert (is_clean(repository / "other"), is_clean(repository)) == (False, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "agent.py").write_text("two"),
        lambda folder: (folder / "agent.py").write_text("longer"),
        lambda folder: (folder / "agent.py").unlink(),
        lambda folder: ((folder / "linked.py").unlink(), (folder / "linked.py").symlink_to("other.py")),
        lambda folder: ((folder / "agent.py").write_text("two"), git(folder, "add", ".")),
        lambda folder: ((folder / "new.py").write_text("two"), git(folder, "add", ".")),
        lambda folder: git(folder, "rm", "--quiet", "--cached", "agent.py"),
        lambda folder: ((folder / "new.py").write_text("two"), git(folder, "add", "--intent-to-add", ".")),
        lambda folder: git(folder, "update-index", "--skip-worktree", "agent.py"),
        lambda folder: git(folder, "update-index", "--split-index"),
        lambda folder: git(folder, "update-index", "--index-version", "4"),
        lambda folder: (folder / ".git" / "index").unlink(),
    ],
)
def test_files_that_differ_or_may_differ_are_not_clean(repository: Path, change: Callable[[Path], object]) -> None:
    # The index is kept, and what differs is seen all the same.
    assert is_clean(repository)
    change(repository)
    assert not is_clean(repository)


def test_a_damaged_index_says_nothing(repository: Path) -> None:
    index = repository / ".git" / "index"
    content = index.read_bytes()
    for size in range(0, len(content), 5):
        index.write_bytes(content[:size])
        assert not is_clean(repository)


@pytest.mark.parametrize("limit", ["MAX_INDEX_BYTES", "MAX_HASHED_BYTES"])
def test_what_takes_long_is_not_looked_at(limit: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "agent.py").touch()
    monkeypatch.setattr(limits, limit, 2)
    assert not is_clean(repository)
