"""Evaluation sets of Databricks Agent Evaluation and MLflow 3, read and written: each row is a case of one turn.

Sources: Databricks, "Agent Evaluation input schema" (columns, requests, arrays, computed metrics); MLflow,
`mlflow.genai.evaluate` (inputs, outputs, expectations). A row with a response or a trace already has its answer.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict

import orjson

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.formats.diagnostics import (
    Diagnostics,
    Loss,
    Written,
    case_name,
    detail_losses,
    number_losses,
    subject_losses,
)
from evalmeta.formats.document import Document
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.expectations import OUTCOME, canonical_name
from evalmeta.model.json_value import decoded
from evalmeta.systems.databricks.files import ValueRow, format_of, rows_in, rows_of_file
from evalmeta.systems.databricks.metrics import Guidelines, select_metrics
from evalmeta.systems.databricks.rows import Row, RowContext, is_plain, is_request, read_row

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from evalmeta.model.definition import Definition, Expectation, HistoryMessage, Inputs, TestCase
    from evalmeta.model.json_value import JsonObject, JsonValue


_HEAD_BYTES: Final = 1_000_000
_NEEDED: Final = {
    "expected": "'expected_facts' or 'expected_response'",
    "global_guidelines": "'global_guidelines' of the configuration",
}


class RowOptions(TypedDict, total=False):
    """How an evaluation set is read; all keys are optional."""

    global_guidelines: Guidelines | None  # for every answer: a list, or lists by name
    metrics: Sequence[str] | None  # the judges to ask, by their short or documented names; None for all
    is_asked: bool  # whether an agent is asked, so that recorded answers are ignored


def read_databricks(data: bytes, *, label: str, name: str, **options: Unpack[RowOptions]) -> Document:
    """Read an evaluation set: JSON, JSON Lines, CSV with JSON in its cells, or Parquet, detected from its content."""
    diagnostics = Diagnostics(label)
    return _document(rows_in(data, label=label, diagnostics=diagnostics), _context(options), diagnostics, name)


def _context(options: RowOptions) -> RowContext:
    wanted = select_metrics(options.get("metrics"), options.get("global_guidelines"))
    return RowContext(wanted, options.get("is_asked", False))


def read_databricks_rows(
    rows: Iterable[JsonObject], *, label: str, name: str, **options: Unpack[RowOptions]
) -> Document:
    """Read rows of plain values, as `tables.rows_of` returns them; otherwise like `read_databricks`."""
    placed = (Row(number, ValueRow(label, values)) for number, values in enumerate(rows, 1))
    return _document(placed, _context(options), Diagnostics(label), name)


def read_databricks_file(path: Path, *, label: str, name: str, **options: Unpack[RowOptions]) -> Document:
    """Read a file like `read_databricks`; raise NotFound if it cannot be read.

    JSON Lines and Parquet may be of any size: all rows are checked now, and those of Parquet and of large files are
    read again for each iteration over the cases, which raises FormatError if the file has become invalid.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            form = format_of(head, name=path.name)
            if form not in {"jsonl", "parquet"}:
                return read_databricks(head + file.read(limits.MAX_JSON_BYTES), label=label, name=name, **options)
        # A small Parquet file may have very large rows.
        is_small = form == "jsonl" and path.stat().st_size <= limits.MAX_SPEC_BYTES
        cases, diagnostics = None if is_small else _FileCases(path, label, options), Diagnostics(label)
        rows = rows_of_file(path, label=label, diagnostics=diagnostics)
        return _document(rows, _context(options), diagnostics, name, cases)
    except FileNotFoundError:
        raise NotFound(f"the file {label!r} cannot be found") from None
    except OSError as error:
        raise NotFound(f"{label} cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class _FileCases:
    """The cases of a file that is read again for each iteration."""

    path: Path
    label: str
    options: RowOptions

    def __iter__(self) -> Iterator[Case]:
        diagnostics, context = Diagnostics(self.label), _context(self.options)
        for row in rows_of_file(self.path, label=self.label, diagnostics=diagnostics):
            case = read_row(row, context, diagnostics)
            diagnostics.check()
            yield case
        diagnostics.check()


class _RowSummary:
    """Facts about all rows: how many have an answer, and their lines, four bytes each."""

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
        self.judged.update(expectation.name for turn in case.turns for expectation in turn.expectations)
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


def _document(
    rows: Iterable[Row], context: RowContext, diagnostics: Diagnostics, name: str, cases: Iterable[Case] | None = None
) -> Document:
    """Return the document of rows; `cases` are those of rows that do not stay in memory."""
    summary, kept, last = _RowSummary(), list[Case](), None
    for row in rows:
        last, case = row, read_row(row, context, diagnostics)
        summary.add(row, case)
        if cases is None:
            kept.append(case)
    if last is not None and last.path:
        summary.lines = array("I", last.file.lines_of(last.path[:-1]))
    return _checked(tuple(kept) if cases is None else cases, summary, context, diagnostics, name)


def _checked(
    cases: Iterable[Case], summary: _RowSummary, context: RowContext, diagnostics: Diagnostics, name: str
) -> Document:
    diagnostics.check()
    count = len(summary.lines)
    if not count:
        diagnostics.error("databricks-row", "there are no rows", hint='Write [{"request": "..."}].')
    diagnostics.check()
    if 0 < summary.answered < count and not context.is_asked:
        diagnostics.warn(
            "databricks-row",
            f"row {summary.first_unanswered} has neither 'response' nor 'trace', which others have",
            line=summary.lines[summary.first_unanswered - 1],
            hint="Given answers are judged when every row has one; otherwise an agent is asked for all of them.",
        )
    for metric in context.wanted.metrics:
        if metric.name in context.wanted.named - summary.judged:
            needed = " and ".join(sorted(_NEEDED.get(need, f"'{need}'") for need in metric.needs - {"request"}))
            diagnostics.warn("databricks-row", f"no row has what {metric.short!r} needs: {needed}")
    is_answered = summary.answered == count
    lines = _Lines(summary.lines) if any(summary.lines) else {}
    return Document(Evaluation(name, "", cases), is_answered=is_answered, notes=diagnostics.notes, lines=lines)


_TEXTS: Final = frozenset({"request_id", "expected_response", "response", "outputs"})


def copy_rows(path: Path, *, label: str) -> bytes:
    """Return a file as JSON Lines, without nulls and with JSON texts decoded; raise like `read_databricks_file`."""
    read_databricks_file(path, label=label, name="")
    diagnostics = Diagnostics(label)
    lines = []
    for row in rows_of_file(path, label=label, diagnostics=diagnostics):
        value = row.file.at(row.path)
        if isinstance(value, dict):
            value = {column: _plain(column, cell) for column, cell in value.items() if cell is not None}
        lines.append(orjson.dumps(value) + b"\n")
    diagnostics.check()
    return b"".join(lines)


def _plain(column: str, value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or column in _TEXTS or (column == "request" and not is_request(value)):
        return value
    inner = decoded(value)
    return inner if isinstance(inner, dict | list) else value


_ROLES: Final = {"user": "user", "agent": "assistant", "system": "system", "tool": "tool"}


def write_databricks(definition: Definition) -> Written:
    """Write test cases as rows with a request, its id and the expected response; nothing else has a column."""
    losses = [Loss("definition", f"the subject's name {definition.subject_name!r}; rows do not name their agent")]
    losses += subject_losses(definition)
    if definition.description is not None:
        losses.append(Loss("definition", "the description"))
    rows: list[JsonObject] = []
    for place, case in enumerate(definition.test_cases, 1):
        losses += (Loss(case_name(case, place), what) for what in _case_losses(case))
        if case.inputs.utterance.strip():
            row: dict[str, JsonValue] = {"request_id": str(len(rows) + 1), "request": _request(case.inputs)}
            if (response := _response(case.expectations)) is not None:
                row["expected_response"] = response.expected_value
            rows.append(row)
            losses += number_losses(case, len(rows))
    if not rows:
        losses.append(Loss("definition", "all of it; an evaluation set without rows cannot be read"))
    return Written(b"".join(orjson.dumps(row) + b"\n" for row in rows), tuple(losses))


def _request(inputs: Inputs) -> JsonValue:
    """Return a plain text if there is no history and the text would not be read as a request, or else messages."""
    if not inputs.conversation and is_plain(inputs.utterance):
        return inputs.utterance
    said = [(message.role, message.message or "") for message in inputs.conversation]
    messages = [(_ROLES.get(role or "", "user"), text) for role, text in (*said, ("user", inputs.utterance))]
    return {"messages": [{"role": role, "content": text} for role, text in messages]}


def _response(expectations: Sequence[Expectation]) -> Expectation | None:
    """Return the first expected answer; only one has a column."""
    answers = (expectation for expectation in expectations if canonical_name(expectation.name) == OUTCOME)
    return next((answer for answer in answers if answer.expected_value is not None), None)


def _case_losses(case: TestCase) -> Iterator[str]:
    inputs = case.inputs
    if not inputs.utterance.strip():
        yield "all of it; a row needs something that is asked"
        return
    for variable in inputs.context_variables:
        yield f"the context variable {variable.name!r}"
    for prompt_input in inputs.prompt_inputs:
        yield f"the input {prompt_input.reference_name!r} of a prompt"
    for place, message in enumerate(inputs.conversation):
        yield from _message_losses(message, place)
    yield from _expectation_losses(case.expectations)


def _expectation_losses(expectations: Sequence[Expectation]) -> Iterator[str]:
    kept = _response(expectations)
    for expectation in expectations:
        if expectation is not kept:
            yield f"the expectation {expectation.name!r}; a row expects one response only"
            continue
        if expectation.name != OUTCOME:
            yield f"the name {expectation.name!r}; it reads as {OUTCOME!r}, which means the same"
        yield from detail_losses(expectation)


def _message_losses(message: HistoryMessage, place: int) -> Iterator[str]:
    if message.role not in _ROLES:
        yield f"the role {message.role!r} of a message; it is written as the user's"
    if message.message is None:
        yield "that a message of the history has no text; it is written with an empty one"
    if message.topic is not None:
        yield f"the topic {message.topic!r} of a message"
    if message.index not in {None, place}:
        yield f"the index {message.index} of a message; by its place it gets {place}"
