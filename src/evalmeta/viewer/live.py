"""Events for pages that follow runs (HTML Standard, section 9.2, Server-sent events).

One look at the database serves all pages, however many there are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from evalmeta import limits
from evalmeta.errors import EvalmetaError
from evalmeta.org.serving.http_protocol import max_connections
from evalmeta.store.database import open_database
from evalmeta.store.users import Sessions
from evalmeta.viewer.replies import HEADERS
from evalmeta.viewer.run_states import RunStates, read_states

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

    from evalmeta.model.login import User
    from evalmeta.model.store import Store


@dataclass(slots=True, eq=False)
class _Listener:
    """A page that follows runs; `known` is the state that it shows, empty if that is not known."""

    session: bytes
    user: User
    known: str
    is_over: bool = False
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class LiveRuns:
    """The pages that follow runs, and the task that looks at the database for all of them while there are any."""

    def __init__(self, store: Store | Path) -> None:
        self.store = store
        self._listeners: set[_Listener] = set()
        self._watching: asyncio.Task[None] | None = None

    def stream(self, session: bytes, user: User, known: str) -> Response | None:
        """Return the reply that follows runs; None if the user has as many of them as there is room for.

        All users together use half of the connections, in equal shares.
        """
        of_users = Counter(listener.user.id for listener in self._listeners)
        share = max_connections() // 2 // len({*of_users, user.id})
        if of_users[user.id] >= min(limits.MAX_USER_STREAMS, max(1, share)):
            return None
        return _Stream(self, _Listener(session, user, known))

    def add(self, listener: _Listener) -> None:
        """Look at the database for a page too."""
        self._listeners.add(listener)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    def remove(self, listener: _Listener) -> None:
        """Forget a page."""
        self._listeners.discard(listener)

    async def _watch(self) -> None:
        while self._listeners:
            # While the database is locked, nothing can have changed.
            with suppress(EvalmetaError):
                self._tell(*await run_in_threadpool(self._look))
            await asyncio.sleep(limits.VIEW_POLL_SECONDS)

    def _look(self) -> tuple[RunStates, frozenset[bytes]]:
        with open_database(self.store) as database:
            return read_states(database), Sessions(database).valid(now=database.now())

    def _tell(self, states: RunStates, sessions: frozenset[bytes]) -> None:
        """Wake the pages whose runs have changed, or whose session has ended."""
        for listener in self._listeners:
            state, is_over = states.of(listener.user), listener.session not in sessions
            if is_over or state != listener.known:
                listener.known, listener.is_over = state, is_over
                listener.wake.set()


class _Stream(StreamingResponse):
    """A reply that follows runs, counted as one of its user's until it ends."""

    def __init__(self, live: LiveRuns, listener: _Listener) -> None:
        super().__init__(_events(listener), media_type="text/event-stream", headers=HEADERS)
        self._live, self._listener = live, listener
        live.add(listener)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.remove(self._listener)


async def _events(listener: _Listener) -> AsyncIterator[str]:
    # The browser calls again when the reply ends, so that a forgotten page does not keep a connection. It then names
    # the last state that it knows, so that it misses nothing.
    end = asyncio.get_running_loop().time() + limits.VIEW_STREAM_SECONDS
    yield "retry: 1000\n\n"
    while True:
        try:
            async with asyncio.timeout_at(end):
                await listener.wake.wait()
        except TimeoutError:
            return
        if listener.is_over:
            return
        listener.wake.clear()
        yield f"id: {listener.known}\nevent: change\ndata: runs\n\n"
