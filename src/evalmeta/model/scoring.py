"""How results are judged: what a project or a run can choose, and the profile of Salesforce's own grading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["ACTION_MATCHES", "SCORING_PROFILES", "ActionMatch", "Matches", "Scoring", "ScoringProfile", "TopicMatch"]

ScoringProfile = Literal["default", "testing-center"]
ActionMatch = Literal["exact", "in_order", "any_order", "superset", "subset"]
TopicMatch = Literal["exact", "contains"]
Matches = Literal["first", "any", "all"]

SCORING_PROFILES: Final = ("default", "testing-center")
ACTION_MATCHES: Final = ("exact", "in_order", "any_order", "superset", "subset")


@dataclass(frozen=True, slots=True)
class Scoring:
    """How results are judged.

    Attributes:
        profile: `testing-center` grades as Salesforce's Testing Center does: actions as a superset unless
            `actions` says otherwise, promoted topics by their whole names, and a latency is measured and
            never judged. What else is known of its way, and what is not reproduced: docs/scoring.md.
        actions: how the actions that were taken must match the expected ones; None is the profile's way.
        topics: whether topics must be the same, or the expected name may be a part of the actual one.
        matches: which of several values that a reference matches must hold: the first, any or all.
        threshold: the rating, 0 to 5, from which on a rated answer passes.
        rater: the name of the rater in the project's settings; `rules` needs no settings.
    """

    profile: ScoringProfile = "default"
    actions: ActionMatch | None = None
    topics: TopicMatch = "exact"
    matches: Matches = "first"
    threshold: float = 3.0
    rater: str = "rules"

    @property
    def action_match(self) -> ActionMatch:
        """Gives how actions must match."""
        return self.actions or ("superset" if self.profile == "testing-center" else "exact")
