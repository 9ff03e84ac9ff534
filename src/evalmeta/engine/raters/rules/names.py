"""Names, weekdays and months, and things counted as none: what only one of two texts mentions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.rules.facts import find_facts
from evalmeta.engine.raters.rules.units import UNITS
from evalmeta.engine.raters.rules.vocabulary import MONTHS, WEEKDAYS, word_list
from evalmeta.engine.raters.rules.words import is_english, language, negations, raw_words, stem, with_digits, words

if TYPE_CHECKING:
    from collections.abc import Mapping


Name = tuple[str, ...]
_CACHED_TEXTS: Final = 32  # a rating asks several times for the names and days of its texts


_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_SEGMENT: Final = re.compile(r"[.!?:;]\s+|[\n\r]+|[\"()]")
_TITLE: Final = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St)\b\.?\s?")
_NAME_WORD: Final = re.compile(r"[^\W\d_][\w'&-]*|,")
# Buttons, menus and pages: `click Save`, `the File menu`, `Settings > Billing`, `open Settings`.
_CAPITALS: Final = r"(?-i:[A-Z][\w'+-]{0,30}(?: (?:[A-Z][\w'+-]{0,30}|&)){0,3})"
_UI_WORDS: Final = (
    r"(?-i:Settings|Account|Accounts|Profile|Billing|Security|Privacy|Preferences|Options|Menu|Home|Dashboard|Setup|Login"
    r"|Tools|File|Edit|View|Help|Support|Payments?|Orders?|Notifications?|Users|Admin|General|Advanced|Details|History)"
)
_NEXT: Final = rf"(?: ?(?:>|->|\N{{RIGHTWARDS ARROW}}|\N{{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}}) ?{_CAPITALS})"
_LABEL: Final = re.compile(
    rf"\b(?:click|tap|press|hit|push|select|choose|check|tick|toggle|double-click)(?: on)?(?: the)? {_CAPITALS}{_NEXT}*"
    rf"|\b(?:go to|open|navigate to|visit|under|in|then|enter)(?: the| your)? {_UI_WORDS}(?-i: [A-Z]\w{{0,30}}){{0,2}}"
    rf"{_NEXT}*|{_CAPITALS}{_NEXT}+"
    rf"|{_CAPITALS} (?:button|tab|menu|icon|link|page|screen|section|option|field|checkbox|dialog|window|panel|key)\b",
    re.IGNORECASE,
)
# Titles above or before an answer: `Order Status: ...`.
_HEADING: Final = re.compile(rf"(?:^|\n)[^\w\n]{{0,20}}{_CAPITALS}(?=\s*(?::\s|\n))")
HEADING_WORD: Final = re.compile(
    r"\b(?:status|policy|summary|details?|updates?|information|info|hours|notes?|overview|confirmation|results?|answers?"
    r"|steps?|options?|next|orders?|refunds?|returns?|shipping|account|payments?|delivery|contact|response|instructions?"
    r"|important|reply)\b",
    re.IGNORECASE,
)
_DAY_NAMES: Final = frozenset({*MONTHS, *WEEKDAYS})
_NO_NAMES: Final = frozenset(
    word_list(
        "i i'm i'll i've i'd a an the this that these those your our my his her its their you we he she it they is "
        "are was were to of in on at for from with by and or but if as no not yes ok okay sure hello hi hey dear "
        "thanks thank please sorry here there what when where which who how why can could should will would do does "
        "did has have had may might must let mr mrs ms dr good great it's that's there's you'll you're we'll we're "
        "unfortunately currently however also then all every each some only after before until since because so faq "
        "id pdf url api ai am pm usd eur gbp"
    )
)
# Verbs that tell the user what to do at the start of a sentence.
_IMPERATIVES: Final = frozenset(
    word_list(
        "click tap press select choose open go enter contact call visit write ask send see check use take type restart "
        "reopen close install update download connect disconnect enable disable turn set switch sign log create add "
        "remove delete move change reset book cancel order pay reply tell give get make try follow keep wait note read "
        "watch join meet bring buy find search look show pick return start stop email phone text report submit upload"
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
_ABBREVIATION_LENGTH: Final = 2
_BESIDE_DIGIT: Final = re.compile(r"\s?\d")
_AFTER_DIGIT: Final = re.compile(r"\d(?:st|nd|rd|th|\.)?\s(?:of |de )?$")
_NONE: Final = re.compile(r"\b(?:no|zero|0|any)\s+(?:\w+\s+)?(\w{3,}s)\b", re.IGNORECASE)
_SOME: Final = re.compile(r"(?<![\w.])0*[1-9]\d*\s+(?:\w+\s+)?(\w{3,})\b")
_EXCEPTION: Final = re.compile(
    r"\b(?:closed|except|not|no|never|but|nicht|kein\w*|geschlossen|cerrad\w+|fermé\w*|pas)\b", re.IGNORECASE
)


@lru_cache(_CACHED_TEXTS)
def find_names(text: str) -> tuple[Name, ...]:
    """Return the names in a text, in lower case: e-mail addresses, and sequences of capitalised words but no days.

    The first word of a sentence counts only after a title or before another capitalised word.
    """
    names: list[Name] = [(address.lower(),) for address in _EMAIL.findall(text)]
    # A comma instead of a title makes sure that the name is never the first word of a sentence.
    plain = _TITLE.sub(", ", _without_labels(_EMAIL.sub(" ", text)))
    for sentence in _SEGMENT.split(plain):
        names.extend(_names_in(_NAME_WORD.findall(sentence)))
    return tuple(dict.fromkeys(names))


def _without_labels(text: str) -> str:
    """Return a text with button labels and titles in lower case, so that they are not taken for names."""
    text = _HEADING.sub(lambda found: found[0].lower() if HEADING_WORD.search(found[0]) else found[0], text)
    return _LABEL.sub(lambda found: found[0].lower(), text)


def _names_in(found: list[str]) -> list[Name]:
    names: list[list[str]] = [[]]
    for index, word in enumerate(found):
        follows = index + 1 < len(found) and _is_capital(found[index + 1])
        if _is_capital(word) and (index or (follows and word.lower() not in _IMPERATIVES)):
            names[-1].append(word.removesuffix("'s").lower())
        else:
            names.append([])
    return [tuple(name) for name in names if name]


def _is_capital(word: str) -> bool:
    plain = word.removesuffix("'s").lower()
    is_code = plain in UNITS or any(map(str.isdigit, word))
    return word[0].isupper() and not is_code and plain not in _NO_NAMES and plain not in _DAY_NAMES


def compare_names(expected: str, actual: str, *, known: str) -> tuple[list[Name], list[Name]]:
    """Return the names that are missing in the actual text, and those that it has instead, without words of `known`.

    A part of a name is enough, unless it is next to a different word, as in `Mario Lopez` for `Maria Lopez`.
    """
    actual_words, expected_words = frozenset(words(actual)), frozenset(words(expected))
    known_words = expected_words.union(words(known))
    extra = [
        name
        for name in find_names(actual)
        if not known_words.issuperset(_parts(name))
        and not all(word in _ABBREVIATIONS and expected_words.issuperset(words(_ABBREVIATIONS[word])) for word in name)
    ]
    extra_words = frozenset(part for name in extra for part in _parts(name))
    missing = [name for name in find_names(expected) if _is_missing(name, actual_words, extra_words)]
    missing = [name for name in missing if not any(_may_abbreviate(name, other) for other in extra)]
    return missing, extra


def _may_abbreviate(one: Name, other: Name) -> bool:
    """Say whether one of two names can abbreviate the other, such as EU, TN and VP."""
    short, long = sorted(("".join(one), "".join(other)), key=len)
    initials = "".join(word[0] for word in max(one, other, key=lambda name: len("".join(name))))
    return short == initials or (len(short) == _ABBREVIATION_LENGTH and long[0] == short[0] and short[1] in long[1:])


def _is_missing(name: Name, actual: frozenset[str], extra: frozenset[str]) -> bool:
    shared = _parts(name) & actual
    is_found = shared == _parts(name) or _is_long_for(name, actual)
    return not is_found and (not shared or not shared.isdisjoint(extra))


def _parts(name: Name) -> frozenset[str]:
    return frozenset(part for word in name for part in words(word))


def _is_long_for(name: Name, actual: frozenset[str]) -> bool:
    long = [words(_ABBREVIATIONS[word]) for word in name if word in _ABBREVIATIONS]
    short = {short for short, full in _ABBREVIATIONS.items() if full == " ".join(name)}
    short.add("".join(word[0] for word in name) if len(name) > 1 else "")
    return any(actual.issuperset(parts) for parts in long) or not actual.isdisjoint(short)


@lru_cache(_CACHED_TEXTS)
def find_days(text: str) -> Mapping[str, str]:
    """Return the weekdays, and the months without a day, by a key that is the same for all languages."""
    if _DAY_NAMES.isdisjoint(raw_words(text.replace("-", " "))):
        return {}
    language_code = language(text)
    days: dict[str, str] = {}
    for found in _DAY_WORD.finditer(text):
        word = found[0].rstrip(".")
        if word in WEEKDAYS or word.lower() in WEEKDAYS:
            days[f"day {WEEKDAYS[word.lower()]}"] = word
        elif _is_month(found, word, language_code):
            days[f"month {MONTHS[word.lower()]}"] = word
    return days


def _is_month(found: re.Match[str], word: str, language_code: str) -> bool:
    before = found.string[max(0, found.start() - 12) : found.start()]
    if _BESIDE_DIGIT.match(found.string, found.end()) or _AFTER_DIGIT.search(before):
        return False
    if word.lower() in {"may", "march", "mar", "mars", "mai", "dec", "sep"}:
        return word[0].isupper() and before.rstrip().lower().endswith(_SINCE)
    return word[0].isupper() or language_code in {"es", "fr"}


def has_range_of_days(text: str) -> bool:
    """Say whether a text has a range of weekdays, such as `Monday to Friday` or `at weekends`."""
    return _RANGE.search(text) is not None


def contradicted_none(one: str, other: str) -> str:
    """Return the things of which one text has none and the other has some; else an empty text."""
    none = [found[1].lower() for found in _NONE.finditer(one) if found[0].lower()[:3] != "any" or negations(one)]
    if not none or find_facts(one.replace("0", "")):
        return ""
    some = {stem(found[1].lower()) for found in _SOME.finditer(with_digits(other))}
    return next((thing for thing in none if stem(thing) in some), "")


def contradicting_days(expected: str, actual: str, known: str) -> tuple[list[str], list[str]]:
    """Return the missing weekdays and months, and those that the answer has instead; none if there is a range."""
    expected_days, actual_days, known_days = find_days(expected), find_days(actual), find_days(known)
    if not expected_days or not actual_days:
        return [], []
    has_exception = [_EXCEPTION.search(text) is not None for text in (expected, actual)]
    if has_range_of_days(expected) != has_range_of_days(actual) or has_exception[0] != has_exception[1]:
        return [], []
    missing = {key: day for key, day in expected_days.items() if key not in actual_days and key not in known_days}
    extra = {key: day for key, day in actual_days.items() if key not in expected_days and key not in known_days}
    kinds = {key.partition(" ")[0] for key in missing} & {key.partition(" ")[0] for key in extra}
    of_kind = [[day for key, day in days.items() if key.partition(" ")[0] in kinds] for days in (missing, extra)]
    return of_kind[0], of_kind[1]


def contradicting_names(expected: str, actual: str, known: str, *, described: bool) -> tuple[list[str], list[str]]:
    """Return the missing names, and those that the answer has instead; English texts only.

    If the expectation is a description, one of its names is enough: names say what the answer is about.
    """
    if not (is_english(expected) and is_english(actual)):
        return [], []
    missing, extra = compare_names(expected, actual, known=known)
    if described and len(missing) < len(find_names(expected)):
        return [], []
    if not described:
        missing = [name for name in missing if not _parts(name).issubset(words(known))]
    return [_capitalised(name) for name in missing], [_capitalised(name) for name in extra]


def _capitalised(name: Name) -> str:
    return " ".join(word if "@" in word else word.capitalize() for word in name)
