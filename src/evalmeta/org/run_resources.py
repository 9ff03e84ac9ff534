"""What the runs of one process share: the pools of agents, and raters."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from evalmeta.engine.scheduler import Scheduler
from evalmeta.org.subjects import rater_settings_of
from evalmeta.store.judges import NewRatings, Ratings

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from evalmeta.engine.interfaces import Rater
    from evalmeta.model.run_options import RunOptions
    from evalmeta.org.organization import Organization


class RunResources:
    """The pools and raters of the runs of one process; `close`, or an `async with` statement, closes the raters.

    With `shares_places`, other processes share the concurrency of each agent.
    """

    def __init__(self, *, shares_places: bool = False) -> None:
        self.scheduler = Scheduler()
        self.shares_places = shares_places
        self._raters: dict[str, Rater] = {}
        self._stack = AsyncExitStack()

    def rater(self, org: Organization, options: RunOptions) -> Rater:
        """Return the rater of a run, or raise SettingsError; runs with the same settings share its requests' pace.

        Suspect cases that are asked again are judged anew: a stored rating would only repeat what made them suspect.
        """
        from evalmeta.engine.case_run import close
        from evalmeta.engine.raters.registry import bind_rater

        settings = rater_settings_of(org, options)
        is_new = bool(options.confirms)
        key = f"{type(settings).__name__} {is_new} {settings.model_dump_json()}"
        if key not in self._raters:
            stored = Ratings(org.database)
            rater = bind_rater(settings, root=org.root, cache=NewRatings(stored) if is_new else stored)
            self._raters[key] = rater
            self._stack.push_async_callback(close, rater)
        return self._raters[key]

    async def close(self) -> None:
        """Close the raters; their errors never change a result."""
        self._raters.clear()
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
