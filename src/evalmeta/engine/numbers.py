"""Numbers in texts and JSON values, exactly: 0.1 is a tenth."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["parse_number"]

_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def parse_number(value: JsonValue) -> Decimal | None:
    """Reads a JSON number or a text that is one (`10`, `-1.5`, `2e3`); None for all else.

    Booleans, NaN and infinities are no numbers.
    """
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _from_text(text: str) -> Decimal | None:
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None
