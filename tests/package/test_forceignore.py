"""`.forceignore` ignores what git would ignore."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalmeta.errors import ProjectError
from evalmeta.package.forceignore import ForceIgnore, read_forceignore
from examples import at_most

if TYPE_CHECKING:
    from pathlib import Path


FILES = ("a.x", "b/a.x", "b/keep.x", "b/c/a.x", "b/c/keep.x", "drafts/d.x", "#x", "!x", "x.dup", "b/.hidden")
LINES = (
    "*.x", "a.x", "/a.x", "b/", "b/*", "/b/c", "**/c/**", "b/**/a.x", "!keep.x", "!b/", "!b/c", "drafts", "drafts/**",
    "# a comment", "\\#x", "\\!x", "?.x", "[ab].x", "[!a].x", "*", "!*/", " ", "a.x ", "b/c/", "!*", "/*", "*/",
    "**", "**/", "b/**", "!b/**", "!b/a.x", "!/b/", "c/", "!c", "b/*/a.x", "**/b", "a.x/", "/",
)  # fmt: skip


def ignoring(root: Path, *lines: str) -> ForceIgnore:
    (root / ".forceignore").write_text("\n".join(lines))
    return read_forceignore(root)


def git(*words: str) -> bool:
    program = shutil.which("git")
    if program is None:
        pytest.skip("needs git to compare with")
    return subprocess.run([program, *words], check=False, capture_output=True, timeout=120).returncode == 0


def git_ignores(root: Path, lines: list[str], file: str) -> bool:
    (root / ".gitignore").write_text("\n".join(lines))
    return git("-C", str(root), "-c", "core.excludesFile=", "check-ignore", "--no-index", "-q", "--", file)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    git("init", "-q", str(root))
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


@settings(max_examples=at_most(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(LINES), max_size=5), st.sampled_from(FILES[:-2]))
@example(["b/", "!b/keep.x"], "b/keep.x")
@example(["b/**", "!b/keep.x"], "b/keep.x")
@example(["c/", "!b/"], "b/c/a.x")
@example(["b/*", "!b/c/", "b/c/*"], "b/c/keep.x")
def test_patterns_match_as_in_git(repository: Path, lines: list[str], file: str) -> None:
    assert ignoring(repository, *lines).ignores(repository / file) == git_ignores(repository, lines, file)


def test_without_the_file_nothing_is_ignored(tmp_path: Path) -> None:
    assert not read_forceignore(tmp_path).ignores(tmp_path / "x.dup")


@pytest.mark.parametrize("name", ["a/x.dup", "a/.x", ".a/x", "a/package2-descriptor.json", "package2-manifest.json"])
def test_the_file_cannot_override_the_defaults(tmp_path: Path, name: str) -> None:
    assert ignoring(tmp_path, "!*", "!.a/").ignores(tmp_path / name)


def test_what_is_in_an_ignored_folder_stays_ignored(tmp_path: Path) -> None:
    ignore = ignoring(tmp_path, "drafts/", "!drafts/good.x")

    assert ignore.ignores(tmp_path / "drafts", is_folder=True)
    assert ignore.ignores(tmp_path / "drafts/good.x")


def test_the_deciding_line_is_found(tmp_path: Path) -> None:
    ignore = ignoring(tmp_path, "# drafts", "", "drafts/\r")

    assert ignore.find_line(tmp_path / "drafts/x") == (3, "drafts/")
    assert ignore.find_line(tmp_path / "other/x") is None
    assert ignore.find_line(tmp_path, is_folder=True) is None


def test_a_default_has_no_line_number(tmp_path: Path) -> None:
    assert ignoring(tmp_path, "x").find_line(tmp_path / "a.dup") == (0, "**/*.dup")


@pytest.mark.parametrize("line", ["force-app\\drafts", "force-app\\**\\drafts", "force-app\\*.x", "**\\drafts\\"])
def test_a_backslash_between_folders_is_read_as_a_slash_with_a_warning(tmp_path: Path, line: str) -> None:
    ignore = ignoring(tmp_path, "# fine", line)

    [problem] = ignore.problems
    assert (problem.code, problem.is_error, problem.location.line) == ("forceignore-backslash", False, 2)
    assert ignore.ignores(tmp_path / "force-app/drafts/a.x") or ignore.ignores(tmp_path / "force-app/a.x")


@pytest.mark.parametrize("line", ["\\#x", "\\!x", "x\\ ", "# a\\b", "\\*x"])
def test_escapes_are_not_separators(tmp_path: Path, line: str) -> None:
    assert ignoring(tmp_path, line).problems == ()


@pytest.mark.parametrize("line", ["!", "\\", "[z-a]", "[[:alpha:]]x"])
def test_an_invalid_pattern_is_an_error_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(ProjectError, match=r"\.forceignore:2: .* is not a valid pattern") as caught:
        ignoring(tmp_path, "fine", line)
    assert caught.value.actions


def test_a_file_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".forceignore").write_bytes(b"fine\n\xff")
    with pytest.raises(ProjectError, match=r"\.forceignore:2: is not UTF-8"):
        read_forceignore(tmp_path)
