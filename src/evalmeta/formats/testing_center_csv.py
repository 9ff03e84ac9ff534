"""The CSV files of the Testing Center, read and written: a row for each test case.

The columns are those of its template: Utterance, Expected Topic (or Subagent), Expected Actions, Expected Response,
Conversation History (JSON) and one `Context Variable NAME` for each variable. Name, description, subject and metrics
are chosen in its wizard. An empty cell expects nothing. Texts are kept unchanged.
"""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.formats.diagnostics import (
    Diagnostics,
    Loss,
    Written,
    case_name,
    detail_losses,
    foreign_character,
    number_losses,
)
from evalmeta.formats.document import Document, read_bytes
from evalmeta.formats.sources import CsvRow, read_csv
from evalmeta.model.definition import ContextVariable, Definition, Expectation, HistoryMessage, Inputs, TestCase
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.expectations import (
    ACTIONS,
    OUTCOME,
    TOPIC,
    canonical_name,
    is_action_list,
    parse_actions,
    render_actions,
)
from evalmeta.model.registry import TESTING_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


CSV_COLUMNS: Final = {
    "Conversation History": "history",
    "Utterance": "utterance",
    "Expected Topic": "topic",
    "Expected Subagent": "topic",
    "Expected Actions": "actions",
    "Expected Response": "response",
}
"""Columns by their titles; Subagent is the later word for a topic."""
VARIABLE_PREFIX: Final = "Context Variable "
_FIELDS: Final = frozenset(CSV_COLUMNS.values())
_BY_SMALL: Final = {title.lower(): column for title, column in CSV_COLUMNS.items()}
_BARE_NAMES: Final = re.compile(r"\s*[A-Za-z]\w*(?:\s*[,;\n]\s*[A-Za-z]\w*)*\s*", re.ASCII)
_MESSAGE_KEYS: Final = {"role": str, "message": str, "topic": str, "index": int}


def read_testing_center_csv(
    data: bytes, *, label: str, name: str, subject_name: str, subject_version: str | None = None
) -> Definition:
    """Read a file, which does not name its agent, as an AiEvaluationDefinition; raise FormatError with every reason."""
    cases = _read_cases(data, label).values()
    return Definition(name, subject_name, subject_version=subject_version, test_cases=tuple(cases))


def read_table_file(path: Path, *, label: str, name: str) -> Document:
    """Read a table as a test that names no agent."""
    cases = _read_cases(read_bytes(path, limits.MAX_SPEC_BYTES), label)
    table = Definition(path.stem, "", test_cases=tuple(cases.values()))
    return Document(evaluation_of(table, name=name), lines=dict(enumerate(cases, 1)))


def _read_cases(data: bytes, label: str) -> dict[int, TestCase]:
    diagnostics = Diagnostics(label)
    rows = list(read_csv(data, diagnostics, max_bytes=limits.MAX_SPEC_BYTES, max_cells=limits.MAX_SPEC_VALUES))
    if not (rows or diagnostics.has_errors):
        diagnostics.error("csv-columns", "the file is empty", line=1, hint="Its first line names the columns.")
    diagnostics.check()
    titles = _titles(rows[0], diagnostics)
    diagnostics.check()
    cases = {row.line: _Row(number, row, titles, diagnostics).case() for number, row in enumerate(rows[1:], 1)}
    diagnostics.check()
    return cases


def _titles(head: CsvRow, diagnostics: Diagnostics) -> list[str]:
    """Return the field of each column: a value of `CSV_COLUMNS`, or the prefix and a variable's name."""
    fields: list[str] = []
    seen: set[str] = set()
    for place, title in enumerate(head.cells, 1):
        words = " ".join(title.split())
        column = _BY_SMALL.get(words.lower())
        if words.lower().startswith(VARIABLE_PREFIX.lower()):
            column = VARIABLE_PREFIX + words[len(VARIABLE_PREFIX) :]
        if column is None:
            hint = diagnostics.suggest(title, [*CSV_COLUMNS, f"{VARIABLE_PREFIX}NAME"])
            diagnostics.error("csv-columns", f"column {place} has the unknown title {title!r}", line=1, hint=hint)
        elif column in seen:
            diagnostics.error("csv-columns", f"column {place}, {title!r}, is repeated", line=1)
        fields.append(column or "")
        seen.add(column or "")
    if "utterance" not in seen:
        diagnostics.error("csv-columns", "the column Utterance is missing", line=1)
    return fields


class _Row:
    """A row that becomes a test case."""

    def __init__(self, number: int, line: CsvRow, titles: Sequence[str], diagnostics: Diagnostics) -> None:
        self._number = number
        self._line = line
        self._diagnostics = diagnostics
        self._cells = {title: cell for title, cell in zip(titles, line.cells, strict=False) if cell}
        if any(line.cells[len(titles) :]):
            self._refuse("csv-cells", f"the row has {len(line.cells)} cells for {len(titles)} columns")
        for title, cell in self._cells.items():
            self._check_characters(title, cell)

    def case(self) -> TestCase:
        if "utterance" not in self._cells:
            self._refuse("csv-cells", "the row has no utterance")
        cells = self._cells.items()
        named = ((title.removeprefix(VARIABLE_PREFIX), cell) for title, cell in cells if title not in _FIELDS)
        variables = tuple(ContextVariable(*variable) for variable in named)
        inputs = Inputs(self._cells.get("utterance", ""), variables, tuple(self._history()))
        return TestCase(inputs, tuple(self._expectations()), self._number)

    def _expectations(self) -> Iterator[Expectation]:
        for name, column in ((TOPIC, "topic"), (ACTIONS, "actions"), (OUTCOME, "response")):
            if cell := self._cells.get(column):
                yield Expectation(name, self._actions(cell) if name == ACTIONS else cell)

    def _actions(self, cell: str) -> str:
        if parse_actions(cell) is not None:
            return cell
        if _BARE_NAMES.fullmatch(cell):
            return render_actions(re.findall(r"\w+", cell, re.ASCII))
        hint = "Write ['First_Action', 'Second_Action'], or [] for none."
        self._refuse("csv-actions", "the actions are not a valid list", hint=hint)
        return cell

    def _history(self) -> Iterator[HistoryMessage]:
        cell = self._cells.get("history")
        if cell is None:
            return
        try:
            messages = json.loads(cell)
        except (ValueError, RecursionError):
            messages = None
        if not isinstance(messages, list) or not all(map(_is_message, messages)):
            hint = 'Write [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}].'
            self._refuse("csv-history", "the conversation history is not a valid JSON list of messages", hint=hint)
            return
        for place, message in enumerate(messages):
            self._check_characters("history", "".join(map(str, message.values())))
            yield HistoryMessage(message["role"], message["message"], message.get("topic"), message.get("index", place))

    def _check_characters(self, title: str, text: str) -> None:
        if character := foreign_character(text):
            self._refuse("csv-character", f"{title} has the character {character}, which XML cannot hold")

    def _refuse(self, code: str, message: str, *, hint: str = "") -> None:
        self._diagnostics.error(code, message, line=self._line.line, hint=hint)


def _is_message(message: object) -> bool:
    """Return whether a JSON value is a message: it has no other keys, and each value has its type."""
    if not isinstance(message, dict) or not {"role", "message"} <= message.keys() <= _MESSAGE_KEYS.keys():
        return False
    return all(type(value) is _MESSAGE_KEYS[key] for key, value in message.items())


_HISTORY: Final = "Conversation History"
_UTTERANCE: Final = "Utterance"
_TITLES: Final = {TOPIC: "Expected Topic", ACTIONS: "Expected Actions", OUTCOME: "Expected Response"}


def write_testing_center_csv(definition: Definition) -> Written:
    """Write the test cases of a definition; the fields that are set in the Testing Center's wizard are not losses."""
    losses: list[Loss] = []
    if definition.type == TESTING_DEFINITION:
        losses.append(Loss("definition", "the type; the table is read as an AiEvaluationDefinition"))
    names = (variable.name for case in definition.test_cases for variable in case.inputs.context_variables)
    # A title cannot hold an empty name, or one with blanks that reading joins.
    variables = list(dict.fromkeys(name for name in names if name == " ".join(name.split()) and name))
    titles = [
        *([_HISTORY] if any(case.inputs.conversation_history for case in definition.test_cases) else []),
        *(_UTTERANCE, *_TITLES.values(), *(VARIABLE_PREFIX + name for name in variables)),
    ]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, titles, restval="")
    writer.writeheader()
    for place, case in enumerate(definition.test_cases, 1):
        losses += number_losses(case, place)
        texts = (*_expectation_losses(case.expectations), *_input_losses(case.inputs, variables))
        losses += (Loss(case_name(case, place), text) for text in texts)
        writer.writerow(_row(case, variables))
    return Written(text.getvalue().encode(), tuple(losses))


def _row(case: TestCase, variables: Sequence[str]) -> dict[str, str]:
    row = {_UTTERANCE: case.inputs.utterance}
    if history := case.inputs.conversation_history:
        messages = [_message(message, place) for place, message in enumerate(history)]
        row[_HISTORY] = json.dumps(messages, ensure_ascii=False)
    for expectation in _kept(case.expectations):
        row[_TITLES[canonical_name(expectation.name)]] = expectation.expected_value or ""
    for variable in case.inputs.context_variables:
        if variable.name in variables:
            row.setdefault(VARIABLE_PREFIX + variable.name, variable.value)
    return row


def _message(message: HistoryMessage, place: int) -> dict[str, str | int]:
    fields: dict[str, str | int] = {"role": message.role or "", "message": message.message or ""}
    if message.topic is not None:
        fields["topic"] = message.topic
    if message.index not in {None, place}:
        fields["index"] = message.index or 0
    return fields


def _kept(expectations: Sequence[Expectation]) -> Iterator[Expectation]:
    seen = set()
    for expectation in expectations:
        name, value = canonical_name(expectation.name), expectation.expected_value
        if name in _TITLES and name not in seen and value and (name != ACTIONS or is_action_list(value)):
            seen.add(name)
            yield expectation


def _expectation_losses(expectations: Sequence[Expectation]) -> Iterator[str]:
    kept = list(_kept(expectations))
    for expectation in expectations:
        if not any(expectation is other for other in kept):
            yield f"the expectation {expectation.name!r}; a row has one topic, action list and response with a value"
            continue
        yield from detail_losses(expectation)
        if expectation.name not in _TITLES:
            same = canonical_name(expectation.name)
            yield f"the name {expectation.name!r}; it reads as {same!r}, which means the same"
    order = [list(_TITLES).index(canonical_name(expectation.name)) for expectation in kept]
    if order != sorted(order):
        yield "the order of the expectations; they come as topic, actions, response"


def _input_losses(inputs: Inputs, variables: Sequence[str]) -> Iterator[str]:
    if not inputs.utterance:
        yield "an empty utterance, which no row may have"
    if inputs.prompt_inputs:
        yield "the inputs of a prompt template"
    for message in inputs.conversation_history:
        if message.role is None or message.message is None:
            yield "that a message of the history has no role or no message; it is written with an empty one"
    names = [context_variable.name for context_variable in inputs.context_variables]
    for place, variable in enumerate(inputs.context_variables):
        if variable.name not in variables or variable.name in names[:place]:
            yield f"the variable {variable.name!r}, which has no column, or whose name the case repeats"
        elif not variable.value:
            yield f"the variable {variable.name!r}, whose value is empty"
    written = [name for name in names if name in variables]
    if len(set(names)) == len(names) and written != [name for name in variables if name in names]:
        yield "the order of the variables; they come in the order of the columns"
