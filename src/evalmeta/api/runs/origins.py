"""Where runs come from: the command that starts them, and the git branch and commit of the project.

Git's files are read as gitrepository-layout(5) and gitglossary(7) describe them; git itself is not started. What git's
files do not say comes from the variables that CI systems document.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.runs.git_commits import Commit, read_commit
from evalmeta.api.runs.git_index import is_clean
from evalmeta.model.redaction import redacted
from evalmeta.model.run_options import Origin

if TYPE_CHECKING:
    from pathlib import Path

# In jobs, git checks out a commit without a branch: GitHub, GitLab, Azure Pipelines, Jenkins, Bitbucket, CircleCI,
# Buildkite. The branch of a pull request comes before the reference that its merge has.
_BRANCHES: Final = (
    "GITHUB_HEAD_REF",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
    "SYSTEM_PULLREQUEST_SOURCEBRANCH",
    "BUILD_SOURCEBRANCH",
    "CHANGE_BRANCH",
    "BRANCH_NAME",
    "BITBUCKET_BRANCH",
    "CIRCLE_BRANCH",
    "BUILDKITE_BRANCH",
)
# The commits of the same systems, for copies of a project without its repository.
_REVISIONS: Final = (
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "BUILD_SOURCEVERSION",
    "GIT_COMMIT",
    "BITBUCKET_COMMIT",
    "CIRCLE_SHA1",
    "BUILDKITE_COMMIT",
)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEADS: Final = "refs/heads/"
# The branch in HEAD of a repository whose references are in a reftable.
_NO_BRANCH: Final = ".invalid"
_SUITE_BYTES: Final = 6
_MAX_BYTES: Final = 10_000_000
_MAX_STEPS: Final = 1_000


def new_origin(folder: Path) -> Origin:
    """Return the origin of the runs of one command in a project's folder."""
    root, git = _repository(folder)
    branch, revision = _git_state(git) if git else ("", "")
    if not branch:
        branch = next(filter(None, map(os.environ.get, _BRANCHES)), "").removeprefix(_HEADS)
    if not revision:
        revision = next(filter(_COMMIT.fullmatch, (os.environ.get(name, "") for name in _REVISIONS)), "")
    commit = (read_commit(_common(git), revision) if git and revision else None) or Commit("", "", "")
    return Origin(
        os.urandom(_SUITE_BYTES).hex(),
        branch[: limits.MAX_LABEL_CHARS],
        revision,
        subject=redacted(commit.subject)[: limits.MAX_LABEL_CHARS],
        parent=commit.parent,
        is_clean=git is not None and is_clean(git, root, commit.tree),
    )


def git_folder(folder: Path) -> tuple[Path, Path | None]:
    """Return the root of a folder's working tree, and the folder with its commits; None if it is in no repository."""
    root, git = _repository(folder)
    return root, None if git is None else _common(git)


def revision_of(folder: Path, name: str) -> str:
    """Return the commit that `HEAD`, a branch, a tag or a commit means, also with `~N`; empty if it is not known."""
    _, git = _repository(folder)
    base, tilde, steps = name.partition("~")
    if git is None or not (steps.isdecimal() or not steps):
        return ""
    revision = base if _COMMIT.fullmatch(base) else _git_state(git)[1] if base == "HEAD" else ""
    places = (_HEADS, "refs/remotes/", "refs/remotes/origin/", "refs/tags/") if not revision else ()
    try:
        revision = revision or next(filter(None, (_commit_of(git, f"{place}{base}") for place in places)), "")
    except (OSError, ValueError):
        return ""
    for _ in range(min(int(steps or "1"), _MAX_STEPS) if tilde else 0):
        commit = read_commit(_common(git), revision) if revision else None
        revision = commit.parent if commit else ""
    return revision


def _repository(folder: Path) -> tuple[Path, Path | None]:
    """Return the root of a folder's working tree, and the folder of git's files; None if it has none."""
    try:
        git = next((found for path in (folder, *folder.parents) if (found := path / ".git").exists()), None)
        if git is not None and git.is_file():
            # A linked working tree or a submodule.
            return git.parent, git.parent / _read(git).removeprefix("gitdir:").strip()
    except (OSError, ValueError):
        return folder, None
    return git.parent if git else folder, git


def _git_state(git: Path) -> tuple[str, str]:
    """Return the branch and the commit of a repository; empty if they are unknown."""
    try:
        head = _read(git / "HEAD").strip()
        reference = head.removeprefix("ref:").strip()
        if reference == head or not reference.startswith(_HEADS):
            return "", head if _COMMIT.fullmatch(head) else ""
        branch = reference.removeprefix(_HEADS)
        return "" if branch == _NO_BRANCH else branch, _commit_of(git, reference)
    except (OSError, ValueError):
        return "", ""


def _common(git: Path) -> Path:
    """Return the folder that the working trees of a repository share."""
    try:
        shared = git / "commondir"
        return git / _read(shared).strip() if shared.exists() else git
    except (OSError, ValueError):
        return git


def _commit_of(git: Path, reference: str) -> str:
    common = _common(git)
    for folder in (git, common):
        if (folder / reference).is_file():
            found = _read(folder / reference).strip()
            return found if _COMMIT.fullmatch(found) else ""
    packed = common / "packed-refs"
    lines = _read(packed).splitlines() if packed.exists() else []
    return next((line.split(" ", 1)[0] for line in lines if line.endswith(f" {reference}")), "")


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_MAX_BYTES)
