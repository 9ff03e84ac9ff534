"""Headers of HTTP answers."""

from __future__ import annotations

import math
import time
from email.utils import parsedate_to_datetime

__all__ = ["retry_after"]


def retry_after(header: str) -> float | None:
    """Reads a Retry-After header, seconds or a date (RFC 9110, 10.2.3), as seconds from now; None when it is none."""
    if header.isascii() and header.isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, math.ceil(moment - time.time()))
