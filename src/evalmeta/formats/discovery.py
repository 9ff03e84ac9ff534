"""Which files in folders are tests: by their names, and by the beginning of YAML and CSV files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.errors import NotFound
from evalmeta.formats.csv_source import titles_of
from evalmeta.formats.document import read_bytes, without_mark
from evalmeta.model.expectations import CHECKS

if TYPE_CHECKING:
    from pathlib import Path


TEST_NAMES: Final = (".test.json", ".evalset.json")
"""How ADK and Ballerina name tests."""

SPEC_NAMES: Final = (".yaml", ".yml")
TABLE_NAMES: Final = (".csv",)
CASE_FILES: Final = (".csv", ".tsv", ".jsonl", ".ndjson")
"""The files with test cases that a test spec can name."""

_PEEK_BYTES: Final = 65_536
_KEYS_OF_SPECS: Final = 2
_SPEC_KEY: Final = re.compile(rb"""^["']?(testCases|subjectName|subjectType)["']?[ \t]*:""", re.MULTILINE)
# A spec that names neither a subject nor its type: its cases, what they ask, and a check; or a file with the cases.
_OWN_SPEC: Final = (
    re.compile(rb"""^["']?(?:testCases|cases)["']?[ \t]*:""", re.MULTILINE),
    re.compile(rb"""[\s{,"'-](?:utterance|input|turns)["']?[ \t]*:"""),
    re.compile(
        rb"""[\s{,"'-](?:%b|latency_ms|topic|actions|expected[A-Z]\w+|metrics|customEvaluations)["']?[ \t]*:"""
        % "|".join(sorted(CHECKS)).encode()
    ),
)
_OWN_FILE: Final = re.compile(rb"""^["']?cases["']?[ \t]*:[ \t\[]*\S.*\.(?:csv|tsv|jsonl|ndjson)\b""", re.MULTILINE)
# A damaged spec too, and the key that shows that a file is an agent spec.
_LIKE_SPEC: Final = re.compile(
    rb"""^[\s{"'-]*(?:(?:test_?)?cases?|subject_?\w*|utterance|input|turns|agentType)["']?[ \t]*:""",
    re.MULTILINE | re.IGNORECASE,
)
_RUN_EVAL: Final = (b'"tests"', b'"steps"', b'"agent.create_session"')
_TABLE_TITLES: Final = re.compile(
    r"expected (?:topic|subagent|actions|response)|conversation history|context variable .+", re.IGNORECASE
)


def is_test(path: Path) -> bool:
    """Return whether a file in a folder is a test, or a damaged one.

    A test spec has at least two of the keys testCases, subjectName and subjectType; or one of testCases and cases,
    and in its cases what they ask and a check; or `cases` names a file. A table of the Testing Center has
    the column Utterance and another one of its template. A payload of `sf agent test run-eval` begins a session. At
    most 64 KiB of a file are read.
    """
    if path.name.endswith(TEST_NAMES):
        return True
    if path.suffix in SPEC_NAMES:
        return is_spec(_beginning(path))
    if path.suffix == ".json":
        beginning = _beginning(path)
        return all(each in beginning for each in _RUN_EVAL)
    return path.suffix in TABLE_NAMES and is_table(_beginning(path))


def is_spec(beginning: bytes) -> bool:
    """Return whether this is certainly the beginning of a test spec in YAML."""
    if len(set(_SPEC_KEY.findall(beginning))) >= _KEYS_OF_SPECS:
        return True
    return all(each.search(beginning) for each in _OWN_SPEC) or _OWN_FILE.search(beginning) is not None


def may_be_spec(beginning: bytes) -> bool:
    """Return whether this can be the beginning of a test spec that a user named, with mistakes in it."""
    return _LIKE_SPEC.search(without_mark(beginning)) is not None


def has_cases(beginning: bytes) -> bool:
    """Return whether this can be the beginning of a table or of JSON Lines with the keys of test cases."""
    if beginning.lstrip().startswith(b"{"):
        return b'"input"' in beginning
    return any("input" in map(str.strip, titles) for titles in titles_of(beginning.decode("utf-8", "replace")))


def is_table(beginning: bytes) -> bool:
    """Return whether this is certainly the beginning of a table of the Testing Center."""
    for titles in titles_of(beginning.decode("utf-8", "replace")):
        words = [" ".join(title.split()) for title in titles]
        if "utterance" in map(str.lower, words) and any(map(_TABLE_TITLES.fullmatch, words)):
            return True
    return False


def _beginning(path: Path) -> bytes:
    try:
        return without_mark(read_bytes(path, _PEEK_BYTES))
    except NotFound:
        return b""
