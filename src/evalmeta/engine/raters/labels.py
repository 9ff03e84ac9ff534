"""Labelled pairs: expectations and answers that people have judged, and the files that contain them."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import UsageError
from evalmeta.package.config_file import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


_EXAMPLE: Final = 'Write one pair a line, such as {"expected": "It is 5.", "actual": "It is 6.", "right": false}'
# Our name of each field, and those in exports of other systems: MLflow, Databricks, LangSmith, Langfuse, Phoenix,
# promptfoo, Braintrust.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    key: (key, *others.split())
    for key, others in {
        "expected": "expectedValue expected_response expected_output reference ground_truth ideal",
        "actual": "actual_response response output outputs answer outcome",
        "right": "label human human_label correct is_correct verdict score human_score rating",
        "utterance": "question input inputs request query",
        "reason": "explanation rationale critique comment",
        "rule": "",
        "split": "",
    }.items()
}
_YES: Final = ("true", "yes", "y", "1", "right", "correct", "pass", "passed", "good", "positive", "acceptable")
_NO: Final = ("false", "no", "n", "0", "wrong", "incorrect", "fail", "failed", "bad", "negative", "unacceptable")
_LABELS: Final = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}


@dataclass(frozen=True, slots=True)
class Pair:
    """An expectation and an answer that a person has judged.

    Attributes:
        right: Whether the answer meets the expectation.
        rule: The rule that must decide, if one must.
        split: The part of the set that the pair belongs to, such as `held-out`.
        reason: Why the person judged so.
    """

    expected: str
    actual: str
    right: bool
    utterance: str = ""
    rule: str = ""
    split: str = ""
    reason: str = ""


class _Row(NamedTuple):
    """One row of a file with its location."""

    where: str
    fields: Mapping[str, object]
    raises: type[UsageError]

    def error(self, what: str) -> UsageError:
        return self.raises(f"{self.where}: {what}", actions=(_EXAMPLE,))


def read_pairs(
    file: Path, *, threshold: float | None = None, raises: type[UsageError] = UsageError
) -> tuple[Pair, ...]:
    """Read labelled pairs from JSON Lines, or from CSV with a header if the name ends in `.csv`.

    A pair has `expected`, `actual` and `right`, and may have `utterance`, `reason`, `rule` and `split`. The names and
    labels of other systems are read too. `threshold` is the least score that means right, if labels are scores.
    Errors are of the class `raises`.

    Raises:
        UsageError: the file cannot be read or has no pairs, or a line is not a valid pair.
    """
    text = read_text(file, raises=raises)
    rows = _csv_rows(file, text, raises) if file.suffix.lower() == ".csv" else _json_rows(file, text, raises)
    pairs = tuple(_pair(row, threshold) for row in rows)
    if not pairs:
        raise raises(f"{file}: has no labelled pairs", actions=(_EXAMPLE,))
    return pairs


def write_pairs(pairs: Sequence[Pair]) -> str:
    """Return pairs as JSON Lines that `read_pairs` reads; the utterance and the reason are left out if empty."""
    return "".join(f"{json.dumps(_written(each), ensure_ascii=False)}\n" for each in pairs)


def _written(pair: Pair) -> dict[str, str | bool]:
    utterance = {"utterance": pair.utterance} if pair.utterance else {}
    reason = {"reason": pair.reason} if pair.reason else {}
    return {**utterance, "expected": pair.expected, "actual": pair.actual, "right": pair.right, **reason}


def _json_rows(file: Path, text: str, raises: type[UsageError]) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise raises(f"{file}:{number}: is not valid JSON: {error}", actions=(_EXAMPLE,)) from error
        if not isinstance(value, dict):
            raise raises(f"{file}:{number}: is not a JSON object", actions=(_EXAMPLE,))
        yield _Row(f"{file}:{number}", value, raises)


def _csv_rows(file: Path, text: str, raises: type[UsageError]) -> Iterator[_Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if None in row:
                raise raises(f"{file}:{reader.line_num}: has more fields than the header")
            yield _Row(f"{file}:{reader.line_num}", row, raises)
    except csv.Error as error:
        raise raises(f"{file}:{reader.line_num}: is not valid CSV: {error}") from error


def _pair(row: _Row, threshold: float | None) -> Pair:
    optional = {key: _text(row, key) for key in ("utterance", "rule", "split", "reason") if _value(row, key)[1]}
    return Pair(_text(row, "expected"), _text(row, "actual"), _right(row, threshold), **optional)


def _value(row: _Row, key: str) -> tuple[str, object]:
    """Return the name that a row uses for a field, and its value; our name and None if it has none."""
    name = next((each for each in _NAMES[key] if row.fields.get(each) is not None), key)
    return name, row.fields.get(name)


def _text(row: _Row, key: str) -> str:
    name, value = _value(row, key)
    if not isinstance(value, str):
        raise row.error(f"{name!r} is {_shown(row, name)}, but must be a string")
    return value


def _right(row: _Row, threshold: float | None) -> bool:
    name, value = _value(row, "right")
    if isinstance(value, bool):
        return value
    number = _number(value)
    if threshold is not None and number is not None:
        return number >= threshold
    known = _LABELS.get(f"{value:g}" if isinstance(value, int | float) else str(value).strip().lower())
    if known is not None:
        return known
    if number is not None:
        raise row.error(f"{name!r} is the score {value}; add --label-threshold with the least score that means right")
    raise row.error(f"{name!r} is {_shown(row, name)}, but must be true or false")


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _shown(row: _Row, key: str) -> str:
    return f"{row.fields[key]!r:.60}" if key in row.fields else "missing"
