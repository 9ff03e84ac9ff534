"""Agents whose adapter an installed package adds, by an entry point of the group `evalmeta.subjects`."""

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


def bind_added(settings: PluginSubject, *, root: Path) -> Subject:
    """Makes a subject of what the package's `make(settings, *, root)` gives: all that `subject_of` takes.

    `settings.model_extra` holds the table's keys besides `adapter`.

    Raises:
        SettingsError: nothing adds such an adapter, it does not load, or makes no agent of these settings.
    """
    if settings.adapter not in plugin_names("subjects"):
        raise unknown_plugin("subjects", settings.adapter, known=SUBJECT_ADAPTERS)
    make = load_plugin("subjects", settings.adapter)
    called = f"{settings.adapter!r} of the entry points evalmeta.subjects"
    if not callable(make):
        raise _no_agent(f"{called} is {type(make).__name__}, which cannot be called")
    try:
        agent: object = make(settings, root=root)
    except EvalmetaError:
        raise
    except Exception as error:
        raise _no_agent(f"{called} makes no agent: {reason(error)}") from error
    return subject_of(agent, root=root, called=f"what {called} makes")


def _no_agent(why: str) -> SettingsError:
    return SettingsError(
        why, actions=("It is a function of the settings and the project's folder, `make(settings, *, root)`.",)
    )
