"""Bytes damaged at random: the same samples, words and number always give the same bytes."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

__all__ = ["mutated"]

_CHANGES = (1, 1, 1, 2, 4)
_LONGEST_SPAN = 64
_MORE_TOKENS = (0, 0, 0, 1, 3)
_TIMES = (1, 1, 1, 70, 400)


def mutated(seeds: Sequence[bytes], words: Sequence[bytes], token: re.Pattern[bytes], number: int) -> bytes:
    """Gives one of the seeds with some changes, half of them from where a token begins to where one ends.

    `words` are what the format is made of, whole and broken.
    """
    chance = Random(number)  # noqa: S311 - no secret
    data = chance.choice(seeds)
    for _ in range(chance.choice(_CHANGES)):
        data = (
            _with_other_bytes(chance, data, seeds) if chance.random() < 0.5 else _reworded(chance, data, words, token)
        )
    return data


def _reworded(chance: Random, data: bytes, words: Sequence[bytes], token: re.Pattern[bytes]) -> bytes:
    tokens = list(token.finditer(data))
    if not tokens:
        return chance.choice(words)
    first = chance.randrange(len(tokens))
    last = min(first + chance.choice(_MORE_TOKENS), len(tokens) - 1)
    start, end = tokens[first].start(), tokens[last].end()
    word = chance.choice(words)
    changes = (word, word, word, b"", word + data[start:end], data[start:end] * chance.choice(_TIMES))
    return data[:start] + chance.choice(changes) + data[end:]


def _with_other_bytes(chance: Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(chance, data)
    changes = (b"", _flipped(chance, data[start:end]), chance.randbytes(4) + data[start:end], _piece(chance, seeds))
    return data[:start] + chance.choice(changes) + data[end:]


def _piece(chance: Random, seeds: Sequence[bytes]) -> bytes:
    seed = chance.choice(seeds)
    start, end = _span(chance, seed)
    return seed[start:end]


def _flipped(chance: Random, span: bytes) -> bytes:
    return bytes(byte ^ (1 << chance.randrange(8)) if chance.random() < 0.1 else byte for byte in span)


def _span(chance: Random, data: bytes) -> tuple[int, int]:
    start = chance.randint(0, len(data))
    return start, start + chance.randint(0, _LONGEST_SPAN)
