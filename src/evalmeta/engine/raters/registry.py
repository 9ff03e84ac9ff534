"""Find a rater by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evalmeta.engine.raters.rules.rater import bind_rules
from evalmeta.model.settings import RATER_ADAPTERS, LlmRater, RulesRater
from evalmeta.plugins import call_plugin, unusable_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.interfaces import Rater, RatingCache
    from evalmeta.model.settings import RaterSettings


def bind_rater(settings: RaterSettings, *, root: Path, cache: RatingCache | None = None) -> Rater:
    """Return the rater that a table under [raters] describes; raise SettingsError if something in it cannot be used.

    Functions are imported from the project's folder `root`, and paths are relative to it. Without a cache, every reply
    of a model is requested.
    """
    match settings:
        case RulesRater():
            return bind_rules(settings, root=root)
        case LlmRater():
            from evalmeta.engine.raters.llm.rater import bind_llm

            return bind_llm(settings, root=root, cache=cache)
        case _:
            rater = call_plugin("raters", settings, root=root, known=RATER_ADAPTERS)
            if not (callable(rater) and callable(getattr(rater, "close", None))):
                why = f"returned {type(rater).__name__}, which cannot be called and closed"
                raise unusable_plugin("raters", settings.adapter, why)
            return cast("Rater", rater)
