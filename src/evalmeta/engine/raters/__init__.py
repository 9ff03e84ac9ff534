"""Raters, which return a rating from 0 to 5 for an expectation and an answer, or say that they cannot.

They are found by their settings, and the offline rater by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from evalmeta.engine.interfaces import LazyRater, Rater, Rating, RatingCache, Rubric
from evalmeta.errors import SettingsError
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.model.expectations import canonical_name
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import OFFLINE_RATER
from evalmeta.plugins import call_plugin, load_plugin, unusable_plugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.engine.interfaces import SharedPace
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.settings import RaterSettings, RulesRater

    class _Make(Protocol):
        def __call__(self, settings: RulesRater | None, *, root: Path | None) -> Rater: ...


def bind_rater(
    settings: RaterSettings,
    *,
    root: Path,
    cache: RatingCache | None = None,
    pace_of: Callable[[str], SharedPace] | None = None,
) -> Rater:
    """Return the rater that a table under [raters] describes; raise SettingsError if something in it cannot be used.

    Functions are imported from the project's folder `root`, and paths are relative to it. Without a cache, every reply
    of a model is requested. `pace_of` returns the pace that processes share under a name.
    """
    from evalmeta.engine.raters.llm import LlmRater
    from evalmeta.model.settings import RulesRater

    match settings:
        case RulesRater():
            return offline_rater(settings, root=root)
        case LlmRater():
            from evalmeta.engine.raters.llm.rater import bind_llm

            shared = pace_of(settings.pace_name) if pace_of else None
            return bind_llm(settings, root=root, cache=cache, shared=shared)
        case _:
            rater = call_plugin("raters", settings, root=root, known=ENTRY_POINTS["rater_settings"])
            if not (callable(rater) and callable(getattr(rater, "close", None))):
                why = f"returned {type(rater).__name__}, which cannot be called and closed"
                raise unusable_plugin("raters", settings.adapter, why)
            return cast("Rater", rater)


def load_rater(rater: Rater, evaluation: Evaluation) -> None:
    """Load what a rater needs for the expectations of an evaluation, whose cases must be known, before it is asked."""
    if not isinstance(rater, LazyRater):
        return
    # A set, because a name is known by the first of many thousands of expectations.
    names = {expectation.name for case in evaluation.cases for turn in case.turns for expectation in turn.expectations}
    rater.load_for(map(canonical_name, names))


def offline_rater(settings: RulesRater | None = None, *, root: Path | None = None) -> Rater:
    """Return the offline rater of the wing `rules_rater`; where the wing is missing, a rater that decides nothing.

    It loads its rules when they are needed. Settings are those of the project in the folder `root`.
    """
    try:
        make = load_plugin("raters", OFFLINE_RATER)
    except SettingsError as error:
        return _Undecided(str(error))
    return cast("_Make", make)(settings, root=root)


class _Undecided:
    """Replaces the offline rater if it is not installed; decides nothing."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __call__(self, _: Rubric) -> Rating:
        return Rating(None, Verdict.UNDECIDED, f"the offline rater is not installed: {self._reason}", OFFLINE_RATER)

    async def close(self) -> None:
        pass
