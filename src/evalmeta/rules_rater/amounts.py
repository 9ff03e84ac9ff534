"""Numbers with their signs, scales and units: `EUR 18.2m`, `12万5千円`, `1 lakh`, `1.250,50 €`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from evalmeta.rules_rater.facts import Amount
from evalmeta.rules_rater.units import CJK_SCALES, MONEY, SCALE, SCALES, UNIT, UNITS, find_units

if TYPE_CHECKING:
    from evalmeta.rules_rater.facts import Reading


_FIGURE: Final = (
    r"\d{1,3}(?:,\d{2,3}){0,5},\d{3}(?:\.\d+)?(?!\d)|\d{1,3}(?:'\d{3}){1,6}(?:\.\d+)?|\d{1,3}(?:\.\d{3}){1,6}(?:,\d+)?(?!\d)"
    r"|\d{1,3}(?:[ \u202f]\d{3}){1,6}(?:,\d{1,2})?(?!\d)|\d+,\d{1,2}(?!\d)|\d+(?:\.\d+)?"
)
_CJK_SCALE: Final = f"[{''.join(CJK_SCALES)}]"
_CHAIN: Final = rf"(?:\d[\d.,]*\s?{_CJK_SCALE}{{1,2}}\s?)+(?:\d+(?![\d.]))?"
_SIGN: Final = r"(?P<sign>(?<![\w.,)%€$£-])-)?"
_MONEY: Final = rf"(?:(?P<money>{MONEY})\s?)?"
_UNIT: Final = rf"(?:[\s-]?(?:(?P<working>business|working)\s|calendar\s|consecutive\s)?(?P<unit>{UNIT}))?"
_POWER: Final = r"\s?[×x*·]\s?10\s?(?:\^|\*\*)\s?(?P<power>-?\d{1,2})"
_AMOUNT: Final = re.compile(
    rf"(?-i:(?=[-\d$€£¥₹₩₽฿₺A-Z])){_SIGN}{_MONEY}"
    rf"(?:(?P<chain>{_CHAIN})|(?P<figure>{_FIGURE})(?:(?:st|nd|rd|th)\b|{_POWER}|\s?(?P<scale>{SCALE}))?){_UNIT}",
    re.IGNORECASE,
)
_APPROXIMATE: Final = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|ca\.?|circa|etwa|ungefähr|rund|environ|près de"
    r"|unos|unas|cerca de|aproximadamente|aprox\.?|on average,?|लगभग|حوالي|около|약)|[約约~≈])\s*(?:\D{0,4})$",
    re.IGNORECASE,
)
_LIST_NUMBER: Final = re.compile(r"(?:^|\s)\d{1,2}\)\s|(?:^|\n)\d{1,2}\.\s", re.MULTILINE)
_BEFORE: Final = 24  # characters in which a word such as `about` is searched for


def _amount(match: re.Match[str]) -> Amount | None:
    if _LIST_NUMBER.match(match.string, max(0, match.start() - 1)):
        return None
    sign = "-" if match["sign"] else ""
    units = find_units(match["money"] or "") or find_units(match["unit"] or "")
    scale = (match["scale"] or "").lower()
    power = int(match["power"] or 0) or SCALES.get(scale, 0)
    figures = [_chain(match["chain"])] if match["chain"] else _readings(match["figure"])[-1 if match["power"] else 0 :]
    values = [Decimal(sign + figure) for figure in figures]
    readings: list[Reading] = [(value.scaleb(power), unit) for value in values for unit in units or (None,)]
    if scale in UNITS and not units:
        readings += [(value, UNITS[scale][0]) for value in values]  # 5 m can be 5 million or 5 metres
    if match["working"]:
        readings += [(value * 7 / 5, unit) for value, unit in readings]  # 5 business days are a week
    is_approximate = _APPROXIMATE.search(match.string, max(0, match.start() - _BEFORE), match.start()) is not None
    text = f"{readings[0][0]:f}"
    return Amount(text.rstrip("0").rstrip(".") if "." in text else text, tuple(readings), is_approximate)


def _chain(chain: str) -> str:
    """Return the number of a chain of figures with scales, such as 2億3千万."""
    parts = re.findall(rf"([\d.,]+)\s?({_CJK_SCALE}*)", chain)
    total = sum(
        Decimal(_readings(figure.rstrip(".,"))[0]).scaleb(sum(map(CJK_SCALES.__getitem__, scales)))
        for figure, scales in parts
    )
    return f"{total:f}"


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


FINDERS: Final = ((_AMOUNT, _amount),)
