"""The tests in files that may answer otherwise than at a commit: those whose files, or whose agent's files, changed.

A test is left out only if all that it depends on is known and as it was. Git itself is not started.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.runs.git_commits import read_commit, read_tree
from evalmeta.api.runs.origins import git_folder, revision_of
from evalmeta.formats.case_files import files_of
from evalmeta.org.subjects import agent_settings
from evalmeta.package.project import SETTINGS_FILE
from evalmeta.plugins import plugin_names
from evalmeta.report.text import and_more

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.package.project import Project

_SHOWN: Final = 5
_ALGORITHMS: Final = {40: "sha1", 64: "sha256"}
# What the settings of an agent in Agent Script name besides its files: code, and recorded runs.
_OTHER_PARTS: Final = ("target", "functions", "recording")


class ChangedTests(NamedTuple):
    """The tests to run, and what users must know of the choice, in sentences."""

    tests: tuple[FileTest, ...]
    notes: tuple[str, ...]


class _Commit:
    """The files of a commit, as the names of their objects."""

    def __init__(self, root: Path, git: Path, tree: str) -> None:
        self._root, self._tree = root, tree
        self._read = cache(lambda name: read_tree(git, name))

    def has_changed(self, path: Path) -> bool:
        """Return whether a file is not the one of the commit, also if it is new, deleted or cannot be read."""
        if not path.is_relative_to(self._root):
            return True
        before = self._object(path)
        try:
            content = path.read_bytes()
        except OSError:
            return before is not None or path.exists()
        algorithm = _ALGORITHMS[len(self._tree)]
        blob = b"blob %d\0" % len(content) + content
        return before != hashlib.new(algorithm, blob, usedforsecurity=False).hexdigest()

    def has_lost_files(self, folder: Path) -> bool:
        """Return whether a folder lacks something that it has in the commit, or may have if that cannot be read."""
        tree = self._object(folder) if folder.is_relative_to(self._root) else None
        if tree is None:
            return False
        before = self._read(tree)
        now = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
        return before is None or not before.keys() <= now

    def _object(self, path: Path) -> str | None:
        known: str | None = self._tree
        for name in path.relative_to(self._root).parts:
            known = (self._read(known) or {}).get(name) if known else None
        return known


def choose_changed(project: Project, tests: Sequence[FileTest], since: str) -> ChangedTests:
    """Return the tests that changed since a commit; all of them if the commit cannot be read."""
    root, git = git_folder(project.root)
    revision = revision_of(project.root, since) if git else ""
    commit = read_commit(git, revision) if git and revision else None
    if git is None or commit is None:
        why = "the project is not in a git repository" if git is None else f"the commit {since!r} cannot be read"
        return ChangedTests(tuple(tests), (f"All tests run, because {why}.",))
    files = _Commit(root.resolve(), git, commit.tree)
    unknown = [test for test in tests if not _is_known(project, test)]
    changed = [test for test in tests if test in unknown or _has_changed(project, test, files)]
    left_out = [test.name for test in tests if test not in changed]
    notes = []
    if left_out:
        notes.append(f"Not run, because nothing changed since {since}: {and_more(left_out, _SHOWN)}.")
    if unknown:
        named = and_more([test.name for test in unknown], _SHOWN)
        notes.append(f"Run, because what the agent or a check depends on is not known: {named}.")
    return ChangedTests(tuple(changed), tuple(notes))


def _is_known(project: Project, test: FileTest) -> bool:
    """Return whether all files are known that decide the answers and the verdicts of a test."""
    code = {"function", *plugin_names("scorers"), *plugin_names("checks")}
    if code & test.expectations.keys():
        return False
    if test.subject is not None:
        return test.subject.get("adapter") == "recorded"
    settings = agent_settings(project.settings.subjects, test.subject_name, root=project.root)
    if settings is None or settings.adapter != "agent_script":
        return False
    return not any(getattr(settings, name) for name in _OTHER_PARTS)


def _has_changed(project: Project, test: FileTest, commit: _Commit) -> bool:
    paths = [test.path, *files_of(test.path), project.root / SETTINGS_FILE]
    if test.subject is None:
        settings = agent_settings(project.settings.subjects, test.subject_name, root=project.root)
        own = settings.identity(project.root)[1] if settings else []
        paths += own
        # A file that the commit had, and that is gone, is not among the files of the agent now.
        for folder in ("rules", str(getattr(settings, "actions", "actions"))):
            if commit.has_lost_files((project.root / folder).resolve()):
                return True
    return any(commit.has_changed(path.resolve()) for path in paths)
