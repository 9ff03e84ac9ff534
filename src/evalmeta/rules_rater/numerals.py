"""Numbers in words, written in digits: cardinals in five languages, and phrases such as `twice a day`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from evalmeta.rules_rater.text import CACHED_TEXTS, words


def _numbered(first: int, names: str, step: int = 1) -> dict[str, int]:
    return {word: first + step * place for place, word in enumerate(names.split())}


_TEENS: Final = "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
# "One" is missing, as it is also an article.
_ENGLISH: Final = (
    _numbered(2, f"two three four five six seven eight nine ten {_TEENS}")
    | _numbered(20, "twenty thirty forty fifty sixty seventy eighty ninety", 10)
    | {"zero": 0, "dozen": 12}
)
# Words with another meaning in one of the languages are missing: once, sei, sept, cent, null, mil.
_OTHERS: Final = (
    _numbered(2, "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn")
    | _numbered(2, "dos tres cuatro cinco seis siete ocho nueve diez _ doce trece catorce quince")
    | _numbered(2, "deux trois quatre cinq _ _ huit neuf dix onze douze treize quatorze quinze")
    | _numbered(2, "dois três quatro cinco seis sete oito nove dez _ doze treze quatorze quinze")
    | _numbered(20, "zwanzig dreißig vierzig fünfzig", 10)
    | _numbered(20, "veinte treinta cuarenta cincuenta", 10)
    | _numbered(20, "vingt trente quarante", 10)
    | _numbered(20, "vinte trinta quarenta", 10)
)
_ORDINALS: Final = _numbered(1, "first second third fourth fifth sixth seventh eighth ninth tenth")
_NAMES: Final = "|".join(_ENGLISH)
_SPELLED: Final = re.compile(
    rf"\b(?:{_NAMES})(?:(?:[ -]|(?<=hundred) and |(?<=thousand) and )(?:{_NAMES}|hundred|thousand)\b)*\b", re.IGNORECASE
)
_FOREIGN: Final = re.compile(rf"\b(?:{'|'.join(_OTHERS)})\b", re.IGNORECASE)
_ORDINAL: Final = re.compile(rf"(\b(?:the|our|your|my|his|her|its|their) )({'|'.join(_ORDINALS)})\b", re.IGNORECASE)
_PHRASES: Final = tuple(
    (re.compile(rf"\b(?:{pattern})", re.IGNORECASE), digits)
    for pattern, digits in (
        (r"(?:an|one|1) hour and a half\b|(?:one|1) and a half hours\b", "90 minutes"),
        (r"half an hour\b", "30 minutes"),
        (r"one(?=\s(?:(?:business|working)\s)?(?:day|week|month|year|hour|minute|percent)\b)", "1"),
        (r"once(?= (?:a|an|per|every|each|daily|weekly|monthly)\b)", "1 times"),
        (r"twice(?= (?:a|an|per|every|each|daily|weekly|monthly)\b)", "2 times"),
        (r"(?:12 )?noon\b", "12:00 pm"),
        (r"(?:12 )?midnight\b", "12:00 am"),
        (r"minus (?=\d)", "-"),
    )
)
_HOURS: Final = re.compile(
    r"(\d{1,4})\s?(?:h|hrs?|hours?|Stunden?|heures?|horas?|時間|小时|시간)(?:,|\s(?:and|und|et|y|e))?\s?"
    r"(\d{1,2})\s?(?:min(?:s|utes?|uten|utos)?|分|분)(?![^\W\d_])",
    re.IGNORECASE,
)
_ANY: Final = frozenset({*_ENGLISH, *_OTHERS, *_ORDINALS, "one", "half", "once", "twice", "noon", "midnight", "minus"})


@lru_cache(CACHED_TEXTS)
def with_digits(text: str) -> str:
    """Return a text with its numbers in digits, and with durations such as `1 hour 30 minutes` in minutes."""
    if not _ANY.isdisjoint(words(text.replace("-", " "))):
        for phrase, digits in _PHRASES:
            text = phrase.sub(digits, text)
        text = _ORDINAL.sub(lambda match: f"{match[1]}{_ORDINALS[match[2].lower()]}", text)
        text = _SPELLED.sub(_spelled, text)
        text = _FOREIGN.sub(lambda match: str(_OTHERS[match[0].lower()]), text)
    return _HOURS.sub(lambda match: f"{int(match[1]) * 60 + int(match[2])} minutes ", text)


def _spelled(match: re.Match[str]) -> str:
    """Return the numbers that the words make: eight hundred fifty is one number, two three are two."""
    values: list[int] = []
    for name in re.split(r" and |[ -]", match[0].lower()):
        last, value = values[-1] if values else 0, _ENGLISH.get(name, 0)
        if name in {"hundred", "thousand"}:
            values[-1] += last % 1000 * (99 if name == "hundred" else 999)
        elif last and last % 10 == 0 and value < (10 if last % 100 else 100):
            values[-1] = last + value
        else:
            values.append(value)
    return " ".join(map(str, values))
