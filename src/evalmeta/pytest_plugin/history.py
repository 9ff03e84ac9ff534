"""The evaluations of a session in the histories of their projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.runs.saved import keep_runs
from evalmeta.errors import EvalmetaError
from evalmeta.package.files import shown
from evalmeta.package.project import SETTINGS_FILE, find_project
from evalmeta.report.text import count

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import Run
    from evalmeta.package.project import Project
    from evalmeta.pytest_plugin.results import SessionResults


def keep_history(session: SessionResults, root: Path) -> list[str]:
    """Save evaluations as runs in their projects, and say so; a store that cannot be used fails no test.

    A project is a folder with `evalmeta.toml` at or above the file of the tests; `root` is the folder of node ids.
    """
    by_project: dict[Path, tuple[Project, list[Run]]] = {}
    lines = []
    for results, run in zip(session.evaluations.values(), session.runs(), strict=True):
        try:
            project = _project_of(root / results.first["evaluation"].split("::", 1)[0])
        except EvalmetaError as error:
            lines.append(f"no history: {error}")
            continue
        if project:
            by_project.setdefault(project.root, (project, []))[1].append(run)
    for project, runs in by_project.values():
        try:
            keep_runs(project, runs)
        except EvalmetaError as error:
            lines.append(f"no history: {error}")
        else:
            lines.append(f"history: {count(len(runs), 'run')} in {shown(project.state_dir)}; see evalmeta test history")
    return list(dict.fromkeys(lines))


def _project_of(file: Path) -> Project | None:
    folder = next((folder for folder in file.resolve().parents if (folder / SETTINGS_FILE).is_file()), None)
    return find_project(folder) if folder else None
