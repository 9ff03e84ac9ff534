"""Which files in folders are tests, and why others are not: by their names, and by the beginning of their content.

A test with mistakes is a test, so that its mistakes are reported. Files of other programs are not, and keep a reason.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.formats import likeness
from evalmeta.formats.document import LINES_NAMES, SPEC_NAMES, TABLE_NAMES, read_bytes
from evalmeta.formats.registry import HEAD_BYTES, FileHead, FileKind, all_formats, first_format, recognise, without_mark
from evalmeta.formats.sources import titles_of
from evalmeta.formats.yaml_source import peek_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.formats.registry import Content
    from evalmeta.model.json_value import JsonObject, JsonValue


_TEXT_BYTES: Final = 4_096
# How much of a file is parsed: enough for its keys, and little enough to search thousands of files.
_PARSED_CHARS: Final = 262_144
_ROWS: Final = 20
_SHOWN: Final = 6
_SHOWN_CHARS: Final = 40

_BASELINE: Final = re.compile(rb'\s*\{\s*"evalmeta"\s*:\s*"baseline"')
_COMMENT: Final = re.compile(rb"^[ \t]*#.*(?:\n|\Z)", re.MULTILINE)
_YAML_KEY: Final = re.compile(rb"""(?:^|[\s{,\[-])["']?([A-Za-z][\w.-]{0,60})["']?[ \t]*:""", re.MULTILINE)
_ROOT_KEY: Final = re.compile(rb"""^["']?([$A-Za-z][\w.$-]{0,60})["']?[ \t]*:""", re.MULTILINE)
_JSON_KEY: Final = re.compile(rb'"([$A-Za-z][\w.$ -]{0,60})"[ \t\r\n]*:')
_VARIABLE: Final = re.compile("context variable ")

# The keys at the root of files of other programs, and what to say of them; the first row that fits is it.
_RESULTS: Final = ("it has the results of a run", ("testCases", "subjectName", "status"))
_PROGRAMS: Final = (
    ("it is an OpenAPI description", ("openapi",)),
    ("it is an OpenAPI description", ("swagger",)),
    ("it is a JSON Schema", ("$schema", "properties")),
    ("it is a CI workflow", ("on", "jobs")),
    ("it is a CI workflow", ("version", "jobs")),
    ("it is a GitHub Action", ("runs", "inputs")),
    ("it is a Compose file", ("services",)),
    ("it is a Kubernetes manifest", ("apiVersion", "kind")),
    ("it is a Helm chart", ("apiVersion", "name")),
    ("it is an agent spec of Salesforce", ("agentType",)),
    ("it is a pre-commit configuration", ("repos",)),
    ("it is a Dependabot configuration", ("version", "updates")),
    ("it is a MkDocs configuration", ("site_name",)),
    ("it is an npm lock file", ("lockfileVersion",)),
    ("it is an npm package", ("name", "scripts")),
    ("it is a TypeScript configuration", ("compilerOptions",)),
    ("it is the configuration of a Salesforce project", ("packageDirectories",)),
)


def kind_of(path: Path) -> FileKind:
    """Return what a file with one of the names `SEARCHED` is.

    YAML is read up to the limit of test specs, everything else up to `HEAD_BYTES`. Only a file that has keys like those
    of tests is parsed.
    """
    suffix = path.suffix.lower()
    try:
        data = read_bytes(path, limits.MAX_SPEC_BYTES if suffix in SPEC_NAMES else HEAD_BYTES)
    except NotFound as error:
        return FileKind(None, str(error))
    file = FileHead(path.name, _CONTENTS.get(suffix, "json"), without_mark(data))
    if not file.data.strip():
        return FileKind(None, "" if _certain(file) else "it is empty")
    if b"\0" in file.data[:_TEXT_BYTES]:
        return FileKind(None, "it is not a text file")
    return _KINDS[file.content](file)


_CONTENTS: Final[Mapping[str, Content]] = {
    **dict.fromkeys(SPEC_NAMES, "yaml"),
    **dict.fromkeys(TABLE_NAMES, "table"),
    **dict.fromkeys(LINES_NAMES, "lines"),
}


def _kind_of_yaml(file: FileHead) -> FileKind:
    head = _COMMENT.sub(b"", file.data)
    root, words = _found(_ROOT_KEY, head), _found(_YAML_KEY, head)
    if not likeness.has_words(words):
        return FileKind(None, _reason(root))
    if "testCases" in root and not _program(root):
        return FileKind("testspec")
    try:
        value = _parsed(head)
    except ValueError:
        is_test = likeness.is_damaged_spec(root or words, words, is_yaml=True)
    else:
        if kind := _named_only(first_format(lambda declared: declared.recognises(value))):
            return kind
        root = [*value] if isinstance(value, dict) else []
        is_test = not _program(root) and likeness.is_spec(value, is_yaml=True)
    return FileKind("testspec") if is_test else FileKind(None if _program(root) else "testspec", _reason(root))


def _parsed(head: bytes) -> JsonValue:
    """Return the value of a YAML file, of a long one that of its first lines; raise ValueError if it is not YAML."""
    if head.lstrip().startswith((b"{", b"[")) and (value := _json(head)) is not None:
        return value
    text = head.decode("utf-8", "replace")
    if len(text) > _PARSED_CHARS:
        text = text[: text.rfind("\n", 0, _PARSED_CHARS) + 1]
        if not text:
            raise ValueError("the first line is too long")
    return peek_yaml(text)


def _named_only(name: str | None) -> FileKind | None:
    """Return the kind of a file whose format is read only if a person names the file; None for other formats."""
    why_not = all_formats()[name].named_only if name else ""
    return FileKind(name, why_not) if why_not else None


def _kind_of_table(file: FileHead) -> FileKind:
    titles = titles_of(file.data.decode("utf-8", "replace"))
    rows = [[" ".join(title.split()) for title in row] for row in titles]
    file = file._replace(format=recognise(file.data), rows=rows)
    if name := _certain(file):
        return FileKind(name)
    if kind := _named_only(file.format):
        return kind
    small = ({title.lower() for title in row} for row in file.rows)
    has_variables = any("utterance" in row and any(map(_VARIABLE.match, row)) for row in small)
    if has_variables or any(map(likeness.is_case, file.rows)):
        return FileKind("csv" if file.format == "csv" else "testspec")
    columns = [*max(file.rows, key=len)]
    is_unclear = file.format == "testspec" and "input" not in columns
    return FileKind(None if is_unclear else file.format, _reason(columns, "columns"))


def _certain(file: FileHead) -> str | None:
    return first_format(lambda declared: declared.is_test(file))


def _kind_of_lines(file: FileHead) -> FileKind:
    lines = [line for line in file.data.split(b"\n")[:_ROWS] if line.strip()]
    rows = [value for value in map(_json, lines) if isinstance(value, dict)]
    keys = [*rows[0]] if rows else _found(_JSON_KEY, file.data)
    recognised = recognise(file.data)
    if name := _certain(file._replace(rows=rows, format=recognised)):
        return FileKind(name)
    if kind := _named_only(recognised):
        return kind
    if any(likeness.is_spec([row], is_yaml=False) for row in rows or [dict.fromkeys(keys)]):
        return FileKind("testspec")
    return FileKind(None if recognised == "testspec" and "input" not in keys else recognised, _reason(keys))


def _kind_of_json(file: FileHead) -> FileKind:
    if _BASELINE.match(file.data):
        return FileKind(None, "it is a baseline of evalmeta", is_baseline=True)
    file = file._replace(format=recognise(file.data), value=_json(file.data))
    if file.value is None:
        return _kind_of_damaged_json(file)
    root = [*file.value] if isinstance(file.value, dict) else []
    items = file.value.get("rows") if isinstance(file.value, dict) else file.value
    rows = [row for row in (items[:_ROWS] if isinstance(items, list) else ()) if isinstance(row, dict)]
    if kind := _named_only(file.format):
        return kind
    return _kind_of_value(file, root, rows)


def _kind_of_value(file: FileHead, root: Sequence[str], rows: Sequence[JsonObject]) -> FileKind:
    if program := _program(root):
        return FileKind(file.format, program)
    if likeness.has_key_of_format(root) or _certain(file._replace(keys=root, rows=rows)):
        return FileKind(file.format)
    if likeness.is_spec(file.value, is_yaml=False):
        return FileKind("testspec")
    return FileKind(file.format, _reason(root or [*(rows[0] if rows else ())]))


def _kind_of_damaged_json(file: FileHead) -> FileKind:
    """Return what a file is that is not valid JSON, or too long to be parsed here, by its keys."""
    words = _found(_JSON_KEY, file.data)
    if likeness.has_key_of_format(words) or _certain(file._replace(keys=words)):
        return FileKind(file.format)
    if likeness.is_damaged_spec(words, words, is_yaml=False):
        return FileKind("testspec")
    why = _reason(words) if len(file.data) > HEAD_BYTES else "it is not valid JSON"
    return FileKind(None if file.format == "testspec" else file.format, why)


_KINDS: Final[dict[Content, Callable[[FileHead], FileKind]]] = {
    "yaml": _kind_of_yaml,
    "table": _kind_of_table,
    "lines": _kind_of_lines,
    "json": _kind_of_json,
}


def _json(data: bytes) -> JsonValue:
    """Return a value; None if it is damaged or cut."""
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value


def _found(keys: re.Pattern[bytes], head: bytes) -> list[str]:
    return [key.decode() for key in dict.fromkeys(keys.findall(head))]


def _program(root: Iterable[str]) -> str:
    """Return which other program has a file with these keys at its root; empty if none is known."""
    return next((name for name, keys in _programs() if {*keys} <= {*root}), "")


@cache
def _programs() -> list[tuple[str, tuple[str, ...]]]:
    return [_RESULTS, *(row for declared in all_formats().values() for row in declared.other_files), *_PROGRAMS]


def _reason(keys: Sequence[str], called: str = "keys") -> str:
    if program := _program(keys) if called == "keys" else "":
        return program
    if {"input", "utterance", "Utterance"}.isdisjoint(keys):
        names = ", ".join(one if len(one) <= _SHOWN_CHARS else f"{one[:_SHOWN_CHARS]}…" for one in keys[:_SHOWN])
        more = ", …" if len(keys) > _SHOWN else ""
        return f"it has no test cases; its {called} are {names}{more}" if names else "it has no test cases"
    return f"it has no check, such as contains; its {called} are {', '.join(keys[:_SHOWN])}"
