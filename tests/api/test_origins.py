"""The branch and the commit of a project, read without git."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.origins import new_origin
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on the branch `feature/x`, and a project in a folder of it."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "evalmeta.toml").write_text("")
    git(tmp_path, "init", "--quiet", "--initial-branch", "feature/x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    return tmp_path


def state(folder: Path) -> tuple[str, str]:
    return new_origin(find_project(folder))[1:]


def test_branch_and_commit_are_those_of_the_repository(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert state(repository / "tests") == ("feature/x", commit)

    git(repository, "pack-refs", "--all")
    assert state(repository / "tests") == ("feature/x", commit)


def test_a_linked_working_tree_has_its_own_branch(repository: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "other", "linked")

    assert state(repository / "linked" / "tests") == ("other", git(repository, "rev-parse", "HEAD"))


def test_a_job_names_the_branch_of_a_detached_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    monkeypatch.setenv("GITHUB_HEAD_REF", "pull-1")

    assert state(repository / "tests") == ("pull-1", git(repository, "rev-parse", "HEAD"))


def test_every_command_is_a_suite_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").write_text("")
    project = find_project(tmp_path)

    assert new_origin(project).suite != new_origin(project).suite
