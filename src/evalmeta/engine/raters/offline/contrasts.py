"""Texts that say the same but for one thing: an opposite, swapped roles, or a part that is left out."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.offline.facts import find_facts, with_plain_numbers
from evalmeta.engine.raters.offline.names import find_days, find_names
from evalmeta.engine.raters.offline.vocabulary import CONTRASTS, HARMLESS, NEUTRAL, SYMMETRIC, word_list
from evalmeta.engine.raters.offline.words import content_words, is_content, negations, raw_words, stem

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["contraries", "contrary_words", "left_out", "swapped_roles", "turned_round"]

_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|,\s+(?=(?:but|and|so|while|although)\b)")
_NEGATIONS: Final = {"can't": "can", "cannot": "can", "couldn't": "could", "won't": "will", "wouldn't": "would"}
_DROPPED: Final = frozenset(
    word_list("not no never any now currently already also yes longer there can could will would unfortunately")
)
_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non-", "non", "de", "mis")
_COPULA: Final = re.compile(r"^(?P<left>[^,.?!;]{1,200}?)\s(?P<verb>is|are)\s(?P<right>[^,?!;]{1,200}?)[.!]?$")
_DEFINITE: Final = re.compile(r"\b(?:the|your|our|my|his|her|its|their)\b|'s\b", re.IGNORECASE)
_SHORT: Final = 4
_AND: Final = re.compile(r"\b(?:and|as well as|plus|und|y|et)\b", re.IGNORECASE)


def contraries(some: Iterable[str], others: Iterable[str]) -> list[str]:
    """Lists the words of `others` that exclude one of `some`: a listed pair, or one is the other with un-, in-, dis-.

    All words are in lower case.
    """
    own = frozenset(some)
    opposed = {contrary for word in own for each in (word, stem(word)) for contrary in CONTRASTS.get(each, ())}
    opposed.update(prefix + word for word in own if len(word) >= _SHORT for prefix in _PREFIXES)
    opposed.update(bare for word in own for bare in _bare(word))
    return [word for word in others if word in opposed or stem(word) in opposed or _bare(word) & own]


def _bare(word: str) -> set[str]:
    return {
        word.removeprefix(prefix)
        for prefix in _PREFIXES
        if word.startswith(prefix) and len(word) >= _SHORT + len(prefix)
    }


def contrary_words(expected: str, actual: str) -> str:
    """Tells in which word a sentence of the answer says the opposite of what was expected; empty when none does.

    Both must be the same but for that word. Two turns, as in `not unavailable`, are none;
    a negation alone never decides.
    """
    wanted = _plain(expected)
    for sentence in _SENTENCE.split(actual):
        said = _plain(sentence)
        if len(said) > len(wanted):
            said = [word for word in said if word in wanted or word not in HARMLESS | NEUTRAL]
        if len(said) != len(wanted):
            continue
        apart = [pair for pair in zip(wanted, said, strict=True) if stem(pair[0]) != stem(pair[1])]
        if len(apart) != 1 or not contraries(apart[0][:1], apart[0][1:]):
            continue
        if (1 + negations(expected) + negations(sentence)) % 2:
            return "expected {}, got {}".format(*apart[0])
    return ""


def _plain(text: str) -> list[str]:
    plain = (_NEGATIONS.get(word, word) for word in raw_words(with_plain_numbers(text)))
    return [word for word in plain if is_content(word) and word not in _DROPPED and not word.endswith("n't")]


def swapped_roles(expected: str, actual: str) -> str:
    """Tells which two words have changed places in a sentence that is the same otherwise; empty when none have.

    A passive, words that stand side by side and relations that go both ways are left alone.
    """
    wanted, said = _roles(expected), _roles(actual)
    if len(wanted) != len(said) or Counter(wanted) != Counter(said):
        return ""
    apart = [place for place, word in enumerate(wanted) if said[place] != word]
    if len(apart) != 2:  # noqa: PLR2004 - two change places
        return ""
    first, second = apart
    between = wanted[first + 1 : second]
    if not any(is_content(word) or word == "to" for word in between) or not SYMMETRIC.isdisjoint(wanted):
        return ""
    return f"{wanted[first]} and {wanted[second]}"


def _roles(text: str) -> list[str]:
    return [stem(word) for word in raw_words(with_plain_numbers(text)) if word not in {"the", "an"}]


def turned_round(expected: str, actual: str) -> bool:
    """Says whether an answer is the same statement of what something is, from its other end: `Paris is the capital`."""
    wanted, said = _COPULA.match(expected), _COPULA.match(actual)
    if not wanted or not said or not _DEFINITE.search(expected) or wanted["verb"] != said["verb"]:
        return False
    sides = [[content_words(with_plain_numbers(found[side])) for side in ("left", "right")] for found in (wanted, said)]
    return sides[0] == sides[1][::-1]


def left_out(expected: str, actual: str) -> str:
    """Tells what an answer leaves out that stops short: a fact, a name, a day, or what follows an `and`; else empty."""
    wanted, said = content_words(with_plain_numbers(expected)), content_words(with_plain_numbers(actual))
    if len(said) < 2 or len(said) >= len(wanted) or wanted[: len(said)] != said:  # noqa: PLR2004 - one word is no part
        return ""
    tail = _tail(expected, actual)
    has_facts = find_facts(tail) or find_days(tail) or find_names(f"x {tail}")
    return ", ".join(wanted[len(said) :]) if has_facts or _AND.search(tail) else ""


def _tail(expected: str, actual: str) -> str:
    last = max((expected.lower().rfind(word) + len(word) for word in raw_words(actual)[-1:]), default=0)
    return expected[last:]
