"""Raters: what turns an expectation and an answer into a rating of 0 to 5, or says that it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evalmeta.engine.reasons import reason
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.settings import RATER_ADAPTERS, LlmRater, RulesRater
from evalmeta.plugins import load_plugin, plugin_names, unknown_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.raters.judge import Rater, RatingCache
    from evalmeta.model.settings import PluginRater, RaterSettings

__all__ = ["bind_rater"]


def bind_rater(settings: RaterSettings, *, root: Path, cache: RatingCache | None = None) -> Rater:
    """Makes the rater that the settings describe.

    Args:
        settings: a table under [raters], or `RulesRater(adapter="rules")`.
        root: the project's folder, where what the settings name is imported from.
        cache: keeps what a language model says; without one it is asked every time.

    Raises:
        SettingsError: what the settings name is not there or cannot be used.
    """
    # A rater is loaded when a run needs it.
    match settings:
        case RulesRater():
            from evalmeta.engine.raters.rules.judge import bind_rules  # noqa: PLC0415

            return bind_rules(settings, root=root)
        case LlmRater():
            from evalmeta.engine.raters.llm.judge import bind_llm  # noqa: PLC0415

            return bind_llm(settings, cache=cache)
        case _:
            return _added(settings, root)


def _added(settings: PluginRater, root: Path) -> Rater:
    if settings.adapter not in plugin_names("raters"):
        raise unknown_plugin("raters", settings.adapter, known=RATER_ADAPTERS)
    make = load_plugin("raters", settings.adapter)
    if not callable(make):
        raise _no_rater(settings, f"is {type(make).__name__}, which cannot be called")
    try:
        rater: object = make(settings, root=root)
    except EvalmetaError:
        raise
    except Exception as error:
        raise _no_rater(settings, f"makes no rater: {reason(error)}") from error
    if not (callable(rater) and callable(getattr(rater, "close", None))):
        raise _no_rater(settings, f"gives {type(rater).__name__}, which cannot be called and closed")
    return cast("Rater", rater)


def _no_rater(settings: PluginRater, why: str) -> SettingsError:
    return SettingsError(
        f"{settings.adapter!r} of the entry points evalmeta.raters {why}",
        actions=("It is a function of the settings and the project's folder, `make(settings, *, root)`.",),
    )
