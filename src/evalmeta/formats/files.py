"""Files of every format, read into evaluations."""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.document import (
    ADK_CONFIG,
    HEAD_BYTES,
    SEARCHED,
    SPEC_NAMES,
    TABLE_NAMES,
    Document,
    Reading,
    read_bytes,
    recognise,
)
from evalmeta.formats.json_source import read_json
from evalmeta.model.evaluation import evaluation_of
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from pathlib import Path

    from evalmeta.formats.discovery import FileKind
    from evalmeta.formats.document import SourceFormat
    from evalmeta.model.json_value import JsonValue


_READERS: Final[dict[SourceFormat, str]] = {
    "testspec": "evalmeta.formats.testspec",
    "csv": "evalmeta.formats.testing_center_csv",
    "adk": "evalmeta.systems.adk.reader",
    "ballerina": "evalmeta.systems.ballerina.reader",
    "databricks": "evalmeta.systems.databricks.reader",
    "run-eval": "evalmeta.systems.run_eval.reader",
}
_SPEC_EXAMPLE: Final = """\
Write test cases as a list:
    testCases:
    - input: What is the capital of France?
      contains: Paris"""
_DEFAULT_READING: Final = Reading()
_KNOWN: Final = """\
A test file is a definition (XML), a test spec (YAML), test cases in JSON Lines or a table (input), \
a table of the Testing Center (CSV), an eval set of ADK (evalCases) or an array from before eval sets (query), \
an evaluation set of Databricks (request), a payload of sf agent test run-eval (tests with steps), \
or threads or entries of Ballerina."""


class _ReadFile(Protocol):
    """The function `read_file` of every module in `_READERS`."""

    def __call__(self, path: Path, *, label: str, name: str, reading: Reading) -> Document: ...


def read_document(path: Path, *, label: str, name: str, reading: Reading = _DEFAULT_READING) -> Document:
    """Read a file of any format, and the criteria beside it; `label` is the path that messages show.

    Raises:
        NotFound: the file does not exist, or cannot be read.
        FormatError: its format is unknown, or it does not fit the format; `problems` has every reason and its place.
        InvalidMetadata: it is a definition that cannot be read.
    """
    source_format = format_of(path, label=label)
    if source_format == "definition":
        definition = read_definition(read_xml(read_bytes(path, limits.MAX_XML_BYTES), label=label))
        return Document(evaluation_of(definition, name=name))
    # A format is loaded when a file needs it: together they take longer than reading a definition.
    read_file: _ReadFile = import_module(_READERS[source_format]).read_file
    return read_file(path, label=label, name=name, reading=reading)


def format_of(path: Path, *, label: str) -> SourceFormat:
    """Detect the format of a file from its content; raise FormatError if it is unknown, or not a test."""
    head = read_bytes(path, HEAD_BYTES)
    kind = kind_of_file(path)
    known = kind.format if kind else None
    found = known or recognise(head)
    if not head.strip():
        raise FormatError(f"{label} is empty", actions=[_KNOWN])
    if found is None and len(head) >= HEAD_BYTES:
        found = recognise(read_bytes(path))
    if found is None:
        raise _unknown(head, label)
    if found == "testspec" and known is None:
        raise _not_a_test(path, label, kind.why_not if kind else "")
    return found


def kind_of_file(path: Path) -> FileKind | None:
    """Return what a file is by its name and content; None for definitions, and files that no search looks at."""
    if path.suffix.lower() not in SEARCHED:
        return None
    from evalmeta.formats.discovery import kind_of

    return kind_of(path)


def _not_a_test(path: Path, label: str, why_not: str) -> FormatError:
    """Return an error that describes a text file that is neither a table nor a test spec."""
    suffix = path.suffix.lower()
    if suffix in TABLE_NAMES:
        action = "Rename the column with the questions to input, or to Utterance as in a table of the Testing Center."
        return FormatError(f"{label} is not a table of tests: {why_not}", actions=[action])
    if suffix in SPEC_NAMES:
        return FormatError(f"{label} is not a test spec: {why_not}", actions=[_SPEC_EXAMPLE, _KNOWN])
    if suffix == ".json":
        # Raises an error with the place where it stops being JSON.
        read_json(read_bytes(path), label=label)
    return FormatError(f"{label} is not a test file{f': {why_not}' if why_not else ''}", actions=[_KNOWN])


def _unknown(head: bytes, label: str) -> FormatError:
    """Return an error that describes a JSON file of an unknown format."""
    try:
        value: JsonValue = orjson.loads(head)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict) and "criteria" in value:
        action = f"Name the files beside it, or their folder; it must be called {ADK_CONFIG} to judge them."
        return FormatError(f"{label} is ADK's configuration, not a test", actions=[action])
    if value == []:
        return FormatError(f"{label} is an empty list: it has no test cases", actions=[_KNOWN])
    item = value[0] if isinstance(value, list) else value
    where = "its first item has" if isinstance(value, list) else "it has"
    keys = ", ".join(repr(key[:40]) for key in [*item][:8]) if isinstance(item, dict) else ""
    described = f": {where} the keys {keys}" if keys else ""
    return FormatError(f"{label} has a format that evalmeta does not know{described}", actions=[_KNOWN])


_DOCUMENTS: Final[OrderedDict[Hashable, Document]] = OrderedDict()
_LOCK: Final = Lock()


def document_once(key: Hashable, read: Callable[[], Document]) -> Document:
    """Return the document with a key, which must identify its content; it is read if it was not read lately."""
    return recent_document(key) or remember(key, read())


def recent_document(key: Hashable) -> Document | None:
    """Return the document with a key if it was read lately."""
    with _LOCK:
        return _DOCUMENTS.get(key)


def remember(key: Hashable, document: Document) -> Document:
    """Return a document and keep it if its cases are in memory; forget the oldest ones if there are many cases."""
    if isinstance(document.evaluation.cases, tuple):
        with _LOCK:
            _DOCUMENTS[key] = document
            _DOCUMENTS.move_to_end(key)
            while sum(map(_size, _DOCUMENTS.values())) > limits.MAX_REMEMBERED_CASES:
                _DOCUMENTS.popitem(last=False)
    return document


def _size(document: Document) -> int:
    cases = document.evaluation.cases
    return len(cases) if isinstance(cases, tuple) else 0
