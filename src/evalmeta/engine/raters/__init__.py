"""Raters: they return a rating from 0 to 5 for an expectation and an answer, or say that they cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from evalmeta.engine.raters.rules.rater import bind_rules
from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.redaction import error_text
from evalmeta.model.settings import RATER_ADAPTERS, LlmRater, RulesRater
from evalmeta.plugins import load_plugin, plugin_names, unknown_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.raters.judge import Rater, RatingCache
    from evalmeta.model.settings import PluginRater, RaterSettings


def bind_rater(settings: RaterSettings, *, root: Path, cache: RatingCache | None = None) -> Rater:
    """Return the rater that the settings describe.

    Args:
        settings: A table under [raters], or `RulesRater(adapter="rules")`.
        root: The project's folder; functions that the settings name are imported from there.
        cache: Stores the replies of a language model; without it every reply is requested.

    Raises:
        SettingsError: Something that the settings name cannot be found or used.
    """
    match settings:
        case RulesRater():
            return bind_rules(settings, root=root)
        case LlmRater():
            from evalmeta.engine.raters.llm.rater import bind_llm  # noqa: PLC0415 - it imports httpx

            return bind_llm(settings, cache=cache)
        case _:
            return _plugin_rater(settings, root)


def _plugin_rater(settings: PluginRater, root: Path) -> Rater:
    if settings.adapter not in plugin_names("raters"):
        raise unknown_plugin("raters", settings.adapter, known=RATER_ADAPTERS)
    make = load_plugin("raters", settings.adapter)
    if not callable(make):
        raise _not_a_rater(settings, f"is {type(make).__name__}, which cannot be called")
    try:
        rater: object = make(settings, root=root)
    except EvalmetaError:
        raise
    except Exception as error:
        raise _not_a_rater(settings, f"failed: {error_text(error)}") from error
    if not (callable(rater) and callable(getattr(rater, "close", None))):
        raise _not_a_rater(settings, f"returned {type(rater).__name__}, which cannot be called and closed")
    return cast("Rater", rater)


def _not_a_rater(settings: PluginRater, why: str) -> SettingsError:
    return SettingsError(
        f"{settings.adapter!r} of the entry points evalmeta.raters {why}",
        actions=("Write a function of the settings and the project's folder, `make(settings, *, root)`.",),
    )
