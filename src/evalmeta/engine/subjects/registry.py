"""Find the adapter of a subject by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.subjects.command import bind_command
from evalmeta.engine.subjects.python import bind_python, subject_of
from evalmeta.engine.subjects.replay import bind_recorded, bind_replay
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.redaction import error_text
from evalmeta.model.settings import (
    SUBJECT_ADAPTERS,
    AgentforceSubject,
    CommandSubject,
    HttpSubject,
    OpenAISubject,
    PythonSubject,
    RecordedSubject,
    ReplaySubject,
)
from evalmeta.plugins import load_plugin, plugin_names, unknown_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.login import SignIn
    from evalmeta.model.settings import PluginSubject, SubjectSettings


def bind(settings: SubjectSettings, *, root: Path, sign_in: SignIn | None = None) -> Subject:
    """Return the subject that a table of the settings describes; raise SettingsError if a setting is not valid.

    `sign_in` returns sessions for agents in an org.
    """
    subject: Subject
    match settings:
        case PythonSubject():
            subject = bind_python(settings, root=root)
        case ReplaySubject():
            subject = bind_replay(settings, root=root)
        case RecordedSubject():
            subject = bind_recorded()
        case CommandSubject():
            subject = bind_command(settings, root=root)
        case OpenAISubject():
            from evalmeta.engine.subjects.openai import bind_openai  # noqa: PLC0415 - loads httpx

            subject = bind_openai(settings)
        case HttpSubject():
            from evalmeta.engine.subjects.http import bind_http  # noqa: PLC0415 - loads httpx

            subject = bind_http(settings)
        case AgentforceSubject():
            from evalmeta.engine.subjects.agentforce import bind_agentforce  # noqa: PLC0415 - loads httpx

            subject = bind_agentforce(settings, sign_in=sign_in)
        case _:
            subject = _bind_plugin(settings, root=root)
    return subject


def _bind_plugin(settings: PluginSubject, *, root: Path) -> Subject:
    """Return a subject for the agent that the package's `make(settings, *, root)` returns; see `subject_of`.

    `settings.model_extra` holds the table's keys besides `adapter`.
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
        raise _not_an_adapter(f"{called} failed: {error_text(error)}") from error
    return subject_of(agent, root=root, called=f"the agent from {called}")


def _not_an_adapter(why: str) -> SettingsError:
    return SettingsError(
        why, actions=("Define it as a function of the settings and the project's folder: make(settings, *, root).",)
    )
