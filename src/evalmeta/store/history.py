"""The history of runs in the project's own org and in others, the stored runs of other orgs, and baselines.

A baseline has the results of tests' cases, in a JSON file that is committed beside the tests. The file has one line for
each case, sorted by test name and case number, and no times, so that commits show changes.

    {"evalmeta": "baseline", "version": 1,
     "tests": {NAME: {"cases": {"1": {"utterance": ..., "passed": 1, "failed": 0}}}}}

A case with errors also has "errors", the number of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.model.aggregation import counted_verdicts
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunStatus
from evalmeta.model.statistics import CaseCounts
from evalmeta.package.files import parse_file_name, put_file, read_file
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.protocol.run_options import read_options
from evalmeta.store.database import SHORT_ID_CHARS, open_database
from evalmeta.store.run_counts import COUNTED, counts_of_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import Run, RunOptions
    from evalmeta.package.files import FileState
    from evalmeta.store.database import Database, Row

    Tests = Mapping[str, tuple[CaseCounts, ...]]


_LATEST: Final = """
    SELECT * FROM (
      SELECT '' AS org_url, '' AS org_name, id, definition, status, coalesce(started_at, created_at) AS started_at,
        ended_at, total,
        NULL AS passed, NULL AS failed, NULL AS errors, NULL AS undecided, 1 AS is_here, answers_of, options
      FROM run
      UNION ALL
      SELECT org_url, org_name, id, definition, status, started_at, ended_at, total, passed, failed, errors, undecided,
        0, NULL, body
      FROM remote_run
    )
    WHERE ?1 IS NULL OR definition = ?1 COLLATE NOCASE
    ORDER BY started_at DESC, id DESC LIMIT ?2
"""
_COMPLETE: Final = """
    SELECT '' AS org_url, id, definition, coalesce(started_at, created_at) AS started_at,
      CASE WHEN substr(content, 1, 8) = CAST('{"file":' AS BLOB) THEN content END AS file
    FROM run WHERE status = 'COMPLETED'
    UNION ALL
    SELECT org_url, id, definition, started_at, NULL FROM remote_run WHERE status = 'COMPLETED'
    ORDER BY started_at, id
"""
_NEWEST: Final = """
    SELECT org_url, id, definition, status FROM (
      SELECT '' AS org_url, id, definition, status, coalesce(started_at, created_at) AS started_at FROM run
      UNION ALL
      SELECT org_url, id, definition, status, started_at FROM remote_run
    )
    WHERE (?1 IS NULL OR definition = ?1 COLLATE NOCASE) AND (?2 IS NULL OR org_url = ?2)
    ORDER BY started_at DESC, id DESC
"""
_NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run in a list, with its org, its times and the counts of its case results.

    Attributes:
        org_url: the org's address; empty for the project's own org.
        org_name: the name of the org when the run started; empty for the project's own org.
        total: the number of case results of the complete run.
        passed: the number of case results; so are `failed`, `errors` and `undecided`.
        is_partial: whether it asked only some of the test's cases.
        answers_of: the run whose answers it judged again; None if an agent was asked.
        is_stopped: whether it is in progress although no process works on it.
    """

    org_url: str
    org_name: str
    id: str
    definition: str
    status: RunStatus
    started: float
    ended: float | None
    total: int
    passed: int
    failed: int
    errors: int
    undecided: int
    is_partial: bool = False
    answers_of: str | None = None
    is_stopped: bool = False

    @property
    def pass_rate(self) -> float | None:
        """Return passed / (passed + failed), 0 to 1; None if no case was judged."""
        decided = self.passed + self.failed
        return self.passed / decided if decided else None

    @property
    def is_whole(self) -> bool:
        """Return whether an agent was asked all cases: only such runs have comparable pass rates."""
        return self.status is RunStatus.COMPLETED and not self.is_partial and self.answers_of is None


class CompleteRun(NamedTuple):
    """A complete run; `org_url` is empty for the project's own org, and `file` for runs of deployed definitions."""

    org_url: str
    id: str
    definition: str
    started: float
    file: str = ""


class KnownRun(NamedTuple):
    """A run in any state; `org_url` is empty for the project's own org."""

    org_url: str
    id: str
    definition: str
    status: RunStatus


def newest_runs(database: Database, *, definition: str | None = None, org_url: str | None = None) -> list[KnownRun]:
    """List the runs of a definition, or of all, in an org, or in all, the newest first."""
    rows = database.query(_NEWEST, (definition, org_url))
    return [KnownRun(url, run_id, name, RunStatus(status)) for url, run_id, name, status in rows]


def complete_runs(database: Database) -> list[CompleteRun]:
    """List the complete runs of all orgs, the oldest first; their cases are not read."""
    return [
        CompleteRun(url, run_id, definition, started, orjson.loads(content)["file"] if content else "")
        for url, run_id, definition, started, content in database.query(_COMPLETE)
    ]


def list_runs(database: Database, *, definition: str | None = None, limit: int | None = None) -> list[PastRun]:
    """List the runs of a definition, or of all, in all orgs, the oldest first; at most the latest `limit`."""
    rows = database.query(_LATEST, (definition, _NO_LIMIT if limit is None else limit))
    options = {run_id: read_options(orjson.loads(body)) for _, _, run_id, *_, is_here, _, body in rows if is_here}
    counts = counts_of_runs(database, options)
    return [_past_run(row, options, counts) for row in reversed(rows)]


def _past_run(row: Row, own: Mapping[str, RunOptions], own_counts: Mapping[str, list[int]]) -> PastRun:
    url, name, run_id, definition, status, started, ended, total, *counts, is_here, answers_of, body = row
    if is_here:
        options, counts = own[run_id], own_counts[run_id]
    else:
        run = read_run({**orjson.loads(body), "testCases": []})
        options, answers_of = run.options, run.answers_of
    place = url, name, run_id, definition, RunStatus(status), started, ended, total
    passed, failed, errors, undecided = counts
    return PastRun(*place, passed, failed, errors, undecided, options.is_partial, answers_of)


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run in another org."""

    org_url: str
    org_name: str  # an alias, a username or the address, as the org was called when the run started
    run: Run  # the last known state; its id is that of the first job
    jobs: tuple[str, ...]  # the ids of the org's own runs, one for each iteration that has started
    content: bytes | None = None  # the definition as it was in the org; None if it was not retrieved


class RemoteRuns:
    """The runs of other orgs."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, remote: RemoteRun) -> None:
        """Save the current state of a run."""
        run = remote.run
        verdicts = Counter(verdict for _, verdict in counted_verdicts(run.cases, run.options))
        sql = """
            INSERT OR REPLACE INTO remote_run
              (org_url, id, org_name, definition, status, started_at, ended_at, total,
               passed, failed, errors, undecided, jobs, body, suite, branch, content)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
        place = (remote.org_url, run.id, remote.org_name, run.definition)
        times = (run.status.value, run.started, run.ended, run.total)
        counts = tuple(verdicts[each] for each in COUNTED)
        blobs = (orjson.dumps(remote.jobs), orjson.dumps(write_run(run, escape=False)))
        origin = (run.options.origin.suite or None, run.options.origin.branch or None)
        self._database.execute(sql, (*place, *times, *counts, *blobs, *origin, remote.content))

    def find(self, run_id: str, *, org_url: str | None = None) -> list[RemoteRun]:
        """Return the runs with an id of 15 or 18 characters, the latest first; several orgs may have the same id."""
        sql = """
            SELECT org_url, org_name, jobs, body, content FROM remote_run
            WHERE id >= ?1 AND id < ?1 || '~' AND (?2 IS NULL OR org_url = ?2) ORDER BY started_at DESC
        """
        return list(map(_remote_run, self._database.query(sql, (run_id[:SHORT_ID_CHARS], org_url))))

    def same(self, remote: RemoteRun, *, limit: int) -> list[RemoteRun]:
        """Return at most `limit` complete runs of the same definition, unchanged, in the same org, the newest first.

        The run itself is not one of them.
        """
        sql = """
            SELECT org_url, org_name, jobs, body, content FROM remote_run
            WHERE org_url = ? AND definition = ? AND content = ? AND status = 'COMPLETED' AND id <> ?
            ORDER BY started_at DESC LIMIT ?
        """
        values = (remote.org_url, remote.run.definition, remote.content, remote.run.id, limit)
        return list(map(_remote_run, self._database.query(sql, values)))


def _remote_run(row: Row) -> RemoteRun:
    url, name, jobs, body, content = row
    return RemoteRun(url, name, read_run(orjson.loads(body)), tuple(orjson.loads(jobs)), content)


@contextmanager
def open_remote_runs(state_dir: Path) -> Iterator[RemoteRuns]:
    """Open the stored runs of other orgs in a state folder."""
    with open_database(state_dir) as database:
        yield RemoteRuns(database)


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
    """Return the counts of each test's cases, in order of number; a UsageError has file, line and column."""
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
    """Write a baseline unless the file already has this content; return what was done."""
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
    names = _full_names(tests)
    return {names[name]: tuple(_read_cases(name, _object(each, "tests", name))) for name, each in tests.items()}


def _full_names(names: Collection[str]) -> dict[str, str]:
    """Return the full name for each name: earlier baselines have the path of a definition that was run as a file.

    Paths with the same full name are kept, because they are different tests.
    """
    parsed = {name: parse_file_name(PurePosixPath(name).name) for name in names}
    full = {name: baseline_name(*found) if found else name for name, found in parsed.items()}
    counts = Counter(full.values())
    return {name: each if counts[each] == 1 else name for name, each in full.items()}


def baseline_name(kind: MetadataType, full_name: str) -> str:
    """Return what a definition is called in baselines: `Type:Name` for other types than AiEvaluationDefinition."""
    return full_name if kind == EVALUATION_DEFINITION else f"{kind.name}:{full_name}"


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
