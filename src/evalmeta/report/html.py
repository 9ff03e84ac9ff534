"""Runs as one self-contained HTML page for screen (light and dark) and paper."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from evalmeta import __version__
from evalmeta.model.expectations import CHECKS, expectation_kind
from evalmeta.model.run import Verdict
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
from evalmeta.report.word_difference import word_difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.report.report import Report


_SECOND: Final = 999.5
_TEMPLATES: Final = Path(__file__).parent / "templates"


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
        "milliseconds": _milliseconds,
        "pretty": _pretty,
        "number": "{:g}".format,
        "percent": percent,
        "seconds": seconds,
        "text": shorten,
        "time": _time,
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
        "partial_checks": CHECKS - {"equals"},
        "word_difference": word_difference,
        "words": STATE_WORDS,
    }
    return made


def _case_rates(report: Report) -> dict[int, str]:
    """Return the pass rate of each case over its iterations, by number."""
    return {counts.number: rate for counts, rate in case_rates(report.run, report.statistics)}


def _expectations(report: Report) -> Iterator[_Expectation]:
    found: dict[str, dict[Verdict, int]] = {}
    judged = (result for case in report.run.cases for result in case.results if not result.is_measured)
    for result in judged:
        counts = found.setdefault(result.name, dict.fromkeys(Verdict, 0))
        counts[result.verdict] += 1
    yield from (_Expectation(name, counts) for name, counts in found.items())


def _label(result: TestResult | _Expectation) -> str:
    kind = expectation_kind(result.name)
    own = getattr(result, "label", None)
    return str(own or (kind.label if kind else result.name))


def _pretty(value: JsonValue) -> str:
    return shorten(json_text(value, indent=2))


def _milliseconds(value: float) -> str:
    if not math.isfinite(value):
        return "unknown"
    return milliseconds(value) if value < _SECOND else seconds(value / 1000)


def _time(value: float) -> str:
    return f"{to_timestamp(value)[:19].replace('T', ' ')} UTC"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a Content Security Policy allows an inline style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
