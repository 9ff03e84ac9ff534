"""Connections of this process to Postgres: a bounded number of them, kept for the next use, and what went wrong."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from evalmeta import limits
from evalmeta.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked, StoreUnreachable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from evalmeta.model.store import StoreUrl
    from evalmeta.store.sql import Row

_Result = TypeVar("_Result")
# A connection that waited longer may have been closed by a firewall on the way, which tells nobody.
_IDLE_SECONDS: Final = 30.0
_MAX_IDLE: Final = 4
_KINDS: Final[dict[str, type[StoreError]]] = {
    **dict.fromkeys(("55P03", "40001", "40P01", "57014"), StoreLocked),
    **dict.fromkeys(("53100", "53200"), StoreFull),
    **dict.fromkeys(("53300", "57P01", "57P02", "57P03", "57P05", "25P03"), StoreUnreachable),
    **dict.fromkeys(("42P01", "42703", "42883"), StoreCorrupt),
}
_SAID: Final[dict[type[StoreError], tuple[str, tuple[str, ...]]]] = {
    StoreLocked: ("is locked by another program", ("Wait until it is done, then run the command again.",)),
    StoreFull: ("has no room", ("Make room on the server's disk.",)),
    StoreUnreachable: ("cannot be reached", ("Check that the server runs and the address is right.",)),
    StoreCorrupt: ("is not a valid database", ()),
    StoreError: ("cannot be used", ("Check that the role has the rights that the page about stores lists.",)),
}
_REFUSED_LOGINS: Final = ("password", "authentication", "no pg_hba.conf entry", "SASL")


class _Connection(psycopg.Connection["Row"]):
    """A connection whose server answers in time, or is given up."""

    def wait(self, gen: Generator[object, object, _Result], *args: float, **named: float) -> _Result:  # type: ignore[override] # the types of psycopg are internal
        """Wait for the end of what is sent and received, at most `limits.STORE_REPLY_SECONDS`."""
        limited: _Result = super().wait(self._limited(gen), *args, **named)  # type: ignore[arg-type]
        return limited

    def _limited(self, gen: Generator[object, object, _Result]) -> Generator[object, object, _Result]:
        deadline = time.monotonic() + limits.STORE_REPLY_SECONDS
        try:
            wanted = next(gen)
            while True:
                # The one who waits looks several times in a second, whether or not there is an answer.
                ready = yield wanted
                if time.monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer for {limits.STORE_REPLY_SECONDS:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: _Result = end.value
            return result


@dataclass(slots=True, eq=False)
class Link:
    """A connection, the thread that took it, and by how many seconds the server's clock is ahead of this machine's."""

    connection: psycopg.Connection[Row]
    ahead: float
    holder: int = field(default_factory=threading.get_ident)
    is_given_back: bool = False


class _Pool:
    """The connections to one URL; `limits.MAX_STORE_CONNECTIONS` threads have some at a time."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(limits.MAX_STORE_CONNECTIONS)
        self._held: Counter[int] = Counter()
        self._idle: list[tuple[Link, float]] = []

    def take(self) -> Link:
        """Return a connection of the calling thread; one that has another already does not wait for it."""
        holder = threading.get_ident()
        self._reserve(holder)
        try:
            return self._waiting() or self._connected()
        except BaseException:
            self._release(holder)
            raise

    def _reserve(self, holder: int) -> None:
        with self._lock:
            is_first = not self._held[holder]
            self._held[holder] += 1
        if is_first and not self._room.acquire(timeout=limits.STORE_BUSY_SECONDS):
            with self._lock:
                self._held[holder] -= 1
            raise StoreLocked(
                f"{self._url}: {limits.MAX_STORE_CONNECTIONS} threads of this process use all its connections",
                actions=["Wait until they are done, then run the command again."],
            )

    def _release(self, holder: int) -> None:
        with self._lock:
            self._held[holder] -= 1
            is_last = not self._held[holder]
            if is_last:
                del self._held[holder]
        if is_last:
            self._room.release()

    def give_back(self, link: Link) -> None:
        """Keep a connection for the next use, or close it."""
        link.is_given_back = True
        connection = link.connection
        is_clean = not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE
        with self._lock:
            is_kept = is_clean and len(self._idle) < _MAX_IDLE
            if is_kept:
                self._idle.append((link, time.monotonic()))
        self._release(link.holder)
        if not is_kept:
            connection.close()

    @contextmanager
    def taken(self) -> Iterator[Link]:
        """Take a connection for the block."""
        link = self.take()
        try:
            yield link
        finally:
            self.give_back(link)

    def replaced(self, link: Link) -> Link:
        """Return a new connection instead of one that is lost."""
        link.connection.close()
        new = self._connected()
        new.holder = link.holder
        return new

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for link, _ in idle:
            link.connection.close()

    def _waiting(self) -> Link | None:
        with self._lock:
            link, since = self._idle.pop() if self._idle else (None, 0.0)
        if link is None:
            return None
        if time.monotonic() - since > _IDLE_SECONDS:
            link.connection.close()
            return self._waiting()
        return Link(link.connection, link.ahead)

    def _connected(self) -> Link:
        with store_errors(self._url.name):
            connection = _Connection.connect(
                self._url.secret,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=round(limits.CONNECT_SECONDS),
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
                application_name="evalmeta",
            )
            try:
                return Link(connection, _ahead(connection))
            except BaseException:
                connection.close()
                raise


def pool_of(url: StoreUrl) -> _Pool:
    """Return this process's connections to a URL: a process that was forked leaves those of the other one alone."""
    return _pool_of(url, os.getpid())


@cache
def _pool_of(url: StoreUrl, process: int) -> _Pool:
    pool = _Pool(url)
    atexit.register(lambda: pool.close() if os.getpid() == process else None)
    return pool


def _ahead(connection: psycopg.Connection[Row]) -> float:
    """Return by how many seconds the server's clock is ahead: the error is at most half of the time of a message."""
    sent = time.time()
    [(now,)] = connection.execute("SELECT extract(epoch FROM clock_timestamp())::double precision").fetchall()
    return float(now) - (sent + time.time()) / 2


@contextmanager
def store_errors(name: str) -> Iterator[None]:
    """Raise psycopg's errors as StoreErrors, which name host and database."""
    try:
        yield
    except psycopg.Error as error:
        raise _store_error(name, error) from None


def _store_error(name: str, error: psycopg.Error) -> StoreError:
    reason = error.diag.message_primary or str(error).partition("\n")[0] or "the connection was lost"
    state = error.sqlstate or ""
    if state.startswith("28") or (not state and any(sign in reason for sign in _REFUSED_LOGINS)):
        return StoreError(f"{name}: the login was refused", actions=["Check the user and the password of the store."])
    if not state and isinstance(error, psycopg.ProgrammingError):
        # What libpq says of a URL may quote it.
        return StoreError(
            f"{name}: the URL of the store is not valid", actions=["Write postgresql://USER@HOST/DATABASE"]
        )
    is_lost = state.startswith("08") or (isinstance(error, psycopg.OperationalError) and not state)
    kind = StoreUnreachable if is_lost else _KINDS.get(state, StoreError)
    what, actions = _SAID[kind]
    return kind(f"{name} {what}" if kind is StoreLocked else f"{name} {what}: {reason}", actions=actions)
