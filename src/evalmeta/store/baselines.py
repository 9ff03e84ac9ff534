"""Baselines: the results of tests' cases, as a JSON file that is committed beside the tests.

The file has one line for each case, sorted by test name and case number, and no times, so that commits show changes.

    {"evalmeta": "baseline", "version": 1,
     "tests": {NAME: {"cases": {"1": {"utterance": ..., "passed": 1, "failed": 0}}}}}

A case with errors also has "errors", the number of them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.model.statistics import CaseCounts
from evalmeta.package.files import put_file, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.package.files import FileState

    Tests = Mapping[str, tuple[CaseCounts, ...]]


_VERSION: Final = 1
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
# The tokens of valid JSON.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')


class _ShapeError(Exception):
    """An invalid value, and the keys that lead to it."""

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys


def read_baseline(path: Path) -> dict[str, tuple[CaseCounts, ...]]:
    """Return the counts of each test's cases, in order of number.

    Raises:
        UsageError: The file cannot be read or is not a valid baseline; the message has file, line and column.
    """
    text = _read_text(path)
    try:
        return _read_tests(json.loads(text))
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}:{error.colno}: is not valid JSON: {error.msg}"
    except (RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"
        message = f"{path}: is not valid JSON: {why}"
    except _ShapeError as error:
        line, column = _position(text, error.keys)
        message = f"{path}:{line}:{column}: {'.'.join(error.keys) or 'the file'} {error}"
    raise UsageError(message, actions=["Restore the committed file, or write a new one with `evalmeta test baseline`."])


def write_baseline(path: Path, tests: Tests) -> FileState:
    """Write a baseline unless the file already has this content; return what was done.

    Raises:
        ProjectError: The file cannot be written.
    """
    return put_file(path, render_baseline(tests).encode())


def render_baseline(tests: Tests) -> str:
    """Return the text of a baseline."""
    blocks = ",\n".join(
        f'    {_quote(name)}: {{\n      "cases": {_block(_case_lines(tests[name]), 6)}\n    }}'
        for name in sorted(tests)
    )
    head = f'{{\n  "evalmeta": "baseline",\n  "version": {_VERSION},\n  "tests": '
    return f"{head}{_block([blocks] if blocks else [], 2)}\n}}\n"


def _block(lines: Iterable[str], indent: int) -> str:
    inner = ",\n".join(lines)
    return f"{{\n{inner}\n{' ' * indent}}}" if inner else "{}"


def _case_lines(cases: Iterable[CaseCounts]) -> Iterator[str]:
    for each in sorted(cases, key=lambda case: case.number):
        counts = f'"passed": {each.passed}, "failed": {each.failed}'
        counts += f', "errors": {each.errors}' if each.errors else ""
        yield f'        "{each.number}": {{"utterance": {_quote(each.utterance)}, {counts}}}'


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _read_text(path: Path) -> str:
    data = read_file(path, max_bytes=limits.MAX_JSON_BYTES)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: is not UTF-8", actions=["Save the file as UTF-8."]) from None


def _read_tests(document: JsonValue) -> dict[str, tuple[CaseCounts, ...]]:
    root = _object(document)
    if root.get("evalmeta") != "baseline":
        raise _ShapeError('is not a baseline of evalmeta: it has no "evalmeta": "baseline"')
    if root.get("version") != _VERSION:
        raise _ShapeError(f"{root.get('version')!r} is not supported, only {_VERSION}", "version")
    tests = _object(root.get("tests"), "tests")
    if broken := [name for name in tests if not _is_unicode(name)]:
        raise _ShapeError(f"has a test name with a lone surrogate: {broken[0]!a}", "tests")
    return {name: tuple(_read_cases(name, _object(each, "tests", name))) for name, each in tests.items()}


def _read_cases(name: str, test: JsonObject) -> list[CaseCounts]:
    where = ("tests", name, "cases")
    cases = _object(test.get("cases"), *where)
    return sorted((_read_case(number, each, *where) for number, each in cases.items()), key=lambda case: case.number)


def _read_case(number: str, value: JsonValue, *where: str) -> CaseCounts:
    case = _object(value, *where, number)
    if not _NUMBER.fullmatch(number):
        raise _ShapeError("is not a case number", *where, number)
    utterance = case.get("utterance")
    if not isinstance(utterance, str):
        raise _ShapeError("must be a string", *where, number, "utterance")
    if not _is_unicode(utterance):
        raise _ShapeError("has a lone surrogate", *where, number, "utterance")
    passed, failed = (_count(case.get(key), *where, number, key) for key in ("passed", "failed"))
    errors = _count(case.get("errors", 0), *where, number, "errors")
    return CaseCounts(int(number), utterance, passed, failed, errors)


def _object(value: JsonValue, *keys: str) -> JsonObject:
    if not isinstance(value, dict):
        raise _ShapeError("must be an object", *keys)
    return value


def _count(value: JsonValue, *keys: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limits.MAX_INTEGER:
        raise _ShapeError("must be a whole number of at least 0", *keys)
    return value


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: JSON escapes can contain lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _position(text: str, keys: tuple[str, ...]) -> tuple[int, int]:
    """Return line and column of a key, or of the nearest existing key around it."""
    found = max(_matches(text, keys), default=(0, 0))[1]
    return text.count("\n", 0, found) + 1, found - text.rfind("\n", 0, found)


def _matches(text: str, keys: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield each position whose path begins `keys`: the length of the path, and the offset."""
    around: list[str | None] = []
    key, quoted, start = None, "", 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                around.append(key)
                key = None
            case "}" | "]":
                key = around.pop()
            case ",":
                key = None
            case ":":
                key = json.loads(quoted)
                path = (*around[1:], key)
                if path == keys[: len(path)]:
                    yield len(path), start
            case quoted:
                start = token.start()
