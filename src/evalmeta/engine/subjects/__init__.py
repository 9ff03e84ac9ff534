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
    from evalmeta.model.settings import SubjectSettings


def bind(settings: SubjectSettings, *, root: Path, sign_in: SignIn | None = None) -> Subject:
    """Return the subject that a table of the settings describes; raise SettingsError if a setting is not valid.

    `sign_in` returns sessions for agents in an org.
    """
    from evalmeta.model.settings import PluginSubject

    own = declared_settings(settings)
    if own is settings and not isinstance(own, PluginSubject):
        return cast("Subject", own.bind(root=root, sign_in=sign_in))
    called = f"the agent from {settings.adapter!r} of the entry points evalmeta.subjects"
    if isinstance(own, PluginSubject):
        agent = call_plugin("subjects", own, root=root, known=ENTRY_POINTS["subjects"])
    else:
        agent = own.bind(root=root, sign_in=sign_in)
    return subject_of(agent, root=root, called=called)


def declared_settings(settings: SubjectSettings) -> SubjectSettings:
    """Return the settings as the class of a package declares them, if there is one; raise SettingsError like `bind`."""
    from pydantic import ValidationError

    from evalmeta.model.settings import PluginSubject, SubjectSettings

    name = settings.adapter
    if not isinstance(settings, PluginSubject) or name not in plugin_names("subjects"):
        return settings
    declared = load_plugin("subjects", name)
    if not (isinstance(declared, type) and issubclass(declared, SubjectSettings)):
        return settings
    try:
        return declared.model_validate(settings.model_dump())
    except ValidationError as error:
        # The values may be secrets, so they are left out.
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        lines = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise SettingsError(f"the settings of the adapter {name} are not valid: {lines}") from None
