"""The columns of a run's progress on a terminal, which depend on its width."""

from __future__ import annotations

from typing import Final

BAR_CHARS: Final = 20
# The narrowest terminals that show a column.
BAR_FROM: Final = 120
JOB_BAR_FROM: Final = 80
PASSED_FROM: Final = 100
FAILED_FROM: Final = 80
TIME_FROM: Final = 60


def columns_width(width: int, digits: int) -> int:
    """Return the width of a run's columns but the first one on a terminal, with the blanks between them."""
    columns = (
        (0, 2 * digits + 1),
        (BAR_FROM, BAR_CHARS),
        (PASSED_FROM, digits + len(" passed")),
        (FAILED_FROM, digits + len(" not passed")),
        (TIME_FROM, len("0:00:00")),
    )
    return sum(chars + 1 for narrowest, chars in columns if width >= narrowest)
