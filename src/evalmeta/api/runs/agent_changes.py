"""What changed of an agent in Agent Script since a commit: its subagents, the doubles of its actions, or all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.runs.affected_cases import AgentChange, script_change
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.subjects import bind
from evalmeta.errors import EvalmetaError, ProjectError
from evalmeta.package.agent_files import RULES, SCRIPT_SUFFIX
from evalmeta.package.files import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.api.runs.commit_files import CommitFiles
    from evalmeta.model.settings import SubjectSettings

_DOUBLE_SUFFIX: Final = ".yaml"


def agent_change(settings: SubjectSettings, root: Path, commit: CommitFiles) -> AgentChange | None:
    """Return what changed of an agent; None if all its cases may be affected.

    That is so if its rules changed, if its script changed in more than some subagents, or if the agent cannot be used
    now: its cases would end in errors.
    """
    scripts, doubles, others = _files(settings, root)
    rules_lost = commit.lost_files((root / RULES).resolve())
    if rules_lost is None or rules_lost or any(map(commit.has_changed, others)) or len(scripts) != 1:
        return None
    changed_doubles = {path.stem for path in doubles if commit.has_changed(path)}
    for folder in _double_folders(settings, root):
        lost = commit.lost_files(folder)
        if lost is None:
            return None
        changed_doubles |= {name.removesuffix(_DOUBLE_SUFFIX) for name in lost if name.endswith(_DOUBLE_SUFFIX)}
    [script] = scripts
    before, after = commit.content(script), _content(script)
    change = None if before is None or after is None else script_change(before, after)
    if change is None:
        return None
    change = AgentChange(change.before, change.after, change.subagents, frozenset(changed_doubles))
    return None if change.words and _is_broken(settings, root) else change


def _files(settings: SubjectSettings, root: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Return the script of an agent, the doubles of its actions, and its other files, such as its rules."""
    folders = _double_folders(settings, root)
    paths = [path.resolve() for path in settings.identity(root)[1]]
    scripts = [path for path in paths if path.suffix == SCRIPT_SUFFIX]
    doubles = [path for path in paths if path.parent in folders]
    return scripts, doubles, [path for path in paths if path not in scripts and path not in doubles]


def _double_folders(settings: SubjectSettings, root: Path) -> list[Path]:
    """Return the folders with the doubles of an agent: those that agents share, and its own."""
    shared = (root / str(getattr(settings, "actions", "actions"))).resolve()
    return [shared, shared / str(getattr(settings, "bundle", ""))]


def _content(path: Path) -> bytes | None:
    """Return the content of a script; None if it cannot be read, or is too large to be carried out."""
    try:
        return read_file(path, max_bytes=limits.MAX_SCRIPT_BYTES)
    except ProjectError:
        return None


def _is_broken(settings: SubjectSettings, root: Path) -> bool:
    """Return whether the agent cannot be bound: its rules or doubles may not fit its script any more."""
    try:
        run_to_end(bind(settings, root=root).close())
    except EvalmetaError:
        return True
    return False
