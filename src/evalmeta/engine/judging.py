"""What a metric is that a rater judges: what it needs, how a model is asked, and how its score is computed.

The metrics themselves are the rows of `metrics.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.errors import RaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.engine.interfaces import Rating, Rubric
    from evalmeta.engine.scorers.judged_terms import Terms


_BY_QUALITY: Final = """\
5 without fault; 4 with a fault that hardly matters; 3 acceptable with clear faults; 2 with faults that
   make it hard to use; 1 nearly useless; 0 useless or no answer."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """How a model rates an answer from 0 to 5 by criteria.

    With `contradictions`, the text says which facts count as contradicted; without, facts are not judged.
    """

    task: str
    criteria: str
    contradictions: str = ""
    rating: str = _BY_QUALITY


@dataclass(frozen=True, slots=True)
class Form:
    """The labels of a ruling and of its items, which do not count if `item_labels` is empty.

    The score is the share of items with a good label if `is_share`; otherwise a single other item decides.
    """

    labels: tuple[str, ...] = ("yes", "no")
    item_labels: tuple[str, ...] = ()
    good: tuple[str, ...] = ("yes",)
    is_share: bool = False


YES_NO: Final = Form()
YES_NO_EACH: Final = Form(item_labels=("yes", "no"))
GRADE: Final = Form(labels=("1", "2", "3", "4", "5"))
CLAIMS: Final = Form(
    item_labels=("supported", "unsupported", "contradictory", "disputed", "not_applicable"),
    good=("supported", "not_applicable"),
    is_share=True,
)
"""ADK's labels of sentences; its score counts those that are supported and those that need no support."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question that a model answers with one of a few labels: its task, its data, the labels and items of the ruling.

    With `has_counted_items` there is one item for each fact or guideline.
    """

    task: str
    keys: tuple[str, ...]
    label: str
    items: str = "leave it empty."
    form: Form = YES_NO
    has_counted_items: bool = False


Need = Literal["answer", "guidelines", "passages", "reference", "rubrics", "truth"]


class Part(NamedTuple):
    """One of several things that are judged one by one: its name in reports, and what the rater judges."""

    name: str
    rubric: Rubric


class Judged(NamedTuple):
    """What a score is computed from: the ratings, which of them mean yes, and the terms."""

    ratings: Sequence[Rating]
    answers: Sequence[bool]
    terms: Terms


def share_of_yes(judged: Judged) -> float:
    """Return the share of ratings that mean yes."""
    return sum(judged.answers) / len(judged.answers)


def vote(judged: Judged) -> float:
    """Return 1 or 0 by the majority of samples, or their share as in adk-ts; a tie is 0."""
    share = judged.ratings[0].share
    return share_of_yes(judged) if judged.terms.aggregate == "majority" or share is None else share


def grade(judged: Judged) -> float:
    """Return the rating of the whole."""
    rating = judged.ratings[0]
    if rating.score is None:
        raise RaterError(f"{rating.rater} returned no score, which this metric needs")
    return float(rating.score)


class Metric(NamedTuple):
    """How one metric is judged.

    Attributes:
        prompt: How a model is asked: by criteria for a rating, which is the score, or by a question with few labels.
        needs: The data without which nothing can be judged.
        rules: Whether the rules of the offline rater can judge some results.
        docs: The other cells of its row in a table of docs/rating.md; evalmeta's own metrics are in docs/scoring.md.
        parts: Returns what is judged one by one; None judges the whole.
        score: Computes the score of the ratings.
        is_averaged: Whether a threshold applies to the mean over turns and iterations (ADK).
        is_decided: Whether the metric passes or fails without a threshold; otherwise the score is reported.
        is_pooled: Whether all samples are requested and unreadable ones ignored (ADK's judges).
        rating_scale: The rating that equals a threshold of 1, if the score is a rating or a share of the best one.
        shows_passages: Whether reports show the retrieved passages instead of the answer.
        judges_actions: Whether the agent's actions are judged, which must be known then.
    """

    prompt: Criteria | Inquiry
    needs: tuple[Need, ...] = ()
    rules: bool = False
    docs: str = ""
    parts: Callable[[Rubric, Terms], list[Part]] | None = None
    score: Callable[[Judged], float] = share_of_yes
    is_averaged: bool = False
    is_decided: bool = True
    is_pooled: bool = False
    rating_scale: float | None = None
    shows_passages: bool = False
    judges_actions: bool = False

    @property
    def judges_facts(self) -> bool:
        """Return whether facts of the answer that are contradicted make it fail."""
        return isinstance(self.prompt, Criteria) and bool(self.prompt.contradictions)


# Whether the data that a metric needs is there, and what to report if not.
DATA: Final[Mapping[Need, tuple[Callable[[Rubric, Terms], bool], str]]] = {
    "answer": (lambda rubric, _: bool(rubric.actual.strip()), "the agent's answer has no text"),
    "guidelines": (lambda rubric, _: bool(rubric.guidelines), "no guidelines"),
    "passages": (
        lambda rubric, _: bool(rubric.passages),
        "no retrieved context with content, neither from the agent nor in the data or its trace",
    ),
    "reference": (lambda rubric, _: bool(rubric.expected), "no reference with which to compare the final response"),
    "rubrics": (lambda _, terms: bool(terms.rubrics), "no rubrics"),
    "truth": (
        lambda rubric, _: bool(rubric.facts or rubric.expected),
        "neither expected facts nor an expected response",
    ),
}
