"""An agent whose adapter an installed package adds, with an entry point of the group `evalmeta.subjects`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.reasons import reason
from evalmeta.engine.subjects.python import subject_of
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.settings import SUBJECT_ADAPTERS
from evalmeta.plugins import load_plugin, plugin_names, unknown_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.subject import Subject
    from evalmeta.model.settings import PluginSubject


def bind_plugin(settings: PluginSubject, *, root: Path) -> Subject:
    """Return a subject for the agent that the package's `make(settings, *, root)` returns; see `subject_of`.

    `settings.model_extra` holds the table's keys besides `adapter`.

    Raises:
        SettingsError: no package adds this adapter, it cannot be loaded, or it does not return an agent.
    """
    if settings.adapter not in plugin_names("subjects"):
        raise unknown_plugin("subjects", settings.adapter, known=SUBJECT_ADAPTERS)
    make = load_plugin("subjects", settings.adapter)
    called = f"{settings.adapter!r} of the entry points evalmeta.subjects"
    if not callable(make):
        raise _not_an_adapter(f"{called} is {type(make).__name__}, which cannot be called")
    try:
        agent: object = make(settings, root=root)
    except EvalmetaError:
        raise
    except Exception as error:
        raise _not_an_adapter(f"{called} failed: {reason(error)}") from error
    return subject_of(agent, root=root, called=f"the agent from {called}")


def _not_an_adapter(why: str) -> SettingsError:
    return SettingsError(
        why, actions=("Define it as a function of the settings and the project's folder: make(settings, *, root).",)
    )
