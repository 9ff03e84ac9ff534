"""Documents of every format as the engine runs them, and the settings for reading them."""

from __future__ import annotations

import stat
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from evalmeta import limits
from evalmeta.errors import NotFound, UsageError
from evalmeta.package.files import slash_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

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
        columns: keys of test cases, each with the column of tables, or key of JSON Lines, that has another title.
    """

    is_asked: bool = False
    dialect: AdkDialect = "auto"
    missing: MissingData | None = None
    global_guidelines: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None
    config: str | None = None
    columns: tuple[tuple[str, str], ...] = ()

    def json(self) -> JsonObject:
        """Return it as JSON for `reading_from`."""
        return {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def reading_from(source: JsonObject) -> Reading:
    """Return a reading from what `Reading.json` returned; missing keys have their defaults."""
    values = {name: tuple(map(_plain, value)) if isinstance(value, list) else value for name, value in source.items()}
    return Reading(**cast("dict[str, str]", values))  # type: ignore[arg-type] # written by `json`


def _plain(item: JsonValue) -> object:
    return tuple(item) if isinstance(item, list) else item


def reading_of(
    settings: Settings,
    *,
    root: Path,
    is_asked: bool,
    config: Path | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """Return how the settings of the project in a folder say that files are read.

    `config` and `columns` replace theirs.
    """
    adk, databricks = settings.adk, settings.databricks
    if config is None and adk.config is not None:
        config = root / adk.config
    chosen = None if config is None else str(config.resolve())
    titles = {**settings.columns, **columns}.items()
    return Reading(
        is_asked, adk.dialect, adk.missing, databricks.global_guidelines, databricks.metrics, chosen, tuple(titles)
    )


_CHUNK_BYTES: Final = 1_000_000


def read_bytes(path: Path, most: int = limits.MAX_JSON_BYTES) -> bytes:
    """Return the bytes of a file; of a longer one `most` and one more, so that its reader refuses it.

    Raise NotFound if the file cannot be read.
    """
    return b"".join(chunks_of(path, most + 1))


def chunks_of(path: Path, most: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file, at most `most` of them; raise NotFound if it cannot be read."""
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


SPEC_NAMES: Final = (".yaml", ".yml")
TABLE_NAMES: Final = (".csv", ".tsv")
LINES_NAMES: Final = (".jsonl", ".ndjson")
CASE_FILES: Final = (*TABLE_NAMES, *LINES_NAMES)
"""The names of the files with test cases that a test spec can name."""
SEARCHED: Final = (*SPEC_NAMES, *CASE_FILES, ".json")
"""The names of the files in folders that can be tests, definitions apart."""


def check_columns(columns: Mapping[str, str], paths: Iterable[Path | None]) -> None:
    """Raise UsageError if columns are named, and none of the files or folders can have any."""
    if columns and not any(path and (path.is_dir() or path.suffix.lower() in CASE_FILES) for path in paths):
        raise UsageError("columns are only for tables (CSV) and JSON Lines, and there are none among the files")


def is_file(path: Path) -> bool:
    """Return whether a file exists; a name that the system does not allow is not one."""
    try:
        return path.is_file()
    except OSError:
        return False
