"""Evaluation sets of any form as JSON Lines, with everything that their rows say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.interop.databricks.files import rows_of_file
from evalmeta.interop.databricks.reader import read_databricks_file
from evalmeta.interop.databricks.requests import is_request
from evalmeta.interop.databricks.texts import decoded
from evalmeta.interop.findings import Findings

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.interop.databricks.rows import Row
    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["copy_rows"]

_TEXTS: Final = frozenset({"request_id", "expected_response", "response", "outputs"})


def copy_rows(path: Path, *, label: str) -> bytes:
    """Writes the rows of a file as JSON Lines; the JSON in cells and texts becomes JSON, what is null is left out.

    Raises:
        NotFound: there is no such file, or it cannot be read.
        FormatError: the file does not fit the format; `problems` has every reason.
        UsageError: it is Parquet, and pyarrow is not installed.
    """
    read_databricks_file(path, label=label, name="")
    findings = Findings(label)
    lines = [orjson.dumps(_values(row)) + b"\n" for row in rows_of_file(path, label=label, findings=findings)]
    findings.check()
    return b"".join(lines)


def _values(row: Row) -> JsonValue:
    value = row.file.value
    for step in row.path:
        value = value[step]  # type: ignore[index] # the path leads to what is there
    if not isinstance(value, dict):
        return value
    return {column: _plain(column, each) for column, each in value.items() if each is not None}


def _plain(column: str, value: JsonValue) -> JsonValue:
    """Gives the lists and objects that a text holds, but for what is read as a text: answers, and questions in JSON."""
    if not isinstance(value, str) or column in _TEXTS or (column == "request" and not is_request(value)):
        return value
    found = decoded(value)
    return found if isinstance(found, dict | list) else value
