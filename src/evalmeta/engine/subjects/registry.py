"""Find the adapter of a subject by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.subjects.command import bind_command
from evalmeta.engine.subjects.python import bind_python, subject_of
from evalmeta.engine.subjects.replay import bind_recorded, bind_replay
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
from evalmeta.plugins import call_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.login import SignIn
    from evalmeta.model.settings import SubjectSettings


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
            from evalmeta.engine.subjects.openai import bind_openai

            subject = bind_openai(settings)
        case HttpSubject():
            from evalmeta.engine.subjects.http import bind_http

            subject = bind_http(settings)
        case AgentforceSubject():
            from evalmeta.engine.subjects.agentforce import bind_agentforce

            subject = bind_agentforce(settings, sign_in=sign_in)
        case _:
            agent = call_plugin("subjects", settings, root=root, known=SUBJECT_ADAPTERS)
            called = f"the agent from {settings.adapter!r} of the entry points evalmeta.subjects"
            subject = subject_of(agent, root=root, called=called)
    return subject
