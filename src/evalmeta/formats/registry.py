"""The formats, and their detection from a file's content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

import orjson

from evalmeta.formats.csv_source import titles_of

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


SourceFormat = Literal["definition", "testspec", "csv", "adk", "databricks", "ballerina"]
TargetFormat = Literal["definition", "testspec", "csv", "adk", "databricks"]
TARGET_FORMATS: Final[tuple[TargetFormat, ...]] = ("definition", "testspec", "csv", "adk", "databricks")

ADK_CONFIG: Final = "test_config.json"
"""What stands beside ADK's files and says by which criteria they are judged."""

HEAD_BYTES: Final = 1_000_000
"""How much of a file tells its format, unless it is one JSON value that is longer."""

_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_PARQUET_MARK: Final = b"PAR1"
_KEY: Final = re.compile(rb'"([A-Za-z_]+)"\s*:')
_KEY_BYTES: Final = 20_000

# Which format an object with a key is of; the first key that is there decides.
_OF_OBJECTS: Final[dict[str, SourceFormat]] = {
    "evalCases": "adk",
    "eval_cases": "adk",
    "evalSetId": "adk",
    "eval_set_id": "adk",
    "testCases": "testspec",
    "subjectName": "testspec",
    "threads": "ballerina",
    "entries": "ballerina",
    "request": "databricks",
    "inputs": "databricks",
    "trace": "databricks",
    "rows": "databricks",
    "info": "databricks",
}
# The same of the objects of a list.
_OF_ITEMS: Final[dict[str, SourceFormat]] = {
    "query": "adk",
    "initial_session": "adk",
    "data": "adk",
    "request": "databricks",
    "inputs": "databricks",
    "trace": "databricks",
    "info": "databricks",
    "input": "ballerina",
}


def recognise(data: bytes) -> SourceFormat | None:
    """Detect the format of a file from its first `HEAD_BYTES`; None if it is unknown.

    XML is a definition. A table with the column Utterance is one of the Testing Center, with the column request an
    evaluation set of Databricks. JSON is detected from its keys, and anything else is a test spec. UTF-16 is detected
    in the same way; the reader decides whether it is allowed.
    """
    data = _in_utf8(data)
    begin = data.removeprefix(_UTF8_MARK).lstrip()
    if begin.startswith(b"<"):
        return "definition"
    if begin.startswith(_PARQUET_MARK):
        return "databricks"
    if begin.startswith((b"{", b"[")):
        return _of_json(begin)
    titles = {title.strip() for titles in titles_of(begin.decode("utf-8", "replace")) for title in titles}
    if "utterance" in {title.lower() for title in titles}:
        return "csv"
    return "testspec" if titles.isdisjoint(("request", "inputs", "trace")) else "databricks"


def _in_utf8(data: bytes) -> bytes:
    encoding = _UTF16.get(data[:2])
    return data if encoding is None else data[2:].decode(encoding, "replace").encode()


def _of_json(begin: bytes) -> SourceFormat | None:
    try:
        return _of_value(orjson.loads(begin))
    except orjson.JSONDecodeError:
        pass
    line, _, rest = begin.partition(b"\n")
    if rest:
        try:
            # Several values, one a line, are JSON Lines.
            found = orjson.loads(line)
        except orjson.JSONDecodeError:
            return _of_damaged(begin)
        return (_of_value(found) or "databricks") if isinstance(found, dict) else _of_value(found)
    return _of_damaged(begin)


def _of_value(value: JsonValue) -> SourceFormat | None:
    if isinstance(value, dict):
        return _of_keys(value, _OF_OBJECTS)
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list):
        return "ballerina"
    return _of_keys(first, _OF_ITEMS) if isinstance(first, dict) else None


def _of_keys(value: JsonObject, formats: dict[str, SourceFormat]) -> SourceFormat | None:
    return next((found for key, found in formats.items() if key in value), None)


def _of_damaged(begin: bytes) -> SourceFormat | None:
    """Detect the format of a damaged or cut file from its first keys; its reader reports what is wrong."""
    formats = _OF_OBJECTS if begin.startswith(b"{") else _OF_ITEMS
    keys = (found[1].decode() for found in _KEY.finditer(begin[:_KEY_BYTES]))
    # A spec may be written in YAML's own kind of braces.
    return next((formats[key] for key in keys if key in formats), "testspec" if begin.startswith(b"{") else "adk")
