"""The branch and the commit of a project, read without git."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from api.evaluating.interrupted import twenty
from evalmeta import evaluate
from evalmeta.api.runs.origins import _BRANCHES, _REVISIONS, new_origin
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import RunFilter, run_page

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*_BRANCHES, *_REVISIONS):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on the branch `feature/x`, and a project in a folder of it."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "orders.txt").write_text("")
    git(tmp_path, "init", "--quiet", "--initial-branch", "feature/x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    return tmp_path


def state(folder: Path) -> tuple[str, str]:
    return new_origin(folder)[1:3]


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


def test_a_job_without_a_repository_names_branch_and_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state(tmp_path) == ("", "")

    monkeypatch.setenv("BUILD_SOURCEBRANCH", "refs/heads/feature/x")
    monkeypatch.setenv("BUILDKITE_COMMIT", "HEAD")
    monkeypatch.setenv("BUILD_SOURCEVERSION", "0" * 40)
    assert state(tmp_path) == ("feature/x", "0" * 40)


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        ("ref: refs/heads/main", "main"),
        ("ref: refs/heads/.invalid", ""),
        ("ref: ../../secret", ""),
        ("\xff", ""),
        ("", ""),
        ("12ab", ""),
    ],
)
def test_a_repository_whose_commit_cannot_be_read_has_none(tmp_path: Path, head: str, branch: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(head.encode("latin-1"))

    assert state(tmp_path) == (branch, "")


def test_a_working_tree_that_links_to_itself_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / ".git").write_text("gitdir: loop\n")

    assert state(tmp_path) == ("", "")


def test_every_command_is_a_suite_of_its_own(tmp_path: Path) -> None:
    assert new_origin(tmp_path).suite != new_origin(tmp_path).suite


def test_the_runs_of_one_evaluate_with_a_journal_are_a_suite(repository: Path) -> None:
    def answer(_: str) -> dict[str, str]:
        return {"outcome": "Done.", "topic": "Orders"}

    definitions = [twenty(), replace(twenty(), name="Again")]
    for _ in range(2):
        evaluate(definitions, answer, journal=repository / "journal", root=repository / "tests", resume=False)

    with open_database(repository / "journal") as database:
        runs = run_page(database, RunFilter(branch="feature/x"), limit=10).runs
    assert [run.options.origin.revision for run in runs] == [git(repository, "rev-parse", "HEAD")] * 4
    assert sorted(Counter(run.suite for run in runs).values()) == [2, 2]
