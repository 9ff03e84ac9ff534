"""Labelled pairs: expectations and answers that people have judged, and their files.

The files are JSON Lines and CSV, written by people, by other systems, or by evalmeta as results.
"""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.metrics import METRICS
from evalmeta.errors import UsageError
from evalmeta.model.expectations import canonical_name
from evalmeta.package.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


_YES: Final = ("true", "yes", "y", "1", "right", "correct", "pass", "passed", "good", "positive", "acceptable")
_NO: Final = ("false", "no", "n", "0", "wrong", "incorrect", "fail", "failed", "bad", "negative", "unacceptable")
_WORDS: Final = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}


@dataclass(frozen=True, slots=True)
class Pair:
    """An expectation and an answer that a person has judged, and perhaps why (`reason`)."""

    expected: str
    actual: str
    right: bool
    utterance: str = ""
    rule: str = ""  # the rule that must decide, if one must
    split: str = ""  # the part of the set that the pair belongs to, such as `held-out`
    reason: str = ""
    choice: str = ""  # the person's verdict, if it is one of the rater's named verdicts


@dataclass(frozen=True, slots=True)
class Labels:
    """What labels mean."""

    threshold: float | None = None  # the least score of a right answer, if labels are scores
    choices: Mapping[str, float] = field(default_factory=dict)  # the scores of named verdicts, which can be labels too
    passing: float = 3.0  # the minimum score of a named verdict that passes

    def read(self, value: object) -> tuple[bool, str] | None:
        """Return whether a label means right, and which named verdict it is, if any; None if it is not a label."""
        word = f"{value:g}" if isinstance(value, float) else str(value).strip()
        if word in self.choices:
            return self.choices[word] >= self.passing, word
        number = number_of(value)
        if self.threshold is not None and number is not None:
            return number >= self.threshold, ""
        known = _WORDS.get(word.lower())
        return None if known is None else (known, "")


PLAIN: Final = Labels()


def number_of(value: object) -> float | None:
    """Return a label as a score; None if it is not a finite number."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def write_pairs(pairs: Sequence[Pair]) -> str:
    """Return pairs as JSON Lines that `read_pairs` reads; the utterance and the reason are left out if empty."""
    lines = []
    for pair in pairs:
        utterance = {"utterance": pair.utterance} if pair.utterance else {}
        reason = {"reason": pair.reason} if pair.reason else {}
        judged = {"expected": pair.expected, "actual": pair.actual, "right": pair.choice or pair.right}
        lines.append(json.dumps({**utterance, **judged, **reason}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


_EXAMPLE: Final = 'Write one pair a line, such as {"expected": "It is 5.", "actual": "It is 6.", "right": false}'
# Our name of each field, and those in exports of other systems: MLflow, Databricks, LangSmith, Langfuse, Phoenix,
# promptfoo, Braintrust.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    key: (key, *others.split())
    for key, others in {
        "expected": "expectedValue expected_response expected_output reference ground_truth ideal",
        "actual": "actual_response response output outputs answer outcome",
        "right": "human human_label correct is_correct label human_score score rating",
        "utterance": "question input inputs request query",
        "reason": "explanation rationale critique comment",
        "rule": "",
        "split": "",
    }.items()
}
# In results of evalmeta as CSV, label, score and explanation are the rater's and not a person's.
_RESULT_NAMES: Final = {**{key: (key,) for key in _NAMES}, "right": ("right", "human", "human_label")}
_RESULT_COLUMN: Final = "case_verdict"
_RESPONSES: Final = frozenset(name for name, metric in METRICS.items() if "reference" in metric.needs)
_OPTIONAL: Final = ("utterance", "rule", "split", "reason")


class _Row(NamedTuple):
    where: str
    fields: Mapping[str, object]
    raises: type[UsageError]

    @property
    def is_result(self) -> bool:
        """Return whether evalmeta wrote the row as a result."""
        return _RESULT_COLUMN in self.fields

    def value(self, key: str) -> tuple[str, object]:
        """Return the name that the row uses for a field, and its value; our name and None if it has none."""
        names = (_RESULT_NAMES if self.is_result else _NAMES)[key]
        name = next((text for text in names if self.fields.get(text) not in (None, "")), None)
        name = name or next((text for text in names if text in self.fields), key)
        return name, self.fields.get(name)

    def text(self, key: str) -> str:
        """Return a text; results of evalmeta have an apostrophe before what spreadsheets would read as a formula."""
        name, value = self.value(key)
        if not isinstance(value, str):
            raise self.error(f"{name!r} is {self._shown(name)}, but must be a string")
        return value.removeprefix("'") if self.is_result else value

    def error(self, what: str) -> UsageError:
        return self.raises(f"{self.where}: {what}", actions=(_EXAMPLE,))

    def label(self, labels: Labels) -> tuple[bool, str]:
        """Return whether the answer is right, and the named verdict, if any."""
        name, value = self.value("right")
        known = labels.read(value)
        if known is None and number_of(value) is not None:
            raise self.error(
                f"{name!r} is the score {value}; add --label-threshold with the least score of a right answer"
            )
        if known is None:
            words = f"true, false, {', '.join(labels.choices)}" if labels.choices else "true or false"
            raise self.error(f"{name!r} is {self._shown(name)}, but must be {words}")
        return known

    def _shown(self, name: str) -> str:
        return f"{self.fields[name]!r:.60}" if name in self.fields else "missing"


def read_pairs(
    file: Path, *, labels: Labels = PLAIN, metric: str = "bot_response_rating", raises: type[UsageError] = UsageError
) -> tuple[Pair, ...]:
    """Read labelled pairs from JSON Lines, or from CSV with a header if the name ends in `.csv`.

    A pair has `expected`, `actual` and `right`, and may have `utterance`, `reason`, `rule` and `split`. Field names and
    labels of other systems are read too. Of results that evalmeta wrote as CSV, the rows of the metric with a label in
    a column `right` are pairs. Only metrics of responses need `expected`. An error of the class `raises` says why the
    file cannot be read, that it has no pairs, or which line is not a valid pair.
    """
    text = read_text(file, raises=raises, max_bytes=limits.MAX_LABELS_BYTES)
    rows = _csv_rows(file, text, raises) if file.suffix.lower() == ".csv" else _json_rows(file, text, raises)
    pairs = tuple(_pair(row, labels, metric) for row in rows if _is_labelled(row, metric))
    if not pairs:
        raise raises(f"{file}: has no labelled pairs", actions=(_EXAMPLE,))
    return pairs


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


def _is_labelled(row: _Row, metric: str) -> bool:
    """Return whether a row is a pair; of results, only those of the metric with a label are."""
    if not row.is_result:
        return True
    metrics = _RESPONSES if metric in _RESPONSES else {metric}
    return canonical_name(str(row.fields.get("expectation"))) in metrics and bool(row.value("right")[1])


def _pair(row: _Row, labels: Labels, metric: str) -> Pair:
    optional = {key: row.text(key) for key in _OPTIONAL if row.value(key)[1]}
    needs_expected = metric in _RESPONSES or row.value("expected")[1] is not None
    expected, actual = row.text("expected") if needs_expected else "", row.text("actual")
    right, choice = row.label(labels)
    return Pair(expected, actual, right, choice=choice, **optional)
