"""CSV files: their delimiter, their titles, and the line of each row."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.formats.diagnostics import Diagnostics


_DELIMITERS: Final = ",;\t"
_HEAD_CHARS: Final = 1_000_000
_CELL_CHARS: Final = 131_072


class CsvRow(NamedTuple):
    """The cells of a row, and the line on which it begins."""

    line: int
    cells: list[str]


def titles_of(head: str) -> list[list[str]]:
    """Return the cells of a text's first line, with each delimiter."""
    first = next(iter(head.lstrip("\ufeff").splitlines()), "")
    return [_cells(first, delimiter) for delimiter in _DELIMITERS]


def read_csv(
    data: bytes, diagnostics: Diagnostics, *, max_bytes: int, max_cells: int | None = None, max_chars: int = _CELL_CHARS
) -> Iterator[CsvRow]:
    """Yield the rows that have something in them, the titles first; problems are added to the diagnostics.

    `data` is UTF-8 with commas, semicolons or tabs between the cells.
    """
    if len(data) > max_bytes:
        diagnostics.error("csv-limit", f"the file is larger than {max_bytes:,} bytes")
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        diagnostics.error("csv-encoding", "the file is not UTF-8", line=line, hint="Save it as CSV UTF-8.")
        return
    titles = titles_of(text[:_HEAD_CHARS])
    delimiter = _DELIMITERS[titles.index(max(titles, key=len))]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins, count = 1, 0
    # The limit is one of the process: it is restored for other readers.
    limit = csv.field_size_limit(max_chars)
    try:
        for cells in reader:
            count += len(cells)
            if max_cells is not None and count > max_cells:
                diagnostics.error("csv-limit", f"more than {max_cells:,} cells", line=begins)
                return
            if any(cells):
                yield CsvRow(begins, cells)
            begins = reader.line_num + 1
    except csv.Error as error:
        diagnostics.error("csv-syntax", f"this is not valid CSV: {error}", line=begins)
    finally:
        csv.field_size_limit(limit)


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
