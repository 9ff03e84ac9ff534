"""Raters: what turns an expectation and an answer into a rating of 0 to 5, or says that it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.settings import RulesRater
from evalmeta.plugins import unknown_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.raters.rater import Rater
    from evalmeta.model.settings import RaterSettings

__all__ = ["bind_rater"]


def bind_rater(settings: RaterSettings, *, root: Path) -> Rater:
    """Makes the rater that the settings describe.

    Args:
        settings: a table under [raters], or `RulesRater(adapter="rules")`.
        root: the project's folder, where what the settings name is imported from.

    Raises:
        SettingsError: what the settings name is not there or cannot be used.
    """
    match settings:
        case RulesRater():
            from evalmeta.engine.raters.rules import bind_rules  # noqa: PLC0415 - loaded when it is needed

            return bind_rules(settings, root=root)
        case _:
            raise unknown_plugin("raters", settings.adapter)
