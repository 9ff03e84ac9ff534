"""Baselines: JSON files with the results of tests' cases, which are committed beside the tests.

The file has one line for each case, sorted by test name and case number, and no times, so that commits show changes.

    {"evalmeta": "baseline", "version": 2,
     "tests": {NAME: {"subject": ..., "agent": ..., "rater": ..., "options": ..., "evalmeta": ...,
                      "cases": {"1": {"utterance": ..., "checks": ..., "passed": [1, 1], "failed": [0, 0]}}}}}

`passed` and `failed` have a number for each run, the latest last. A case with errors or undecided results also has
"errors" or "undecided". What is not known is left out. In version 1, which pytest's reports have, they are numbers.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NoReturn

from evalmeta import limits
from evalmeta.errors import FormatError, UsageError
from evalmeta.formats.sources import JsonFile, read_json
from evalmeta.model.comparison import KnownTest, KnownTests
from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType
from evalmeta.model.run_options import Setup
from evalmeta.model.statistics import CaseCounts, RunCounts
from evalmeta.package.files import FileState, put_file, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject, JsonValue


VERSION: Final = 2
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_RARE: Final = ("errors", "undecided")
_COUNTS: Final = ("passed", "failed", *_RARE)
_WAY_OUT: Final = "Restore the committed file, or write a new one with `evalmeta test baseline`."
# The keys of a test and the fields of its setup.
_SETUP: Final = {
    "agent": "agent",
    "agentVersion": "agent_version",
    **{key: key for key in ("rater", "prompt", "evalmeta")},
}


def read_baseline(path: Path) -> dict[str, KnownTest]:
    """Return the tests of a baseline by name; a UsageError has file, line and column."""
    try:
        file = read_json(read_file(path, max_bytes=limits.MAX_JSON_BYTES), label=str(path))
    except FormatError as error:
        raise UsageError(error.message, actions=[_WAY_OUT]) from None
    return _Reader(file).tests()


def write_baseline(path: Path, tests: KnownTests) -> FileState:
    """Write a baseline unless the file already has this content; return what was done."""
    blocks = [f"    {_quote(name)}: {_test_block(tests[name])}" for name in sorted(tests)]
    head = f'{{\n  "evalmeta": "baseline",\n  "version": {VERSION},\n  "tests": '
    return put_file(path, f"{head}{_block(blocks, 2)}\n}}\n".encode())


def baseline_name(kind: MetadataType, full_name: str) -> str:
    """Return what a definition is called in baselines: `Type:Name` for other types than AiEvaluationDefinition."""
    return full_name if kind == EVALUATION_DEFINITION else f"{kind.name}:{full_name}"


def _test_block(test: KnownTest) -> str:
    texts = {"subject": test.subject, **{key: getattr(test.setup, name) for key, name in _SETUP.items()}}
    known = {**texts, "options": test.options}
    lines = [f'      "{key}": {_quote(text)}' for key, text in known.items() if text]
    return _block([*lines, f'      "cases": {_block(_case_lines(test.cases), 6)}'], 4)


def _block(lines: Iterable[str], indent: int) -> str:
    inner = ",\n".join(lines)
    return f"{{\n{inner}\n{' ' * indent}}}" if inner else "{}"


def _case_lines(cases: Iterable[CaseCounts]) -> Iterator[str]:
    for case in sorted(cases, key=lambda case: case.number):
        columns = dict(zip(_COUNTS, map(list, zip(*case.by_run, strict=True)), strict=True))
        known = {"asked": case.asked, "checks": case.checks}
        values: dict[str, JsonValue] = {
            "utterance": case.utterance,
            **{key: text for key, text in known.items() if text},
            **{key: column for key, column in columns.items() if any(column) or key not in _RARE},
        }
        yield f'        "{case.number}": {json.dumps(values, ensure_ascii=False)}'


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class _Reader:
    """Reads the tests of a JSON file; errors have the place of the value, or of the innermost one around it."""

    def __init__(self, file: JsonFile) -> None:
        self._file = file

    def tests(self) -> dict[str, KnownTest]:
        root = self._object(self._file.value)
        if root.get("evalmeta") != "baseline":
            self._fail('is not a baseline of evalmeta: it has no "evalmeta": "baseline"')
        # True and 1.0 equal 1.
        if repr(version := root.get("version")) not in {"1", "2"}:
            self._fail(f"{version!r} is not supported, only 1 and {VERSION}", "version")
        tests = self._object(root.get("tests"), "tests")
        return {name: self._test(name, self._object(test, "tests", name)) for name, test in tests.items()}

    def _test(self, name: str, test: JsonObject) -> KnownTest:
        cases = self._object(test.get("cases"), "tests", name, "cases")
        counts = [self._case(number, case, "tests", name, "cases", number) for number, case in cases.items()]
        texts = {field: self._text(test.get(key, ""), "tests", name, key) for key, field in _SETUP.items()}
        subject, options = (self._text(test.get(key, ""), "tests", name, key) for key in ("subject", "options"))
        ordered = tuple(sorted(counts, key=lambda case: case.number))
        return KnownTest(ordered, subject, options, Setup(**texts))

    def _case(self, number: str, value: JsonValue, *where: str) -> CaseCounts:
        case = self._object(value, *where)
        if not _NUMBER.fullmatch(number):
            self._fail("is not a case number", *where)
        utterance = self._text(case.get("utterance"), *where, "utterance")
        asked, checks = (self._text(case.get(key, ""), *where, key) for key in ("asked", "checks"))
        passed = self._column(case.get("passed"), *where, "passed")
        columns = [passed, self._column(case.get("failed"), *where, "failed")]
        columns += [self._column(case.get(key, [0] * len(passed)), *where, key) for key in _RARE]
        if odd := next((key for key, column in zip(_COUNTS, columns, strict=True) if len(column) != len(passed)), ""):
            self._fail(f"must have a number for each of the {len(passed)} runs in 'passed'", *where, odd)
        return CaseCounts.of_runs(int(number), utterance, tuple(map(RunCounts, *columns)), checks=checks, asked=asked)

    def _object(self, value: JsonValue, *where: str) -> JsonObject:
        if not isinstance(value, dict):
            self._fail("must be an object", *where)
        return value

    def _text(self, value: JsonValue, *where: str) -> str:
        if not isinstance(value, str):
            self._fail("must be a string", *where)
        return value

    def _column(self, value: JsonValue, *where: str) -> list[int]:
        """Return a number for each run; a number alone stands for one run, as in version 1."""
        numbers = value if isinstance(value, list) else [value]
        if not numbers:
            self._fail("must have a number for each run", *where)
        return [self._count(number, *where) for number in numbers]

    def _count(self, value: JsonValue, *where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limits.MAX_INTEGER:
            self._fail("must be a whole number of at least 0", *where)
        return value

    def _fail(self, message: str, *where: str) -> NoReturn:
        line, column = self._file.place(where)
        what = ".".join(where) or "the file"
        raise UsageError(f"{self._file.label}:{line}:{column}: {what} {message}", actions=[_WAY_OUT])
