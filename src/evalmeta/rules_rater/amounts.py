"""Numbers with their signs, scales and units: `EUR 18.2m`, `12万5千円`, `1 lakh`, `1.250,50 €`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from evalmeta.rules_rater.facts import Amount, Reading, Unit


def _read(rows: str) -> dict[str, tuple[Unit, ...]]:
    """Return the units of rows `dimension factor name spelling spelling ...` by their spellings."""
    units: dict[str, tuple[Unit, ...]] = {}
    for row in rows.strip().splitlines():
        dimension, factor, name, *spellings = row.split()
        unit = Unit(name, dimension, Decimal(factor))
        for spelling in {name.lower(), *spellings}:
            units[spelling] = (*units.get(spelling, ()), unit)
    return units


# A spelling in two rows has two meanings; `_` is a blank.
UNITS: Final = _read(
    """
    currency 0 USD us$ $ dollar dollars bucks dólar dólares
    currency 0 CAD ca$ $
    currency 0 AUD a$ $
    currency 0 EUR € euro euros
    currency 0 GBP £ pound pounds quid
    currency 0 JPY ¥ yen 円
    currency 0 CNY ¥ rmb 元 块 人民币
    currency 0 KRW ₩ 원
    currency 0 INR ₹ rs rs. rupee rupees रुपये रुपए
    currency 0 CHF francs franken
    currency 0 BRL r$ reais
    currency 0 RUB ₽ руб руб. рублей рубля рубль
    currency 0 THB ฿ baht บาท
    currency 0 AED dirham dirhams درهم درهما
    currency 0 SAR ريال ريالا ريالاً ريالًا
    share 1 percent % percentage prozent per_cent por_ciento por_cento pour_cent 퍼센트
    duration 1 second seconds sec secs sekunde sekunden secondes segundos 秒 초
    duration 60 minute minutes min mins minuten minuto minutos minuti 分钟 分鐘 分間 分 분 मिनट минут минуты دقيقة
    duration 3600 hour hours hr hrs h stunde stunden hora horas heure heures ore 小时 小時 時間 시간 घंटे часов часа
    duration 86400 day days tag tage tagen día días jour jours dia dias giorni 天 个工作日 日間 日 일 दिन дней يوم
    duration 604800 week weeks woche wochen semana semanas semaine semaines settimane weken 周 週間 주 недель
    duration 2629800 month months monat monate monaten mes meses mois mês mesi maanden 个月 か月 ヶ月 개월 महीने शهر
    duration 31557600 year years yr yrs jahr jahre jahren año años ans ano anos anni jaar 年間 年 년 साल лет года
    mass 0.001 mcg µg μg microgram micrograms
    mass 1 mg milligram milligrams
    mass 1000 g gram grams gramm gramos grammes
    mass 1000000 kg kilogram kilograms kilo kilos kilogramm 公斤 千克
    mass 1000000000 t ton tons tonne tonnes tonnen
    mass 453592 lb pound pounds lbs
    mass 28349.5 oz ounce ounces
    length 0.001 mm millimeter millimeters millimetres
    length 0.01 cm centimeter centimeters centimetres zentimeter 厘米
    length 1 m meter meters metre metres metros mètres 米
    length 1000 km kilometer kilometers kilometre kilometres kilómetros kilomètres 公里
    length 1609.34 mile miles mi
    length 0.3048 foot feet ft
    area 1 m2 sqm square_metres square_meters mètres_carrés metros_cuadrados quadratmeter 平方米
    speed 1 km/h kmh kph kilometres_per_hour kilometers_per_hour
    speed 1.60934 mph miles_per_hour
    data 0.001 KB kilobyte kilobytes
    data 1 MB megabyte megabytes
    data 1000 GB gigabyte gigabytes
    data 1000000 TB terabyte terabytes
    volume 1 liter liters litre litres l litros
    volume 0.001 ml milliliter milliliters millilitres
    volume 3.78541 gallon gallons
    voltage 1 V volt volts
    temperature 0 celsius °c degrees_celsius grad_celsius degree_celsius
    temperature 0 degree ° degrees grad grados degrés 度 도
    temperature 0 fahrenheit °f degrees_fahrenheit
    """
)
_ROWS: Final = (
    "3 k thousand thousands tausend tsd tsd. mil mille mila тыс тыс. тысяч हज़ार हजार ألف آلاف",
    "5 lakh lakhs lac लाख",
    "6 m mn mio mio. million millions millionen millón millones milhão milhões milioni млн mln миллионов مليون ملايين",
    "7 crore crores cr करोड़",
    "9 bn billion billions mrd mrd. milliarden milliards mld млрд مليار",
)
SCALES: Final = {name: int(power) for power, *names in map(str.split, _ROWS) for name in names}
_CJK_SCALES: Final = {**dict.fromkeys("千천", 3), **dict.fromkeys("万萬만", 4), **dict.fromkeys("億亿억", 8), "百": 2}


def alternatives(spellings: list[str]) -> str:
    """Return a pattern of all spellings, the longest first, in which `_` is a blank."""
    return "|".join(re.escape(word).replace("_", r"\s") for word in sorted(spellings, key=len, reverse=True))


# A letter after a spelling makes another word, except in Chinese, Japanese, Korean and Thai.
_END: Final = r"(?:(?<=[\u0e00-\u0e7f\u3040-\ud7a3])|(?![^\W\d_\u0e00-\u0e7f\u3040-\ud7a3]))"
_UNIT_NAME: Final = rf"(?:{alternatives(list(UNITS))}){_END}"
_SCALE: Final = rf"(?:{alternatives(list(SCALES))}){_END}(?!\d)"
_CURRENCIES: Final = {units[0].name for units in UNITS.values() if units[0].dimension == "currency"}
_SIGNS: Final = r"(?:us|ca|a|r)?\$|[€£¥₹₩₽฿]"
_MONEY_NAME: Final = rf"(?:{_SIGNS}|(?<![^\W\d_])(?:{'|'.join(sorted(_CURRENCIES))}|rs\.?)(?![^\W\d_]))"


def find_units(spelling: str) -> tuple[Unit, ...]:
    """Return the units that a spelling can mean."""
    return UNITS.get(re.sub(r"\s", "_", spelling.lower()), ())


_FIGURE: Final = (
    r"\d{1,3}(?:,\d{2,3}){0,5},\d{3}(?:\.\d+)?(?!\d)|\d{1,3}(?:'\d{3}){1,6}(?:\.\d+)?|\d{1,3}(?:\.\d{3}){1,6}(?:,\d+)?(?!\d)"
    r"|\d{1,3}(?:[ \u202f]\d{3}){1,6}(?:,\d{1,2})?(?!\d)|\d+,\d{1,2}(?!\d)|\d+(?:\.\d+)?"
)
_CJK_SCALE: Final = f"[{''.join(_CJK_SCALES)}]"
_CHAIN: Final = rf"(?:\d[\d.,]*\s?{_CJK_SCALE}{{1,2}}\s?)+(?:\d+(?![\d.]))?"
_SIGN: Final = r"(?P<sign>(?<![\w.,)%€$£-])-)?"
_MONEY: Final = rf"(?:(?P<money>{_MONEY_NAME})\s?)?"
_UNIT: Final = rf"(?:[\s-]?(?:(?P<working>business|working)\s|calendar\s|consecutive\s)?(?P<unit>{_UNIT_NAME}))?"
_POWER: Final = r"\s?[×x*·]\s?10\s?(?:\^|\*\*)\s?(?P<power>-?\d{1,2})"
_AMOUNT: Final = re.compile(
    rf"(?-i:(?=[-\d$€£¥₹₩₽฿₺A-Z])){_SIGN}{_MONEY}"
    rf"(?:(?P<chain>{_CHAIN})|(?P<figure>{_FIGURE})(?:(?:st|nd|rd|th)\b|{_POWER}|\s?(?P<scale>{_SCALE}))?){_UNIT}",
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
        Decimal(_readings(figure.rstrip(".,"))[0]).scaleb(sum(map(_CJK_SCALES.__getitem__, scales)))
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
