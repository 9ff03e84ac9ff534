"""Headers of HTTP answers."""

from __future__ import annotations

import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Final

__all__ = ["retry_after"]


_NUMBER: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)


def retry_after(header: str, *, milliseconds: str = "") -> float | None:
    """Reads a Retry-After header, seconds or a date (RFC 9110, 10.2.3), as seconds from now; None when it is none.

    `milliseconds` is the header retry-after-ms, which OpenAI's and Azure's endpoints send
    beside it, and which is more exact. Fractions of seconds are no standard and are sent.
    """
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    if _NUMBER.fullmatch(header):
        return float(header)
    try:
        moment = parsedate_to_datetime(header).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, math.ceil(moment - time.time()))
