"""The tests and cases in files that may answer otherwise than at a commit: their files, or their agent's, changed.

A case is left out only if all that it depends on is known and as it was. Git itself is not started.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.runs.affected_cases import is_affected
from evalmeta.api.runs.agent_changes import agent_change
from evalmeta.api.runs.commit_files import CommitFiles
from evalmeta.api.runs.git_commits import read_commit
from evalmeta.api.runs.origins import git_folder, revision_of
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.formats.files import named_files, settings_beside
from evalmeta.model.evaluation import CaseList
from evalmeta.org.subjects import agent_settings
from evalmeta.package.project import SETTINGS_FILE
from evalmeta.plugins import plugin_names
from evalmeta.report.text import and_more, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.runs.affected_cases import AgentChange
    from evalmeta.model.run_options import ActionMatch
    from evalmeta.package.project import Project

_SHOWN: Final = 5
# What the settings of an agent in Agent Script name besides its files: code, and recorded runs.
_OTHER_PARTS: Final = ("target", "functions", "recording")


class ChangedTests(NamedTuple):
    """What runs.

    Attributes:
        tests: the tests with cases to run.
        cases: the cases of each of them; empty if all cases run.
        notes: what users must know of the choice, in sentences.
    """

    tests: tuple[FileTest, ...]
    cases: tuple[CaseList, ...]
    notes: tuple[str, ...]


class _Choice(NamedTuple):
    """The cases of a test that run, None for all, and what changed of its agent, if only some do not run."""

    numbers: frozenset[int] | None
    change: AgentChange | None = None
    left_out: int = 0


_ALL: Final = _Choice(None)
_NONE: Final = _Choice(frozenset())


def choose_changed(
    project: Project, tests: Sequence[FileTest], since: str, *, match: ActionMatch = "exact"
) -> ChangedTests:
    """Return the tests and cases that a change since a commit may affect; all of them if the commit cannot be read.

    `match` is how the actions of a case must match, unless it says that itself.
    """
    root, git = git_folder(project.root)
    revision = revision_of(project.root, since) if git else ""
    commit = read_commit(git, revision) if git and revision else None
    if git is None or commit is None:
        why = "the project is not in a git repository" if git is None else f"the commit {since!r} cannot be read"
        return ChangedTests(tuple(tests), (), (f"All tests run, because {why}.",))
    files = CommitFiles(root.resolve(), git, commit.tree)
    change_of = cache(partial(_change_of, project, files))
    unknown = [test for test in tests if not _is_known(project, test)]
    choices = [_ALL if test in unknown else _choose(project, test, files, change_of, match) for test in tests]
    pairs = [*zip(tests, choices, strict=True)]
    chosen = [(test, choice) for test, choice in pairs if choice.numbers is None or choice.numbers]
    cases = tuple(CaseList(test.name, choice.numbers) for test, choice in chosen)
    is_partial = any(choice.numbers is not None for _, choice in chosen)
    notes = [*_left_out(pairs, since)]
    if unknown:
        named = and_more([test.name for test in unknown], _SHOWN)
        notes.append(f"Not left out, because evalmeta does not know what their agents or checks depend on: {named}.")
    return ChangedTests(tuple(test for test, _ in chosen), cases if is_partial else (), tuple(notes))


def _left_out(pairs: Sequence[tuple[FileTest, _Choice]], since: str) -> Iterator[str]:
    """Yield which tests do not run, and how many cases of others, with the reason."""
    if unchanged := [test.name for test, choice in pairs if choice is _NONE]:
        yield f"Not run, because nothing changed since {since}: {and_more(unchanged, _SHOWN)}."
    by_change: dict[str, list[str]] = {}
    for test, choice in pairs:
        if choice.change is not None and choice.left_out:
            number = choice.left_out + len(choice.numbers or ())
            text = f"{test.name} ({choice.left_out:,} of {count(number, 'case')})"
            by_change.setdefault(choice.change.words, []).append(text)
    for words, named in by_change.items():
        what = f"of the agent only {words} changed since {since}, and the cases expect others"
        yield f"Not run, because {what}: {and_more(named, _SHOWN)}."


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


def _change_of(project: Project, commit: CommitFiles, subject_name: str) -> AgentChange | None:
    settings = agent_settings(project.settings.subjects, subject_name, root=project.root)
    return agent_change(settings, project.root, commit) if settings else None


def _examples(project: Project) -> list[Path]:
    """Return the files with examples that raters send to their models."""
    raters = project.settings.raters.values()
    return [project.root / rater.examples for rater in raters if isinstance(rater, LlmRater) and rater.examples]


def _choose(
    project: Project,
    test: FileTest,
    commit: CommitFiles,
    change_of: Callable[[str], AgentChange | None],
    match: ActionMatch,
) -> _Choice:
    beside = settings_beside(test.path, test.reading)
    shared = [project.root / SETTINGS_FILE, *_examples(project)]
    own = [test.path, *beside, *named_files(test.path), *shared]
    if any(commit.has_changed(path.resolve()) for path in own):
        return _ALL
    if test.subject is not None:
        return _NONE
    change = change_of(test.subject_name)
    if change is None:
        return _ALL
    if not change.words:
        return _NONE
    total = sum(1 for _ in test.evaluation.cases)
    affected = frozenset(case.number for case in test.evaluation.cases if is_affected(case, change, match=match))
    return _ALL if len(affected) == total else _Choice(affected, change, total - len(affected))
