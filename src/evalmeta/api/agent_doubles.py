"""Doubles of actions, proposed for agents whose actions the files of the project answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.init.project import NewFile, written
from evalmeta.errors import NotFound, did_you_mean
from evalmeta.org.subjects import agent_settings
from evalmeta.package.agent_files import agents_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.model.settings import SubjectSettings
    from evalmeta.package.project import Project


def agents_here(project: Project) -> dict[str, SubjectSettings]:
    """Return the settings of the agents that can be run here by name: those that settings bind, then those in files."""
    bound = dict(project.settings.subjects)
    names = [name for name in agents_of(project).agents() if name not in bound]
    found = ((name, agent_settings({}, name, root=project.root)) for name in names)
    return {**bound, **{name: settings for name, settings in found if settings}}


def write_doubles(project: Project, names: Sequence[str] = ()) -> list[NewFile]:
    """Write example outputs for the actions that nothing answers, of some agents or of all; return the files.

    Existing files are never changed.

    Raises:
        NotFound: the project has no such agent.
        SettingsError: an agent cannot be used, for example because its script has an error.
    """
    agents = agents_here(project)
    if missing := [name for name in names if name not in agents]:
        hint = did_you_mean(missing[0], sorted(agents)) if agents else "Bind one in evalmeta.toml: evalmeta init"
        raise NotFound(f"the project has no agent {missing[0]!r} that can be run here", actions=[hint])
    proposed: dict[Path, bytes] = {}
    for name in names or agents:
        proposed.update(agents[name].proposed_doubles(project.root))
    return [written(NewFile(path, content.decode()), project.root) for path, content in proposed.items()]
