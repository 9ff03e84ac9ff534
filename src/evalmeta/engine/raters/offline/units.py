"""Units: what a number is a number of, and how much it is in the unit that others are compared in."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["UNIT_PATTERN", "Unit", "find_unit"]


class Unit(NamedTuple):
    """A unit of measure.

    Attributes:
        name: one spelling of it; units of one name are the same.
        dimension: what it measures; units of one dimension can be converted.
        factor: how many of the dimension's base unit it holds; 0 when rates change, as between currencies.
        base: the unit that durations are told in, empty for the others.
    """

    name: str
    dimension: str
    factor: float
    base: str = ""


def _units(rows: str) -> dict[str, Unit]:
    """Reads rows `dimension factor name spelling spelling ...`."""
    units: dict[str, Unit] = {}
    for row in rows.strip().splitlines():
        dimension, factor, name, *spellings = row.split()
        unit = Unit(name, dimension, float(factor), _BASES.get(name, ""))
        units.update(dict.fromkeys([name.lower(), *spellings], unit))
    return units


# Days and months do not convert exactly, so each is a base of its own.
_BASES: Final = {
    "minute": "minute",
    "hour": "minute",
    "day": "day",
    "week": "day",
    "month": "month",
    "quarter": "month",
    "year": "month",
}
_UNITS: Final = _units(
    """
    currency 0 USD us$ $ dollar dollars bucks
    currency 0 CAD ca$
    currency 0 AUD a$
    currency 0 EUR € euro euros
    currency 0 GBP £
    currency 0 JPY ¥ yen
    currency 0 INR ₹ rupee rupees
    currency 0 CHF francs franken
    share 1 percent % percentage prozent
    duration 0.0166667 second seconds sec secs sekunde sekunden secondes segundos
    duration 1 minute minutes min mins minuten minuto minutos
    duration 60 hour hours hr hrs h stunde stunden hora horas heure heures
    duration 1440 day days tag tage tagen día días jour jours
    duration 10080 week weeks woche wochen semana semanas semaine semaines
    duration 43830 month months monat monate monaten mes meses mois
    duration 131490 quarter quarters
    duration 525960 year years yr yrs jahr jahre jahren año años an ans
    mass 0.001 mg milligram milligrams
    mass 1 g gram grams gramm
    mass 1000 kg kilogram kilograms kilo kilos kilogramm
    mass 1000000 ton tons tonne tonnes
    mass 453.592 pound pounds lb lbs
    mass 28.3495 oz ounce ounces
    length 0.001 mm millimeter millimeters
    length 0.01 cm centimeter centimeters
    length 1 m meter meters metre metres
    length 1000 km kilometer kilometers kilometre kilometres
    length 1609.34 mile miles mi
    length 0.3048 foot feet ft
    length 0.0254 inch inches
    data 0.001 KB kilobyte kilobytes
    data 1 MB megabyte megabytes
    data 1000 GB gigabyte gigabytes
    data 1000000 TB terabyte terabytes
    volume 1 liter liters litre litres l
    volume 0.001 ml milliliter milliliters
    volume 3.78541 gallon gallons
    temperature 0 celsius °c
    temperature 0 fahrenheit °f
    """
)
UNIT_PATTERN: Final = "|".join(re.escape(spelling) for spelling in sorted(_UNITS, key=len, reverse=True))


def find_unit(spelling: str) -> Unit | None:
    """Gives the unit that is spelt so, in whatever case; None when there is none."""
    return _UNITS.get(spelling.lower())
