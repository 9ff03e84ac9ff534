"""ROUGE-1 of pairs of texts beside the package rouge-score, which stems with NLTK; both give the same numbers."""

from __future__ import annotations

import random
from itertools import starmap
from pathlib import Path

from rouge_score.rouge_scorer import RougeScorer

from evalmeta.engine.scorers.overlap import overlap
from timing import Pair, compare

PAIRS = 2_000
WORDS = (3, 40)
DOCS = Path(__file__).parents[1] / "docs"


def measure() -> tuple[str, Pair]:
    pairs = _pairs()
    theirs = RougeScorer(["rouge1"], use_stemmer=True).score
    assert all(abs(overlap(*pair).score - theirs(*pair)["rouge1"].fmeasure) < 1e-9 for pair in pairs[:100]), (
        "the scores differ"
    )
    pair = compare(lambda: list(starmap(overlap, pairs)), lambda: list(starmap(theirs, pairs)))
    what = f"ROUGE-1 of {PAIRS:,} pairs ({PAIRS / pair.ours:,.0f} pairs/s, {1 / pair.ratio:.1f} times)"
    return f"{what} / rouge-score ({PAIRS / pair.floor:,.0f} pairs/s)", pair


def _pairs() -> list[tuple[str, str]]:
    """Draws texts from the words of the documentation, which are as long as English ones are."""
    draw = random.Random(2004)  # noqa: S311 - the same texts every time
    words = " ".join(path.read_text() for path in sorted(DOCS.glob("*.md"))).split()
    return [(_text(draw, words), _text(draw, words)) for _ in range(PAIRS)]


def _text(draw: random.Random, words: list[str]) -> str:
    return " ".join(draw.choices(words, k=draw.randint(*WORDS)))
