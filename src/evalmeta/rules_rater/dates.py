"""Dates, weekdays and times of day in the spellings of many languages."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.rules_rater.facts import Date, Time, Weekday


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


def _date(match: re.Match[str]) -> Date | None:
    groups = match.groupdict()
    year_text, day = groups.get("year") or groups.get("only_year"), groups.get("day")
    year = int(f"20{year_text}"[-4:]) if year_text else None
    if "first" in groups:
        first, second = int(groups["first"]), int(groups["second"])
        days = [(year, second, first), (year, first, second)]
    elif year_text or day or _is_month(match):
        days = [(year, MONTHS[groups["name"].lower()] if groups.get("name") else int(groups["month"]), int(day or 0))]
    else:
        return None
    real = tuple(day for day in days if day[1] in range(1, 13) and day[2] in range(32))
    text = "-".join(f"{part:02}" for part in real[0] if part) if real else ""
    return Date(text, real) if real else None


def _is_month(match: re.Match[str]) -> bool:
    """Say whether a name without a day is a month: `in May`, but not `you may`."""
    before = match.string[max(0, match.start() - 12) : match.start()].rstrip().lower()
    is_other = match[0].lower() in _OTHER_WORDS and not before.endswith(("in", "of", "since", "until", "en", "im"))
    return match[0][0].isupper() and not is_other


def _weekday(match: re.Match[str]) -> Weekday:
    first, last = (_DAY_NAMES[re.sub("^(?:週|星期)", "周", name).lower()] for name in (match[1], match[2] or match[1]))
    days = frozenset((first + place - 1) % 7 + 1 for place in range((last - first) % 7 + 1))
    return Weekday(match[0].rstrip("."), days)


DATE_FINDERS: Final = (
    *((re.compile(pattern, re.IGNORECASE), _date) for pattern in _DATES),
    *((re.compile(pattern), _weekday) for pattern in _DAYS),
)


_HOUR, _HALF_DAY, _DAY = 60, 12, 24
_MORNING: Final = r"[ap]\.?m\b\.?|صباح\w*|morgens|vormittags|in the morning|de la mañana|da manhã|du matin|утра"
_EVENING: Final = (
    r"مساء\w*|nachmittags|abends|in the (?:afternoon|evening)|de la (?:tarde|noche)|da (?:tarde|noite)|du soir"
    r"|de l'après-midi|вечера"
)
_EVENING_BEFORE: Final = "午後|下午|晚上|傍晚|오후|शाम|रात|दोपहर"
_IS_EVENING: Final = re.compile(rf"p\.?m|{_EVENING}|{_EVENING_BEFORE}", re.IGNORECASE)
# Offsets from UTC in minutes; names without summer or winter have both.
_ROWS: Final = (
    "UTC 0 GMT 0 BST 60 CET 60 CEST 120 MEZ 60 MESZ 120 EET 120 EEST 180 MSK 180 IST 330 SGT 480 JST 540 KST 540"
    " AEST 600 AEDT 660 EST -300 EDT -240 CST -360 CDT -300 MST -420 MDT -360 PST -480 PDT -420 ET -300,-240"
    " CT -360,-300 MT -420,-360 PT -480,-420 Eastern -300,-240 Central -360,-300 Mountain -420,-360 Pacific -480,-420"
)
_ZONES: Final = {
    name: frozenset(map(int, minutes.split(","))) for name, minutes in re.findall(r"(\w+) ([\d,-]+)", _ROWS)
}
_ZONE: Final = rf"(?:\s?\(?(?P<zone>(?-i:(?:{'|'.join(_ZONES)})(?![\w+-])|(?:UTC|GMT)\s?[+-]\d{{1,2}}(?!\d))))?"
_BEFORE: Final = (
    rf"(?=[\d午上早凌오स下晚傍शरद])(?:(?P<before>午前|上午|早上|凌晨|오전|सुबह|{_EVENING_BEFORE})\s?)?(?<![\d.,:])"
)
_AFTER: Final = rf"(?:\s?(?P<after>{_MORNING}|{_EVENING}))"
_TIMES: Final = (
    rf"{_BEFORE}(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d)(?::\d\d)?)?{_AFTER}{_ZONE}",
    rf"{_BEFORE}(?P<hour>\d{{1,2}})(?::|\s?h\s?)(?P<minute>[0-5]\d)(?::\d\d)?(?!\d|\s?min|\s?m\b)(?:\s?Uhr)?{_ZONE}",
    rf"{_BEFORE}(?P<hour>\d{{1,2}})\s?(?:[時时点點](?![間间])|시(?!간)|बजे)(?:\s?(?P<minute>\d{{1,2}})\s?[分분]?|(?P<half>半|반))?{_ZONE}",
    rf"(?<![\d.,:])(?P<hour>\d{{1,2}})\s?(?:Uhr\b|o'clock\b)(?:\s(?P<minute>[0-5]\d)(?!\d))?{_AFTER}?{_ZONE}",
)


def _time(match: re.Match[str]) -> Time | None:
    groups = match.groupdict()
    hour, minute = int(groups["hour"]), 30 if groups.get("half") else int(groups.get("minute") or 0)
    if hour > _DAY or minute >= _HOUR:
        return None
    part = groups.get("before") or groups.get("after")
    if part and hour <= _HALF_DAY:
        hours = {hour % _HALF_DAY + (_HALF_DAY if _IS_EVENING.match(part) else 0)}
    elif not 0 < hour <= _HALF_DAY or groups["hour"].startswith("0"):
        hours = {hour % _DAY}  # 05:30 is never used for the afternoon
    else:
        hours = {hour % _DAY, (hour + _HALF_DAY) % _DAY}
    minutes = frozenset(number * _HOUR + minute for number in hours)
    text = f"{(min(hours) if part else hour) % _DAY}:{minute:02}"
    zone = groups.get("zone") or ""
    return Time(f"{text} {zone}".rstrip(), minutes, _offsets(zone))


def _offsets(zone: str) -> frozenset[int]:
    name, *shift = re.split(r"\s?(?=[+-])", zone)
    return frozenset(offset + _HOUR * int(shift[0] if shift else 0) for offset in _ZONES.get(name, ()))


TIME_FINDERS: Final = tuple((re.compile(pattern, re.IGNORECASE), _time) for pattern in _TIMES)
