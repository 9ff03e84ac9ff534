"""Documents of every format as the engine runs them, the settings for reading them, and the detection of formats."""

from __future__ import annotations

import re
import stat
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import orjson

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.formats.csv_source import titles_of
from evalmeta.package.files import slash_hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.problem import Problem
    from evalmeta.model.run_options import RunOptions
    from evalmeta.model.settings import AdkDialect, MissingData, Settings


@dataclass(frozen=True, slots=True)
class Document:
    """A file's cases, and its run settings.

    Attributes:
        evaluation: its cases; `subject_name` is empty where the file names no agent.
        iterations: how often all cases run; None when the file does not say.
        min_pass_rate: the share of cases that must pass, 0 to 1; None when the file does not say.
        is_answered: whether every turn has a recorded answer, so that no agent is needed.
        criteria: the file with the criteria that judge its cases, for messages; empty if the format has none.
        why_asked: why an agent must be called although the file has recorded answers; empty if it has none.
        notes: warnings, such as an outdated form or an unknown key.
        lines: the line of each case by its number; empty when lines are not known.
        files: the other files that have some of the cases, by their numbers; relative to the folder of the file.
    """

    evaluation: Evaluation
    iterations: int | None = None
    min_pass_rate: float | None = None
    is_answered: bool = False
    criteria: str = ""
    why_asked: str = ""
    notes: tuple[Problem, ...] = ()
    lines: Mapping[int, int] = field(default_factory=dict)
    files: Mapping[int, str] = field(default_factory=dict)

    def applied_to(self, options: RunOptions) -> RunOptions:
        """Return options with the iterations and the pass rate that the file declares."""
        iterations = options.iterations if self.iterations is None else self.iterations
        rate = options.min_pass_rate if self.min_pass_rate is None else self.min_pass_rate
        return replace(options, iterations=iterations, min_pass_rate=rate)


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings for reading files.

    Attributes:
        is_asked: whether an agent is called, so that recorded answers are ignored.
        dialect: what the rows of ADK's deprecated arrays mean.
        missing: how ADK's criteria count a turn without their data; None for what the file with the criteria says.
        global_guidelines: the guidelines for every answer to an evaluation set of Databricks.
        metrics: the metrics of Databricks to compute; None for all.
        config: the file with ADK's criteria; None for test_config.json beside each file.
    """

    is_asked: bool = False
    dialect: AdkDialect = "auto"
    missing: MissingData | None = None
    global_guidelines: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None
    config: str | None = None

    def json(self) -> JsonObject:
        """Return it as JSON for `reading_from`."""
        return {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def reading_from(source: JsonObject) -> Reading:
    """Return a reading from what `Reading.json` returned; missing keys have their defaults."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in source.items()}
    return Reading(**cast("dict[str, str]", values))  # type: ignore[arg-type] # written by `json`


def reading_of(settings: Settings, *, root: Path, is_asked: bool, config: Path | None = None) -> Reading:
    """Return how the settings of the project in a folder say that files are read; `config` replaces theirs."""
    adk, databricks = settings.adk, settings.databricks
    if config is None and adk.config is not None:
        config = root / adk.config
    chosen = None if config is None else str(config.resolve())
    return Reading(is_asked, adk.dialect, adk.missing, databricks.global_guidelines, databricks.metrics, chosen)


_CHUNK_BYTES: Final = 1_000_000


def read_bytes(path: Path, most: int = limits.MAX_JSON_BYTES) -> bytes:
    """Return the bytes of a file; of a longer one `most` and one more, so that its reader refuses it.

    Raise NotFound if the file cannot be read.
    """
    return b"".join(_chunks(path, most + 1))


def digest_of(path: Path, reading: Reading) -> str:
    """Return a hash of a file, of the criteria that apply to it and of the case files it names."""
    digest = sha256()
    for chunk in _chunks(path):
        digest.update(chunk)
    config = Path(reading.config) if reading.config else path.with_name(ADK_CONFIG)
    if config.is_file():
        digest.update(read_bytes(config))
    if path.suffix.lower() in (*SPEC_NAMES, ".json"):
        from evalmeta.formats.spec_files import files_of

        for file in files_of(path):
            digest.update(read_bytes(file))
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
        raise NotFound(f"the file {str(path)!r} cannot be found", actions=slash_hint(path)) from None
    except OSError as error:
        raise NotFound(f"{str(path)!r} cannot be read: {error.strerror}") from None


SourceFormat = Literal["definition", "testspec", "csv", "adk", "databricks", "ballerina", "run-eval"]
TargetFormat = Literal["definition", "testspec", "csv", "adk", "databricks", "run-eval"]
TARGET_FORMATS: Final[tuple[TargetFormat, ...]] = ("definition", "testspec", "csv", "adk", "databricks", "run-eval")


SPEC_NAMES: Final = (".yaml", ".yml")
TABLE_NAMES: Final = (".csv", ".tsv")
LINES_NAMES: Final = (".jsonl", ".ndjson")
CASE_FILES: Final = (*TABLE_NAMES, *LINES_NAMES)
"""The names of the files with test cases that a test spec can name."""
SEARCHED: Final = (*SPEC_NAMES, *CASE_FILES, ".json")
"""The names of the files in folders that can be tests, definitions apart."""
ADK_CONFIG: Final = "test_config.json"
"""The file beside ADK's files that has their criteria."""


HEAD_BYTES: Final = 1_000_000
"""The size of a file's beginning that shows its format, unless the file is one longer JSON value."""


_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_KEY: Final = re.compile(rb'"([A-Za-z_]+)"\s*:')


_Keys: TypeAlias = dict[SourceFormat, tuple[str, ...]]

# The keys of objects, and of the objects in a list, that show a format; the first format that has one is it.
_OF_OBJECTS: Final[_Keys] = {
    "adk": ("evalCases", "eval_cases", "evalSetId", "eval_set_id"),
    "testspec": ("testCases", "subjectName", "cases", "input"),
    "ballerina": ("threads", "entries"),
    "databricks": ("request", "inputs", "trace", "rows", "info"),
}
_OF_ITEMS: Final[_Keys] = {
    "adk": ("query", "initial_session", "data"),
    "databricks": ("request", "inputs", "trace", "info"),
    "ballerina": ("input",),
}


def recognise(data: bytes) -> SourceFormat | None:
    """Detect the format of a file from its first `HEAD_BYTES`; None if it is unknown.

    XML is a definition. A table with the column Utterance is one of the Testing Center, with the column request an
    evaluation set of Databricks. JSON is detected from its keys, and anything else is a test spec. UTF-16 is detected
    in the same way; the reader decides whether it is allowed.
    """
    begin = without_mark(data).lstrip()
    if begin.startswith(b"<"):
        return "definition"
    if begin.startswith(b"PAR1"):
        return "databricks"
    if begin.startswith((b"{", b"[")):
        return _of_json(begin)
    titles = {title.strip() for titles in titles_of(begin.decode("utf-8", "replace")) for title in titles}
    if "utterance" in {title.lower() for title in titles}:
        return "csv"
    return "testspec" if titles.isdisjoint(("request", "inputs", "trace")) else "databricks"


def without_mark(data: bytes) -> bytes:
    """Return the beginning of a file in UTF-8, also of one in UTF-16, without the mark of its encoding."""
    if encoding := _UTF16.get(data[:2]):
        data = data[2:].decode(encoding, "replace").encode()
    return data.removeprefix(_UTF8_MARK)


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
        return "run-eval" if _has_steps(value) else _of_keys(value, _OF_OBJECTS)
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list):
        return "ballerina"
    return _of_keys(first, _OF_ITEMS) if isinstance(first, dict) else None


def _has_steps(value: JsonObject) -> bool:
    """Return whether an object has tests with steps; other tools have tests too."""
    tests = value.get("tests")
    return isinstance(tests, list) and any(isinstance(test, dict) and "steps" in test for test in tests)


def _of_keys(value: JsonObject, formats: _Keys) -> SourceFormat | None:
    return next((found for found, keys in formats.items() if not value.keys().isdisjoint(keys)), None)


def _of_damaged(begin: bytes) -> SourceFormat | None:
    """Detect the format of a damaged or cut file from its first keys; its reader reports what is wrong."""
    formats = _OF_OBJECTS if begin.startswith(b"{") else _OF_ITEMS
    keys = (match[1].decode() for match in _KEY.finditer(begin[:20_000]))
    of_key = {key: found for found, names in formats.items() for key in names}
    of_key.update({"steps": "run-eval"} if formats is _OF_OBJECTS else {})
    # YAML has braces too, so that a test spec may begin like JSON.
    return next((of_key[key] for key in keys if key in of_key), "testspec" if begin.startswith(b"{") else "adk")
