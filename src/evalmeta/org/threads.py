"""Work that takes long, done beside the event loop."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.org.organization import Organization


_T = TypeVar("_T")


async def in_thread(org: Organization, do: Callable[[Organization], _T]) -> _T:
    """Does something with an org in a thread, on a connection of its own; others are answered meanwhile.

    Writers wait for the database there, and large answers are built there. Raises what `do`
    raises, and StoreError when the database cannot be opened.
    """

    def work() -> _T:
        with open_database(org.database.path.parent) as database:
            return do(replace(org, database=database))

    return await asyncio.to_thread(work)
