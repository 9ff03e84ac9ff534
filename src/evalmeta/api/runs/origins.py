"""Where runs come from: the command that starts them, and the git branch and commit of the project.

Git's files are read as gitrepository-layout(5) and gitglossary(7) describe them; git itself is not started. What git's
files do not say comes from the variables that CI systems document.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
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


def new_origin(folder: Path) -> Origin:
    """Return the origin of the runs of one command in a project's folder."""
    branch, revision = _git_state(folder)
    if not branch:
        branch = next(filter(None, map(os.environ.get, _BRANCHES)), "").removeprefix(_HEADS)
    if not revision:
        revision = next(filter(_COMMIT.fullmatch, (os.environ.get(name, "") for name in _REVISIONS)), "")
    return Origin(os.urandom(_SUITE_BYTES).hex(), branch[: limits.MAX_LABEL_CHARS], revision)


def _git_state(folder: Path) -> tuple[str, str]:
    """Return the branch and the commit of a folder's repository; empty if they are unknown."""
    try:
        git = next((found for path in (folder, *folder.parents) if (found := path / ".git").exists()), None)
        if git is None:
            return "", ""
        if git.is_file():
            # A linked working tree or a submodule.
            git = git.parent / _read(git).removeprefix("gitdir:").strip()
        head = _read(git / "HEAD").strip()
        reference = head.removeprefix("ref:").strip()
        if reference == head or not reference.startswith(_HEADS):
            return "", head if _COMMIT.fullmatch(head) else ""
        branch = reference.removeprefix(_HEADS)
        return "" if branch == _NO_BRANCH else branch, _commit_of(git, reference)
    except (OSError, ValueError):
        return "", ""


def _commit_of(git: Path, reference: str) -> str:
    shared = git / "commondir"
    common = git / _read(shared).strip() if shared.exists() else git
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
