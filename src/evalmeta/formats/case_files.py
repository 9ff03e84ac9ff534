"""The files of test cases that a test spec names: tables (CSV) and JSON Lines, whose columns or keys are its keys."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.document import is_file, read_bytes
from evalmeta.formats.sources import read_csv, read_json
from evalmeta.formats.spec_cases import case_hints, case_keys, cells
from evalmeta.formats.testing_center_csv import CSV_COLUMNS
from evalmeta.formats.yaml_source import LineSource, YamlRecord, YamlScalar, read_yaml, record_value
from evalmeta.model.expectations import parse_actions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.formats.diagnostics import Diagnostics
    from evalmeta.model.json_value import JsonObject, JsonValue


_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_TABLES: Final = (".csv", ".tsv")
# Testing Center's titles, as keys of a spec.
_TITLES: Final = {"utterance": "utterance", "topic": "expectedTopic", "actions": "expectedActions"}
_KEY_OF_TITLE: Final = {
    title.lower(): {**_TITLES, "response": "expectedOutcome", "history": "conversationHistory"}[column]
    for title, column in CSV_COLUMNS.items()
}


def read_case_file(path: Path, diagnostics: Diagnostics, columns: Mapping[str, str] = _NONE) -> Iterator[YamlRecord]:
    """Yield the test cases of a file; raise NotFound if it cannot be read.

    `columns` has the keys of test cases for columns with other titles, or for other keys of JSON Lines.
    """
    data = read_bytes(path, limits.MAX_SPEC_BYTES)
    read = _rows_of_table if path.suffix.lower() in _TABLES else _rows_of_lines
    rows = read(data, diagnostics, columns)
    for line, value in rows:
        yield YamlRecord(LineSource(line, path.parent), (), value, diagnostics, called="a test case")


def _rows_of_table(
    data: bytes, diagnostics: Diagnostics, columns: Mapping[str, str]
) -> Iterator[tuple[int, JsonValue]]:
    rows = read_csv(data, diagnostics, max_bytes=limits.MAX_SPEC_BYTES, max_cells=limits.MAX_SPEC_VALUES)
    if (head := next(rows, None)) is None:
        # Anything else that prevents reading is reported already.
        if not data.strip():
            hint = "Its first line names the keys of the cells."
            diagnostics.error("csv-columns", "the table is empty", line=1, hint=hint)
        return
    given = [title.strip() for title in head.cells]
    _check_columns(diagnostics, columns, given)
    titles = [columns.get(title) or _KEY_OF_TITLE.get(" ".join(title.split()).lower(), title) for title in given]
    for place, title in enumerate(titles, 1):
        if title in titles[: place - 1] and columns:
            first = titles.index(title)
            message = f"column {place}, {given[place - 1]!r}, is {title!r} as column {first + 1}, {given[first]!r}, is"
            diagnostics.error("csv-columns", message, line=1, hint="Keep one of them.")
        elif title in titles[: place - 1]:
            diagnostics.error("csv-columns", f"column {place}, {title!r}, is repeated", line=1)
        elif title not in case_keys():
            hint = case_hints().get(title.lower()) or diagnostics.suggest(title, case_keys())
            diagnostics.error("csv-columns", f"column {place} has the unknown title {title!r}", line=1, hint=hint)
    if not {"input", "utterance"} & set(titles):
        hint = "The first line names the keys of the cells, such as input,contains."
        diagnostics.error("csv-columns", "the column 'input' is missing", line=1, hint=hint)
        return
    for row in rows:
        if any(row.cells[len(titles) :]):
            message = f"the row has {len(row.cells)} cells for {len(titles)} columns"
            diagnostics.error("csv-cells", message, line=row.line, hint="Put a text with commas in quotes.")
        cells = zip(titles, row.cells, strict=False)
        yield row.line, {title: _cell(title, cell) for title, cell in cells if cell.strip() and title in case_keys()}


def _cell(key: str, cell: str) -> JsonValue:
    """Return a cell as a key of a spec has it: lists and mappings are written as JSON, names also with commas."""
    text, kind = cell.strip(), cells()[key]
    if kind == "names" and (names := parse_actions(text)) is not None:
        return record_value(list(names))
    has_mappings = kind == "names" and "{" in text and text.startswith(("[", "{"))
    if (kind in {"list", "names", "object"} and text.startswith("[")) or (
        (kind == "object" or has_mappings) and text.startswith("{")
    ):
        with suppress(FormatError):
            return record_value(read_json(text.encode(), label="").value)
    if kind == "names" and not has_mappings:
        return record_value([part.strip() for part in text.split(",")])
    is_plain = kind == "plain"
    return cast("JsonValue", YamlScalar(0, 0, text if is_plain else cell, is_plain=is_plain))


def _rows_of_lines(
    data: bytes, diagnostics: Diagnostics, columns: Mapping[str, str]
) -> Iterator[tuple[int, JsonValue]]:
    if len(data) > limits.MAX_SPEC_BYTES:
        diagnostics.error("json-limit", f"the file is larger than {limits.MAX_SPEC_BYTES:,} bytes")
        return
    seen: dict[str, None] = {}
    for line, text in enumerate(data.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            value = read_json(text, label=diagnostics.label, first_line=line).value
        except FormatError as error:
            for problem in error.problems:
                column = problem.location.column
                diagnostics.error(problem.code, problem.message, line=line, column=column, hint=problem.hint)
            continue
        if columns and isinstance(value, dict):
            seen.update(dict.fromkeys(value))
            value = _renamed(value, columns, line, diagnostics)
        yield line, record_value(value)
    if seen:
        _check_columns(diagnostics, columns, [*seen])


def _renamed(value: JsonObject, columns: Mapping[str, str], line: int, diagnostics: Diagnostics) -> JsonObject:
    renamed: dict[str, JsonValue] = {}
    for name, inner in value.items():
        key = columns.get(name, name)
        if key in renamed:
            message = f"{name!r} is {key!r}, which the test case has already"
            diagnostics.error("spec-both", message, line=line, hint="Keep one of them.")
        renamed[key] = inner
    return renamed


def _check_columns(diagnostics: Diagnostics, columns: Mapping[str, str], titles: Sequence[str]) -> None:
    for title, key in columns.items():
        if title not in titles:
            message = f"the column {title!r}, which 'columns' of the spec names for {key!r}, does not exist"
            hint = diagnostics.suggest(title, titles) or f"The columns are {', '.join(titles)}."
            diagnostics.error("csv-columns", message, line=1, hint=hint)


# Also in JSON, whose test cases are not read here.
_NAMES_A_FILE: Final = re.compile(rb"""(?:^|[\s{,])["']?cases["']?\s*:\s*(?:[\[-]\s*)?["']?[^\s"'{\[]""", re.MULTILINE)


def files_of(path: Path) -> list[Path]:
    """Return the files with cases that a test spec names and that exist; an empty list for other files."""
    if (
        path.suffix.lower() not in {".yaml", ".yml", ".json"}
        or not path.is_file()
        or path.stat().st_size > limits.MAX_SPEC_BYTES
    ):
        return []
    data = path.read_bytes()
    if not _NAMES_A_FILE.search(data):
        return []
    try:
        value = read_yaml(data, label=path.name).value
    except FormatError:
        return []
    cases = value.get("cases") if isinstance(value, dict) else None
    named = (path.parent / name for _, name in islice(named_files(cases), limits.MAX_CASE_FILES))
    return [*filter(is_file, named)]


# In YAML, in JSON, and in a table, where quotes are doubled. The check refuses a name with another ending.
_SCHEMA: Final = re.compile(rb"""schema["']*\s*:\s*["']*([^"'\n{}]{1,500}?\.json)\b""")


def schemas_of(path: Path) -> list[Path]:
    """Return the files with JSON Schemas that checks of a file name and that exist."""
    if path.stat().st_size > limits.MAX_SPEC_BYTES:
        return []
    names = sorted(set(_SCHEMA.findall(read_bytes(path, limits.MAX_SPEC_BYTES))))
    return [*filter(is_file, (path.parent / name.decode(errors="replace") for name in names))]


def named_files(cases: object) -> Iterator[tuple[int | None, str]]:
    """Yield the files that the value of `cases` names, with their index if it is a list."""
    if isinstance(cases, YamlScalar):
        yield None, cases.text
    for place, case in enumerate(cases if isinstance(cases, list) else ()):
        if isinstance(case, YamlScalar):
            yield place, case.text
