"""Names, weekdays and months: what a text talks about."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.offline.vocabulary import MONTHS, WEEKDAYS, word_list
from evalmeta.engine.raters.offline.words import language, raw_words, words

__all__ = ["Name", "differing_names", "find_days", "find_names", "has_range_of_days"]

Name = tuple[str, ...]

_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_SENTENCE: Final = re.compile(r"[.!?:;]\s+|[\n\r]+|[\"()]")
_TITLE: Final = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St)\.\s?")
_NAME_WORD: Final = re.compile(r"[^\W\d_][\w'&-]*|,")
_DAY_NAMES: Final = frozenset({*MONTHS, *WEEKDAYS})
_NO_NAMES: Final = frozenset(
    word_list(
        "i i'm i'll i've i'd a an the this that these those your our my his her its their you we he she it they is are "
        "was were to of in on at for from with by and or but if as no not yes ok okay sure hello hi hey dear thanks "
        "thank please sorry here there what when where which who how why can could should will would do does did has "
        "have had may might must let mr mrs ms dr good great it's that's there's you'll you're we'll we're "
        "unfortunately "
        "currently however also then all every each some only after before until since because so faq id pdf url api "
        "ai "
        "am pm usd eur gbp"
    )
)
_ABBREVIATIONS: Final = {"us": "united states", "usa": "united states", "uk": "united kingdom", "nyc": "new york"}
_DAY_WORD: Final = re.compile(rf"\b(?:{'|'.join(sorted(_DAY_NAMES, key=len, reverse=True))})\b\.?", re.IGNORECASE)
_RANGE: Final = re.compile(
    rf"\b(?:{'|'.join(WEEKDAYS)})\s?(?:to|through|thru|until|till|bis|a|à|au|-"
    rf"|\N{{EN DASH}})\s?(?:{'|'.join(WEEKDAYS)})\b"
    r"|\bweek(?:end|day)s?\b|\bdaily\b|\b(?:every|each|all) (?:day|week)",
    re.IGNORECASE,
)
_SINCE: Final = ("in", "of", "since", "until", "en")
_LETTERS: Final = 2
_BESIDE_DIGIT: Final = re.compile(r"\s?\d")
_AFTER_DIGIT: Final = re.compile(r"\d(?:st|nd|rd|th|\.)?\s(?:of |de )?$")


def find_names(text: str) -> tuple[Name, ...]:
    """Lists names as words in lower case: capitalised words inside sentences that follow one another, e-mail addresses.

    A sentence's first word counts only after a title or when another capitalised one
    follows it. Weekdays and months are no names.
    """
    names: list[Name] = [(address.lower(),) for address in _EMAIL.findall(text)]
    # What follows a title is a name wherever it stands; a small letter in front makes it no first word.
    plain = _TITLE.sub(", ", _EMAIL.sub(" ", text))
    for sentence in _SENTENCE.split(plain):
        names.extend(_names_in(_NAME_WORD.findall(sentence)))
    return tuple(dict.fromkeys(names))


def _names_in(found: list[str]) -> list[Name]:
    names: list[list[str]] = [[]]
    for index, word in enumerate(found):
        follows = index + 1 < len(found) and _is_capital(found[index + 1])
        if _is_capital(word) and (index or follows):
            names[-1].append(word.removesuffix("'s").lower())
        else:
            names.append([])
    return [tuple(name) for name in names if name]


def _is_capital(word: str) -> bool:
    plain = word.removesuffix("'s").lower()
    return word[0].isupper() and plain not in _NO_NAMES and plain not in _DAY_NAMES


def differing_names(expected: str, actual: str, *, known: str) -> tuple[list[Name], list[Name]]:
    """Lists names that are missing in the actual text, and names of its own that could stand for them.

    A name of which a part is said counts as said, unless that part stands beside a strange
    word, as in `Mario Lopez` for `Maria Lopez`. Words of `known` are nobody's own.
    """
    said, told = frozenset(words(actual)), frozenset(words(expected))
    nobodys = told.union(words(known))
    extra = [name for name in find_names(actual) if not nobodys.issuperset(_parts(name))]
    extra = [name for name in extra if not _is_short_for(name, told)]
    strange = frozenset(part for name in extra for part in _parts(name))
    missing = [name for name in find_names(expected) if _is_missing(name, said, strange)]
    missing = [name for name in missing if not any(_may_abbreviate(name, other) for other in extra)]
    return missing, extra


def _may_abbreviate(one: Name, other: Name) -> bool:
    """Says whether one of two names may be letters of the other, as EU, TN and VP are of longer ones."""
    short, long = sorted(("".join(one), "".join(other)), key=len)
    initials = "".join(word[0] for word in max(one, other, key=lambda name: len("".join(name))))
    return short == initials or (len(short) == _LETTERS and long[0] == short[0] and short[1] in long[1:])


def _is_missing(name: Name, said: frozenset[str], strange: frozenset[str]) -> bool:
    parts = _parts(name)
    if said.issuperset(parts) or _is_long_for(name, said):
        return False
    shared = parts & said
    return not shared or not shared.isdisjoint(strange)


def _parts(name: Name) -> frozenset[str]:
    return frozenset(part for word in name for part in words(word))


def _is_short_for(name: Name, told: frozenset[str]) -> bool:
    return all(word in _ABBREVIATIONS and told.issuperset(words(_ABBREVIATIONS[word])) for word in name)


def _is_long_for(name: Name, said: frozenset[str]) -> bool:
    long = [words(_ABBREVIATIONS[word]) for word in name if word in _ABBREVIATIONS]
    short = {short for short, full in _ABBREVIATIONS.items() if full == " ".join(name)}
    short.add("".join(word[0] for word in name) if len(name) > 1 else "")
    return any(said.issuperset(parts) for parts in long) or not said.isdisjoint(short)


def find_days(text: str) -> dict[str, str]:
    """Gives the weekdays and the months that stand without a day, by one key for all languages."""
    if _DAY_NAMES.isdisjoint(raw_words(text.replace("-", " "))):
        return {}
    tongue = language(text)
    days: dict[str, str] = {}
    for found in _DAY_WORD.finditer(text):
        word = found[0].rstrip(".")
        if word in WEEKDAYS or word.lower() in WEEKDAYS:
            days[f"day {WEEKDAYS[word.lower()]}"] = word
        elif _is_month(found, word, tongue):
            days[f"month {MONTHS[word.lower()]}"] = word
    return days


def _is_month(found: re.Match[str], word: str, tongue: str) -> bool:
    before = found.string[max(0, found.start() - 12) : found.start()]
    if _BESIDE_DIGIT.match(found.string, found.end()) or _AFTER_DIGIT.search(before):
        return False
    if word.lower() in {"may", "march", "mar", "mars", "mai", "dec", "sep"}:
        return word[0].isupper() and before.rstrip().lower().endswith(_SINCE)
    return word[0].isupper() or tongue in {"es", "fr"}


def has_range_of_days(text: str) -> bool:
    """Says whether weekdays stand for others that are not named, as in `Monday to Friday` or `at weekends`."""
    return _RANGE.search(text) is not None
