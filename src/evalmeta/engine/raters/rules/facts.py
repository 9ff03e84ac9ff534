"""Facts that can be compared exactly: numbers with their units, times, dates, codes and addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from evalmeta.engine.raters.rules.units import UNIT_PATTERN, UNITS, find_unit
from evalmeta.engine.raters.rules.vocabulary import MONTHS
from evalmeta.engine.raters.rules.words import with_digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.engine.raters.rules.units import Unit


_CACHED_TEXTS: Final = 32  # a rating asks several times for the facts of its three texts
_TOLERANCE: Final = 0.03
_HALF_DAY: Final = 12
_DAY: Final = 24
_SCALES: Final = {"k": 3, "hundred": 2, "thousand": 3, "tausend": 3, "mil": 3, "mille": 3, "m": 6, "million": 6}
_BIG_SCALES: Final = {"mio": 6, "millionen": 6, "millones": 6, "millions": 6, "bn": 9, "billion": 9, "mrd": 9}
_ALL_SCALES: Final = {**_SCALES, **_BIG_SCALES, "milliarden": 9, "milliards": 9}


_MONTH: Final = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_SCALE: Final = "|".join(sorted((scale for scale in _ALL_SCALES if len(scale) > 1), key=len, reverse=True))
# Capital words before a number that do not make it a code.
_NO_CODES: Final = (
    r"USD|EUR|GBP|CHF|JPY|INR|CAD|AUD|ID|NO|NR|AM|PM|AT|ON|IN|OF|TO|BY|IS|UP|FOR|AND|OR|THE|DAY|YOU|ARE|WAS|ALL|NOT|GET"
    r"|PAY|BUT|MON|TUE|WED|THU|FRI|SAT|SUN|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|US|CA|A"
)
_MONEY: Final = r"(?:\b(?:US|CA|A))?\$|[€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY|INR|CAD|AUD)\b"


_FACT: Final = re.compile(
    r"\b(?P<iso>\d{4}[-/]\d{1,2}[-/]\d{1,2})(?!\d)"
    r"|\b(?P<dotted>\d{1,2}\.\s?\d{1,2}\.\s?\d{4}\b|(?<=\b(?:am|um|ab)\s)\d{1,2}\.\s?\d{1,2}\.)"
    r"|\b(?P<slashed>(?!24/7)\d{1,2}/\d{1,2}(?:/(?:\d{4}|\d\d))?)(?![\d/])"
    rf"|\b(?P<month>{_MONTH})\b\.?\s+(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)(?:,?\s+(?P<year>\d{{4}})\b)?"
    r"|(?P<only_year>\d{4})\b)"
    r"|\b(?P<day_first>\d{1,2})(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+)?"
    rf"(?P<month_last>{_MONTH})\b\.?(?:,?\s+(?:del?\s+)?(?P<year_last>\d{{4}})\b)?"
    r"|(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?(?::\d\d)?\s?(?P<half>[ap])\.?m\b\.?"
    r"|\b(?P<clock>\d{1,2}(?::|\s?h\s?)\d\d)(?!\d|\s?min|\s?m\b)(?:\s?Uhr)?|\b(?P<full>\d{1,2})\s?(?:Uhr\b|o'clock\b)"
    r"|(?<![\w.])(?P<phone>\+\d[\d\s()./-]{6,18}\d|\d{3}[\s.-]\d{4}"
    r"|\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4})(?![\w.,]\d)(?!\d)"
    rf"|(?P<code>(?<!\w)(?!\d+(?:{UNIT_PATTERN})\b)"
    rf"(?:(?-i:(?!(?:{_NO_CODES})\b)[A-Z]{{2,3}})\s\d{{2,6}}(?![\w%]|[.,:]\d)|"
    r"(?:(?!EUR|USD|GBP|CHF)[A-Za-z]+)[-_#]?\d[\w-]*|\d+[A-Za-z]\w{4,}|\d{1,4}(?:\.\d{1,2}){2,5}(?!\.?\d)|\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)|(?-i:\d{1,4}[A-FHJLP-SU-Z]))\b)"
    rf"|(?P<minus>(?<![\w.,)%€$£])(?:-|\N{{MINUS SIGN}}\s?))?(?:(?P<money>{_MONEY})\s?)?"
    r"(?P<figure>\d{1,3}(?:,\d{2,3}){0,5},\d{3}(?:\.\d+)?(?!\d)|\d{1,3}(?:'\d{3}){1,6}(?:\.\d+)?"
    r"|\d{1,3}(?:\.\d{3}){1,6}(?:,\d+)?(?!\d)"
    r"|\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,6}(?:,\d{1,2})?(?!\d)|\d+,\d{1,2}(?!\d)|\d+(?:\.\d+)?)(?:(?:st|nd|rd|th)\b)?"
    rf"(?:\s?(?P<scale>{_SCALE})\b\.?|(?P<short>(?-i:[kKM]))\b)?"
    r"(?:(?:\s|-)?(?P<sort>(?:business|working|calendar|consecutive)\s)?"
    rf"(?P<unit>{UNIT_PATTERN}|per\s?cent|por\s?ciento|pour\s?cent|degrees\s(?:celsius|fahrenheit))(?!\w))?",
    re.IGNORECASE,
)
_END: Final = r"(?:com|org|net|info|io|dev|app|gov|edu|co|example|de|fr|es|uk|eu)\b"
_ADDRESS_SIGN: Final = re.compile(rf"@|www\.|://|\w/|\.{_END}", re.IGNORECASE)
_FACT_OR_ADDRESS: Final = re.compile(
    r"(?<![\w.+@/-])(?P<address>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}|(?:https?://|www\.)[^\s<>\"')\]]{3,300}"
    r"|(?:[a-z][\w-]{0,60}\.){1,4}(?:[a-z]{2,10}/[^\s<>\"')\]]{0,300}"
    rf"|{_END}))|{_FACT.pattern}",
    re.IGNORECASE,
)
_SCHEME: Final = re.compile(r"^(?:https?://)?(?:www\.)?", re.IGNORECASE)
_VERSION: Final = re.compile(r"\bv(?:er\.?\s?)?(?=\d+\.\d)", re.IGNORECASE)
_LIST_NUMBER: Final = re.compile(
    rf"(?:^|\n)[ \t]*[*_]{{0,2}}\d{{1,2}}[.)][*_]{{0,2}}[ \t]+(?!(?:{_MONTH})\b)", re.IGNORECASE
)
_DIGIT: Final = re.compile(r"\d")
_LABELLED: Final = re.compile(
    r"(?P<label>order|case|ticket|invoice|reference|number|no|nr|id|version|release|step|page|room|gate|carrier"
    r"|tracking|booking|claim|policy|flight)\.?(?:\s(?:number|no\.?|id))?\s?[#:]?\s?$|#$",
    re.IGNORECASE,
)
# Labels that any number can have.
_ANY_LABEL: Final = frozenset({"reference", "number", "no", "nr", "id", "#"})
_BOUND: Final = re.compile(
    r"(?P<bound>\bat (?:least|most)|\b(?:more|less|fewer|greater|later|earlier) than|\b(?:up to|over|under|above|below"
    r"|between|around|about|approximately|roughly|before|after|by|until|within|(?:min|max)imum(?: of)?)|~)\s?"
    rf"(?:(?:{_MONTH})\s|[$€£]|the )?\S*\d\S*(?:\s(?:{_MONTH})\b)?(?:\s+(?:and|to)\s+\S*\d\S*)?",
    re.IGNORECASE,
)
_MIN_PHONE_DIGITS: Final = 7
_MIN_CODE_DIGITS: Final = 3
_MIN_ID_DIGITS: Final = 5
_MAX_COUNTRY_DIGITS: Final = 3
_SHAPES: Final = ("iso", "dotted", "slashed")
_REACH: Final = 80  # characters before and after a fact that show its place in the sentence
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_US_PHONE: Final = re.compile(r"^1(?=\d{10}$)")
_SEPARATOR: Final = re.compile(r"[-_#\s]")


_Kind = Literal["number", "time", "date", "code", "address"]
_Day = tuple[int | None, int, int]


@dataclass(frozen=True, slots=True)
class Fact:
    """A number, time, date, code or address in one spelling.

    Attributes:
        values: The possible meanings, usually one; `1.250` is 1250 or 1.25.
        days: The possible meanings of a date: year or None, month, day or 0.
        label: What it numbers, such as an order; empty for an amount.
    """

    kind: _Kind
    text: str
    values: frozenset[str] = frozenset()
    unit: Unit | None = None
    days: tuple[_Day, ...] = ()
    sort: str = ""
    label: str = ""

    @property
    def full_text(self) -> str:
        """Return the spelling with the unit."""
        return f"{self.text} {self.unit.name}" if self.unit else self.text

    @property
    def plain_text(self) -> str:
        """Return a word that equal facts share, such as 2 weeks and 14 days, or 19 % and 19 percent."""
        unit = self.unit
        if self.kind == "code":
            return _US_PHONE.sub("", next(iter(self.values)))
        if unit is None or unit.dimension in {"currency", "share"}:
            return self.text
        if not unit.base:
            return f"{self.text}{unit.name}"
        base = UNITS[unit.base]
        amount = float(self.text) * unit.factor / base.factor
        day = UNITS["day"]
        if base.factor == 1 and amount and not amount % day.factor:
            base, amount = day, amount / day.factor
        return f"{self.sort}{round(amount, 4):g}{base.name}"


@lru_cache(_CACHED_TEXTS)
def find_facts(text: str) -> tuple[Fact, ...]:
    """Return the distinct numbers, times, dates, codes and addresses of a text in order.

    `1,250`, `1250.00` and `1.250,00` are 1250, `2k` is 2000, `three` is 3, `3:30 pm` and `15:30`
    are 15:30, `14 May 2024` and `2024-05-14` are one day; codes such as `ORD-17` are upper case.
    """
    return tuple(dict.fromkeys(fact for fact, _, _ in locate_facts(text)))


@lru_cache(_CACHED_TEXTS)
def locate_facts(text: str) -> tuple[tuple[Fact, str, str], ...]:
    """Return the facts of a text, each with the parts of the text before and after it."""
    text = _prepared(text)
    return tuple(
        (_fact(found), text[max(0, found.start() - _REACH) : found.start()], text[found.end() : found.end() + _REACH])
        for found in _matches(text)
    )


@lru_cache(_CACHED_TEXTS)
def with_plain_numbers(text: str) -> str:
    """Return a text with one spelling for equal facts, so that its words can be compared."""
    text = _prepared(text)
    parts, end = [], 0
    for found in _matches(text):
        parts += [text[end : found.start()], f" {_fact(found).plain_text} "]
        end = found.end()
    return "".join((*parts, text[end:]))


def _prepared(text: str) -> str:
    text = _VERSION.sub("version ", with_digits(text))
    return _LIST_NUMBER.sub("\n", text) if "\n" in text else text


def _matches(text: str) -> Iterator[re.Match[str]]:
    if _ADDRESS_SIGN.search(text):
        return _FACT_OR_ADDRESS.finditer(text)
    return _FACT.finditer(text) if _DIGIT.search(text) else iter(())


def without_bounds(text: str, other: str) -> str:
    """Return a text without bounds, such as `at least 100`, unless `other` has the same kind of bound."""
    lowered = other.lower()
    return _BOUND.sub(lambda found: found[0] if found["bound"].lower() in lowered else " ", text)


def is_met(fact: Fact, others: Sequence[Fact]) -> bool:
    """Say whether one of the others can mean the same; a missing unit or year matches any."""
    return any(_same(fact, other) for other in others)


def are_comparable(left: Fact, right: Fact) -> bool:
    """Say whether two facts can answer the same question, so that different ones contradict each other."""
    if left.kind != right.kind:
        return False
    if left.kind in {"code", "address"}:
        return _form(left) == _form(right) and not _is_part(left, right)
    if left.kind != "number":
        return True
    if left.unit and right.unit:
        return left.unit.dimension == right.unit.dimension or bool(left.values & right.values)
    labels = {left.label, right.label}
    return len(labels - _ANY_LABEL) <= 1 and ("" not in labels or len(labels) == 1 or are_alike(left, right))


def are_alike(left: Fact, right: Fact) -> bool:
    """Say whether two facts look like identifiers of one kind: `10045` and `10046`, or `ORD-12` and `ORD-13`."""
    if left.kind != right.kind or left.unit or right.unit or not left.values or not right.values:
        return False
    one, other = min(left.values), min(right.values)
    if len(one) != len(other):
        return False
    if left.kind == "code":
        return _LETTERS.findall(one) == _LETTERS.findall(other)
    return left.kind == "number" and one.isdigit() and other.isdigit() and len(one) >= _MIN_ID_DIGITS


def _form(fact: Fact) -> str:
    """Return what distinguishes e-mail addresses, links, telephone numbers, versions and other codes."""
    if fact.kind == "address":
        return "mail" if "@" in fact.text else "link"
    text = next(iter(fact.values))
    return "digits" if text.isdigit() else "dots" if "." in text else "starts with a digit" * text[0].isdigit()


def _is_part(left: Fact, right: Fact) -> bool:
    """Say whether one of two links is the start of the other, such as a site and one of its pages."""
    short, long = sorted((left.text, right.text), key=len)
    return left.kind == "address" and long.startswith(short)


def _same(left: Fact, right: Fact) -> bool:
    if left.kind == right.kind == "date":
        pairs = (zip(one, other, strict=True) for one in left.days for other in right.days)
        return any(all(mine == other or not mine or not other for mine, other in pair) for pair in pairs)
    if left.kind == right.kind == "number":
        return _same_amount(left, right)
    if left.kind == right.kind:
        return bool(left.values & right.values) or _same_phone(left.text, right.text)
    if "number" not in {left.kind, right.kind}:
        return False
    return _is_number_in(left, right) if left.kind == "number" else _is_number_in(right, left)


def _is_number_in(number: Fact, other: Fact) -> bool:
    """Say whether a number can mean the hour of a time, the day of a date, or the digits of a code."""
    if other.kind == "time":
        return any(f"{value}:00" in other.values for value in number.values)
    if other.kind == "date":
        return any(value in {str(part) for day in other.days for part in day} for value in number.values)
    digits = _LETTERS.sub("", next(iter(other.values))).lstrip("0")
    return number.unit is None and len(digits) >= _MIN_CODE_DIGITS and digits in number.values


def _same_phone(left: str, right: str) -> bool:
    """Say whether two telephone numbers are equal, one of them without its country code."""
    short, long = sorted((left, right), key=len)
    are_phones = long.isdigit() and len(short) >= _MIN_PHONE_DIGITS
    return are_phones and len(long) - len(short) <= _MAX_COUNTRY_DIGITS and long.endswith(short)


def _same_amount(left: Fact, right: Fact) -> bool:
    if not left.unit or not right.unit or left.unit.name == right.unit.name:
        return bool(left.values & right.values)
    if {left.unit.name, right.unit.name} == {"pound", "GBP"}:
        return bool(left.values & right.values)
    if left.unit.dimension == "temperature":
        celsius, fahrenheit = (left, right) if left.unit.name == "celsius" else (right, left)
        return abs(float(celsius.text) * 1.8 + 32 - float(fahrenheit.text)) <= 1
    if left.unit.dimension != right.unit.dimension or not left.unit.factor:
        return False
    one, other = float(left.text) * left.unit.factor, float(right.text) * right.unit.factor
    return abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))


def _fact(found: re.Match[str]) -> Fact:
    groups = found.groupdict()
    if shape := next((shape for shape in _SHAPES if groups[shape]), None):
        return _numeric_date(shape, groups[shape] or "")
    if month := groups["month"] or groups["month_last"]:
        day = groups["day"] or groups["day_first"] or "0"
        return _date(
            ((_year(groups["year"] or groups["only_year"] or groups["year_last"]), MONTHS[month.lower()], int(day)),)
        )
    if groups["hour"]:
        hour = int(groups["hour"]) % _HALF_DAY + (_HALF_DAY if groups["half"] in "pP" else 0)
        return _time(hour, groups["minute"] or "00", is_sure=True)
    if groups["clock"] or groups["full"]:
        hour_text, minute = re.split(r"\s?[:hH]\s?", groups["clock"] or f"{groups['full']}:00")
        # 05:30 is never used for the afternoon.
        return _time(int(hour_text), minute, is_sure=hour_text.startswith("0"))
    return _number(found) if groups["figure"] else _identifier(groups)


def _identifier(groups: dict[str, str | None]) -> Fact:
    if groups["phone"]:
        number = re.sub(r"\(0\)|\D", "", groups["phone"])
        return Fact("code", number, frozenset({number}))
    if groups["code"]:
        code = groups["code"].upper()
        return Fact("code", code, frozenset({_SEPARATOR.sub("", code)}))
    address = _SCHEME.sub("", (groups["address"] or "").lower()).rstrip("/.,;:!?*_")
    return Fact("address", address, frozenset({address}))


def _time(hour: int, minute: str, *, is_sure: bool) -> Fact:
    """Return a time; without am or pm, it can be in the afternoon."""
    hours = {hour % _DAY} if is_sure or not 0 < hour <= _HALF_DAY else {hour, (hour + _HALF_DAY) % _DAY}
    return Fact("time", f"{hour % _DAY}:{minute}", frozenset(f"{each % _DAY}:{minute}" for each in hours))


def _year(text: str | None) -> int | None:
    return int(f"20{text}"[-4:]) if text else None


def _numeric_date(shape: str, text: str) -> Fact:
    parts = [part for part in re.split(r"\D+", text) if part]
    first, second = int(parts[0]), int(parts[1])
    if shape == "iso":
        return _date(((first, second, int(parts[2])),))
    year = _year(next(iter(parts[2:]), None))
    if shape == "dotted":
        return _date(((year, second, first),))
    return _date(((year, second, first), (year, first, second)))


def _date(days: tuple[_Day, ...]) -> Fact:
    months = [day for day in days if day[1] in range(1, 13)] or list(days)
    year, month, day = months[0]
    text = "-".join([*([f"{year}"] if year else []), f"{month:02}", *([f"{day:02}"] if day else [])])
    return Fact("date", text, days=tuple(months))


def _number(found: re.Match[str]) -> Fact:
    scale = _ALL_SCALES.get((found["scale"] or found["short"] or "").lower(), 0)
    sign = "-" if found["minus"] else ""
    values = [sign + _figure(text, scale) for text in _readings(found["figure"])]
    spelling = (found["money"] or found["unit"] or "").lower().removeprefix("degrees").lstrip()
    unit = find_unit(spelling) or find_unit(_LONG_UNITS.get(spelling[:4], ""))
    labelled = None if unit else _LABELLED.search(found.string, max(0, found.start() - 24), found.start())
    label = (labelled["label"] or "#").lower() if labelled else ""
    if label in {"version", "release"} and not scale:
        # 4.20 is another version than 4.2, but 4.0 is 4.
        values = [re.sub(r"(?:\.0+)+$", "", found["figure"])]
    return Fact(
        "number", values[0], frozenset(values), unit, sort=_SORTS.get((found["sort"] or "").lower(), ""), label=label
    )


_SORTS: Final = {"business ": "business ", "working ": "business ", "calendar ": "", "consecutive ": "consecutive "}
_LONG_UNITS: Final = {"per ": "%", "por ": "%", "pour": "%", "perc": "%", "porc": "%"}


def _readings(figure: str) -> list[str]:
    """Return the possible meanings of a figure, with a decimal point."""
    figure = re.sub(r"[\s']", "", figure)
    if "," in figure and "." in figure:
        grouping, point = (".", ",") if figure.rindex(",") > figure.rindex(".") else (",", ".")
        return [figure.replace(grouping, "").replace(point, ".")]
    if re.fullmatch(r"\d+,\d{1,2}", figure):
        return [figure.replace(",", ".")]
    if figure.count(".") > 1:
        return [figure.replace(".", "")]
    if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", figure):
        return [figure.replace(".", ""), figure]
    return [figure.replace(",", "")]


def _figure(text: str, scale: int) -> str:
    if scale:
        text = f"{Decimal(text).scaleb(scale):f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
