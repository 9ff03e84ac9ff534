"""Files of every format, read into evaluations."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import EvalmetaError, FormatError
from evalmeta.formats.document import (
    CASE_FILES,
    SEARCHED,
    SPEC_NAMES,
    TABLE_NAMES,
    Document,
    Reading,
    chunks_of,
    read_bytes,
)
from evalmeta.formats.registry import (
    HEAD_BYTES,
    FileKind,
    all_formats,
    first_format,
    listed_formats,
    recognise,
    settings_files,
)
from evalmeta.formats.sources import read_json, titles_of
from evalmeta.model.redaction import error_text
from evalmeta.plugins import plugin_names

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from evalmeta.model.json_value import JsonValue


_SPEC_EXAMPLE: Final = """\
Write test cases as a list:
    testCases:
    - input: What is the capital of France?
      contains: Paris"""
_DEFAULT_READING: Final = Reading()
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_FILE: Final = b"file://"


def read_document(path: Path, *, label: str, name: str, reading: Reading = _DEFAULT_READING) -> Document:
    """Read a file of any format, and the criteria beside it; `label` is the path that messages show.

    Raise NotFound if it cannot be read, FormatError if it does not fit a format, and InvalidMetadata for a definition.
    """
    source_format = all_formats()[format_of(path, label=label, reading=reading)]
    try:
        return source_format.read(path, label=label, name=name, reading=reading)
    except Exception as error:
        if isinstance(error, EvalmetaError) or source_format.name not in plugin_names("formats"):
            raise
        message = f"{label} cannot be read as {source_format.name}: {error_text(error)}"
        action = "Correct the file, or the package that adds the format."
        raise FormatError(message, actions=[action]) from error


def format_of(path: Path, *, label: str, reading: Reading = _DEFAULT_READING) -> str:
    """Detect the format of a file from its content; raise FormatError if it is unknown, or not a test.

    A table or JSON Lines with a column of the reading has test cases.
    """
    head = read_bytes(path, HEAD_BYTES)
    kind = kind_of_file(path)
    known = kind.format if kind else None
    if reading.columns and path.suffix.lower() in CASE_FILES and head.strip():
        titles = _titles_in(head, path.suffix.lower())
        if not (kind and kind.is_test) or any(title.strip() in titles for _, title in reading.columns):
            return "testspec"
    source_format = known or recognise(head)
    if not head.strip():
        raise FormatError(f"{label} is empty", actions=[_known()])
    if source_format is None and len(head) >= HEAD_BYTES:
        source_format = recognise(read_bytes(path))
    if source_format is None:
        raise _unknown(head, label)
    if source_format == "testspec" and known is None:
        raise _not_a_test(path, label, kind.why_not if kind else "")
    return source_format


def digest_of(path: Path, reading: Reading) -> str:
    """Return a hash of a file, of the settings that apply to it and of the files with cases and schemas it names."""
    digest = sha256()
    names_files = False
    for chunk in chunks_of(path):
        digest.update(chunk)
        names_files = names_files or _FILE in chunk
    for settings in filter(Path.is_file, settings_beside(path, reading)):
        digest.update(read_bytes(settings))
    for file in named_files(path, by_format=names_files):
        digest.update(read_bytes(file))
    return digest.hexdigest()


def settings_beside(path: Path, reading: Reading) -> list[Path]:
    """Return the files with settings that apply to a file if they exist."""
    return [Path(reading.config)] if reading.config else [*map(path.with_name, sorted(settings_files()))]


def named_files(path: Path, *, by_format: bool = True) -> list[Path]:
    """Return the files with cases and schemas that a file names and that exist; `by_format` also in its own words."""
    if path.suffix.lower() not in SEARCHED:
        return []
    from evalmeta.formats.case_files import files_of, schemas_of

    cases = files_of(path)
    schemas = dict.fromkeys(schema for file in (path, *cases) for schema in schemas_of(file))
    kind = kind_of_file(path) if by_format else None
    named = all_formats()[kind.format].files_of(path) if kind and kind.format else ()
    return [*cases, *schemas, *named]


def kind_of_file(path: Path) -> FileKind | None:
    """Return what a file is by its name and content; None for definitions, and files that no search looks at."""
    if by_name := first_format(lambda declared: any(map(path.name.endswith, declared.endings))):
        return FileKind(by_name)
    if path.suffix.lower() not in SEARCHED:
        return None
    from evalmeta.formats.discovery import kind_of

    return kind_of(path)


def _titles_in(head: bytes, suffix: str) -> set[str]:
    """Return the titles of a table with each delimiter, or the keys of the first of JSON Lines."""
    text = head.removeprefix(_UTF8_MARK).decode("utf-8", "replace")
    if suffix in TABLE_NAMES:
        return {title.strip() for row in titles_of(text) for title in row}
    for line in filter(str.strip, text.split("\n")):
        with suppress(orjson.JSONDecodeError):
            value = orjson.loads(line)
            return set(value) if isinstance(value, dict) else set()
    return set()


def _known() -> str:
    *descriptions, last = (declared.description for declared in listed_formats() if declared.description)
    return f"A test file is {', '.join(descriptions)}, or {last}."


def _not_a_test(path: Path, label: str, why_not: str) -> FormatError:
    suffix = path.suffix.lower()
    if suffix in TABLE_NAMES:
        action = "Rename the column with the questions to input, or to Utterance as in a table of the Testing Center."
        mapped = "Or say which column it is: --columns input=TITLE"
        return FormatError(f"{label} is not a table of tests: {why_not}", actions=[action, mapped])
    if suffix in SPEC_NAMES:
        return FormatError(f"{label} is not a test spec: {why_not}", actions=[_SPEC_EXAMPLE, _known()])
    if suffix == ".json":
        # Raises an error with the place where it stops being JSON.
        read_json(read_bytes(path), label=label)
    return FormatError(f"{label} is not a test file{f': {why_not}' if why_not else ''}", actions=[_known()])


def _unknown(head: bytes, label: str) -> FormatError:
    try:
        value: JsonValue = orjson.loads(head)
    except orjson.JSONDecodeError:
        value = None
    refusals = (declared.refusal(value, label) for declared in all_formats().values() if isinstance(value, dict))
    if refusal := next(filter(None, refusals), None):
        return refusal
    if value == []:
        return FormatError(f"{label} is an empty list: it has no test cases", actions=[_known()])
    item, where = (value[0], "its first item has") if isinstance(value, list) else (value, "it has")
    keys = ", ".join(repr(key[:40]) for key in [*item][:8]) if isinstance(item, dict) else ""
    described = f": {where} the keys {keys}" if keys else ""
    return FormatError(f"{label} has a format that evalmeta does not know{described}", actions=[_known()])


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
