"""What makes the agent and the scorers of a run in another process, from what a project's settings say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.engine.raters import bind_rater
from evalmeta.engine.redaction import with_redaction
from evalmeta.engine.scorers import make_scorers
from evalmeta.engine.subjects.objects import bound_for
from evalmeta.org.custom_scorers import scorers_of_project
from evalmeta.org.subjects import bind_subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalmeta.engine.interfaces import Scorer, Subject
    from evalmeta.model.agent_scorer import FindScorer, PromptScorer
    from evalmeta.model.run_options import Scoring
    from evalmeta.model.settings import RaterSettings, SubjectSettings


@dataclass(frozen=True, slots=True)
class ProjectRecipe:
    """The settings of an agent and a rater, and the custom scorers that cases name, or why they cannot be used.

    Without custom scorers, they are those in the project's folder.
    """

    subjects: Mapping[str, SubjectSettings]
    subject_name: str
    redacted: Sequence[str]
    scoring: Scoring
    rater: RaterSettings
    custom: Mapping[str, PromptScorer | str] | None

    def bind(self, root: Path) -> tuple[Subject, Mapping[str, Scorer]]:
        """Return the agent and the scorers; raise SettingsError if something is missing on this machine."""
        # The check before the run knows the inputs.
        with bound_for(()):
            subject = with_redaction(bind_subject(self.subjects, self.subject_name, root=root), self.redacted)
        rater = bind_rater(self.rater, root=root)
        return subject, make_scorers(self.scoring, rater, find_custom=self._custom_scorers(root))

    def _custom_scorers(self, root: Path) -> FindScorer:
        if (custom := self.custom) is None:
            return scorers_of_project(root)
        return lambda name: custom.get(name, f"the custom scorer {name!r} was not sent to this machine")
