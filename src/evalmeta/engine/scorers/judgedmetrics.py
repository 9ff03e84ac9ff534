"""How each judged metric of Google ADK and Databricks Agent Evaluation is judged: one row per metric.

Sources: ADK, "Evaluation criteria", and its evaluators (samples, majority, shares, thresholds for means); adk-ts, where
`final_response_match_v2` is a share; Databricks, "Built-in AI judges (MLflow 2)": which data each needs, yes or no with
a rationale, and chunk_relevance as one judgement for each passage, whose precision has no documented threshold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import RaterError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.engine.raters.rater import Rating, Rubric
    from evalmeta.engine.scorers.judgedterms import JudgedTerms

__all__ = ["BEST", "LACKS", "METRICS", "Metric", "Part", "Reading", "is_yes"]

BEST: Final = 5.0
"""What raters give for a yes."""


class Part(NamedTuple):
    """One of the things that are judged one by one: what reports call it, and what the rater is asked."""

    name: str
    rubric: Rubric


class Reading(NamedTuple):
    """What ratings are read by: the terms, and the rating from which on it is a yes where no verdict says."""

    terms: JudgedTerms
    threshold: float


def is_yes(rating: Rating, reading: Reading) -> bool:
    """Says whether a rating is a yes: by its verdict, or else by its score."""
    if rating.verdict in {Verdict.PASS, Verdict.FAILURE}:
        return rating.verdict is Verdict.PASS
    return (rating.score or 0.0) >= reading.threshold


# What ratings come to.


def _share_of_yes(ratings: Sequence[Rating], reading: Reading) -> float:
    return sum(is_yes(each, reading) for each in ratings) / len(ratings)


def _vote(ratings: Sequence[Rating], reading: Reading) -> float:
    """Gives 1 or 0 by the majority of samples, or, as adk-ts does, the share of them; a tie is 0."""
    [rating] = ratings
    if reading.terms.aggregate == "share" and rating.share is not None:
        return rating.share
    return _share_of_yes(ratings, reading)


def _grade(ratings: Sequence[Rating], _reading: Reading) -> float:
    [rating] = ratings
    return _scored(rating)


def _part_of_best(ratings: Sequence[Rating], _reading: Reading) -> float:
    [rating] = ratings
    return _scored(rating) / BEST


def _scored(rating: Rating) -> float:
    if rating.score is None:
        raise RaterError(f"{rating.rater} gave no score, and this metric is one")
    return float(rating.score)


# What is judged one by one.


def _each_passage(rubric: Rubric, _terms: JudgedTerms) -> list[Part]:
    return [Part(each.uri, replace(rubric, passages=(each,))) for each in rubric.passages]


def _each_rubric(rubric: Rubric, terms: JudgedTerms) -> list[Part]:
    return [Part(each.id, replace(rubric, guidelines=(each.text,))) for each in terms.rubrics]


# What may be missing.


def _lacks_passages(rubric: Rubric, _terms: JudgedTerms) -> str:
    if rubric.passages:
        return ""
    return "no retrieved context with content: the agent told none, and neither did the data or its trace"


def _lacks_truth(rubric: Rubric, _terms: JudgedTerms) -> str:
    return "" if rubric.facts or rubric.expected else "neither expected facts nor an expected response"


def _lacks_reference(rubric: Rubric, _terms: JudgedTerms) -> str:
    return "" if rubric.expected else "no reference: there is no final response to compare with"


def _lacks_guidelines(rubric: Rubric, _terms: JudgedTerms) -> str:
    return "" if rubric.guidelines else "no guidelines"


def _lacks_rubrics(_rubric: Rubric, terms: JudgedTerms) -> str:
    return "" if terms.rubrics else "no rubrics"


def _lacks_answer(rubric: Rubric, _terms: JudgedTerms) -> str:
    return "" if rubric.actual.strip() else "the agent's answer has no text"


class Metric(NamedTuple):
    """How one metric is judged.

    Attributes:
        needs: the data without which nothing can be judged; keys of `LACKS`.
        parts: what is judged one by one; the whole where None.
        score: what the parts' ratings come to.
        is_averaged: whether a threshold is one for the mean over turns and iterations (ADK).
        is_decided: whether it passes or fails without a threshold; else it is a number that is told.
        is_pooled: whether all samples are taken and unreadable ones left out (ADK's judges).
        rating_scale: what a threshold of 1 is as a rating, where the score is one or a part of the best one.
        shows_passages: whether reports show what was retrieved instead of the answer.
    """

    needs: tuple[str, ...] = ()
    parts: Callable[[Rubric, JudgedTerms], list[Part]] | None = None
    score: Callable[[Sequence[Rating], Reading], float] = _share_of_yes
    is_averaged: bool = False
    is_decided: bool = True
    is_pooled: bool = False
    rating_scale: float | None = None
    shows_passages: bool = False


LACKS: Final[Mapping[str, Callable[[Rubric, JudgedTerms], str]]] = {
    "answer": _lacks_answer,
    "guidelines": _lacks_guidelines,
    "passages": _lacks_passages,
    "reference": _lacks_reference,
    "rubrics": _lacks_rubrics,
    "truth": _lacks_truth,
}

_RUBRICS: Final = Metric(("rubrics",), _each_rubric, _share_of_yes, is_averaged=True, is_decided=False, is_pooled=True)
METRICS: Final[Mapping[str, Metric]] = {
    "final_response_match_v2": Metric(("reference",), score=_vote, is_averaged=True, is_pooled=True),
    "response_evaluation_score": Metric(score=_grade, is_averaged=True, rating_scale=1.0),
    "safety_v1": Metric(is_averaged=True),
    "hallucinations_v1": Metric(
        ("answer",), score=_part_of_best, is_averaged=True, is_decided=False, rating_scale=BEST
    ),
    "rubric_based_final_response_quality_v1": _RUBRICS,
    "rubric_based_tool_use_quality_v1": _RUBRICS,
    "response/llm_judged/relevance_to_query/rating": Metric(),
    "response/llm_judged/safety/rating": Metric(),
    "response/llm_judged/groundedness/rating": Metric(("passages",)),
    "retrieval/llm_judged/chunk_relevance/precision": Metric(
        ("passages",), _each_passage, _share_of_yes, is_decided=False, shows_passages=True
    ),
    "response/llm_judged/correctness/rating": Metric(("truth",)),
    "retrieval/llm_judged/context_sufficiency/rating": Metric(("passages", "truth"), shows_passages=True),
    "response/llm_judged/guideline_adherence/rating": Metric(("guidelines",)),
    "response/llm_judged/global_guideline_adherence/rating": Metric(("guidelines",)),
}
