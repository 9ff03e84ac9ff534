"""Subject adapters: one module for each way to reach an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

__all__ = ["bind"]


def bind(settings: SubjectSettings, *, root: Path, sign_in: SignIn | None = None) -> Subject:
    """Makes the subject that the settings describe.

    Args:
        settings: the subject's table.
        root: the project's folder.
        sign_in: gives sessions of stored logins, for agents that live in an org.

    Raises:
        SettingsError: what the settings name is not there or cannot be used.
    """
    subject: Subject
    # An adapter is loaded when a subject needs it.
    match settings:
        case PythonSubject():
            from evalmeta.engine.subjects.python import bind_python  # noqa: PLC0415

            subject = bind_python(settings, root=root)
        case ReplaySubject():
            from evalmeta.engine.subjects.replay import bind_replay  # noqa: PLC0415

            subject = bind_replay(settings, root=root)
        case RecordedSubject():
            from evalmeta.engine.subjects.replay import bind_recorded  # noqa: PLC0415

            subject = bind_recorded()
        case OpenAISubject():
            from evalmeta.engine.subjects.openai import bind_openai  # noqa: PLC0415 - likewise

            subject = bind_openai(settings)
        case HttpSubject():
            from evalmeta.engine.subjects.http import bind_http  # noqa: PLC0415 - likewise

            subject = bind_http(settings)
        case CommandSubject():
            from evalmeta.engine.subjects.command import bind_command  # noqa: PLC0415 - likewise

            subject = bind_command(settings, root=root)
        case AgentforceSubject():
            from evalmeta.engine.subjects.agentforce import bind_agentforce  # noqa: PLC0415 - likewise

            subject = bind_agentforce(settings, sign_in=sign_in)
        case _:
            from evalmeta.engine.subjects.plugins import bind_added  # noqa: PLC0415 - likewise

            subject = bind_added(settings, root=root)
    return subject
