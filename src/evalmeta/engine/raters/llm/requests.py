"""Requests to language models: their pace, their retries, and what they use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.engine.pacer import Pacer
from evalmeta.errors import RaterError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.protocol.http import is_too_long, retry_pause

if TYPE_CHECKING:
    from evalmeta.engine.raters.llm.providers import JudgeModel, ModelReply, Question
    from evalmeta.model.settings import LlmRater


@dataclass(slots=True)
class Usage:
    """What a rater has used so far: requests, answers from the cache, and tokens as far as the models report them."""

    requests: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def count(self, reply: ModelReply) -> None:
        """Add the tokens of a reply."""
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens


class Requests:
    """Sends the requests of one rater at its own pace, and retries transient failures.

    Attributes:
        usage: What the rater has used so far.
        limit: The number of requests after which every other one is an error.
    """

    def __init__(self, settings: LlmRater) -> None:
        self._timeout = settings.timeout
        self._pacer = Pacer(concurrency=settings.concurrency)
        self.usage = Usage()
        self.limit: int | None = None

    async def send(self, question: Question, model: JudgeModel, name: str) -> ModelReply:
        """Return the reply of a model with this name, or raise RaterError after the last attempt."""
        attempt = 1
        while True:
            try:
                return await self._send_once(question, model, attempt)
            except SubjectError as error:
                if attempt > limits.RETRIES or not _is_transient(error):
                    tried = f" (tried {attempt} times)" if attempt > 1 else ""
                    raise RaterError(f"llm:{name}: {error}{tried}", actions=error.actions) from None
                if isinstance(error, SubjectUnreachable):
                    await asyncio.sleep(retry_pause(attempt))
            attempt += 1

    async def _send_once(self, question: Question, model: JudgeModel, attempt: int) -> ModelReply:
        """Send a request when the pacer permits it; a busy model slows down all requests."""
        await self._pacer.enter()
        try:
            self._count()
            async with asyncio.timeout(self._timeout):
                reply = await model.ask(question)
        except TimeoutError:
            raise SubjectUnreachable(f"no answer within {self._timeout:g} s") from None
        except SubjectBusy as busy:
            if _is_transient(busy):
                self._pacer.back_off(busy, attempt=attempt)
            raise
        finally:
            self._pacer.leave()
        self._pacer.speed_up()
        self.usage.count(reply)
        return reply

    def _count(self) -> None:
        if self.limit is not None and self.usage.requests >= self.limit:
            raise RaterError(f"the limit of {self.limit:,} requests is reached")
        self.usage.requests += 1


def _is_transient(error: SubjectError) -> bool:
    if isinstance(error, SubjectBusy):
        return not is_too_long(error.after)
    return isinstance(error, SubjectUnreachable)
