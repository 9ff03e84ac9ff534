"""The project's own embeddings: the similarity of meanings instead of letters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, SupportsFloat, TypeAlias

from evalmeta.engine.subjects.python import import_from
from evalmeta.errors import RaterError, SettingsError

if TYPE_CHECKING:
    from pathlib import Path


Cosine: TypeAlias = Callable[[str, str], float]
_Embed: TypeAlias = Callable[[list[str]], object]


def bind_embed(target: str, *, root: Path) -> Cosine:
    """Import `module:function`, which returns a vector for each text, and return the cosine of its vectors."""
    module_name, _, path = target.partition(":")
    found: object = import_from(root, module_name, called=f"the rater's embed {target!r}")
    for name in path.split("."):
        found = getattr(found, name, None)
    if not callable(found):
        raise SettingsError(
            f"the rater's embed {target!r} is not a function",
            actions=(f"Define {path}(texts) in {module_name}, or correct embed in evalmeta.toml.",),
        )
    return embedded_cosine(found, target=target)


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
