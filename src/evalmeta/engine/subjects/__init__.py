"""Agents under test: one module for each adapter, and what adapters share. Agents are found by their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evalmeta.engine.subjects.objects import subject_of
from evalmeta.errors import SettingsError
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.plugins import call_plugin, load_plugin, plugin_names

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.login import SignIn
    from evalmeta.model.settings import PluginSubject, SubjectSettings


def bind(settings: SubjectSettings, *, root: Path, sign_in: SignIn | None = None) -> Subject:
    """Return the subject that a table of the settings describes; raise SettingsError if a setting is not valid.

    `sign_in` returns sessions for agents in an org.
    """
    from evalmeta.model.settings import PluginSubject

    if not isinstance(settings, PluginSubject):
        return cast("Subject", settings.bind(root=root, sign_in=sign_in))
    called = f"the agent from {settings.adapter!r} of the entry points evalmeta.subjects"
    return subject_of(_agent_of_package(settings, root, sign_in), root=root, called=called)


def _agent_of_package(settings: PluginSubject, root: Path, sign_in: SignIn | None) -> object:
    """Return the agent of an entry point: settings like those of evalmeta's own adapters, or a function `make`."""
    from pydantic import ValidationError

    from evalmeta.model.settings import SubjectSettings

    name = settings.adapter
    declared = load_plugin("subjects", name) if name in plugin_names("subjects") else None
    if not (isinstance(declared, type) and issubclass(declared, SubjectSettings)):
        return call_plugin("subjects", settings, root=root, known=ENTRY_POINTS["subjects"])
    try:
        own = declared.model_validate(settings.model_dump())
    except ValidationError as error:
        # The values may be secrets, so they are left out.
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        lines = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise SettingsError(f"the settings of the adapter {name} are not valid: {lines}") from None
    return own.bind(root=root, sign_in=sign_in)
