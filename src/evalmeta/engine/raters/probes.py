"""Probes: whether a rater's verdicts change with the length or the form of an answer whose content stays the same.

Source: T. Ye et al., "Justice or prejudice? Quantifying biases in LLM-as-a-judge" (2024), for verbosity and formatting.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.calibration import RESPONSES, RatedPair, RatingTask, Share, calibrate
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.engine.raters.judge import Rater


_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_GREETING: Final = "Thank you for your question! I am happy to help you with that."
_CLOSING: Final = "I hope that this helps. Please let me know if you have any other questions."


def _sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text.strip())


PROBES: Final[Mapping[str, Callable[[str], str]]] = {
    "longer": lambda text: f"{_GREETING} {text} {_CLOSING}",
    "list": lambda text: "\n".join(f"- {sentence}" for sentence in _sentences(text)),
    "markdown": lambda text: "## Answer\n\n" + "\n\n".join(f"**{sentence}**" for sentence in _sentences(text)),
    "upper case": str.upper,
    "lower case": str.lower,
    "blanks": lambda text: "\n\n" + "  \n".join(_sentences(text)) + "  \n\n",
}
"""Other forms of an answer: polite words around it, Markdown, another case, additional blanks and line ends."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What another form of the answers does to the verdicts of a rater.

    Attributes:
        flipped: The pairs whose verdict changed from PASS to FAILURE or back.
        decided: The number of pairs that were decided in both forms.
        undecided: The number of pairs that became undecided.
        errors: The number of pairs that could not be rated in the other form.
    """

    name: str
    flipped: tuple[RatedPair, ...]
    decided: int
    undecided: int
    errors: int

    @property
    def flips(self) -> Share:
        """Return the flipped verdicts among those that were decided in both forms."""
        return Share(len(self.flipped), self.decided)


def pick_probed(rated: Sequence[RatedPair], count: int | None, *, seed: int) -> tuple[RatedPair, ...]:
    """Return at most `count` decided pairs with an answer, chosen at random; all if None."""
    decided = [pair for pair in rated if pair.is_decided and pair.pair.actual.strip()]
    if count is None or len(decided) <= count:
        return tuple(decided)
    return tuple(random.Random(seed).sample(decided, count))  # noqa: S311 - a choice that can be repeated


async def probe(rated: Sequence[RatedPair], rater: Rater, task: RatingTask = RESPONSES) -> tuple[Probe, ...]:
    """Rate decided pairs again in each other form; answers that already have the form are left out."""
    return tuple([await _probe(name, rated, rater, task) for name in PROBES])


async def _probe(name: str, rated: Sequence[RatedPair], rater: Rater, task: RatingTask) -> Probe:
    change = PROBES[name]
    before = [pair for pair in rated if change(pair.pair.actual) != pair.pair.actual]
    pairs = [replace(pair.pair, actual=change(pair.pair.actual)) for pair in before]
    after = await calibrate(pairs, rater, task)
    verdicts = [pair.verdict for pair in after]
    changed = zip(before, after, strict=True)
    return Probe(
        name,
        tuple(new for old, new in changed if new.is_decided and new.verdict is not old.verdict),
        sum(pair.is_decided for pair in after),
        verdicts.count(Verdict.UNDECIDED),
        verdicts.count(Verdict.ERROR),
    )
