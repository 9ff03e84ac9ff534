"""Checking a rater of the project against labelled pairs in a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters import bind_rater
from evalmeta.engine.raters.calibration import Pair, calibrate
from evalmeta.errors import ProjectError, UsageError
from evalmeta.org.subjects import rater_settings
from evalmeta.package.config_file import read_text
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.engine.raters.calibration import RatedPair
    from evalmeta.model.settings import RaterSettings


_RULES: Final = "rules"
_EXTRAS: Final = ("utterance", "rule", "split")
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_EXAMPLE: Final = 'Write one pair a line, such as {"expected": "It is 5.", "actual": "It is 6.", "right": false}'


async def check_rater(file: Path, *, rater: str = _RULES, start: Path | None = None) -> tuple[RatedPair, ...]:
    """Rate the labelled pairs of a file, and return each pair with its rating.

    Args:
        file: see `read_pairs`.
        rater: a name under [raters] in evalmeta.toml, or `rules`, which is always available.
        start: where to look for the project; the current folder if None.

    Raises:
        UsageError: the file cannot be read, or a line is not a labelled pair.
        SettingsError: there is no rater with this name, or it cannot be used.
    """
    pairs = read_pairs(file)
    settings, root = _settings(rater, start or Path())
    bound = bind_rater(settings, root=root)
    try:
        return await calibrate(pairs, bound)
    finally:
        await bound.close()


def read_pairs(file: Path) -> tuple[Pair, ...]:
    """Read labelled pairs from JSON lines, or from CSV with a header if the name ends in `.csv`.

    A pair has `expected`, `actual` and `right` (true or false), and may have
    `utterance`, `rule` and `split`.

    Raises:
        UsageError: the file cannot be read or has no pairs, or a line is not a valid pair.
    """
    text = read_text(file, raises=UsageError)
    rows = _csv_rows(file, text) if file.suffix.lower() == ".csv" else _json_rows(file, text)
    pairs = tuple(_pair(f"{file}:{number}", row) for number, row in rows)
    if not pairs:
        raise UsageError(f"{file}: has no labelled pairs", actions=(_EXAMPLE,))
    return pairs


def _json_rows(file: Path, text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{file}:{number}: is not valid JSON: {error}", actions=(_EXAMPLE,)) from error
        if not isinstance(row, dict):
            raise UsageError(f"{file}:{number}: is not a JSON object", actions=(_EXAMPLE,))
        yield number, row


def _csv_rows(file: Path, text: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if None in row:
                raise UsageError(f"{file}:{reader.line_num}: has more fields than the header")
            yield reader.line_num, row
    except csv.Error as error:
        raise UsageError(f"{file}:{reader.line_num}: is not valid CSV: {error}") from error


def _pair(line: str, row: Mapping[str, object]) -> Pair:
    extras = {key: _text(line, row, key) for key in _EXTRAS if row.get(key)}
    return Pair(_text(line, row, "expected"), _text(line, row, "actual"), _right(line, row), **extras)


def _text(line: str, row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise UsageError(f"{line}: {key!r} is {_shown(row, key)}, but must be a string", actions=(_EXAMPLE,))
    return value


def _right(line: str, row: Mapping[str, object]) -> bool:
    value = row.get("right")
    known = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(known, bool):
        raise UsageError(f"{line}: 'right' is {_shown(row, 'right')}, but must be true or false", actions=(_EXAMPLE,))
    return known


def _shown(row: Mapping[str, object], key: str) -> str:
    return f"{row[key]!r:.60}" if key in row else "missing"


def _settings(name: str, start: Path) -> tuple[RaterSettings, Path]:
    try:
        project = find_project(start)
    except ProjectError:
        if name != _RULES:
            raise
        return rater_settings({}, name), start
    return rater_settings(project.settings.raters, name), project.root
