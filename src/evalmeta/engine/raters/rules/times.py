"""Times of day in the spellings of many languages, and their time zones."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.engine.raters.rules.facts import Time

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


def _time(found: re.Match[str]) -> Time | None:
    groups = found.groupdict()
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


FINDERS: Final = tuple((re.compile(pattern, re.IGNORECASE), _time) for pattern in _TIMES)
