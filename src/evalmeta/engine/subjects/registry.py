"""Find the adapter of a subject by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.subjects.command import bind_command
from evalmeta.engine.subjects.plugins import bind_plugin
from evalmeta.engine.subjects.python import bind_python
from evalmeta.engine.subjects.replay import bind_recorded, bind_replay
from evalmeta.model.settings import (
    AgentforceSubject,
    CommandSubject,
    HttpSubject,
    OpenAISubject,
    PythonSubject,
    RecordedSubject,
    ReplaySubject,
)

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.subject import Subject
    from evalmeta.model.login import SignIn
    from evalmeta.model.settings import SubjectSettings


def bind(settings: SubjectSettings, *, root: Path, sign_in: SignIn | None = None) -> Subject:
    """Return the subject that a table of the settings describes.

    Args:
        settings: the subject's table.
        root: the project's folder.
        sign_in: returns sessions of stored logins, for agents in an org.

    Raises:
        SettingsError: the settings name something that cannot be found or used.
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
            subject = bind_plugin(settings, root=root)
    return subject
