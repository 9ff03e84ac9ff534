"""What a run and its workers in other processes tell each other.

Messages are pickled: both sides are the same version of evalmeta, and belong to the same user.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import fields
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.generated_data import Action, GeneratedData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.engine.interfaces import Scorer, Subject
    from evalmeta.model.evaluation import WorkItem
    from evalmeta.model.run import CaseResult


class Recipe(Protocol):
    """What makes the agent and the scorers of a run in another process; it can be pickled."""

    def bind(self, root: Path) -> tuple[Subject, Mapping[str, Scorer]]:
        """Return the agent and the scorers of a run, whose project is in a folder of this machine."""
        ...


class Begin(NamedTuple):
    """A run that begins: its number, its pickled recipe, and the time limit and the retries of its cases."""

    run: int
    recipe: bytes
    seconds: float
    retries: int


class PaceEvent(NamedTuple):
    """What happened to a request to an agent in a worker.

    `kind` is "enter" for one that waits for `slot`, "leave" for one that ended, "answer" for one with an answer, or
    "busy" for one that the agent refused, at the given attempt; it asked to wait for `after` seconds, if it said so.
    """

    run: int
    kind: str
    slot: int = 0
    is_utterance: bool = True
    attempt: int = 0
    after: float | None = None


class Orders(NamedTuple):
    """What a worker has to do: the runs that begin and end, cases with their keys, and what the pace allows."""

    begun: Sequence[Begin] = ()
    cases: Sequence[tuple[int, int, WorkItem]] = ()  # the key of a case, its run, and the case
    admitted: Sequence[int] = ()  # the slots of requests that may be sent now
    free: Sequence[tuple[int, bool]] = ()  # runs, and whether their requests need no slots
    ended: Sequence[int] = ()


class News(NamedTuple):
    """What happened in a worker: results by the keys of cases, what requests need, and runs that cannot be run."""

    results: Sequence[tuple[int, CaseResult]] = ()
    pace: Sequence[PaceEvent] = ()
    failures: Sequence[tuple[int, str]] = ()  # runs, and why the worker cannot run their cases


def _by_position(kind: type) -> Callable[[object], tuple[type, tuple[object, ...]]]:
    values_of = attrgetter(*(field.name for field in fields(kind)))
    return lambda value: (kind, values_of(value))


class _Pickler(pickle.Pickler):
    # Every case has many of these, and dataclasses with slots pickle themselves in slow Python code.
    dispatch_table = MappingProxyType(
        {kind: _by_position(kind) for kind in (Case, Turn, Expectation, GeneratedData, Action)}
    )


def pack(message: Orders | News) -> bytes:
    """Return a message as bytes."""
    data = io.BytesIO()
    _Pickler(data, pickle.HIGHEST_PROTOCOL).dump(tuple(message))
    return data.getvalue()


def read_orders(data: bytes) -> Orders:
    """Return the orders in bytes."""
    return Orders._make(cast("tuple[object, ...]", pickle.loads(data)))  # noqa: S301 - of the process that started this


def read_news(data: bytes) -> News:
    """Return the news in bytes."""
    return News._make(cast("tuple[object, ...]", pickle.loads(data)))  # noqa: S301 - of a process that this one started
