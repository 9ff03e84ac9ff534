"""ROUGE-1 of pairs of texts beside the package rouge-score, which stems with NLTK; both give the same numbers."""

from __future__ import annotations

import random
from itertools import starmap
from pathlib import Path

from rouge_score.rouge_scorer import RougeScorer

from evalmeta.systems.adk.overlap import overlap
from rows import Goal, Result, Row, seconds
from timing import compare, of_work

WORDS = (3, 40)
DOCS = Path(__file__).parents[1] / "docs"


def measure(*, rounds: int, pairs: int) -> Result:
    texts = _pairs(pairs)
    theirs = RougeScorer(["rouge1"], use_stemmer=True).score
    assert all(abs(overlap(*pair).score - theirs(*pair)["rouge1"].fmeasure) < 1e-9 for pair in texts[:100]), (
        "the scores differ"
    )
    return seconds(
        compare(
            lambda: of_work(lambda: list(starmap(overlap, texts))),
            lambda: of_work(lambda: list(starmap(theirs, texts))),
            rounds=rounds,
        )
    )


def _pairs(count: int) -> list[tuple[str, str]]:
    """Make texts of the words of the documentation, which are as long as those of other English texts.

    rouge-score leaves out all letters that are not ASCII, evalmeta does not.
    """
    draw = random.Random(2004)  # noqa: S311 - the same texts every time
    words = [word for path in sorted(DOCS.glob("*.md")) for word in path.read_text().split() if word.isascii()]
    return [(_text(draw, words), _text(draw, words)) for _ in range(count)]


def _text(draw: random.Random, words: list[str]) -> str:
    return " ".join(draw.choices(words, k=draw.randint(*WORDS)))


ROWS = (
    Row(
        "rouge",
        "ROUGE-1 of {pairs:,} pairs of texts",
        "rouge-score, which returns the same numbers",
        measure,
        {"pairs": 2_000, "rounds": 5},
        {"pairs": 10, "rounds": 1},
        Goal("at most", 1),
    ),
)
