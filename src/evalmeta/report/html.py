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
from evalmeta.model.expectations import expectation_kind
from evalmeta.model.run import Verdict
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.averages import averages_of, mean_cells, mean_text, score_text, shown_averages
from evalmeta.report.details import all_utterances, exchanges, results_of
from evalmeta.report.report import (
    VERDICT_WORDS,
    coverage_text,
    decision,
    duration,
    has_passed,
    location,
    undecided_reasons,
    verdict_of,
)
from evalmeta.report.summary import case_rates, reasons_text, totals
from evalmeta.report.text import count, decimal, one_line, percent, seconds, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run import Average, CaseResult, TestResult
    from evalmeta.report.report import Report


_TEMPLATES: Final = Path(__file__).parent / "templates"
_WORST_FIRST: Final = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED, Verdict.PASS)


class _Case(NamedTuple):
    """One case in all iterations, and the worst verdict of them."""

    number: int
    verdict: Verdict
    utterance: str
    label: str
    location: str | None
    averages: tuple[Average, ...]
    iterations: list[tuple[CaseResult, Verdict]]

    @property
    def verdicts(self) -> list[Verdict]:
        return [verdict for _, verdict in self.iterations]

    @property
    def is_conversation(self) -> bool:
        return any(case.earlier for case, _ in self.iterations)

    @property
    def is_mixed(self) -> bool:
        return {Verdict.PASS, Verdict.FAILURE} <= {*self.verdicts}


class _Expectation(NamedTuple):
    """The number of results of one name by verdict."""

    name: str
    counts: dict[Verdict, int]


def render(reports: Sequence[Report]) -> str:
    """Return the page; texts are cut after 4,000 characters.

    The template escapes the texts of tests and answers. The page's Content Security Policy allows only its own script
    and style, and no requests.
    """
    style, script = _asset("run.css"), _asset("run.js")
    return _template().render(
        reports=reports, style=style, script=script, hashes=(_hash(style), _hash(script)), version=__version__
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": count,
        "decimal": decimal,
        "label": _label,
        "line": one_line,
        "long_line": partial(one_line, chars=400),
        "milliseconds": _milliseconds,
        "number": "{:g}".format,
        "percent": percent,
        "seconds": seconds,
        "text": shorten,
        "time": _time,
    }
    environment.globals |= {
        "case_rates": _case_rates,
        "cases": _cases,
        "coverage_text": coverage_text,
        "decision": decision,
        "duration": duration,
        "exchanges": exchanges,
        "expectations": _expectations,
        "has_passed": has_passed,
        "mean_cells": mean_cells,
        "mean_text": mean_text,
        "number_of": _number_of,
        "reasons_text": reasons_text,
        "results_of": results_of,
        "score_text": score_text,
        "shown_averages": shown_averages,
        "totals": totals,
        "undecided_reasons": undecided_reasons,
        "verdicts": _WORST_FIRST,
        "words": VERDICT_WORDS,
    }
    return environment.get_template("run.html.j2")


def _case_rates(report: Report) -> dict[int, str]:
    """Return the pass rate of each case over its iterations, by number."""
    return {counts.number: rate for counts, rate in case_rates(report.run, report.statistics)}


def _cases(report: Report) -> list[_Case]:
    found: dict[int, list[tuple[CaseResult, Verdict]]] = {}
    for case in report.run.cases:
        found.setdefault(case.number, []).append((case, verdict_of(report, case)))
    cases = []
    for number, iterations in found.items():
        first = iterations[0][0]
        averages = next(filter(None, (averages_of(report.summary, case) for case, _ in iterations)), ())
        worst = min((verdict for _, verdict in iterations), key=_WORST_FIRST.index)
        where = location(report, first)
        cases.append(_Case(number, worst, all_utterances(first), first.label, where, averages, iterations))
    return cases


def _number_of(cases: Sequence[_Case], verdict: Verdict) -> int:
    return sum(verdict in case.verdicts for case in cases)


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


def _milliseconds(value: float) -> str:
    return seconds(value / 1000) if math.isfinite(value) else "unknown"


def _time(value: float) -> str:
    return f"{to_timestamp(value)[:19].replace('T', ' ')} UTC"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a Content Security Policy allows an inline style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
