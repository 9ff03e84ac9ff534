"""The rows of an evaluation set in JSON, JSON Lines, CSV or Parquet, detected from the content.

JSON Lines and Parquet are read from disk row by row, and may be of any size.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Final, Literal

from evalmeta import limits
from evalmeta.errors import FormatError, UsageError, did_you_mean
from evalmeta.formats.diagnostics import Diagnostics, kind_of
from evalmeta.formats.sources import JsonFile, read_csv, read_json
from evalmeta.systems.databricks.rows import COLUMNS, GENAI_COLUMNS, Row
from evalmeta.systems.databricks.tables import plain_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from evalmeta.model.json_value import JsonObject


RowFormat = Literal["json", "jsonl", "csv", "parquet"]

_UTF8_MARK: Final = b"\xef\xbb\xbf"
_HEAD_BYTES: Final = 1_000_000
_WRAPPED: Final = re.compile(rb'\{\s*"(?:rows|data)"\s*:\s*\[\s*')


class ValueRow(JsonFile):
    """A row of plain values: the place of each is the line of the row, or 0 when it has none."""

    def __init__(self, label: str, value: JsonObject, *, line: int = 0) -> None:
        super().__init__(label, value, b"", first_line=line)

    def place(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return the row's line."""
        return self.first_line, 0


def format_of(head: bytes, *, name: str = "") -> RowFormat:
    """Detect the format from a file's beginning, and from a name that ends in `.jsonl` or `.ndjson`.

    JSON is a list, an object around one, or one row; JSON Lines have an object in every line.
    """
    head = head.removeprefix(_UTF8_MARK).lstrip()
    if head.startswith(b"PAR1"):
        return "parquet"
    if name.endswith((".jsonl", ".ndjson")):
        return "jsonl"
    if head.startswith(b"["):
        return "json"
    if not head.startswith(b"{"):
        return "csv"
    first, _, rest = head.partition(b"\n")
    is_one = not rest.strip() and len(head) < _HEAD_BYTES
    return "json" if is_one or first.strip() == b"{" or _WRAPPED.match(head) else "jsonl"


def rows_in(data: bytes, *, label: str, diagnostics: Diagnostics) -> Iterator[Row]:
    """Return the rows of a file that is in memory; its name is its label."""
    return _READERS[format_of(data[:_HEAD_BYTES], name=label)](io.BytesIO(data), label, diagnostics)


def rows_of_file(path: Path, *, label: str, diagnostics: Diagnostics) -> Iterator[Row]:
    """Yield the rows of a file on disk; of JSON Lines and Parquet at most a hundred are in memory at a time."""
    with path.open("rb") as file:
        form = format_of(file.read(_HEAD_BYTES), name=path.name)
        file.seek(0)
        yield from _READERS[form](file, label, diagnostics)


def _json_rows(source: BinaryIO, label: str, diagnostics: Diagnostics) -> Iterator[Row]:
    file = read_json(source.read(), label=label)
    path: tuple[str | int, ...] = ()
    rows = file.value
    if isinstance(rows, dict):
        wrapper = next((key for key in ("rows", "data") if isinstance(rows.get(key), list)), None)
        if wrapper is not None:
            rows, path = rows[wrapper], (wrapper,)
        elif not {*COLUMNS, *GENAI_COLUMNS, "info"}.isdisjoint(rows):
            yield Row(1, file)
            return
    if not isinstance(rows, list):
        hint = 'Write [{"request": "..."}, ...], or a row on each line.'
        diagnostics.error("json-type", f"the file holds {kind_of(rows)}, not a list of rows", line=1, hint=hint)
        return
    for place in range(len(rows)):
        yield Row(place + 1, file, (*path, place))


def _lines(file: BinaryIO, label: str, diagnostics: Diagnostics) -> Iterator[Row]:
    """Yield the rows of JSON Lines; a malformed line is reported, and the next one is read."""
    number = 0
    for line_number, bounded in enumerate(_bounded_lines(file), 1):
        line = bounded.removeprefix(_UTF8_MARK) if line_number == 1 else bounded
        if not line.strip():
            continue
        number += 1
        if len(line) > limits.MAX_ROW_BYTES:
            message = f"row {number}: the line is longer than {limits.MAX_ROW_BYTES:,} bytes"
            diagnostics.error("json-limit", message, line=line_number)
            continue
        try:
            yield Row(number, read_json(line.rstrip(b"\r\n"), label=label, first_line=line_number))
        except FormatError as error:
            for problem in error.problems:
                message, place = f"row {number}: {problem.message}", problem.location
                diagnostics.error(problem.code, message, line=place.line, column=place.column)


def _bounded_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines; one that is too long is cut one byte beyond the limit."""
    while line := file.readline(limits.MAX_ROW_BYTES + 1):
        rest = line
        while len(rest) > limits.MAX_ROW_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(limits.MAX_ROW_BYTES + 1)
        yield line


def _csv_rows(file: BinaryIO, label: str, diagnostics: Diagnostics) -> Iterator[Row]:
    """Yield the rows of a table whose first line names the columns; an empty cell counts as missing."""
    table = read_csv(file.read(), diagnostics, max_bytes=limits.MAX_JSON_BYTES, max_chars=limits.MAX_ROW_BYTES)
    if (head := next(table, None)) is None:
        return
    titles = _titles(head.cells, diagnostics)
    for number, (line, cells) in enumerate(table, 1):
        if any(cells[len(titles) :]):
            message = f"row {number}: it has {len(cells)} cells for {len(titles)} columns"
            diagnostics.error("csv-cells", message, line=line)
        values = {title: cell for title, cell in zip(titles, cells, strict=False) if cell}
        yield Row(number, ValueRow(label, values, line=line))


def _titles(cells: Sequence[str], diagnostics: Diagnostics) -> list[str]:
    titles = [cell.strip() for cell in cells]
    for place, title in enumerate(titles):
        if title in titles[:place]:
            diagnostics.error("csv-columns", f"column {place + 1}, {title!r}, is repeated", line=1)
    if {"request", "inputs", "trace"}.isdisjoint(titles):
        nearest = did_you_mean(titles[0], COLUMNS) if titles else ""
        diagnostics.error("csv-columns", "a column 'request', 'inputs' or 'trace' is missing", line=1, hint=nearest)
    return titles


def _parquet_rows(file: BinaryIO, label: str, diagnostics: Diagnostics) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise UsageError(
            f"{label} is a Parquet file, and reading it needs pyarrow, which is not installed",
            actions=("Run: pip install 'evalmeta[databricks]'", "Or save it as JSON Lines."),
        ) from None
    number = 0
    try:
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=100):
            for values in batch.to_pylist():
                number += 1
                yield Row(number, ValueRow(label, plain_row(values, number)))
    except (ArrowException, OSError) as error:
        diagnostics.error("parquet-syntax", f"this is not a valid Parquet file: {error}")


_READERS: Final[dict[RowFormat, Callable[[BinaryIO, str, Diagnostics], Iterator[Row]]]] = {
    "json": _json_rows,
    "jsonl": _lines,
    "csv": _csv_rows,
    "parquet": _parquet_rows,
}
