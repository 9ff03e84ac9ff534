"""The sessions of the preview API: conversations with drafts of agents, in the memory of a served org.

A session belongs to the user who started it, answers one message after the other, and ends after a failed turn: the
conversation is then not as the script says.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import OrgFault, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.systems.agent_script.plans import TurnRecord, write_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.agent_script.nodes import Script
    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject
    from evalmeta.protocol.agent_preview import PreviewMessage

_MILLISECONDS: Final = 1000
_INVALID: Final = "INVALID_INPUT"
_AGAIN: Final = "Start a new session."


@dataclass(slots=True, eq=False)
class Preview:
    """One conversation.

    Attributes:
        owner: the id of its user.
        used: when it was used last, as `time.monotonic`.
        last_number: the number of the last message.
        failure: why the session answers no more; empty if it does.
        plans: the plans of its last turns.
    """

    owner: str
    script: Script
    subject: Subject
    conversation: Session
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    used: float = field(default_factory=time.monotonic)
    last_number: int = 0
    failure: str = ""
    plans: dict[str, JsonObject] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, message: PreviewMessage) -> tuple[GeneratedData, str]:
        """Return the agent's answer and the id of its plan.

        Raises:
            OrgFault: another message is being answered, the number is not larger than the last one, or the turn failed.
        """
        if self.lock.locked():
            raise _locked()
        async with self.lock:
            if self.failure:
                raise OrgFault(f"the session has ended: {self.failure}", code=_INVALID, actions=[_AGAIN])
            if message.number <= self.last_number:
                raise OrgFault(f"the sequenceId is not larger than {self.last_number}", code=_INVALID)
            self.last_number, self.failure = message.number, "a message was not answered"
            begun = time.time()
            generated = await self._ask(message.text)
            self.failure, self.used = "", time.monotonic()
            plan_id = str(uuid.uuid4())
            turn = TurnRecord(plan_id, self.id, message.text, generated, int(begun * _MILLISECONDS))
            self.plans[plan_id] = write_plan(turn, self.script)
            while len(self.plans) > limits.MAX_PREVIEW_PLANS:
                del self.plans[next(iter(self.plans))]
            return generated, plan_id

    async def close(self) -> None:
        """Release what the conversation uses; the session answers no more."""
        self.failure = "it was closed"
        try:
            await self.conversation.close()
        finally:
            await self.subject.close()

    async def _ask(self, utterance: str) -> GeneratedData:
        try:
            async with asyncio.timeout(limits.PREVIEW_TURN_SECONDS):
                return await self.conversation.ask(utterance)
        except TimeoutError:
            text = f"the agent did not answer within {limits.PREVIEW_TURN_SECONDS:.0f} s"
            raise self._failed(SubjectError(text), HTTPStatus.GATEWAY_TIMEOUT) from None
        except (SubjectBusy, SubjectUnreachable) as error:
            raise self._failed(error, HTTPStatus.BAD_GATEWAY) from error
        except SubjectError as error:
            raise self._failed(error, HTTPStatus.BAD_REQUEST) from error

    def _failed(self, error: SubjectError, status: HTTPStatus) -> OrgFault:
        self.failure = str(error)
        return OrgFault(str(error), code="SUBJECT_FAILED", status=status, actions=error.actions)


class Previews:
    """The sessions of an org; those that are not used for a time end."""

    def __init__(self) -> None:
        self._sessions: dict[str, Preview] = {}

    async def add(self, preview: Preview) -> None:
        """Add a session, and end idle ones if there is no room; raise OrgFault if all are in use."""
        ended = [*self._idle(limits.PREVIEW_IDLE_SECONDS)]
        if len(self._sessions) - len(ended) >= limits.MAX_PREVIEWS:
            oldest = min(self._idle(limits.PREVIEW_ROOM_SECONDS), key=lambda idle: idle.used, default=None)
            if oldest is None:
                await preview.close()
                raise OrgFault(
                    f"{limits.MAX_PREVIEWS} preview sessions are in use",
                    code="REQUEST_LIMIT_EXCEEDED",
                    status=HTTPStatus.TOO_MANY_REQUESTS,
                )
            ended.append(oldest)
        for idle in ended:
            del self._sessions[idle.id]
        self._sessions[preview.id] = preview
        for idle in ended:
            await idle.close()

    def find(self, session_id: str, owner: str) -> Preview:
        """Return a session of a user; raise OrgFault if it does not exist or has expired."""
        preview = self._sessions.get(session_id)
        if preview is None or preview.owner != owner or preview in self._idle(limits.PREVIEW_IDLE_SECONDS):
            message = f"the session {session_id[:40]!r} does not exist, or it has ended"
            raise OrgFault(message, code="NOT_FOUND", actions=[_AGAIN])
        return preview

    async def end(self, preview: Preview) -> None:
        """End a session; raise OrgFault if it is answering."""
        if preview.lock.locked():
            raise _locked()
        self._sessions.pop(preview.id, None)
        await preview.close()

    def _idle(self, seconds: float) -> Iterator[Preview]:
        until = time.monotonic() - seconds
        return (each for each in self._sessions.values() if each.used <= until and not each.lock.locked())


def _locked() -> OrgFault:
    return OrgFault("the session is answering another message", code="LOCKED", status=HTTPStatus.LOCKED)
