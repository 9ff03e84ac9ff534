"""Eval sets with their criteria, and agents by their names."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError, NotFound, UsageError
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.sources import read_json
from evalmeta.model.evaluation import SessionIds
from evalmeta.model.user_warnings import warn_user
from evalmeta.package.files import read_file
from evalmeta.systems.adk.cases import ADK_CONFIG, AdkRecord, Session, read_session
from evalmeta.systems.adk.config import DEFAULT_CONFIG, AdkConfig, read_test_config
from evalmeta.systems.adk.reader import LEGACY, read_adk, read_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.formats.document import Document, Reading
    from evalmeta.model.problem import Problem
    from evalmeta.model.settings import AdkDialect


__tracebackhide__ = True  # pytest's tracebacks end where the test calls


_TEST_FILES: Final = "*.test.json"
_SUFFIXES: Final = (".test.json", ".evalset.json", ".json")


class Source(NamedTuple):
    """An eval set, its name in messages, its content, and the meaning of its rows if it is a deprecated array."""

    label: str
    document: Document
    data: bytes
    dialect: AdkDialect


def read_folder(path: Path, reading: Reading, session: Session | None) -> list[Source]:
    """Read a file, or every `*.test.json` in a folder and its subfolders, with the criteria next to each.

    `session` is the initial session of legacy files; UsageError says that a file is an eval set, which has its own.
    """
    chosen = None if reading.config is None else read_config(Path(reading.config))
    config_in = cache(lambda folder: chosen or _config_in(folder))
    sources: list[Source] = []
    problems: list[Problem] = []
    for file in _files(path):
        try:
            sources.append(_read(str(file), bytes_of(file), config_in(file.parent), reading, session))
        except FormatError as error:
            problems += (problem for problem in error.problems if problem not in problems)
    if problems:
        raise FormatError("nothing was asked:", problems=problems)
    return sources


def read_object(
    eval_set: object,
    criteria: Mapping[str, object] | None,
    eval_config: object,
    reading: Reading,
    session: Session | None,
) -> Source:
    """Read an eval set that is a mapping, or an object with `model_dump_json`.

    `eval_config` is the content of a test_config.json, and `criteria` its value of this name; without both, the
    file of the reading applies, or ADK's defaults.
    """
    config = {"criteria": dict(criteria)} if criteria is not None else eval_config
    if config is None:
        chosen = DEFAULT_CONFIG if reading.config is None else read_config(Path(reading.config))
    else:
        chosen = read_test_config(_json(config), label=ADK_CONFIG)
    return _read("eval set", _json(eval_set), chosen, reading, session)


def session_in(path: Path) -> Session | None:
    """Read an initial session from a JSON file."""
    diagnostics = Diagnostics(str(path))
    file = read_json(bytes_of(path), label=str(path))
    session = read_session(AdkRecord(file, (), file.value, diagnostics, called="an initial session"))
    diagnostics.check()
    return session


def name_of(path: str) -> str:
    """Return a file's name without the suffixes of ADK's files."""
    return next((path.removesuffix(suffix) for suffix in _SUFFIXES if path.endswith(suffix)), path)


def bytes_of(path: Path) -> bytes:
    """Read a whole file; raise NotFound if there is none, or ProjectError if it cannot be read or is too large."""
    if not path.is_file():
        raise NotFound(f"the file {str(path)!r} cannot be found")
    return read_file(path, max_bytes=limits.MAX_JSON_BYTES)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob(_TEST_FILES) if file.is_file())
    if not files:
        raise NotFound(f"there is no {_TEST_FILES} in {str(path)!r}", actions=["Name another folder, or a file."])
    return files


def _config_in(folder: Path) -> AdkConfig:
    file = folder / ADK_CONFIG
    return read_test_config(bytes_of(file), label=str(file)) if file.exists() else DEFAULT_CONFIG


def _read(label: str, data: bytes, config: AdkConfig, reading: Reading, session: Session | None) -> Source:
    if reading.missing:
        config = replace(config, missing=reading.missing)
    document = read_adk(data, label=label, name=label, config=config, dialect=reading.dialect)
    for note in document.notes:
        kind = DeprecationWarning if note.code == LEGACY else UserWarning
        warn_user(f"{note.location}: {note.message}. {note.hint}".rstrip(), kind)
    document = document if session is None else _with_session(document, session, label)
    return Source(label, document, data, reading.dialect)


def _with_session(document: Document, session: Session, label: str) -> Document:
    """Return the document with the session in cases that have none; like ADK, for legacy files only."""
    if all(note.code != LEGACY for note in document.notes):
        message = f"{label} is an eval set, whose cases have their own initial sessions"
        raise UsageError(message, actions=["Write the session as 'sessionInput' of the cases."])
    evaluation = document.evaluation
    ids = SessionIds(session.app_name, session.user_id, session.session_id)
    cases = tuple(
        replace(case, state=case.state or session.state, session=case.session or ids) for case in evaluation.cases
    )
    named = evaluation.subject_name or session.app_name
    return replace(document, evaluation=replace(evaluation, cases=cases, subject_name=named))


def _json(thing: object) -> bytes:
    dump = getattr(thing, "model_dump_json", None)
    try:
        return str(dump()).encode() if callable(dump) else orjson.dumps(thing)
    except TypeError as error:
        raise UsageError(f"{type(thing).__name__} cannot be read as JSON: {error}") from None
