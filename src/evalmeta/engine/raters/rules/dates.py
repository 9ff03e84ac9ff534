"""Dates and weekdays in the spellings of many languages."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.rules.facts import Date, Weekday


def _numbered(lists: str) -> dict[str, int]:
    """Return the places of the words in their lines; `a/b` are two spellings of one word."""
    lines = (line.split() for line in lists.strip().splitlines())
    return {word: number for line in lines for number, item in enumerate(line, 1) for word in item.split("/")}


def _words(names: dict[str, int]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


MONTHS: Final = _numbered(
    """
    january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep october/oct \
    november/nov december/dec
    januar/jänner februar märz april mai juni juli august september oktober november dezember
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
    gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
    stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
    जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर
    يناير فبراير مارس أبريل/ابريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر
    """
)
WEEKDAYS: Final = _numbered(
    """
    monday/mondays tuesday/tuesdays wednesday/wednesdays thursday/thursdays friday/fridays saturday/saturdays \
    sunday/sundays
    montag/montags dienstag/dienstags mittwoch/mittwochs donnerstag/donnerstags freitag/freitags \
    samstag/samstags/sonnabend sonntag/sonntags
    lunes martes miércoles jueves viernes sábado/sábados domingo/domingos
    lundi mardi mercredi jeudi vendredi samedi dimanche
    lunedì martedì mercoledì giovedì venerdì sabato domenica
    понедельник вторник среда/среду четверг пятница/пятницу суббота/субботу воскресенье
    月曜 火曜 水曜 木曜 金曜 土曜 日曜
    周一 周二 周三 周四 周五 周六 周日
    월요일 화요일 수요일 목요일 금요일 토요일 일요일
    सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार
    الاثنين الثلاثاء الأربعاء الخميس الجمعة السبت الأحد
    """
)
_MONTH: Final = _words(MONTHS)
# Names that are also other words count without a day only after a preposition and with a capital.
_OTHER_WORDS: Final = frozenset({"may", "march", "mar", "mars", "mart", "mai", "dec", "sep", "set", "ekim", "maja"})
_ASCII_START: Final = r"(?<![A-Za-z\d])"
_DAY_MONTH: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?"
_DAY_YEAR: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\d:.]?\d)(?:,?\s+(?P<year>\d{4})(?!\d))?"
_DATES: Final = (
    r"(?<!\d)(?P<year>\d{4})\s?[年년]\s?(?P<month>\d{1,2})\s?[月월]\s?(?:(?P<day>\d{1,2})\s?[日일号])?",
    r"(?<!\d)(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日일号]",
    rf"{_ASCII_START}(?P<year>\d{{4}})[-/](?P<month>\d{{1,2}})[-/](?P<day>\d{{1,2}})(?!\d)",
    rf"{_ASCII_START}(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?(?P<year>\d{{4}})(?!\d)",
    rf"{_ASCII_START}(?!24/7)(?P<first>\d{{1,2}})/(?P<second>\d{{1,2}})(?:/(?P<year>\d{{4}}|\d\d))?(?![\d/])",
    rf"{_ASCII_START}(?P<month>0?[1-9]|1[0-2])/(?P<year>20\d\d)(?![\d/])",
    rf"(?<!\d){_DAY_MONTH}(?P<name>{_MONTH})(?![^\W\d_])\.?(?:,?\s+(?:del?\s+)?(?P<year>\d{{4}})(?!\d))?",
    rf"(?<![^\W_])(?P<name>{_MONTH})(?![^\W_])(?:\.?\s+{_DAY_YEAR}|\.?\s+(?:de\s+)?(?P<only_year>\d{{4}})(?!\d))?",
)
_RANGE: Final = r"\s?(?:to|through|thru|until|till|bis|a|à|au|al|-|~|から|到|至|부터)\s?"
_SHORT: Final = "(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)"
_GERMAN: Final = "(?:Mo|Di|Mi|Do|Fr|Sa|So)"
_NAME: Final = rf"(?i:{_words(WEEKDAYS)})|{_SHORT}"
_DAYS: Final = (
    rf"(?<!\w)({_GERMAN})\.?{_RANGE}({_GERMAN})(?!\w)",
    "([月火水木金土日]曜|(?:周|週|星期)[一二三四五六日]|[월화수목금토일]요일)()",
    rf"(?<![^\W_])({_NAME})(?:{_RANGE}({_NAME}))?(?![^\W_])",
)
_DAY_NAMES: Final = WEEKDAYS | _numbered("mon/mo tue/tues/di wed/mi thu/thur/thurs/do fri/fr sat/sa sun/so")


def _date(found: re.Match[str]) -> Date | None:
    groups = found.groupdict()
    year_text, day = groups.get("year") or groups.get("only_year"), groups.get("day")
    year = int(f"20{year_text}"[-4:]) if year_text else None
    if "first" in groups:
        first, second = int(groups["first"]), int(groups["second"])
        days = [(year, second, first), (year, first, second)]
    elif year_text or day or _is_month(found):
        days = [(year, MONTHS[groups["name"].lower()] if groups.get("name") else int(groups["month"]), int(day or 0))]
    else:
        return None
    real = tuple(day for day in days if day[1] in range(1, 13) and day[2] in range(32))
    text = "-".join(f"{part:02}" for part in real[0] if part) if real else ""
    return Date(text, real) if real else None


def _is_month(found: re.Match[str]) -> bool:
    """Say whether a name without a day is a month: `in May`, but not `you may`."""
    before = found.string[max(0, found.start() - 12) : found.start()].rstrip().lower()
    is_other = found[0].lower() in _OTHER_WORDS and not before.endswith(("in", "of", "since", "until", "en", "im"))
    return found[0][0].isupper() and not is_other


def _weekday(found: re.Match[str]) -> Weekday:
    first, last = (_DAY_NAMES[re.sub("^(?:週|星期)", "周", name).lower()] for name in (found[1], found[2] or found[1]))
    days = frozenset((first + place - 1) % 7 + 1 for place in range((last - first) % 7 + 1))
    return Weekday(found[0].rstrip("."), days)


FINDERS: Final = (
    *((re.compile(pattern, re.IGNORECASE), _date) for pattern in _DATES),
    *((re.compile(pattern), _weekday) for pattern in _DAYS),
)
