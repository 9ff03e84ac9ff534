"""Runs and comparisons as a part of a notebook's page: a table of what did not pass, without style sheets and scripts.

Texts of tests and answers are cut to one clean line here, and escaped by the template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.model.run import Verdict
from evalmeta.report.comparison import comparison_lines, verdict
from evalmeta.report.details import all_utterances, group_name, why_not_passed
from evalmeta.report.html import template
from evalmeta.report.human import Limits, find
from evalmeta.report.report import VERDICT_WORDS, decision, has_passed
from evalmeta.report.summary import totals, verdict_lines
from evalmeta.report.text import count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.comparison import Comparison
    from evalmeta.report.details import CaseGroup
    from evalmeta.report.report import Report

    Kind = Literal["good", "bad", "dim"]

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
    """A run or a comparison: its name, its verdict in colour, lines, and the cases or the changes."""

    title: str
    verdict: str
    kind: Kind
    lines: Sequence[str] = ()
    rows: Sequence[_Row] = ()
    changes: Sequence[tuple[Kind | None, str]] = ()
    rest: str = ""


def runs_html(reports: Sequence[Report]) -> str:
    """Return runs, those that did not pass first: the verdict and the counts of each, and its first such cases."""
    ordered = sorted(reports, key=has_passed)
    parts = [_run_part(report) for report in ordered[:_SHOWN_RUNS]]
    if len(reports) > 1:
        parts.insert(0, _Part("All runs", totals(reports), "good" if all(map(has_passed, reports)) else "bad"))
    if (left := len(reports) - _SHOWN_RUNS) > 0:
        parts.append(_Part(f"... and {count(left, 'more run')}", "print them to see all", "dim"))
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
        one_line(decision(report), chars=400),
        "good" if has_passed(report) else "bad",
        [line.strip() for line in lines],
        list(_rows(report, findings.groups)),
        rest=f"... and {count(left, 'more case')}; save('report.html') shows all of them" if left else "",
    )


def _rows(report: Report, groups: Sequence[CaseGroup]) -> Iterator[_Row]:
    for group in groups:
        utterance = one_line(all_utterances(group.case)) or "(no utterance)"
        cells = (group_name(group), utterance, why_not_passed(group.case, report.summary))
        yield _Row(_KINDS.get(group.verdict, "dim"), VERDICT_WORDS[group.verdict], cells)
