"""Labelled pairs: expectations and answers that people have judged."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_YES: Final = ("true", "yes", "y", "1", "right", "correct", "pass", "passed", "good", "positive", "acceptable")
_NO: Final = ("false", "no", "n", "0", "wrong", "incorrect", "fail", "failed", "bad", "negative", "unacceptable")
_WORDS: Final = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}


@dataclass(frozen=True, slots=True)
class Pair:
    """An expectation and an answer that a person has judged.

    Attributes:
        right: Whether the answer meets the expectation.
        rule: The rule that must decide, if one must.
        split: The part of the set that the pair belongs to, such as `held-out`.
        reason: Why the person judged so.
        choice: The person's verdict, if it is one of the rater's named verdicts.
    """

    expected: str
    actual: str
    right: bool
    utterance: str = ""
    rule: str = ""
    split: str = ""
    reason: str = ""
    choice: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """What labels mean.

    Attributes:
        threshold: The least score of a right answer, if labels are scores.
        choices: The scores of a rater's named verdicts, which can be labels too.
        passing: The minimum score of a named verdict that passes.
    """

    threshold: float | None = None
    choices: Mapping[str, float] = field(default_factory=dict)
    passing: float = 3.0

    def read(self, value: object) -> tuple[bool, str] | None:
        """Return whether a label means right, and which named verdict it is, if any; None if it is not a label."""
        word = f"{value:g}" if isinstance(value, float) else str(value).strip()
        if word in self.choices:
            return self.choices[word] >= self.passing, word
        number = number_of(value)
        if self.threshold is not None and number is not None:
            return number >= self.threshold, ""
        known = _WORDS.get(word.lower())
        return None if known is None else (known, "")


PLAIN: Final = Labels()


def number_of(value: object) -> float | None:
    """Return a label as a score; None if it is not a finite number."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def write_pairs(pairs: Sequence[Pair]) -> str:
    """Return pairs as JSON Lines that `read_pairs` reads; the utterance and the reason are left out if empty."""
    return "".join(f"{json.dumps(_written(pair), ensure_ascii=False)}\n" for pair in pairs)


def _written(pair: Pair) -> dict[str, str | bool]:
    utterance = {"utterance": pair.utterance} if pair.utterance else {}
    reason = {"reason": pair.reason} if pair.reason else {}
    return {**utterance, "expected": pair.expected, "actual": pair.actual, "right": pair.choice or pair.right, **reason}
