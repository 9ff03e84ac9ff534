"""Runs as one self-contained HTML page for screen (light and dark) and paper, or as a part of a notebook's page."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from evalmeta.model.checks import OWN_CHECKS, WHOLE_ANSWERS
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.spending import cost_lines
from evalmeta.plugins import plugin_names
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.causes import cause_text, causes_in
from evalmeta.report.comparison import comparison_lines, verdict
from evalmeta.report.details import CaseGroup, all_utterances, exchanges, group_name, results_of, why_not_passed
from evalmeta.report.html_pages import choices, lay_out
from evalmeta.report.human import Limits, find
from evalmeta.report.matrix import agent_table, case_table, differing_text, more_cases, pair_texts
from evalmeta.report.report import STATE_WORDS, VERDICT_WORDS, Report, coverage_text
from evalmeta.report.results import (
    both_verdicts,
    check_lines,
    label_of,
    mean_cells,
    mean_text,
    plain_text,
    score_text,
    shown_averages,
)
from evalmeta.report.summary import corrected_text, milliseconds, reasons_text, totals, verdict_lines
from evalmeta.report.text import count, decimal, json_text, one_line, percent, seconds, shorten
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.comparison import Comparison

    Kind = Literal["good", "bad", "dim"]


_TEMPLATES: Final = Path(__file__).parent / "templates"
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
# Comparing takes quadratic time; longer texts are shown without highlights.
_MAX_WORDS: Final = 2_000


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the page: runs that did not pass come first, then those with forgiven failures.

    Texts are cut after 4,000 characters, and cases are left out of a page that would be too large. The page's Content
    Security Policy allows only its own style and script, and no requests.
    """
    style, script = _asset("parts.css") + _asset("run.css"), _asset("run.js")
    hashes = (source_hash(style), source_hash(script))
    pages = sorted(lay_out(reports), key=lambda page: page.report.counts_as_passed + page.report.is_brief)
    yield from template("run.html.j2").generate(
        pages=pages, choices=choices(pages), style=style, script=script, hashes=hashes, version=__version__
    )


def stand_alone(name: str, **values: object) -> str:
    """Return a page from a template, with the style of reports and without a script; it loads nothing."""
    style = _asset("parts.css") + _asset("run.css")
    return template(name).render(style=style, style_hash=source_hash(style), version=__version__, **values)


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
        "pretty": lambda value: shorten(json_text(value, indent=2)),
        "number": "{:g}".format,
        "percent": percent,
        "seconds": seconds,
        "text": shorten,
        "time": time_text,
    }
    functions = (
        *(
            both_verdicts,
            check_lines,
            comparison_lines,
            cause_text,
            causes_in,
            corrected_text,
            cost_lines,
            coverage_text,
            exchanges,
        ),
        *(agent_table, case_table, differing_text, more_cases, pair_texts),
        *(mean_cells, mean_text, plain_text, reasons_text, results_of, score_text, shown_averages, totals),
        verdicts_by_name,
        word_difference,
    )
    made.globals |= {function.__name__: function for function in functions}
    # What partial checks expect is not the whole text, so that a difference of both texts says nothing.
    made.globals |= {"partial_checks": OWN_CHECKS.union(plugin_names("checks")) - WHOLE_ANSWERS, "words": STATE_WORDS}
    return made


def verdicts_by_name(report: Report) -> dict[str, dict[Verdict, int]]:
    """Return how many results of each name have which verdict."""
    by_name: dict[str, dict[Verdict, int]] = {}
    for result in (result for case in report.run.cases for result in case.results if not result.is_measured):
        by_name.setdefault(result.name, dict.fromkeys(Verdict, 0))[result.verdict] += 1
    return by_name


def _label(result: TestResult | str) -> str:
    name, own = (result, None) if isinstance(result, str) else (result.name, result.label)
    return label_of(name, own) or name


def duration_text(value: float) -> str:
    """Return a duration of milliseconds with its unit."""
    return milliseconds(value) if math.isfinite(value) else "unknown"


def time_text(value: float) -> str:
    """Return a time, in seconds since the epoch, as `2026-03-01 10:00:00 UTC`."""
    return f"{to_timestamp(value)[:19].replace('T', ' ')} UTC"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """Return the hash by which a Content Security Policy allows an inline style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class Part(NamedTuple):
    """A part of a text, and whether the other text lacks it."""

    text: str
    is_different: bool


def word_difference(before: str, after: str) -> tuple[list[Part], list[Part]]:
    """Return two texts as parts, of which those are different that the other text lacks at this place."""
    first, second = _WORDS.findall(before), _WORDS.findall(after)
    if before == after or max(len(first), len(second)) > _MAX_WORDS:
        return [Part(before, before != after)], [Part(after, before != after)]
    left, right = list[Part](), list[Part]()
    # Blanks only match beside words that match, because each of them could match all others.
    for kind, i1, i2, j1, j2 in SequenceMatcher(str.isspace, first, second, autojunk=False).get_opcodes():
        _add(left, first[i1:i2], is_different=kind != "equal")
        _add(right, second[j1:j2], is_different=kind != "equal")
    return left, right


def _add(parts: list[Part], words: Sequence[str], *, is_different: bool) -> None:
    text = "".join(words)
    if not text:
        return
    # A blank between two different words is part of the difference.
    if parts and (text.isspace() or parts[-1].is_different == is_different) and parts[-1].is_different:
        parts[-1] = Part(parts[-1].text + text, is_different=True)
        return
    parts.append(Part(text, is_different))


_SHOWN_RUNS: Final = 20
_SHOWN_CASES: Final = Limits(failing=10, undecided=3)
_SHOWN_CHANGES: Final = 30
_KINDS: Final[dict[Verdict, Kind]] = {Verdict.FAILURE: "bad", Verdict.ERROR: "bad"}
_STYLES: Final[dict[str, Kind]] = {"worse": "bad", "better": "good"}


class _Row(NamedTuple):
    """A case: how its verdict is coloured, the verdict, and the texts of its cells."""

    kind: Kind
    word: str
    cells: tuple[str, ...]


class _Part(NamedTuple):
    """A run or a comparison: its name, its verdict in colour, lines, figures by name, and the cases or the changes."""

    title: str
    verdict: str
    kind: Kind
    lines: Sequence[str] = ()
    figures: Sequence[tuple[str, str]] = ()
    rows: Sequence[_Row] = ()
    changes: Sequence[tuple[Kind | None, str]] = ()
    rest: str = ""


def runs_html(reports: Sequence[Report], figures: Sequence[tuple[str, str]] = ()) -> str:
    """Return runs, those that did not pass first: the verdict and the counts of each, and its first such cases.

    `figures` are names and texts of further numbers, which are shown last.
    """
    ordered = sorted(reports, key=lambda report: report.has_passed)
    parts = [_run_part(report) for report in ordered[:_SHOWN_RUNS]]
    if len(reports) > 1:
        parts.insert(
            0, _Part("All runs", totals(reports), "good" if all(report.has_passed for report in reports) else "bad")
        )
    if (left := len(reports) - _SHOWN_RUNS) > 0:
        parts.append(_Part(f"... and {count(left, 'more run')}", "print them to see all", "dim"))
    if figures:
        left = len(figures) - _SHOWN_CHANGES
        rest = f"... and {count(left, 'more metric')}; print the result to see all" if left > 0 else ""
        shown = [(one_line(name), text) for name, text in figures[:_SHOWN_CHANGES]]
        parts.append(_Part("Metrics", count(len(figures), "metric"), "dim", figures=shown, rest=rest))
    return template("notebook.html.j2").render(parts=parts)


def comparison_html(comparison: Comparison) -> str:
    """Return a comparison: the verdict, and the first lines of what changed."""
    _, *lines = comparison_lines(comparison)
    is_worse = comparison.is_regression()
    changes = [(_STYLES.get(line.style), line.text.strip()) for line in lines[:_SHOWN_CHANGES]]
    left = len(lines) - _SHOWN_CHANGES
    part = _Part(
        one_line(comparison.name, chars=200),
        verdict(comparison),
        "bad" if is_worse else "good",
        changes=changes,
        rest=f"... and {count(left, 'more line')}; print it to see all" if left > 0 else "",
    )
    return template("notebook.html.j2").render(parts=[part])


def _run_part(report: Report) -> _Part:
    _, *lines = verdict_lines(report)
    findings = find(report, _SHOWN_CASES)
    left = len(findings.failing) + len(findings.undecided)
    return _Part(
        one_line(report.run.definition, chars=200),
        one_line(report.decision(), chars=400),
        "good" if report.has_passed else "bad",
        [line.strip() for line in lines],
        rows=list(_rows(report, findings.groups)),
        rest=f"... and {count(left, 'more case')}; save('report.html') shows all of them" if left else "",
    )


def _rows(report: Report, groups: Sequence[CaseGroup]) -> Iterator[_Row]:
    for group in groups:
        utterance = one_line(all_utterances(group.case)) or "(no utterance)"
        cells = (group_name(group), utterance, why_not_passed(group.case, report.summary))
        yield _Row(_KINDS.get(group.verdict, "dim"), VERDICT_WORDS[group.verdict], cells)
