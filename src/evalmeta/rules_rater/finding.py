"""Facts and names in texts, and those of the expectation for which the answer has others of their kind.

The finders of each kind search what earlier ones left over. An answer can omit what the question says. So facts of the
question count only in two nearly equal sentences.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.rules_rater import amounts, dates
from evalmeta.rules_rater.amounts import SCALES, UNITS, find_units
from evalmeta.rules_rater.dates import MONTHS, WEEKDAYS
from evalmeta.rules_rater.facts import Code, Fact, Weekday, are_rivals, is_met, key
from evalmeta.rules_rater.text import CACHED_TEXTS, content_words, is_negative, sentences, with_digits, word_set, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.rules_rater.text import Texts


# Codes, versions, telephone numbers, links and e-mail addresses.
_END: Final = r"(?:com|org|net|info|io|dev|app|gov|edu|co|example|de|fr|es|uk|eu)\b"
_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_LINK: Final = re.compile(
    rf"(?<![\w.@/-])(?:(?:https?://|www\.)[^\s<>\"')\]]{{3,300}}"
    rf"|(?:[a-z][\w-]{{0,60}}\.){{1,4}}(?:[a-z]{{2,10}}/[^\s<>\"')\]]{{0,300}}|{_END}))",
    re.IGNORECASE,
)
_PHONE: Final = re.compile(
    r"(?<![\w.])(?:\+\d[\d\s()./-]{6,18}\d|\d{3}[\s.-]\d{4}|\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4})(?![\w.,]?\d)"
)
_VERSION: Final = re.compile(
    r"\b(?:v|ver\.? ?|versi[oó]n |release )(?P<labelled>\d{1,4}(?:\.\d{1,4}){0,4})(?![\w.]?\d)"
    r"|(?<![\w.,])\d{1,4}(?:\.\d{1,3}){2,4}(?![\w.,]?\d)",
    re.IGNORECASE,
)
_CURRENCY: Final = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|KRW|BRL|AED|SAR|PLN|TRY|SEK"
# Capital words before a number that do not make it a code, such as `AT 9`.
_NO_CODES: Final = (
    rf"{_CURRENCY}|ID|NO|NR|AM|PM|AT|ON|IN|OF|TO|BY|IS|UP|FOR|AND|OR|THE|PAY|NOT|SKU|PIN|{'|'.join(MONTHS)}"
)
_SPACED: Final = re.compile(rf"(?<![A-Za-z\d-])(?!(?i:{_NO_CODES})\b)[A-Z]{{2,3}}\s\d{{2,6}}(?![\w%-]|[.,:]\d)")
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z\d.,_/-])(?=[A-Za-z_/#-]{0,30}\d)[A-Za-z\d]{1,40}(?:[-_/#][A-Za-z\d]{1,40}){0,6}(?![A-Za-z\d])"
)
# Numbers with a word, and words that no code has: 1st, 24-hour, EUR5, m2.
_NO_CODE: Final = re.compile(
    rf"\d+(?:st|nd|rd|th|er|e|-[a-z]+)|(?:{_CURRENCY}|Rs|c?m|km|v)\d+|\d+h\d+|[\d/-]+|[a-z-]+", re.IGNORECASE
)
_MEASURE: Final = re.compile(r"\d+[-/]?([A-Za-z]+)")


def _address(match: re.Match[str]) -> Code:
    address = re.sub(r"^(?:https?://)?(?:www\.)?", "", match[0].lower()).rstrip("/.,;:!?*_")
    return Code(address, address, "mail" if "@" in address else "link")


def _phone(match: re.Match[str]) -> Code:
    number = re.sub(r"\(0\)|\D", "", match[0])
    return Code(number, number, "phone")


def _version(match: re.Match[str]) -> Code | None:
    version = match["labelled"] or match[0]
    if not match["labelled"] and re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}", version):
        return None  # 1.234.567 is a number
    # 4.20 is another version than 4.2, but 4.0 is 4.
    return Code(version, re.sub(r"(?:\.0+)+$", "", version), "version")


def _code(match: re.Match[str]) -> Code | None:
    measure = _MEASURE.fullmatch(match[0])
    if _NO_CODE.fullmatch(match[0]) or (measure and (find_units(measure[1]) or measure[1].lower() in SCALES)):
        return None
    code = match[0].upper()
    value = re.sub(r"[-_#/\s]", "", code)
    return Code(code, value, re.sub(r"\d+", "9", re.sub(r"[A-Z]+", "A", value)))


_CODE_FINDERS: Final = (
    *((_MAIL, _address), (_LINK, _address), (_PHONE, _phone)),
    *((_VERSION, _version), (_SPACED, _code), (_TOKEN, _code)),
)

_FINDERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Fact | None]], ...]] = (
    *_CODE_FINDERS[:2],
    *dates.DATE_FINDERS,
    *dates.TIME_FINDERS,
    *_CODE_FINDERS[2:],
    *amounts.FINDERS,
)
_WORD_FINDERS: Final = (*_CODE_FINDERS[:2], *dates.DATE_FINDERS[-4:])
_DIGIT: Final = re.compile(r"\d")
# Long runs without a blank hold no fact that a person could compare; some patterns are slow for them.
_LONG_RUN: Final = re.compile(r"[!-~]{400,}|[\d.,]{40,}")


_Located = tuple[Fact, int, int]


@lru_cache(CACHED_TEXTS)
def _locate_facts(text: str) -> tuple[str, tuple[_Located, ...]]:
    """Return a text with its numbers in digits, and its facts in order, each with its start and end.

    `1,250`, `1250.00` and `1.250,00` are 1250, `2k` is 2000, `three` is 3, `3:30 pm` and `15:30`
    are 15:30, `14 May 2024` and `2024-05-14` are one day; codes such as `ORD-17` are upper case.
    """
    text = with_digits(text)
    rest = text = _LONG_RUN.sub(" ", text)
    facts: list[_Located] = []
    for pattern, make in _FINDERS if _DIGIT.search(rest) else _WORD_FINDERS:
        matches = [(match, fact) for match in pattern.finditer(rest) if (fact := make(match))]
        facts += ((fact, *match.span()) for match, fact in matches)
        for match, _ in matches:
            rest = f"{rest[: match.start()]}{' ' * len(match[0])}{rest[match.end() :]}"
    return text, tuple(sorted(facts, key=itemgetter(1)))


def find_facts(text: str) -> tuple[Fact, ...]:
    """Return the distinct facts of a text in order."""
    return tuple(dict.fromkeys(fact for fact, _, _ in _locate_facts(text)[1]))


@lru_cache(CACHED_TEXTS)
def with_keys(text: str) -> str:
    """Return a text with one word for equal facts, so that its words can be compared."""
    return _rewritten(text, key)


@lru_cache(CACHED_TEXTS)
def without_facts(text: str) -> str:
    """Return a text without its facts."""
    return _rewritten(text, lambda _: "")


def _rewritten(text: str, spell: Callable[[Fact], str]) -> str:
    text, facts = _locate_facts(text)
    for fact, start, end in reversed(facts):
        text = f"{text[:start]} {spell(fact)} {text[end:]}"
    return text


_NEARLY: Final = 0.8
_BEFORE: Final = 40  # characters in which a bound is searched for
# A bound such as `at least` or `before` can be said in another way.
_BOUND: Final = re.compile(
    r"\b(?:before|after|until|vor|nach|antes del?|después del?|avant|après|at (?:least|most)|up to|under|below|over"
    r"|above|(?:more|less|fewer) than|m[ai]ximum|mindestens|höchstens|bis zu|mehr als|al menos|más de|hasta|au moins"
    r"|plus de|jusqu'à|pelo menos|até)\b",
    re.IGNORECASE,
)
_BOUNDED: Final = re.compile(rf"{_BOUND.pattern}\s(?:the\s)?\W?$", re.IGNORECASE)


def replaced_facts(texts: Texts) -> tuple[list[Fact], list[Fact]]:
    """Return the facts that the answer replaces, and those that it has instead."""
    missing, expected = missing_facts(texts), find_facts(texts.expected)
    if not _BOUND.search(texts.actual):
        text, located = _locate_facts(texts.expected)
        bounded = {fact for fact, start, _ in located if _BOUNDED.search(text, max(0, start - _BEFORE), start)}
        missing = [fact for fact in missing if fact not in bounded]
    extra = [fact for fact in find_facts(texts.actual) if not _is_among(fact, expected)]
    are_alike = _are_alike_but_facts(texts)
    if not are_alike:
        asked = find_facts(texts.utterance)
        missing, extra = ([fact for fact in facts if not _is_among(fact, asked)] for facts in (missing, extra))
    if is_negative(texts.expected) != is_negative(texts.actual):
        missing = [fact for fact in missing if not isinstance(fact, Weekday)]  # open on Saturday, closed on Sunday
    pairs = [(fact, other) for fact in missing for other in extra if are_rivals(fact, other, are_alike=are_alike)]
    replaced, replacing = {fact for fact, _ in pairs}, {other for _, other in pairs}
    return [fact for fact in missing if fact in replaced], [other for other in extra if other in replacing]


def missing_facts(texts: Texts) -> list[Fact]:
    """Return the expected facts that the answer does not have."""
    actual = find_facts(texts.actual)
    return [fact for fact in find_facts(texts.expected) if not any(is_met(fact, other) for other in actual)]


def _is_among(fact: Fact, others: Sequence[Fact]) -> bool:
    return any(is_met(other, fact) for other in others)


def _are_alike_but_facts(texts: Texts) -> bool:
    """Say whether two texts have nearly the same important words, in any order, and no negation."""
    if is_negative(texts.actual) != is_negative(texts.expected):
        return False
    own, others = (frozenset(content_words(without_facts(text))) for text in (texts.expected, texts.actual))
    return len(own & others) >= _NEARLY * max(len(own), len(others))


# Names are capitalised words in English texts, and words after a title in all languages.
_TITLE: Final = r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Herrn?|Frau|Sra?|Señora?|Mme|M|Monsieur|Madame|Sig|Signora?)\b\.?\s"
_TITLED: Final = re.compile(rf"{_TITLE}([A-ZÀ-Þ][\w'-]+(?:\s[A-ZÀ-Þ][\w'-]+)?)")
_WORD: Final = re.compile(r"[^\W\d_][\w'&-]*|[,;:()>\"]")
_ENGLISH: Final = word_set("the is are was of you your for has have will this that can with my our we and by to")
_OTHER: Final = word_set(
    "der die das ein eine ist und ihr ihre el es los la las le les est un una une su votre il è o os een"
)
_NO_NAMES: Final = frozenset({*MONTHS, *WEEKDAYS, *UNITS}) | word_set(
    "i i'm i'll i've i'd a an the this that these those your our my his her its their you we he she it they is are was "
    "were to of in on at for from with by and or but if as no not yes ok sure hello hi dear thanks thank please sorry "
    "here there what when where which who how why can could should will would do does did has have had may must let mr "
    "mrs ms dr good great it's that's there's you'll you're we'll we're unfortunately currently however also then all "
    "every each some only after before until since because so faq id pdf url api ai am pm eur gbp"
)
_NO_PLACE: Final = word_set("is are was the a an of by in at on")


class _Name(NamedTuple):
    """A name in lower case, and the words beside it."""

    words: tuple[str, ...]
    before: str
    after: str


def replaced_names(texts: Texts) -> tuple[list[str], list[str]]:
    """Return a name that the answer replaces, and the one that it has instead.

    The other name must be next to the same word, such as `manager`, or have a word of the expected name.
    """
    expected, actual = _find_names(texts.expected), _find_names(texts.actual)
    expected_words, actual_words, asked = (
        frozenset(words(text.replace("'s", ""))) for text in (texts.expected, texts.actual, texts.utterance)
    )
    extra = [name for name in actual if not expected_words.issuperset(name.words)]
    missing = (name for name in expected if not _is_said(name, actual_words, actual))
    for name, other in ((name, other) for name in missing for other in extra if _are_rivals(name, other, asked)):
        return [" ".join(name.words).title()], [" ".join(other.words).title()]
    return [], []


def _is_said(name: _Name, said: frozenset[str], names: tuple[_Name, ...]) -> bool:
    """Say whether an answer has the name, or a part of it that is not beside a different word."""
    shared = said.intersection(name.words)
    beside = (set(other.words) - set(name.words) for other in names if shared & set(other.words))
    return shared == set(name.words) or (bool(shared) and not any(beside))


def _are_rivals(name: _Name, other: _Name, asked: frozenset[str]) -> bool:
    own = [word for word in name.words if word not in other.words]
    short, long = sorted(("".join(own), "".join(word for word in other.words if word not in name.words)), key=len)
    if not short or (len(short) <= len("usa") and long[0] == short[0]):
        return False  # an abbreviation, such as TN for Tennessee
    if len(own) < len(name.words):
        return True
    if asked.issuperset(name.words) or not asked.isdisjoint(other.words):
        return name[1:] == other[1:] != ("", "")
    return not {name.before, name.after}.isdisjoint({other.before, other.after} - {""})


@lru_cache(CACHED_TEXTS)
def _find_names(text: str) -> tuple[_Name, ...]:
    """Return the names in a text; the first word of a sentence counts only after a title or before another one."""
    common = words(text)
    if sum(map(_OTHER.__contains__, common)) >= max(1, sum(map(_ENGLISH.__contains__, common))):
        return tuple(_Name(tuple(match[1].lower().split()), "title", "") for match in _TITLED.finditer(text))
    text = re.sub(_TITLE, "title ", without_facts(text))
    return tuple(name for sentence in sentences(text) for name in _names_of_sentence(_WORD.findall(sentence)))


def _names_of_sentence(parts: list[str]) -> list[_Name]:
    names, start = [], 0
    while start < len(parts):
        end = start
        while end < len(parts) and _is_capital(parts[end]) and (end == start or not parts[end - 1].endswith("'s")):
            end += 1
        if end > start and (start or end - start > 1):
            first = start or 1  # the first word of a sentence has a capital anyway
            name = tuple(word.removesuffix("'s").lower() for word in parts[first:end])
            names.append(_Name(name, _nearest(parts[start - 1 :: -1] if start else []), _nearest(parts[end:])))
        start = max(end, start + 1)
    return names


def _nearest(parts: list[str]) -> str:
    """Return the first word with a meaning of its own; empty if a comma is before it."""
    word = next((word for word in parts if word.lower() not in _NO_PLACE), "")
    return word.lower() if word[:1].isalpha() else ""


def _is_capital(word: str) -> bool:
    return word[0].isupper() and word.removesuffix("'s").lower() not in _NO_NAMES
