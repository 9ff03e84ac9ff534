"""Files of test cases: tables (CSV) and JSON Lines, whose columns or keys are keys of test cases, or metadata."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from evalmeta import limits
from evalmeta.errors import FormatError, did_you_mean, nearest_word
from evalmeta.formats.document import is_file, read_bytes
from evalmeta.formats.sources import read_csv, read_json
from evalmeta.formats.spec_cases import NAMES, case_hints, case_keys, cells, check_keys
from evalmeta.formats.testing_center_csv import CSV_COLUMNS
from evalmeta.formats.yaml_source import LineSource, YamlRecord, YamlScalar, read_yaml, record_value
from evalmeta.model.expectations import parse_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.formats.diagnostics import Diagnostics
    from evalmeta.model.json_value import JsonObject, JsonValue


_METADATA: Final = "metadata."
_WITH_CHECKS: Final = ("turns", "expected")
_SHOWN: Final = 6
_NOT_IN_WORDS: Final = re.compile(r"[\W_]+")
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
    if _has_too_many(given, diagnostics, line=1):
        return
    _check_columns(diagnostics, columns, given)
    titles = _keys_of(given, columns)
    _check_titles(titles, given, diagnostics, has_columns=bool(columns))
    if not {"input", "utterance"} & set(titles):
        hint = "The first line names the keys of the cells, such as input,contains."
        diagnostics.error("csv-columns", "the column 'input' is missing", line=1, hint=hint)
        return
    _note_unchecked(titles, diagnostics)
    for row in rows:
        if any(row.cells[len(titles) :]):
            message = f"the row has {len(row.cells)} cells for {len(titles)} columns"
            diagnostics.error("csv-cells", message, line=row.line, hint="Put a text with commas in quotes.")
        cells = zip(titles, row.cells, strict=False)
        filled = {title: _cell(title, cell) for title, cell in cells if cell.strip() and is_key(title)}
        yield row.line, _with_metadata(filled, row.line, diagnostics)


def _keys_of(titles: Sequence[str], columns: Mapping[str, str]) -> list[str]:
    of_testing_center = (_KEY_OF_TITLE.get(" ".join(title.split()).lower()) for title in titles)
    return [columns.get(title) or key or _key(title) for title, key in zip(titles, of_testing_center, strict=True)]


def _check_titles(keys: Sequence[str], titles: Sequence[str], diagnostics: Diagnostics, *, has_columns: bool) -> None:
    """Report columns without a key, and keys with several columns."""
    for place, (key, title) in enumerate(zip(keys, titles, strict=True), 1):
        message, hint = "", ""
        if not title:
            message, hint = f"column {place} has no title", "Write one, or remove it."
        elif key in keys[: place - 1] and has_columns:
            first = keys.index(key)
            message = f"column {place}, {title!r}, is {key!r} as column {first + 1}, {titles[first]!r}, is"
            hint = "Keep one of them."
        elif key in keys[: place - 1]:
            message = f"column {place}, {title!r}, is repeated"
        elif not is_key(key):
            message, hint = f"column {place} has the unknown title {title!r}", _way_out(title)
        if message:
            diagnostics.error("csv-columns", message, line=1, hint=hint)


def keys_by_title(columns: Iterable[tuple[str, str]], report: Callable[[str, str, str, str], None]) -> dict[str, str]:
    """Return keys of test cases by the titles that `columns` has for them.

    `report` receives the code, key, message and hint of each fault.
    """
    keys: dict[str, str] = {}
    for key, given in columns:
        title = given.strip()
        if not is_key(key):
            hint = case_hints().get(key) or did_you_mean(key, case_keys())
            report("spec-key", key, f"a test case has no key {key!r}", hint)
        elif title in keys:
            report("spec-both", key, f"the column {title!r} is for {keys[title]!r} already", "Keep one of them.")
        else:
            keys[title] = key
    return keys


def is_key(name: str) -> bool:
    """Return whether a name is a key of test cases, or `metadata.NAME`."""
    return name in case_keys() or (name.startswith(_METADATA) and name != _METADATA)


def _key(name: str) -> str:
    """Return the key of test cases for a title: one of the metadata, unless the title may be a misspelled key."""
    return name if not name or is_key(name) or _way_out(name) else f"{_METADATA}{name}"


def _way_out(name: str) -> str:
    """Return what to do about a name that resembles a key, or is another tool's word for one; empty for other names."""
    small = _NOT_IN_WORDS.sub("_", name.strip()).casefold()
    hint = "" if small in NAMES else _hints_of_words().get(small.replace("_", ""), "")
    if not hint and (near := nearest_word(name.strip(), case_keys())):
        hint = f"Did you mean {near!r}?"
    keep = f"name it {_METADATA}{name.strip()} to keep it as metadata"
    return hint and f"{hint} Rename it, map it with 'columns', or {keep}."


@cache
def _hints_of_words() -> Mapping[str, str]:
    return {_NOT_IN_WORDS.sub("", word).replace("_", "").casefold(): hint for word, hint in case_hints().items()}


def _with_metadata(values: JsonObject, line: int, diagnostics: Diagnostics) -> JsonObject:
    """Return the keys of a test case, with those that begin with `metadata.` in its metadata."""
    extra = {key.removeprefix(_METADATA): value for key, value in values.items() if key.startswith(_METADATA)}
    if not extra:
        return values
    metadata = values.get("metadata") or {}
    if not isinstance(metadata, dict):
        # Its reader says what is wrong with it.
        return {key: value for key, value in values.items() if not key.startswith(_METADATA)}
    for name in metadata.keys() & extra.keys():
        message = f"the metadata of the test case has {name!r} twice"
        diagnostics.error("spec-both", message, line=line, hint="Keep one of them.")
    others = {key: value for key, value in values.items() if not key.startswith(_METADATA)}
    return {**others, "metadata": {**metadata, **extra}}


def _cell(key: str, cell: str) -> JsonValue:
    """Return a cell as a key of a spec has it: lists and mappings are written as JSON, names also with commas."""
    text, kind = cell.strip(), cells().get(key, "text")
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
    if key.startswith(_METADATA):
        return record_value(text)
    is_plain = kind == "plain"
    return cast("JsonValue", YamlScalar(0, 0, text if is_plain else cell, is_plain=is_plain))


def _rows_of_lines(
    data: bytes, diagnostics: Diagnostics, columns: Mapping[str, str]
) -> Iterator[tuple[int, JsonValue]]:
    if len(data) > limits.MAX_SPEC_BYTES:
        diagnostics.error("json-limit", f"the file is larger than {limits.MAX_SPEC_BYTES:,} bytes")
        return
    seen: dict[str, str] = {}  # the key of test cases for each name
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
        if isinstance(value, dict):
            if new := [name for name in value if name not in seen]:
                if _has_too_many([*seen, *new], diagnostics, line=line):
                    return
                seen |= {name: columns.get(name) or _key(name) for name in new}
            value = _with_metadata(_renamed(value, seen, line, diagnostics), line, diagnostics)
        yield line, record_value(value)
    if seen:
        _check_columns(diagnostics, columns, [*seen])
        _note_unchecked([*seen.values()], diagnostics)


def _note_unchecked(keys: Sequence[str], diagnostics: Diagnostics) -> None:
    """Warn of a file without a check that has metadata: a column may be meant as a check."""
    kept = [key.removeprefix(_METADATA) for key in keys if key.startswith(_METADATA)]
    if not kept or not {*check_keys(), *_WITH_CHECKS}.isdisjoint(keys):
        return
    named = ", ".join(map(repr, kept[:_SHOWN])) + ", …" * (len(kept) > _SHOWN)
    message = f"no column is a check; kept as metadata: {named}"
    hint = f"If one has the expected answers, map it with 'columns', such as contains: {kept[0]}."
    diagnostics.warn("csv-unchecked", message, line=1, hint=hint)


def _has_too_many(names: Sequence[str], diagnostics: Diagnostics, *, line: int) -> bool:
    """Report too many columns or keys, because comparing all of them with the keys of test cases would take long."""
    if len(names) <= limits.MAX_CASE_NAMES:
        return False
    message = f"the file has more than {limits.MAX_CASE_NAMES:,} different columns or keys"
    diagnostics.error("csv-limit", message, line=line, hint="Put values of one kind into one JSON object.")
    return True


def _renamed(value: JsonObject, keys: Mapping[str, str], line: int, diagnostics: Diagnostics) -> JsonObject:
    renamed: dict[str, JsonValue] = {}
    for name, inner in value.items():
        key = keys[name]
        if not is_key(key):
            diagnostics.error("spec-key", f"a test case has no key {name!r}", line=line, hint=_way_out(name))
            continue
        if key in renamed:
            message = f"{name!r} is {key!r}, which the test case has already"
            diagnostics.error("spec-both", message, line=line, hint="Keep one of them.")
        renamed[key] = inner
    return renamed


def _check_columns(diagnostics: Diagnostics, columns: Mapping[str, str], titles: Sequence[str]) -> None:
    for title, key in columns.items():
        if title not in titles:
            message = f"the column {title!r}, which 'columns' names for {key!r}, does not exist"
            near = diagnostics.suggest(title, titles) or f"The columns are {', '.join(titles)}."
            hint = f"{near} 'columns' is a key of the spec, an option, or a section of evalmeta.toml."
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
