"""How findings are weighed: the profile of a project, and what it says of single rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from evalmeta.errors import SettingsError
from evalmeta.model.problem import Severity
from evalmeta.validation.rules import CODES, FIXED_CODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.settings import Profile, RuleSetting, Settings
    from evalmeta.validation.rules import Rule

__all__ = ["Judgement", "judgement_of"]


def _no_settings() -> Mapping[str, RuleSetting]:
    return {}


@dataclass(frozen=True, slots=True)
class Judgement:
    """How findings are weighed: a profile, and severities of single codes that override it."""

    profile: Profile = "documented"
    rules: Mapping[str, RuleSetting] = field(default_factory=_no_settings)

    @property
    def is_complete(self) -> bool:
        """Says whether no rule is switched off."""
        return "off" not in self.rules.values()

    def severity(self, rule: Rule) -> Severity | None:
        """Gives a rule's severity, None when it is switched off."""
        setting = self.rules.get(rule.code)
        if setting == "off":
            return None
        return Severity(setting) if setting else rule.severity(self.profile)


def judgement_of(settings: Settings | None) -> Judgement:
    """Takes the judgement from a project's settings, or the default one when there are none.

    Raises:
        SettingsError: a code that is no rule, or one that cannot be set.
    """
    if settings is None:
        return Judgement()
    for code in settings.validate_.rules:
        if code not in CODES:
            raise _no_rule(code)
    return Judgement(settings.validate_.profile, settings.validate_.rules)


def _no_rule(code: str) -> SettingsError:
    if code in FIXED_CODES:
        return SettingsError(
            f"evalmeta.toml: [validate.rules] sets {code!r}, which nothing changes", actions=[f"Remove {code!r}."]
        )
    close = get_close_matches(code, CODES, n=1)
    action = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(CODES))}."
    return SettingsError(f"evalmeta.toml: [validate.rules] names no rule {code!r}", actions=[action])
