"""Texts in one spelling: digits of all scripts, quotes, words, sentences, negations, courtesy, and numbers in words.

Numbers are cardinals in five languages, and phrases such as `twice a day`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

CACHED_TEXTS: Final = 32  # a rating asks several times for the words and facts of its three texts


def word_set(words_of_set: str) -> frozenset[str]:
    """Return the words of a string as a set."""
    return frozenset(words_of_set.split())


_HYPHENS: Final = "\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{EN DASH}\N{EM DASH}\N{MINUS SIGN}"
_INVISIBLE: Final = "\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NON-JOINER}\N{SOFT HYPHEN}\N{LEFT-TO-RIGHT MARK}"
_SPELLINGS: Final = str.maketrans(
    "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{ARABIC DECIMAL SEPARATOR}"
    f"\N{ARABIC THOUSANDS SEPARATOR}\N{ARABIC QUESTION MARK}{_HYPHENS}",
    f"''.,?{'-' * len(_HYPHENS)}",
    _INVISIBLE,
)
_MARKUP: Final = re.compile(r"\*\*|__|`|\[\^?\d{1,2}\](?!\()")  # emphasis, code and citations
_WORD: Final = re.compile(r"\w+(?:['.,:@+-]\w+)*")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？।])|[\n\r]+")
# Particles of languages without spaces are searched for anywhere in a word.
_NEGATION: Final = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|neither|nor|without|cannot|unable|\w+n't|except|closed|nicht|nichts|kein\w*"
    r"|niemals|ohne|leider|pas|jamais|aucune?|sans|nunca|ning[uú]n\w*|sin|não|nenhum\w*|non|senza|geschlossen|cerrad\w+"
    r"|fermée?s?|chius\w+|fechad\w+|niet|geen|nie|не|нет|değil|yok|لا|لم|لن|ليس|غير)\b"
    r"|ない|ません|不|没|沒|无|無|未|않|없|못|안\s|休|닫|नहीं|बंद|مغلق",
    re.IGNORECASE,
)
_COURTESY: Final = re.compile(
    r"\W*(?:(?:hello|hi|hey|good (?:morning|afternoon|evening))(?: there| [A-Z][a-z]+)?|i(?:'m| am) happy to help"
    r"|thank(?:s| you)(?: (?:so|very) much)?(?: for (?:your|the|waiting|asking|reaching|contacting)\b[^.!?]{0,60})?"
    r"|(?:great|good) (?:news|question)|of course|sure(?: thing)?|certainly|absolutely|no problem|done|all set|okay|ok"
    r"|(?:please )?(?:feel free to|do(?:n't| not) hesitate to|let (?:me|us) know if)\b[^.!?]{0,90}"
    r"|(?:is there )?anything else\b[^.!?]{0,60}|(?:how|what) (?:can|may|else can) i (?:help|assist|do)\b[^.!?]{0,60}"
    r"|i hope (?:this|that) helps|have a (?:great|nice|good|wonderful) \w+|¡?(?:buenas noticias|hola|gracias|claro)"
    r"|guten tag|hallo|gerne|vielen dank|bonjour|merci|olá|您好)\W*",
    re.IGNORECASE,
)
_ARTICLES: Final = frozenset({"a", "an", "the"})
# Words that change nothing around the expected words.
HARMLESS: Final = word_set(
    "your our here please just now currently good news sure yes of course hello hi thanks sorry okay ok done"
)


Cosine: TypeAlias = "Callable[[str, str], float]"
"""How alike two texts are, -1 to 1."""


class Texts(NamedTuple):
    """The texts that a rule compares, and whether the expectation describes the answer instead of quoting it."""

    expected: str
    actual: str
    utterance: str
    described: bool


@lru_cache(CACHED_TEXTS)
def plain(text: str) -> str:
    """Return a text with one form for equal characters: the digits of all scripts are 0 to 9, quotes are straight."""
    text = _MARKUP.sub("", unicodedata.normalize("NFKC", text).translate(_SPELLINGS))
    digits = (str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in text)
    return text if text.isascii() else "".join(digits)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case and in order."""
    return _WORD.findall(text.casefold())


def content_words(text: str) -> list[str]:
    """Return the words in order, without articles; all words if there are only articles."""
    all_words = words(text)
    return [word for word in all_words if word not in _ARTICLES] or all_words


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    return [part for part in _SENTENCE.split(text.strip()) if part.strip()]


def without_courtesy(text: str) -> str:
    """Return a text without sentences of courtesy, such as greetings and offers of help."""
    return " ".join(sentence for sentence in sentences(text) if not _COURTESY.fullmatch(sentence))


def is_negative(text: str) -> bool:
    """Say whether a text denies something."""
    return _NEGATION.search(text) is not None


def is_question(text: str) -> bool:
    """Say whether a text consists of questions only."""
    parts = sentences(without_courtesy(text))
    return bool(parts) and all(sentence.rstrip(" )\"'").endswith("?") for sentence in parts)


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
