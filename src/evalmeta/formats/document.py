"""Documents of every format as the engine runs them, and the settings for reading them.

The bytes of files on disk.

The formats, and their detection from a file's content.
"""

from __future__ import annotations

import re
import stat
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, cast

import orjson

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.formats.csv_source import titles_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.problem import Problem
    from evalmeta.model.settings import AdkDialect, MissingData, Settings


@dataclass(frozen=True, slots=True)
class Document:
    """A file's cases, and its run settings.

    Attributes:
        evaluation: its cases; `subject_name` is empty where the file names no agent.
        iterations: how often all cases run; None when the file does not say.
        min_pass_rate: the share of cases that must pass, 0 to 1; None when the file does not say.
        is_answered: whether every turn has a recorded answer, so that no agent is needed.
        notes: warnings, such as an outdated form or an unknown key.
        lines: the line of each case by its number; empty when lines are not known.
    """

    evaluation: Evaluation
    iterations: int | None = None
    min_pass_rate: float | None = None
    is_answered: bool = False
    notes: tuple[Problem, ...] = ()
    lines: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings for reading files.

    Attributes:
        is_asked: whether an agent is called, so that recorded answers are ignored.
        dialect: what the rows of ADK's deprecated arrays mean.
        missing: how ADK's criteria count a turn without their data; None for what test_config.json says.
        global_guidelines: the guidelines for every answer to an evaluation set of Databricks.
        metrics: the metrics of Databricks to compute; None for all.
    """

    is_asked: bool = False
    dialect: AdkDialect = "auto"
    missing: MissingData | None = None
    global_guidelines: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None

    def json(self) -> JsonObject:
        """Return it as JSON for `reading_from`."""
        return {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def reading_from(source: JsonObject) -> Reading:
    """Return a reading from what `Reading.json` returned; missing keys have their defaults."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in source.items()}
    return Reading(**cast("dict[str, str]", values))  # type: ignore[arg-type] # written by `json`


def reading_of(settings: Settings, *, is_asked: bool) -> Reading:
    """Return how a project's settings say that files are read."""
    adk, databricks = settings.adk, settings.databricks
    return Reading(is_asked, adk.dialect, adk.missing, databricks.global_guidelines, databricks.metrics)


_CHUNK_BYTES: Final = 1_000_000


def read_bytes(path: Path, most: int = limits.MAX_JSON_BYTES) -> bytes:
    """Return the bytes of a file; of a longer one `most` and one more, so that its reader refuses it.

    Raises:
        NotFound: the file does not exist, or cannot be read.
    """
    return b"".join(_chunks(path, most + 1))


def digest_of(path: Path) -> str:
    """Return a hash of a file and of the criteria beside it: its cases change only with them.

    Raises:
        NotFound: the file does not exist, or cannot be read.
    """
    digest = sha256()
    for each in _chunks(path):
        digest.update(each)
    config = path.with_name(ADK_CONFIG)
    if config.is_file():
        digest.update(read_bytes(config))
    return digest.hexdigest()


def _chunks(path: Path, most: int | None = None) -> Iterator[bytes]:
    left = most
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise NotFound(f"{str(path)!r} is a pipe", actions=["Write it to a file first, and name that."])
        with path.open("rb") as file:
            while left is None or left > 0:
                chunk = file.read(_CHUNK_BYTES if left is None else min(_CHUNK_BYTES, left))
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk
    except FileNotFoundError:
        raise NotFound(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise NotFound(f"{str(path)!r} cannot be read: {error.strerror}") from None


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
