"""Codes, versions, telephone numbers, links and e-mail addresses."""

from __future__ import annotations

import re
from typing import Final

from evalmeta.rules_rater.amounts import SCALES, find_units
from evalmeta.rules_rater.dates import MONTHS
from evalmeta.rules_rater.facts import Code

_END: Final = r"(?:com|org|net|info|io|dev|app|gov|edu|co|example|de|fr|es|uk|eu)\b"
_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_LINK: Final = re.compile(
    rf"(?<![\w.@/-])(?:(?:https?://|www\.)[^\s<>\"')\]]{{3,300}}"
    rf"|(?:[a-z][\w-]{{0,60}}\.){{1,4}}(?:[a-z]{{2,10}}/[^\s<>\"')\]]{{0,300}}|{_END}))",
    re.IGNORECASE,
)
_PHONE: Final = re.compile(
    r"(?<![\w.])(?:\+\d[\d\s()./-]{6,18}\d|\d{3}[\s.-]\d{4}|\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4})(?![\w.,]?\d)"
)
_VERSION: Final = re.compile(
    r"\b(?:v|ver\.? ?|versi[oó]n |release )(?P<labelled>\d{1,4}(?:\.\d{1,4}){0,4})(?![\w.]?\d)"
    r"|(?<![\w.,])\d{1,4}(?:\.\d{1,3}){2,4}(?![\w.,]?\d)",
    re.IGNORECASE,
)
_CURRENCY: Final = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|KRW|BRL|AED|SAR|PLN|TRY|SEK"
# Capital words before a number that do not make it a code, such as `AT 9`.
_NO_CODES: Final = (
    rf"{_CURRENCY}|ID|NO|NR|AM|PM|AT|ON|IN|OF|TO|BY|IS|UP|FOR|AND|OR|THE|PAY|NOT|SKU|PIN|{'|'.join(MONTHS)}"
)
_SPACED: Final = re.compile(rf"(?<![A-Za-z\d-])(?!(?i:{_NO_CODES})\b)[A-Z]{{2,3}}\s\d{{2,6}}(?![\w%-]|[.,:]\d)")
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z\d.,_/-])(?=[A-Za-z_/#-]{0,30}\d)[A-Za-z\d]{1,40}(?:[-_/#][A-Za-z\d]{1,40}){0,6}(?![A-Za-z\d])"
)
# Numbers with a word, and words that no code has: 1st, 24-hour, EUR5, m2.
_NO_CODE: Final = re.compile(
    rf"\d+(?:st|nd|rd|th|er|e|-[a-z]+)|(?:{_CURRENCY}|Rs|c?m|km|v)\d+|\d+h\d+|[\d/-]+|[a-z-]+", re.IGNORECASE
)
_MEASURE: Final = re.compile(r"\d+[-/]?([A-Za-z]+)")


def _address(match: re.Match[str]) -> Code:
    address = re.sub(r"^(?:https?://)?(?:www\.)?", "", match[0].lower()).rstrip("/.,;:!?*_")
    return Code(address, address, "mail" if "@" in address else "link")


def _phone(match: re.Match[str]) -> Code:
    number = re.sub(r"\(0\)|\D", "", match[0])
    return Code(number, number, "phone")


def _version(match: re.Match[str]) -> Code | None:
    version = match["labelled"] or match[0]
    if not match["labelled"] and re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}", version):
        return None  # 1.234.567 is a number
    # 4.20 is another version than 4.2, but 4.0 is 4.
    return Code(version, re.sub(r"(?:\.0+)+$", "", version), "version")


def _code(match: re.Match[str]) -> Code | None:
    measure = _MEASURE.fullmatch(match[0])
    if _NO_CODE.fullmatch(match[0]) or (measure and (find_units(measure[1]) or measure[1].lower() in SCALES)):
        return None
    code = match[0].upper()
    value = re.sub(r"[-_#/\s]", "", code)
    return Code(code, value, re.sub(r"\d+", "9", re.sub(r"[A-Z]+", "A", value)))


FINDERS: Final = (
    *((_MAIL, _address), (_LINK, _address), (_PHONE, _phone)),
    *((_VERSION, _version), (_SPACED, _code), (_TOKEN, _code)),
)
