"""Texts in one spelling: digits of all scripts, quotes, words, sentences, negations and courtesy."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

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
