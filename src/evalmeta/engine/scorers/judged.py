"""The judged metrics of Google ADK and Databricks Agent Evaluation: what a rater says yes or no to, or grades.

How each judged metric of Google ADK and Databricks Agent Evaluation is judged: one row per metric.

Sources: ADK, "Evaluation criteria", and its evaluators (samples, majority, shares, thresholds for means); adk-ts, where
`final_response_match_v2` is a share; Databricks, "Built-in AI judges (MLflow 2)": which data each needs, yes or no with
a rationale, and chunk_relevance as one judgement for each passage, whose precision has no documented threshold.

How an explanation tells of what was judged one by one, so that tables can take it apart again.

What other formats tell of a judged metric beside its name, read from an expectation's terms.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from inspect import isawaitable
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.raters.judge import Rubric
from evalmeta.engine.scorers.rated import sound_rating
from evalmeta.engine.scorers.results import undecided
from evalmeta.errors import RaterError
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalmeta.engine.raters.judge import Rater, Rating
    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonObject, JsonValue


_TOLERANCE: Final = 1e-9
_ADK_SAMPLES: Final = 5


class _Question(NamedTuple):
    """One expectation of one exchange, ready to be asked about."""

    expectation: Expectation
    metric: Metric
    reading: Reading
    expected: str
    actual: str
    parts: tuple[Part, ...]
    remark: str


def judge_scorers(rater: Rater, *, threshold: float = 3.0) -> Mapping[str, Scorer]:
    """Gives the scorers of all judged metrics by name.

    `threshold` is the rating, 0 to 5, that is a yes of raters that rate instead of judging. A metric that
    the rater cannot judge, or whose data is missing, is UNDECIDED and says what is missing.
    """
    return {name: _scorer(metric, rater, threshold) for name, metric in METRICS.items()}


def _scorer(metric: Metric, rater: Rater, threshold: float) -> Scorer:
    def score_judged(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        reading = Reading(read_terms(expectation), threshold)
        rubric = _rubric(expectation, exchange, metric, reading)
        question = _question(expectation, metric, reading, rubric, _remark(metric, exchange))
        lack = next((words for need in metric.needs if (words := LACKS[need](rubric, reading.terms))), "")
        # What has no data is no part of a mean; what nobody can judge keeps one from being a pass.
        return _undecided(question, lack)._replace(threshold=None) if lack else _ask(question, rater)

    return score_judged


def _question(expectation: Expectation, metric: Metric, reading: Reading, rubric: Rubric, remark: str) -> _Question:
    parts = metric.parts(rubric, reading.terms) if metric.parts else [Part("", rubric)]
    if len(parts) > limits.MAX_JUDGED_PARTS:
        raise RaterError(f"there are {len(parts):,} to judge one by one; at most {limits.MAX_JUDGED_PARTS} are judged")
    actual = ", ".join(each.uri for each in rubric.passages) if metric.shows_passages else rubric.actual
    expected = expectation.expected_value or _expected(reading.terms)
    return _Question(expectation, metric, reading, expected, actual, tuple(parts), remark)


def _expected(terms: JudgedTerms) -> str:
    return "\n".join((*terms.facts, *terms.guidelines, *(each.text for each in terms.rubrics)))


def _remark(metric: Metric, exchange: Exchange) -> str:
    passages = exchange.generated.retrieved or ()
    unknown = sum(each.content is None for each in passages)
    return f" ({unknown} of {len(passages)} passages have no content)" if unknown and "passages" in metric.needs else ""


def _rubric(expectation: Expectation, exchange: Exchange, metric: Metric, reading: Reading) -> Rubric:
    terms, generated = reading.terms, exchange.generated
    return Rubric(
        expectation.name,
        exchange.utterance,
        generated.outcome,
        "" if terms.facts else (expectation.expected_value or "").strip(),
        exchange.history,
        generated.actions,
        _rating_threshold(metric, reading),
        tuple(each for each in generated.retrieved or () if each.content is not None),
        terms.facts,
        terms.guidelines,
        (terms.samples or _ADK_SAMPLES) if metric.is_pooled else terms.samples,
        metric.is_pooled,
    )


def _rating_threshold(metric: Metric, reading: Reading) -> float:
    """Gives the rating that passes: the metric's own threshold where the score is a rating, or a part of the best."""
    if metric.rating_scale is None or reading.terms.threshold is None:
        return reading.threshold
    return metric.rating_scale * reading.terms.threshold - _TOLERANCE


def _ask(question: _Question, rater: Rater) -> TestResult | Awaitable[TestResult]:
    first, *others = question.parts
    rating = rater(first.rubric)
    if rating is None:
        return _undecided(question, "it needs an LLM rater, a table under [raters], and none judges this run")
    ratings = [rating, *(rater(each.rubric) for each in others)]
    # Nothing has to be awaited when an offline rater judges.
    if any(isawaitable(each) for each in ratings):
        return _awaited(question, ratings)
    return _result(question, ratings)


async def _awaited(question: _Question, ratings: list[Rating | Awaitable[Rating] | None]) -> TestResult:
    waiting = [each for each in ratings if isawaitable(each)]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    for each in answers:
        if isinstance(each, BaseException):
            raise each
    given = iter(answers)
    return _result(question, [next(given) if isawaitable(each) else each for each in ratings])


def _result(question: _Question, given: Sequence[object]) -> TestResult:
    ratings = [sound_rating(each) for each in given]
    broken = next((each for each in ratings if each.verdict is Verdict.ERROR), None)
    if broken:
        raise RaterError(broken.explanation)
    unsure = next((each for each in ratings if each.verdict is Verdict.UNDECIDED and each.score is None), None)
    if unsure:
        return _undecided(question, unsure.explanation)._replace(rater=unsure.rater)
    score = _snapped(question.metric.score(ratings, question.reading), question.reading.terms.threshold)
    verdict = _verdict(question, ratings, score)
    return TestResult(
        question.expectation.name,
        verdict,
        question.expected,
        question.actual,
        score,
        _explanation(question, ratings),
        question.expectation.label,
        rater=ratings[0].rater,
        threshold=_mean_threshold(question),
        is_measured=verdict is Verdict.UNDECIDED,
    )


def _snapped(score: float, wanted: float | None) -> float:
    """Gives the threshold for a score that only misses it by rounding."""
    return wanted if wanted is not None and abs(score - wanted) <= _TOLERANCE else score


def _verdict(question: _Question, ratings: Sequence[Rating], score: float) -> Verdict:
    wanted = question.reading.terms.threshold
    if wanted is not None:
        return Verdict.PASS if score >= wanted else Verdict.FAILURE
    if not question.metric.is_decided:
        return Verdict.UNDECIDED
    return Verdict.PASS if all(is_yes(each, question.reading) for each in ratings) else Verdict.FAILURE


def _mean_threshold(question: _Question) -> float | None:
    return question.reading.terms.threshold if question.metric.is_averaged else None


def _explanation(question: _Question, ratings: Sequence[Rating]) -> str:
    """Gives the rationale; of parts one line for each."""
    if not question.metric.parts:
        return f"{ratings[0].explanation}{question.remark}"
    given = zip(question.parts, ratings, strict=True)
    parts = [
        JudgedPart("yes" if is_yes(rating, question.reading) else "no", part.name, rating.explanation)
        for part, rating in given
    ]
    return write_parts(parts, remark=question.remark)


def _undecided(question: _Question, explanation: str) -> TestResult:
    result = undecided(question.expectation, explanation, expected=question.expected, actual=question.actual)
    return result._replace(threshold=_mean_threshold(question))


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


class NamedRubric(NamedTuple):
    """One thing that is asked of the agent's work, and what results call it."""

    id: str
    text: str


class JudgedTerms(NamedTuple):
    """The terms of a judged metric; what is not given is None or empty.

    Attributes:
        threshold: what the score must reach, on the score's own scale.
        samples: how often a rater that rates by samples takes one.
        aggregate: `majority` of the samples, or the `share` that says yes.
    """

    threshold: float | None = None
    samples: int | None = None
    aggregate: str = "majority"
    facts: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()
    rubrics: tuple[NamedRubric, ...] = ()


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


# Of one rationale: there may be many of them.
_MOST_CHARS: Final = limits.MAX_ERROR_CHARS // 4
_LINE: Final = re.compile(r"\d+\. (yes|no), (.*?): (.*)")


class JudgedPart(NamedTuple):
    """One of the things that were judged one by one, such as a passage: yes or no, its name, and why."""

    label: str
    name: str
    rationale: str


def write_parts(parts: Sequence[JudgedPart], *, remark: str = "") -> str:
    """Gives the explanation: how many are a yes, then a line for each part."""
    yes = sum(each.label == "yes" for each in parts)
    lines = (f"{number}. {_line(part)}" for number, part in enumerate(parts, 1))
    return "\n".join((f"{yes} of {len(parts)}{remark}", *lines))


def read_parts(explanation: str) -> tuple[JudgedPart, ...]:
    """Reads what `write_parts` wrote, blanks made one and long rationales cut; none of any other text."""
    found = map(_LINE.fullmatch, explanation.split("\n")[1:])
    return tuple(JudgedPart(*match.groups()) for match in found if match)


def _line(part: JudgedPart) -> str:
    name, rationale = (" ".join(text.split()) for text in (part.name, part.rationale))
    cut = rationale if len(rationale) <= _MOST_CHARS else f"{rationale[: _MOST_CHARS - 1]}…"
    # A colon and a blank end the name.
    return f"{part.label}, {name.replace(': ', ':')}: {cut}"


_AGGREGATES: Final = ("majority", "share")


def read_terms(expectation: Expectation) -> JudgedTerms:
    """Reads the terms of an expectation; keys that judged metrics do not know are left alone.

    Raises:
        RaterError: one of them is not what it has to be.
    """
    terms = expectation.terms
    return JudgedTerms(
        _threshold(terms.get("threshold")),
        _samples(terms.get("num_samples")),
        _aggregate(terms.get("aggregate")),
        _texts(terms, "facts"),
        _texts(terms, "guidelines"),
        _rubrics(terms.get("rubrics")),
    )


def _threshold(value: JsonValue) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise RaterError(f"its threshold is {value!r:.50}, which is no number")
    return float(value)


def _samples(value: JsonValue) -> int | None:
    most = limits.MAX_RATER_SAMPLES
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise RaterError(f"its num_samples is {value!r:.50}, which is no whole number from 1 to {most}")
    return value


def _aggregate(value: JsonValue) -> str:
    if value is None:
        return _AGGREGATES[0]
    if not isinstance(value, str) or value not in _AGGREGATES:
        raise RaterError(f"its aggregate is {value!r:.50}; known are {' and '.join(_AGGREGATES)}")
    return value


def _texts(terms: JsonObject, name: str) -> tuple[str, ...]:
    """Gives a list of texts, blank ones left out."""
    value = terms.get(name)
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise RaterError(f"its {name} are no list of texts")
    return tuple(each for each in map(str, value) if each.strip())


def _rubrics(value: JsonValue) -> tuple[NamedRubric, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise RaterError("its rubrics are no list")
    return tuple(map(_named_rubric, value))


def _named_rubric(value: JsonValue) -> NamedRubric:
    name, text = (value.get("id"), value.get("text")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(text, str):
        raise RaterError('one of its rubrics is not of the form {"id": "...", "text": "..."}')
    return NamedRubric(name, text)
