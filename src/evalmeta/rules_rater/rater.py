"""The offline rater. Its rules are loaded only if they are needed, because their patterns take 80 ms to compile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat, TypeAlias

from evalmeta.engine.metrics import JUDGED_BY_RULES
from evalmeta.engine.project_code import import_from
from evalmeta.errors import RaterError, SettingsError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Rating, Rubric
    from evalmeta.model.settings import RulesRater
    from evalmeta.rules_rater.text import Cosine


_Embed: TypeAlias = Callable[[list[str]], object]


class Rules:
    """The offline rater: it compares responses with expected ones, and judges no other quality."""

    def __init__(self, cosine: Cosine | None = None) -> None:
        self.cosine = cosine

    def __call__(self, rubric: Rubric) -> Rating | None:
        """Return the rating of `rate`; None for a metric that rules cannot judge."""
        if rubric.metric not in JUDGED_BY_RULES or rubric.facts:
            return None
        from evalmeta.rules_rater.decisions import rate

        rating = rate(rubric.expected, rubric.actual, utterance=rubric.utterance, cosine=self.cosine)
        if rating.verdict is Verdict.PASS and (rating.score or 0) < rubric.threshold:
            reason = f"below the threshold of {rubric.threshold:g}; {rating.explanation}"
            return replace(rating, score=None, verdict=Verdict.UNDECIDED, rule="", explanation=reason)
        return rating

    def load_for(self, metrics: Iterable[str]) -> None:
        """Load the rules now if one of the metrics needs them, so that no answer waits while others are measured."""
        if not JUDGED_BY_RULES.isdisjoint(metrics):
            import_module("evalmeta.rules_rater.decisions")

    async def close(self) -> None:
        """Do nothing: the rater has no resources."""


def bind_rules(settings: RulesRater | None, *, root: Path | None) -> Rules:
    """Return the offline rater, with the embeddings that the settings name; its rules are not loaded yet."""
    return Rules(bind_embed(settings.embed, root=root or Path())) if settings and settings.embed else Rules()


def bind_embed(target: str, *, root: Path) -> Cosine:
    """Import `module:function`, which returns a vector for each text, and return the cosine of its vectors."""
    module_name, _, path = target.partition(":")
    function: object = import_from(root, module_name, called=f"the rater's embed {target!r}")
    for name in path.split("."):
        function = getattr(function, name, None)
    if not callable(function):
        raise SettingsError(
            f"the rater's embed {target!r} is not a function",
            actions=(f"Define {path}(texts) in {module_name}, or correct embed in evalmeta.toml.",),
        )
    return embedded_cosine(function, target=target)


def embedded_cosine(embed: _Embed, *, target: str) -> Cosine:
    """Return a function that computes the cosine of two texts, -1 to 1, or raises RaterError if embedding fails."""

    def cosine(expected: str, actual: str) -> float:
        left, right = _vectors(embed, [expected, actual], target)
        norm = math.hypot(*left) * math.hypot(*right)
        return sum(one * other for one, other in zip(left, right, strict=True)) / norm if norm else 0.0

    return cosine


def _vectors(embed: _Embed, texts: list[str], target: str) -> list[list[float]]:
    try:
        vectors = [[_number(number) for number in _items(vector)] for vector in _items(embed(texts))]
    except Exception as error:
        raise _failure(target, f"{type(error).__name__}: {error}") from error
    if len(vectors) != len(texts):
        raise _failure(target, f"it returned {len(vectors)} vectors for {len(texts)} texts")
    if len(vectors[0]) != len(vectors[1]) or not vectors[0]:
        raise _failure(target, f"its vectors have {len(vectors[0])} and {len(vectors[1])} numbers")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise _failure(target, "its vectors contain numbers that are not finite")
    return vectors


def _number(value: object) -> float:
    if not isinstance(value, SupportsFloat):
        raise TypeError(f"{type(value).__name__} is not a number")
    return float(value)


def _items(value: object) -> Iterable[object]:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise TypeError(f"{type(value).__name__} is not a sequence of numbers")
    return value


def _failure(target: str, reason: str) -> RaterError:
    return RaterError(
        f"the rater's embed {target!r} cannot be used: {reason}",
        actions=("Return one vector of finite numbers for each text, all of the same length.",),
    )
