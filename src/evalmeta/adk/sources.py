"""The eval sets that an agent is evaluated by: found, and read with what judges them.

The agent that a name stands for, as ADK's `agent_module` does.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError, NotFound, ProjectError, UsageError
from evalmeta.formats.adk.cases import AdkRecord, read_session
from evalmeta.formats.adk.config import DEFAULT_CONFIG, read_test_config
from evalmeta.formats.adk.reader import LEGACY, read_adk
from evalmeta.formats.diagnostics import Diagnostics
from evalmeta.formats.json_source import read_json
from evalmeta.formats.registry import ADK_CONFIG
from evalmeta.package.files import read_file
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.formats.adk.cases import Session
    from evalmeta.formats.adk.config import AdkConfig
    from evalmeta.formats.document import Document, Reading
    from evalmeta.model.problem import Problem


__tracebackhide__ = True  # pytest's tracebacks end where the test calls


_PACKAGE: Final = "evalmeta"
_TEST_FILES: Final = "*.test.json"
_SUFFIXES: Final = (".test.json", ".evalset.json", ".json")
_EVAL_SET: Final = "eval set"


class Source(NamedTuple):
    """An eval set that was read, and what messages call it."""

    label: str
    document: Document


class _Content(NamedTuple):
    """A file's bytes, what messages and the evaluation call it, and what judges it."""

    label: str
    name: str
    data: bytes
    config: AdkConfig


def read_folder(path: Path, reading: Reading, session: Session | None) -> list[Source]:
    """Reads a file, or every `*.test.json` in a folder and the folders in it, each with the criteria beside it.

    Args:
        path: the file or folder.
        reading: how files are read.
        session: what the sessions of files begin with that came before eval sets.

    Raises:
        NotFound: there is no such file, or no `*.test.json` in the folder.
        FormatError: files cannot be read; `problems` has those of all files.
        UsageError: there is a session, and a file is an eval set, which says itself.
    """
    config_in = cache(_config_in)
    found: list[Source] = []
    problems: list[Problem] = []
    for file in _files(path):
        try:
            content = _Content(str(file), str(file), bytes_of(file), config_in(file.parent))
            found.append(_read(content, reading, session))
        except FormatError as error:
            problems += (each for each in error.problems if each not in problems)
    if problems:
        raise FormatError("nothing was asked:", problems=problems)
    return found


def read_object(
    eval_set: object,
    criteria: Mapping[str, object] | None,
    eval_config: object,
    reading: Reading,
    session: Session | None,
) -> Source:
    """Reads an eval set that is in no file: a mapping, or an object with `model_dump_json`.

    Args:
        eval_set: the eval set.
        criteria: what test_config.json has under this name.
        eval_config: all that it has; without both, ADK's defaults hold.
        reading: how it is read.
        session: as `read_folder` takes it.

    Raises:
        FormatError: one of them cannot be read.
        UsageError: one of them is no JSON, or the session is not for it.
    """
    config = {"criteria": dict(criteria)} if criteria is not None else eval_config
    chosen = DEFAULT_CONFIG if config is None else read_test_config(_json(config), label=ADK_CONFIG)
    return _read(_Content(_EVAL_SET, _EVAL_SET, _json(eval_set), chosen), reading, session)


def session_in(path: Path) -> Session | None:
    """Reads what sessions begin with from a JSON file.

    Raises:
        NotFound: there is no such file.
        FormatError: it cannot be read.
    """
    diagnostics = Diagnostics(str(path))
    file = read_json(bytes_of(path), label=str(path))
    session = read_session(AdkRecord(file, (), file.value, diagnostics, called="an initial session"))
    diagnostics.check()
    return session


def name_of(path: str) -> str:
    """Gives a file's name without the suffixes that ADK's files have."""
    return next((path.removesuffix(each) for each in _SUFFIXES if path.endswith(each)), path)


def bytes_of(path: Path) -> bytes:
    """Reads a whole file.

    Raises:
        NotFound: there is no such file.
        ProjectError: it cannot be read, or is too large.
    """
    if not path.is_file():
        raise NotFound(f"there is no file {str(path)!r}")
    return read_file(path, max_bytes=limits.MAX_JSON_BYTES)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob(_TEST_FILES) if each.is_file())
    if not found:
        raise NotFound(f"there is no {_TEST_FILES} in {str(path)!r}", actions=["Name a folder with some, or a file."])
    return found


def _config_in(folder: Path) -> AdkConfig:
    file = folder / ADK_CONFIG
    return read_test_config(bytes_of(file), label=str(file)) if file.exists() else DEFAULT_CONFIG


def _read(content: _Content, reading: Reading, session: Session | None) -> Source:
    config = replace(content.config, missing=reading.missing) if reading.missing else content.config
    document = read_adk(content.data, label=content.label, name=content.name, config=config, dialect=reading.dialect)
    _warn(document)
    return Source(content.label, document if session is None else _begun(document, session, content.label))


def _warn(document: Document) -> None:
    for note in document.notes:
        kind = DeprecationWarning if note.code == LEGACY else UserWarning
        warnings.warn(f"{note.location}: {note.message}. {note.hint}".rstrip(), kind, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Gives the level of warnings at which whoever called this package stands."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith(f"{_PACKAGE}."):
        frame, level = frame.f_back, level + 1
    return level


def _begun(document: Document, session: Session, label: str) -> Document:
    """Gives the cases the session that they do not have; ADK too takes it for files of the old form only."""
    if all(note.code != LEGACY for note in document.notes):
        raise UsageError(
            f"{label} is an eval set, whose cases say themselves what their sessions begin with",
            actions=["Write it as 'sessionInput' of the cases."],
        )
    evaluation = document.evaluation
    cases = tuple(replace(each, state=each.state or session.state) for each in evaluation.cases)
    named = evaluation.subject_name or session.app_name
    return replace(document, evaluation=replace(evaluation, cases=cases, subject_name=named))


def _json(thing: object) -> bytes:
    """Gives a mapping, or an object of ADK's, as JSON."""
    dump = getattr(thing, "model_dump_json", None)
    try:
        return str(dump()).encode() if callable(dump) else orjson.dumps(thing)
    except TypeError as error:
        raise UsageError(f"{type(thing).__name__} cannot be read as JSON: {error}") from None


_AGENTS: Final = ("answer", "root_agent", "agent")


def agent_named(name: str, root: Path | None) -> object:
    """Gives the agent in a module of this name; None for an agent that evalmeta.toml binds.

    It is the module's `answer`, `root_agent` or `agent`; a package may have it in its module `agent`.

    Raises:
        UsageError: there is no such module, it cannot be imported, or it has no agent.
    """
    if _is_bound(name, root):
        return None
    ways_out = ["Give a function, or its place: my_agent:answer.", f"Or bind {name!r} in evalmeta.toml."]
    try:
        module = importlib.import_module(name)
    except (ImportError, ValueError) as error:
        message = f"{name!r} is neither an agent that evalmeta.toml binds nor a module that can be imported: {error}"
        raise UsageError(message, actions=ways_out) from None
    inner = getattr(module, "agent", None)
    for place in (module, inner) if isinstance(inner, ModuleType) else (module,):
        for each in _AGENTS:
            found: object = getattr(place, each, None)
            if found is not None and not isinstance(found, ModuleType):
                return found
    raise UsageError(f"the module {name!r} has no {', '.join(_AGENTS[:-1])} or {_AGENTS[-1]}", actions=ways_out)


def _is_bound(name: str, root: Path | None) -> bool:
    try:
        return name in find_project(root or Path.cwd()).settings.subjects
    except ProjectError:
        return False
