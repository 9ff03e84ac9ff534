"""Subjects: agents under test, asked inside sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData


class Session(Protocol):
    """One conversation with an agent; it knows the case's history and context variables."""

    async def ask(self, utterance: str) -> GeneratedData:
        """Gives what the agent did and said in one turn.

        Whatever it raises makes the case ERROR; `SubjectError` is the polite form.
        """
        ...

    async def close(self) -> None:
        """Ends the conversation; called once, also after an error or a deadline."""
        ...


class Subject(Protocol):
    """An agent under test; its sessions are independent and used at the same time."""

    async def open(self, case: Case) -> Session:
        """Begins a conversation with the case's history and context variables."""
        ...

    async def close(self) -> None:
        """Lets go of what the subject holds; called once, after the last session."""
        ...
