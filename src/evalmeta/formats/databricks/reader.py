"""Evaluation sets of Databricks Agent Evaluation and MLflow 3: each row is a case of one turn.

Sources: Databricks, "Agent Evaluation input schema" (columns, requests, arrays, computed metrics); MLflow,
`mlflow.genai.evaluate` (inputs, outputs, expectations). A row with a response or a trace already has its answer.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.formats.databricks.files import ValueRow, format_of, rows_in, rows_of_file, streamed_rows
from evalmeta.formats.databricks.metrics import select_metrics
from evalmeta.formats.databricks.rows import Row, RowContext, is_request, read_row
from evalmeta.formats.databricks.texts import decoded
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.document import Document, Reading
from evalmeta.model.evaluation import Case, Evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from evalmeta.formats.databricks.metrics import Guidelines, MetricSelection
    from evalmeta.model.json_value import JsonObject, JsonValue


_HEAD_BYTES: Final = 1_000_000
_NEEDED: Final = {
    "expected": "'expected_facts' or 'expected_response'",
    "global_guidelines": "'global_guidelines' of the configuration",
}


def read_databricks(
    data: bytes,
    *,
    label: str,
    name: str,
    global_guidelines: Guidelines | None = None,
    metrics: Sequence[str] | None = None,
    is_asked: bool = False,
) -> Document:
    """Read an evaluation set: JSON, JSON Lines, CSV with JSON in its cells, or Parquet, detected from its content.

    Args:
        data: the file.
        label: its path, for messages.
        name: what the evaluation is called, which the file does not say.
        global_guidelines: what every answer must keep to: a list, or lists by name.
        metrics: the judges that are wanted, by their short or documented names; None stands for all.
        is_asked: whether an agent is asked, so that answers in the file do not matter.

    Raises:
        FormatError: it does not fit the format; `problems` has every reason with line and column.
        UsageError: a metric is unknown, the guidelines are none, or it is Parquet without pyarrow.
    """
    terms = RowContext(select_metrics(metrics, global_guidelines), is_asked, set(), set())
    diagnostics = Diagnostics(label)
    return _document(rows_in(data, label=label, diagnostics=diagnostics), terms, diagnostics, name)


def read_file(path: Path, *, label: str, name: str, reading: Reading) -> Document:
    """Read a file as `files.read_document` does."""
    return read_databricks_file(
        path,
        label=label,
        name=name,
        global_guidelines=reading.global_guidelines or None,
        metrics=reading.metrics,
        is_asked=reading.is_asked,
    )


def read_databricks_rows(
    rows: Iterable[JsonObject],
    *,
    label: str,
    name: str,
    global_guidelines: Guidelines | None = None,
    metrics: Sequence[str] | None = None,
    is_asked: bool = False,
) -> Document:
    """Read rows of plain values, as `tables.rows_of` returns them; otherwise like `read_databricks`."""
    terms = RowContext(select_metrics(metrics, global_guidelines), is_asked, set(), set())
    placed = (Row(number, ValueRow(label, values)) for number, values in enumerate(rows, 1))
    return _document(placed, terms, Diagnostics(label), name)


def read_databricks_file(
    path: Path,
    *,
    label: str,
    name: str,
    global_guidelines: Guidelines | None = None,
    metrics: Sequence[str] | None = None,
    is_asked: bool = False,
) -> Document:
    """Read a file as `read_databricks` does; JSON Lines and Parquet may be of any size.

    Of these all rows are checked at once, but none is kept: the cases are read from the file again whenever
    they are gone through.

    Raises:
        NotFound: there is no such file, or it cannot be read.
        FormatError: see `read_databricks`; also while cases are gone through, when the file was changed meanwhile.
        UsageError: see `read_databricks`.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            form = format_of(head, name=path.name)
            is_streamed = form in {"jsonl", "parquet"}
            data = b"" if is_streamed else head + file.read(limits.MAX_JSON_BYTES)
        if not is_streamed:
            return read_databricks(
                data, label=label, name=name, global_guidelines=global_guidelines, metrics=metrics, is_asked=is_asked
            )
        wanted = select_metrics(metrics, global_guidelines)
        cases = _FileCases(
            lambda diagnostics: streamed_rows(path, form, label=label, diagnostics=diagnostics), label, wanted, is_asked
        )
        return cases.checked(name)
    except OSError as error:
        raise NotFound(f"{label} cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class _FileCases:
    """The cases of a file that is read anew whenever they are gone through."""

    rows: Callable[[Diagnostics], Iterator[Row]]
    label: str
    wanted: MetricSelection
    is_asked: bool

    def __iter__(self) -> Iterator[Case]:
        diagnostics = Diagnostics(self.label)
        terms = RowContext(self.wanted, self.is_asked, set(), set())
        for row in self.rows(diagnostics):
            case = read_row(row, terms, diagnostics)
            diagnostics.check()
            yield case
        diagnostics.check()

    def checked(self, name: str) -> Document:
        """Return the document when every row is valid; raise FormatError otherwise."""
        diagnostics = Diagnostics(self.label)
        terms = RowContext(self.wanted, self.is_asked, set(), set())
        summary = _RowSummary()
        for row in self.rows(diagnostics):
            summary.add(row, read_row(row, terms, diagnostics))
        return _checked(self, summary, terms, diagnostics, name)


class _RowSummary:
    """What is kept of all rows: how many have an answer, and their lines, four bytes each."""

    def __init__(self) -> None:
        self.lines = array("I")
        self.answered = 0
        self.first_unanswered = 0
        self.judged: set[str] = set()

    def add(self, row: Row, case: Case) -> None:
        is_answered = bool(case.turns) and case.turns[0].recorded is not None
        self.answered += is_answered
        if not is_answered and not self.first_unanswered:
            self.first_unanswered = row.number
        self.judged.update(each.name for turn in case.turns for each in turn.expectations)
        self.lines.append(0 if row.path else row.file.first_line)


class _Lines(Mapping[int, int]):
    """The lines of rows by their numbers."""

    def __init__(self, lines: array[int]) -> None:
        self._lines = lines

    def __getitem__(self, number: int) -> int:
        if not 1 <= number <= len(self._lines):
            raise KeyError(number)
        return self._lines[number - 1]

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, len(self._lines) + 1))

    def __len__(self) -> int:
        return len(self._lines)


def _document(rows: Iterable[Row], terms: RowContext, diagnostics: Diagnostics, name: str) -> Document:
    summary, cases, last = _RowSummary(), [], None
    for row in rows:
        last = row
        cases.append(read_row(row, terms, diagnostics))
        summary.add(row, cases[-1])
    if last is not None and last.path:
        summary.lines = array("I", last.file.lines_of(last.path[:-1]))
    return _checked(tuple(cases), summary, terms, diagnostics, name)


def _checked(
    cases: Iterable[Case], summary: _RowSummary, terms: RowContext, diagnostics: Diagnostics, name: str
) -> Document:
    diagnostics.check()
    count = len(summary.lines)
    if not count:
        diagnostics.error("databricks-row", "there are no rows", hint='Write [{"request": "..."}].')
    diagnostics.check()
    if 0 < summary.answered < count and not terms.is_asked:
        diagnostics.warn(
            "databricks-row",
            f"row {summary.first_unanswered} has neither 'response' nor 'trace', which others have",
            line=summary.lines[summary.first_unanswered - 1],
            hint="Given answers are judged when every row has one; otherwise an agent is asked for all of them.",
        )
    for metric in terms.wanted.metrics:
        if metric.name in terms.wanted.named - summary.judged:
            needed = " and ".join(sorted(_NEEDED.get(each, f"'{each}'") for each in metric.needs - {"request"}))
            diagnostics.warn("databricks-row", f"no row has what {metric.short!r} needs: {needed}")
    is_answered = summary.answered == count
    lines = _Lines(summary.lines) if any(summary.lines) else {}
    return Document(Evaluation(name, "", cases), is_answered=is_answered, notes=diagnostics.notes, lines=lines)


_TEXTS: Final = frozenset({"request_id", "expected_response", "response", "outputs"})


def copy_rows(path: Path, *, label: str) -> bytes:
    """Write the rows of a file as JSON Lines; JSON in cells and texts is decoded, and null is left out.

    Raises:
        NotFound: there is no such file, or it cannot be read.
        FormatError: the file does not fit the format; `problems` has every reason.
        UsageError: it is Parquet, and pyarrow is not installed.
    """
    read_databricks_file(path, label=label, name="")
    diagnostics = Diagnostics(label)
    lines = [orjson.dumps(_values(row)) + b"\n" for row in rows_of_file(path, label=label, diagnostics=diagnostics)]
    diagnostics.check()
    return b"".join(lines)


def _values(row: Row) -> JsonValue:
    value = row.file.at(row.path)
    if not isinstance(value, dict):
        return value
    return {column: _plain(column, each) for column, each in value.items() if each is not None}


def _plain(column: str, value: JsonValue) -> JsonValue:
    """Return the list or object in a JSON text; answers and plain questions remain texts."""
    if not isinstance(value, str) or column in _TEXTS or (column == "request" and not is_request(value)):
        return value
    found = decoded(value)
    return found if isinstance(found, dict | list) else value
