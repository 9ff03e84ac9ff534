"""Runs for GitHub: Markdown for job summaries ($GITHUB_STEP_SUMMARY) and comments, and workflow commands.

GitHub shows the commands as annotations beside changed lines.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.model.spending import cost_lines
from evalmeta.report.causes import cause_text, causes_in
from evalmeta.report.comparison import comparison_lines, is_unchanged
from evalmeta.report.details import (
    SHOWN_RESULTS,
    all_utterances,
    case_text,
    case_title,
    group_cases,
    group_title,
    why_not_passed,
)
from evalmeta.report.matrix import agent_table, case_table, differing_text, more_cases, pair_texts
from evalmeta.report.report import VERDICT_WORDS, Report
from evalmeta.report.results import check_lines, mean_cells, numbered_label, shown_averages
from evalmeta.report.summary import case_rates, corrected_text, pass_chances, quarantine_lines, reasons_text, totals
from evalmeta.report.text import LINE_CHARS, clean, count, decimal, one_line, percent, seconds, workflow_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.matrix import Matrix
    from evalmeta.report.details import CaseGroup


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield commands: the decision on each run, then one for each case that failed or ended in an error.

    GitHub shows only ten notices and ten errors of a step: runs of a suite that passed share one command, a case has
    one for all its iterations, and the decision has the number of cases. Failures that do not count are warnings.
    """
    shown = [report for report in reports if len(reports) == 1 or not report.is_brief]
    if len(shown) < len(reports):
        yield workflow_command("notice", totals(reports), [("title", "evalmeta")])
    for report in shown:
        yield from _commands(report)


def _commands(report: Report) -> Iterator[str]:
    passed = report.counts_as_passed
    title = one_line(f"{report.run.definition}: subject {report.run.subject_name}", chars=200)
    level = "notice" if passed or not report.run.status.is_over else "error"
    yield workflow_command(level, clean(report.outcome()), [*_location(report, None), ("title", title)])
    if checks := "\n".join(check_lines(report.run, report.tally.differences)):
        yield workflow_command("warning", clean(checks), [*_location(report, None), ("title", title)])
    numbers: set[int] = set()
    for case in report.run.cases:
        if case.number in numbers or report.verdict_of(case) not in {Verdict.FAILURE, Verdict.ERROR}:
            continue
        numbers.add(case.number)
        forgiven = report.why_not_counted(case)
        times = "" if case.is_quarantined else _times(report, case.number)
        text = f"{times}{why_not_passed(case, report.summary)}"
        text = f"{clean(forgiven)}: {text}" if forgiven else text
        properties = [*_location(report, case.number), ("title", case_title(case))]
        yield workflow_command("warning" if passed or forgiven else "error", text, properties)


def _times(report: Report, number: int) -> str:
    """Return in how many iterations a case failed or ended in an error, if the run has several."""
    if not report.is_repeated:
        return ""
    times = report.times
    return f"in {times.failed[number] + times.broken[number]:,} of {count(times.results[number], 'iteration')}: "


def _location(report: Report, number: int | None) -> Iterator[tuple[str, str]]:
    file, line = (report.file, None) if number is None else report.place_of(number)
    if not file:
        return
    yield "file", clean(file)
    if line:
        yield "line", f"{line}"


# GitHub allows 65,536 characters in a comment and 1 MiB in a job summary.
_MAX_CHARS: Final = 60_000
# Characters with a meaning in Markdown, HTML, tables and for GitHub (mentions, references, emoji, formulas).
_ACTIVE: Final = re.compile(r"[&<>`*_~\[\]\\|@#$^!]|:(?!\s)|(?<=www)\.", re.IGNORECASE)
_HEAD: Final = (
    "| | definition | cases | passed | partly judged | failed | errors | undecided | pass rate | judged | took |",
    "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
)
_SHOWN_RATES: Final = 50
_SHOWN_CAUSES: Final = 20
_SIGNS: Final = {True: "✅", False: "❌"}
_MEANS: Final = {Verdict.PASS: "✅", Verdict.FAILURE: "❌", Verdict.ERROR: "❌", Verdict.UNDECIDED: "❔"}


def stream_markdown(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a table of the runs, then the details of each case that did not pass.

    The text has at most 60,000 characters, so that it fits into a comment; its last line counts the parts that were
    left out. Texts of tests and answers are escaped, so that they cannot act as Markdown or HTML.
    """
    left_out, chars = 0, 0
    for block in _blocks(reports):
        if chars + len(block) > _MAX_CHARS:
            left_out += 1
            continue
        yield block
        chars += len(block)
    if left_out:
        yield f"\n{count(left_out, 'more part')} left out because of the size limit; see the other formats.\n"


def _blocks(reports: Sequence[Report]) -> Iterator[str]:
    yield "".join(f"{line}\n" for line in _HEAD)
    for report in reports:
        yield f"| {' | '.join(_cells(report))} |\n"
    if len(reports) > 1:
        yield f"\n{totals(reports)}\n"
    yield from (_matrix(report.matrix) for report in reports if report.matrix)
    for report in reports:
        if len(reports) == 1 or not _is_shown(report):
            yield from _section(report)


def _is_shown(report: Report) -> bool:
    """Return whether the row of a run in the table says all about it."""
    is_same = report.baseline is None or is_unchanged(report.baseline.comparison)
    statistics = report.statistics
    has_more = (
        report.summary.averages
        or report.undecided_reasons
        or (statistics and (statistics.measures or statistics.corrected))
        or any(cost_lines(report.tally.spent))
    )
    return report.is_brief and is_same and not has_more


def _cells(report: Report) -> Iterator[str]:
    summary = report.summary
    yield _SIGNS[report.counts_as_passed] if report.run.status.is_over else "⏳"
    yield _code(report.run.definition)
    counts = summary.passed, summary.partly_judged, summary.failed, summary.errors, summary.undecided
    yield from (f"{number:,}" for number in (summary.total, *counts))
    yield "none" if summary.pass_rate is None else percent(summary.pass_rate)
    judged, total, _ = summary.coverage
    yield "all" if judged == total else f"{judged:,} of {total:,}"
    yield seconds(report.duration)


def _matrix(matrix: Matrix) -> str:
    """Return the agents side by side, the pairs, and the cases in which they differ."""
    pairs = "".join(f"- {prose(text)}\n" for text in pair_texts(matrix))
    cases = _figures(case_table(matrix), more_cases(matrix).removeprefix("... and "))
    return f"{_figures(agent_table(matrix))}\n{pairs}\n{differing_text(matrix)}\n{cases}"


def _figures(rows: Sequence[Sequence[str]], more: str = "") -> str:
    """Return a table whose first row has the titles, and whose first column is a text and all others are numbers."""
    titles, *others = rows
    head = f"| {' | '.join(map(prose, titles))} |", f"|---|{'--:|' * (len(titles) - 1)}"
    return _table(head, ([_code(first), *map(prose, cells)] for first, *cells in others), more)


def _section(report: Report) -> Iterator[str]:
    yield f"\n### {_code(report.run.definition)}\n\n{prose(one_line(report.outcome(), chars=400))}\n"
    yield from filter(None, (_comparison(report), _averages(report), _measures(report), _rates(report)))
    for name, reasons in report.undecided_reasons.items():
        yield f"\n- {_code(name)}: {prose(reasons_text(reasons))}\n"
    if checks := "\n".join(check_lines(report.run, report.tally.differences)):
        yield f"\n<pre>{html.escape(checks, quote=False)}</pre>\n"
    for line in quarantine_lines(report):
        yield f"\n- {prose(line)}\n"
    # Results that do not count come last.
    for is_forgiven in (False, True) if report.baseline or report.summary.quarantined else (False,):
        for group in group_cases(report):
            if group.verdict is not Verdict.PASS and bool(report.why_not_counted(group.case)) is is_forgiven:
                yield _details(report, group)


def _comparison(report: Report) -> str:
    """Return what the baseline decides, and the lines of the comparison below it."""
    baseline = report.baseline
    if baseline is None:
        return ""
    _, *lines = (line.text for line in comparison_lines(baseline.comparison))
    text, label = html.escape("\n".join(lines), quote=False), _code(baseline.comparison.before)
    why = prose(one_line(baseline.text, chars=400))
    shown = (prose(one_line(cause_text(cause), chars=400)) for cause in causes_in(report)[:_SHOWN_CAUSES])
    causes = "".join(f"- {cause}\n" for cause in shown)
    listed = f"{causes}\n" if causes else ""
    return f"\n{_SIGNS[baseline.passed]} Compared with {label}: {why}\n\n{listed}<pre>{text}</pre>\n"


def _details(report: Report, group: CaseGroup) -> str:
    case, name = group.case, prose(group_title(report, group))
    utterances = html.escape(one_line(all_utterances(case)), quote=False)
    head = f"<b>{VERDICT_WORDS[group.verdict]}</b> {name} <code>{utterances}</code>"
    where = report.location(case)
    at = f"\n{_code(where, chars=400)}\n" if where else ""
    # An empty line ends an HTML block of Markdown, but not one that begins with <pre>.
    text = html.escape(case_text(case, report.summary, most=SHOWN_RESULTS), quote=False)
    return f"\n<details><summary>{head}</summary>\n{at}\n<pre>{text}</pre>\n\n</details>\n"


def _averages(report: Report) -> str:
    averages, left_out = shown_averages(report.summary)
    rows = (
        (_MEANS[mean.verdict], _code(numbered_label(mean)), _code(mean.name), *mean_cells(mean), f"{mean.count:,}")
        for mean in averages
    )
    head = ("| | case | average | mean | threshold | results |", "|---|---|---|--:|--:|--:|")
    return _table(head, rows, count(left_out, "more average") if left_out else "")


def _rates(report: Report) -> str:
    """Return the rate without the judge's errors, pass@k, the cost, and the cases that failed in some iterations."""
    statistics = report.statistics
    corrected = corrected_text(statistics.corrected) if statistics and statistics.corrected else ""
    lines = filter(None, (corrected, pass_chances(statistics) if statistics else "", *cost_lines(report.tally.spent)))
    text = "".join(f"\n- {prose(line)}\n" for line in lines)
    rates = [(counts, rate) for counts, rate in case_rates(report.run, statistics) if counts.failed]
    rows = ((f"{counts.number}", _code(counts.utterance), rate) for counts, rate in rates[:_SHOWN_RATES])
    left_out = len(rates) - _SHOWN_RATES
    head = ("| case | | pass rate |", "|--:|---|---|")
    return text + _table(head, rows, count(left_out, "more case") if left_out > 0 else "")


def _measures(report: Report) -> str:
    measures = report.statistics.measures if report.statistics else ()
    rows = ((_code(measure.name), decimal(measure.mean), f"{measure.count:,}") for measure in measures)
    return _table(("| measured | mean | results |", "|---|--:|--:|"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> str:
    """Return a table, and how many rows are left out; empty if there are no rows."""
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    if not lines:
        return ""
    return "\n" + "".join(f"{line}\n" for line in (*head, *lines)) + (f"\nand {more}\n" if more else "")


def _code(text: str, *, chars: int = LINE_CHARS) -> str:
    """Return text on one line in a code element, in which GitHub ignores mentions."""
    return f"<code>{_escape(one_line(text, chars=chars))}</code>"


def prose(text: str) -> str:
    """Return text that cannot act as Markdown or HTML."""
    # GitHub links @names and #numbers even if they are escaped: a zero-width space prevents that.
    return _escape(text).replace("&#64;", "&#64;&#8203;").replace("&#35;", "&#35;&#8203;")


def _escape(text: str) -> str:
    """Escape active characters as character references, which never act as Markdown (CommonMark 2.5)."""
    return _ACTIVE.sub(lambda match: f"&#{ord(match[0])};", text)
