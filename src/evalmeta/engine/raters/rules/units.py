"""Units of measure in their spellings, and what one can be converted into."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Unit(NamedTuple):
    """A unit of measure.

    Attributes:
        name: One spelling of it; units with the same name are the same.
        dimension: The quantity; units of one dimension can be converted.
        factor: The unit in base units of its dimension; 0 if there is no fixed factor, as between currencies.
        base: The unit in which durations are written, empty for other dimensions.
    """

    name: str
    dimension: str
    factor: float
    base: str = ""


def _read(rows: str) -> dict[str, Unit]:
    """Return the units of rows `dimension factor name spelling spelling ...` by their spellings."""
    units: dict[str, Unit] = {}
    for row in rows.strip().splitlines():
        dimension, factor, name, *spellings = row.split()
        unit = Unit(name, dimension, float(factor), _BASES.get(name, ""))
        units.update(dict.fromkeys([name.lower(), *spellings], unit))
    return units


# Days and months cannot be converted exactly, so both are base units.
_BASES: Final = {
    "minute": "minute",
    "hour": "minute",
    "day": "day",
    "week": "day",
    "month": "month",
    "quarter": "month",
    "year": "month",
}
UNITS: Final = _read(
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
UNIT_PATTERN: Final = "|".join(re.escape(spelling) for spelling in sorted(UNITS, key=len, reverse=True))


def find_unit(spelling: str) -> Unit | None:
    """Return the unit of a spelling in upper or lower case; None if there is none."""
    return UNITS.get(spelling.lower())
