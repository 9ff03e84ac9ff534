"""Commits that are read from the files of a repository, however git stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from api.runs.test_origins import git
from evalmeta import limits
from evalmeta.api.runs.git_commits import Commit, read_commit, read_tree
from evalmeta.api.runs.origins import new_origin

if TYPE_CHECKING:
    from pathlib import Path

_COMMITS = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives a repository whose commits have long messages that are much alike, so that git packs them as deltas."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number in range(_COMMITS):
        body = "\n".join(f"The same long line {line} about orders, refunds and parcels." for line in range(60))
        git(folder, "commit", "--quiet", "--allow-empty", "--message", f"Change  {number}\nof two lines\n\n{body}")
    return folder


def history(folder: Path) -> list[str]:
    return git(folder, "rev-list", "HEAD").split()


def read(folder: Path) -> list[Commit | None]:
    return [read_commit(folder / ".git", name) for name in history(folder)]


def expected() -> list[str]:
    return [f"Change  {number} of two lines".replace("  ", " ") for number in range(_COMMITS)][::-1]


def test_a_commit_has_its_subject_and_its_parent(made: Path) -> None:
    names = history(made)
    trees = [git(made, "rev-parse", f"{name}^{{tree}}") for name in names]

    assert read(made) == [Commit(*values) for values in zip(expected(), [*names[1:], ""], trees, strict=True)]


def test_packed_commits_are_read_as_loose_ones(made: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--no-local", str(made), "packed")
    packed = tmp_path / "packed"
    git(packed, "repack", "-a", "-d", "-f", "--depth=50", "--window=50", "--quiet")
    listed = git(packed, "verify-pack", "-v", *map(str, (packed / ".git/objects/pack").glob("*.idx")))

    assert any(" commit " in line and len(line.split()) > 5 for line in listed.splitlines()), "no commit is a delta"
    assert read(packed) == read(made)


def test_a_repository_borrows_objects(made: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--shared", str(made), "shared")

    assert read(tmp_path / "shared") == read(made)


def test_a_shallow_clone_knows_its_commit_and_not_the_one_before(made: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{made}", "shallow")
    known = read_commit(tmp_path / "shallow" / ".git", history(made)[0])

    assert known == Commit(expected()[0], history(made)[1], git(made, "rev-parse", "HEAD^{tree}"))
    assert read_commit(tmp_path / "shallow" / ".git", history(made)[1]) is None


def test_damaged_files_are_an_unknown_commit(made: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--no-local", str(made), "damaged")
    name = history(made)[0]
    for suffix in ("pack", "idx"):
        [path] = (tmp_path / "damaged" / ".git" / "objects" / "pack").glob(f"*.{suffix}")
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:40])
        assert read_commit(tmp_path / "damaged" / ".git", name) is None


def test_runs_store_the_subject_without_secrets(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_SHA", raising=False)
    origin = new_origin(made)
    assert (origin.subject, origin.parent) == (expected()[0], history(made)[1])

    git(made, "commit", "--quiet", "--allow-empty", "--message", f"Use sk-ant-api03-{'aB3' * 15}")
    assert new_origin(made).subject == "Use [secret]"
    git(made, "reset", "--quiet", "--hard", "HEAD~1")


def test_deltas_that_name_their_base_are_read_as_those_that_count_back(made: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--no-local", str(made), "named")
    named = tmp_path / "named"
    repack = ("repack", "-a", "-d", "-f", "--depth=50", "--window=50", "--quiet")
    git(named, "-c", "repack.useDeltaBaseOffset=false", *repack)

    assert read(named) == read(made)


def test_a_commit_in_an_unknown_encoding_is_read_as_utf_8(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    commit = ("commit", "--quiet", "--allow-empty", "--message", "Grüße")
    git(tmp_path, "-c", "i18n.commitEncoding=x-unknown", *commit)
    assert [known.subject for known in read(tmp_path) if known] == ["Grüße"]


def test_an_object_that_is_not_a_commit_and_an_index_of_another_format_are_unknown(made: Path, tmp_path: Path) -> None:
    tree = git(made, "rev-parse", "HEAD^{tree}").strip()
    git(tmp_path, "clone", "--quiet", "--no-local", str(made), "other")
    other = tmp_path / "other"
    git(other, "repack", "-a", "-d", "--quiet")
    assert read_commit(other / ".git", tree) is None
    git(other, "-c", "pack.indexVersion=1", "repack", "-a", "-d", "-f", "--quiet")
    assert read(other) == [None] * _COMMITS


def test_repositories_that_borrow_in_a_circle_or_say_no_name_are_read_to_an_end(made: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--shared", str(made), "circle")
    alternates = tmp_path / "circle" / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"# a comment\n\n../objects\n{made / '.git/objects'}\n")
    assert read(tmp_path / "circle") == read(made)
    assert read_commit(tmp_path / "circle" / ".git", "f" * 40) is None
    assert read_commit(tmp_path / "circle" / ".git", "not a name") is None


def test_a_folder_with_more_files_than_are_read_is_unknown_wherever_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    for number in range(40):
        (tmp_path / f"a test with a long name {number:02}.yaml").touch()
    git(tmp_path, "add", ".")
    tree = git(tmp_path, "write-tree").strip()
    whole = read_tree(tmp_path / ".git", tree)
    assert whole is not None
    assert len(whole) == 40

    for most in range(1_000, 1_060):
        monkeypatch.setattr(limits, "MAX_COMMIT_BYTES", most)
        assert read_tree(tmp_path / ".git", tree) is None
