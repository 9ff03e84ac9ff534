"""Runs as one self-contained HTML page for screen (light and dark) and paper."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from evalmeta.model.checks import OWN_CHECKS, WHOLE_ANSWERS
from evalmeta.model.expectations import expectation_kind
from evalmeta.model.run import Verdict
from evalmeta.plugins import plugin_names
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.averages import mean_cells, mean_text, score_text, shown_averages
from evalmeta.report.comparison import comparison_lines
from evalmeta.report.details import exchanges, results_of
from evalmeta.report.html_pages import choices, lay_out
from evalmeta.report.org_checks import both_verdicts, check_lines
from evalmeta.report.report import (
    STATE_WORDS,
    counts_as_passed,
    coverage_text,
    duration,
    forgiven_failures,
    is_brief,
    outcome,
    undecided_reasons,
)
from evalmeta.report.summary import case_rates, corrected_text, milliseconds, reasons_text, totals
from evalmeta.report.text import count, decimal, json_text, one_line, percent, seconds, shorten
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.report.report import Report


_SECOND: Final = 999.5
_TEMPLATES: Final = Path(__file__).parent / "templates"
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
# Comparing takes quadratic time; longer texts are shown without highlights.
_MAX_WORDS: Final = 2_000


class _Expectation(NamedTuple):
    """The number of results of one name by verdict."""

    name: str
    counts: dict[Verdict, int]


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the page; texts are cut after 4,000 characters, and cases are left out of a page that would be too large.

    Runs that did not pass come first, then those with forgiven failures.

    The template escapes the texts of tests and answers. The page's Content Security Policy allows only its own style
    and script, and no requests.
    """
    style, script = _asset("parts.css") + _asset("run.css"), _asset("run.js")
    hashes = (_hash(style), _hash(script))
    pages = sorted(lay_out(reports), key=lambda page: counts_as_passed(page.report) + is_brief(page.report))
    yield from template("run.html.j2").generate(
        pages=pages, choices=choices(pages), style=style, script=script, hashes=hashes, version=__version__
    )


@cache
def template(name: str) -> Template:
    """Return a template, which escapes all texts."""
    return environment().get_template(name)


def environment(*folders: Path) -> Environment:
    """Return the environment of the templates in these folders and of those of reports."""
    made = Environment(
        loader=FileSystemLoader([*folders, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "count": count,
        "decimal": decimal,
        "label": _label,
        "line": one_line,
        "long_line": partial(one_line, chars=400),
        "milliseconds": duration_text,
        "pretty": _pretty,
        "number": "{:g}".format,
        "percent": percent,
        "seconds": seconds,
        "text": shorten,
        "time": time_text,
    }
    made.globals |= {
        "both_verdicts": both_verdicts,
        "case_rates": _case_rates,
        "check_lines": check_lines,
        "comparison_lines": comparison_lines,
        "counts_as_passed": counts_as_passed,
        "corrected_text": corrected_text,
        "coverage_text": coverage_text,
        "duration": duration,
        "exchanges": exchanges,
        "expectations": _expectations,
        "forgiven_failures": forgiven_failures,
        "mean_cells": mean_cells,
        "mean_text": mean_text,
        "reasons_text": reasons_text,
        "outcome": outcome,
        "results_of": results_of,
        "score_text": score_text,
        "shown_averages": shown_averages,
        "totals": totals,
        "undecided_reasons": undecided_reasons,
        # What these expect is not the whole text, so that a difference of both says nothing.
        "partial_checks": OWN_CHECKS.union(plugin_names("checks")) - WHOLE_ANSWERS,
        "word_difference": word_difference,
        "words": STATE_WORDS,
    }
    return made


def _case_rates(report: Report) -> dict[int, str]:
    """Return the pass rate of each case over its iterations, by number."""
    return {counts.number: rate for counts, rate in case_rates(report.run, report.statistics)}


def _expectations(report: Report) -> Iterator[_Expectation]:
    by_name: dict[str, dict[Verdict, int]] = {}
    judged = (result for case in report.run.cases for result in case.results if not result.is_measured)
    for result in judged:
        counts = by_name.setdefault(result.name, dict.fromkeys(Verdict, 0))
        counts[result.verdict] += 1
    yield from (_Expectation(name, counts) for name, counts in by_name.items())


def _label(result: TestResult | _Expectation) -> str:
    kind = expectation_kind(result.name)
    own = getattr(result, "label", None)
    return str(own or (kind.label if kind else result.name))


def _pretty(value: JsonValue) -> str:
    return shorten(json_text(value, indent=2))


def duration_text(value: float) -> str:
    """Return a duration of milliseconds with its unit."""
    if not math.isfinite(value):
        return "unknown"
    return milliseconds(value) if value < _SECOND else seconds(value / 1000)


def time_text(value: float) -> str:
    """Return a time, in seconds since the epoch, as `2026-03-01 10:00:00 UTC`."""
    return f"{to_timestamp(value)[:19].replace('T', ' ')} UTC"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a Content Security Policy allows an inline style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class Part(NamedTuple):
    """A part of a text, and whether the other text lacks it."""

    text: str
    is_different: bool


class WordDifference(NamedTuple):
    """Two texts as parts."""

    before: tuple[Part, ...]
    after: tuple[Part, ...]

    @property
    def is_same(self) -> bool:
        """Return whether the texts are equal."""
        return not any(part.is_different for part in (*self.before, *self.after))


def word_difference(before: str, after: str) -> WordDifference:
    """Return two texts as parts, of which those are different that the other text lacks at this place."""
    if before == after:
        return WordDifference((Part(before, is_different=False),), (Part(after, is_different=False),))
    first, second = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(first), len(second)) > _MAX_WORDS:
        return WordDifference((Part(before, is_different=True),), (Part(after, is_different=True),))
    left, right = list[Part](), list[Part]()
    # Blanks only match beside words that match, because each of them could match all others.
    for kind, i1, i2, j1, j2 in SequenceMatcher(str.isspace, first, second, autojunk=False).get_opcodes():
        _add(left, first[i1:i2], is_different=kind != "equal")
        _add(right, second[j1:j2], is_different=kind != "equal")
    return WordDifference(tuple(left), tuple(right))


def _add(parts: list[Part], words: Sequence[str], *, is_different: bool) -> None:
    text = "".join(words)
    if not text:
        return
    # A blank between two different words is part of the difference.
    if parts and (text.isspace() or parts[-1].is_different == is_different) and parts[-1].is_different:
        parts[-1] = Part(parts[-1].text + text, is_different=True)
        return
    parts.append(Part(text, is_different))
