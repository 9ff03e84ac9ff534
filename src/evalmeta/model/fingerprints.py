"""Fingerprints of what decides about results, so that runs and baselines can say what changed between them.

A case's expectations are one text, such as `9f2c1a3b 77aa01cd@0.8`: a hash of each expectation, and after `@` the
threshold that its terms set, which is not part of the hash. `-` stands for a case without expectations.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.model.run_options import RunOptions, Scoring

if TYPE_CHECKING:
    from evalmeta.model.definition import Expectation, Parameter
    from evalmeta.model.evaluation import Case

_NONE: Final = "-"
_MAX_CACHED: Final = 1_024
_OPTIONS: Final = RunOptions()
_SCORING: Final = Scoring()


class CheckChanges(NamedTuple):
    """How many expectations of a case are weaker, were replaced, or are new or stricter."""

    weaker: int = 0  # those that were removed, or whose threshold was lowered
    changed: int = 0  # those that became others
    new: int = 0  # those that were added, or whose threshold was raised


class PartChange(NamedTuple):
    """What takes part in a run and is another one now, such as the rater, in words."""

    what: str
    before: str
    after: str


class ChangesOfTest(NamedTuple):
    """What changed in a test between two runs, so that its results mean something else."""

    removed: int = 0  # the number of removed cases
    weaker: int = 0  # the number of expectations of the other cases that are weaker: removed, or with a lower threshold
    changed: int = 0  # the number of those that became others
    new: int = 0  # the number of those that were added, or have a higher threshold
    parts: tuple[PartChange, ...] = ()  # what answered or judged and is another one now


def fingerprint(*values: object) -> str:
    """Return a hash of JSON values, eight characters."""
    try:
        data = orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # Texts with lone surrogates, and what is not JSON.
        data = json.dumps(values, sort_keys=True, default=lambda value: type(value).__qualname__).encode()
    return f"{zlib.crc32(data):08x}"


def checks_of(case: Case) -> str:
    """Return the fingerprint of a case's expectations, in the order of its turns; labels do not count."""
    checks = [
        _check(number, expectation)
        if expectation.terms or expectation.scorer_type
        else _plain_check(number, expectation.name, expectation.expected_value, expectation.parameters)
        for number, turn in enumerate(case.turns)
        for expectation in turn.expectations
    ]
    return " ".join(checks) or _NONE


def _check(turn: int, expectation: Expectation) -> str:
    value, terms = expectation.expected_value, expectation.terms
    threshold, mark = terms.get("threshold"), ""
    if isinstance(threshold, int | float) and not isinstance(threshold, bool):
        terms, mark = {key: value for key, value in terms.items() if key != "threshold"}, f"@{threshold:g}"
    parameters = [tuple(parameter) for parameter in expectation.parameters]
    return fingerprint(turn, expectation.name, value, parameters, expectation.scorer_type, terms) + mark


# Every case result has a fingerprint, and cases of a test often expect the same.
@lru_cache(_MAX_CACHED)
def _plain_check(turn: int, name: str, value: str | None, parameters: tuple[Parameter, ...]) -> str:
    text = f"{turn}\0{name}" if value is None else f"{turn}\0{name}\0{value}"
    if parameters:
        members = [f"{key}\0{operand}\0{is_reference}" for key, operand, is_reference in parameters]
        text = "\0".join([text, *members])
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def compare_checks(before: str, after: str) -> CheckChanges:
    """Return what changed between the fingerprints of a case's expectations; nothing if one is not known."""
    if before == after or not (before and after):
        return CheckChanges()
    old, new = (Counter(text.replace(_NONE, "").split()) for text in (before, after))
    removed, added = old - new, new - old
    lowered, raised = _moved_thresholds(removed, added)
    lost, won = removed.total() - lowered - raised, added.total() - lowered - raised
    changed = min(lost, won)
    return CheckChanges(lowered + lost - changed, changed, raised + won - changed)


def _moved_thresholds(removed: Counter[str], added: Counter[str]) -> tuple[int, int]:
    """Return how many expectations are the same except for a lower or a higher threshold."""
    thresholds: dict[str, list[float]] = {}
    for text in sorted(removed.elements(), key=_threshold):
        thresholds.setdefault(text.partition("@")[0], []).append(_threshold(text))
    lowered = raised = 0
    for text in sorted(added.elements(), key=_threshold):
        if earlier := thresholds.get(text.partition("@")[0]):
            is_lower = _threshold(text) < earlier.pop(0)
            lowered, raised = lowered + is_lower, raised + (not is_lower)
    return lowered, raised


def _threshold(text: str) -> float:
    """Return a threshold; an expectation without one is the least strict, because its score is only reported."""
    return float(text.partition("@")[2] or "-inf")


def options_of(options: RunOptions) -> str:
    """Return the options that decide how results are judged and that are not the default; the rater is left out."""
    scoring = options.scoring
    names = [field.name for field in fields(Scoring) if field.name != "rater"]
    values = {name: (getattr(scoring, name), getattr(_SCORING, name)) for name in names}
    values |= {name: (getattr(options, name), getattr(_OPTIONS, name)) for name in ("undecided", "decides")}
    return " ".join(f"{name}={value}" for name, (value, default) in values.items() if value != default) or "default"
