"""Runs for people: plain lines in files and pipes, tables and colour on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.averages import case_cell, measure_lines, shown_averages
from evalmeta.report.details import asked, case_text, group_number, grouped, undecided_reasons
from evalmeta.report.report import decision, duration, has_passed, has_rate, mean_cells, place
from evalmeta.report.statistics import statistics_lines
from evalmeta.report.text import count, one_line, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from evalmeta.report.details import CaseGroup
    from evalmeta.report.report import Report


WORDS: Final = {Verdict.PASS: "ok", Verdict.FAILURE: "FAILED", Verdict.ERROR: "ERROR", Verdict.UNDECIDED: "undecided"}
_WORD_CHARS: Final = max(map(len, WORDS.values()))
_DETAILS_INDENT: Final = " " * (_WORD_CHARS + 1)


def render(reports: Sequence[Report]) -> str:
    """Writes runs as plain lines: a line for each case that passed, details for each other, then the summary."""
    sections = ["\n".join(_lines(report)) for report in reports]
    if len(reports) > 1:
        sections.append(totals(reports))
    return "\n\n".join(sections) + "\n"


def print_human(reports: Sequence[Report], console: Console) -> None:
    """Prints what `render` writes, on a terminal with tables and colour."""
    if not console.is_terminal:
        console.file.write(render(reports))
        return
    # rich's tables are loaded only for a terminal.
    from evalmeta.report.tables import print_tables  # noqa: PLC0415

    print_tables(reports, console)


def heading(report: Report) -> str:
    """Names the definition, the subject and the run on one line."""
    run = report.run
    version = f" {run.subject_version}" if run.subject_version else ""
    again = f", answers of {run.answers_of} judged again" if run.answers_of else ""
    return one_line(f"{run.definition}: subject {run.subject_name}{version}, run {run.id}{again}", chars=300)


def summary_lines(report: Report) -> Iterator[str]:
    """Yields what a run came to: the decision, the counts, the numbers that matter, the undecided results."""
    run, summary = report.run, report.summary
    yield one_line(f"{run.definition} {decision(report)}", chars=400)
    yield f"  {_counts(report)}"
    if has_rate(report):
        rate = "none, no case was decided" if summary.pass_rate is None else percent(summary.pass_rate)
        yield f"  pass rate {rate}; at least {percent(summary.min_pass_rate)} asked for"
    for line in () if report.statistics is None else statistics_lines(run, report.statistics):
        yield f"  {line}"
    yield f"  took {seconds(duration(run))}"
    yield from _average_lines(report)
    measures = list(measure_lines(report))
    if measures:
        yield "  measured, which passes or fails nothing:"
    yield from (f"    {line}" for line in measures)
    if summary.undecided_results:
        strict = run.options.undecided == "fail"
        yield f"  undecided results, which {'make a case fail' if strict else 'never count as passed'}:"
    for name, number, reason in undecided_reasons(report):
        yield f"    {one_line(name)}, {count(number, 'result')}: {reason}"


def totals(reports: Sequence[Report]) -> str:
    """Says in one line how many of several runs passed."""
    passed = sum(map(has_passed, reports))
    cases = sum(report.summary.total for report in reports)
    return (
        f"{count(len(reports), 'run')} with {count(cases, 'case')}: "
        f"{count(passed, 'run')} passed, {len(reports) - passed:,} not"
    )


def _lines(report: Report) -> Iterator[str]:
    yield heading(report)
    if report.file and report.file != report.run.definition:
        yield one_line(report.file, chars=400)
    yield ""
    for group in grouped(report):
        yield from _case_lines(report, group)
    if report.run.cases:
        yield ""
    yield from summary_lines(report)


def _case_lines(report: Report, group: CaseGroup) -> Iterator[str]:
    case, verdict = group.case, group.verdict
    start = f"{WORDS[verdict]:{_WORD_CHARS}} {group_number(group)}"
    if verdict is Verdict.PASS:
        yield f"{start} {one_line(asked(case))}".rstrip()
        return
    where = place(report, case)
    yield f"{start} {one_line(where, chars=400)}" if where else start
    yield case_text(case, report.summary, indent=_DETAILS_INDENT)


def _average_lines(report: Report) -> Iterator[str]:
    averages, left_out = shown_averages(report)
    if not averages:
        return
    yield f"  averages over {_averaged_over(report)}:"
    rows = [("case", "name", "mean", "threshold", "over", "")]
    for each in averages:
        over = count(each.count, "result")
        score, threshold = mean_cells(each)
        rows.append((case_cell(each), one_line(each.name), score, threshold, over, WORDS[each.verdict]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "    " + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
    if left_out:
        yield f"    and {count(left_out, 'more average')}"


def _averaged_over(report: Report) -> str:
    return "turns and iterations" if report.run.options.iterations > 1 else "the turns of a case"


def _counts(report: Report) -> str:
    summary, options = report.summary, report.run.options
    cases = count(summary.total, "case")
    if options.iterations > 1:
        number = len({case.number for case in report.run.cases})
        iterations = count(options.iterations, "iteration")
        cases = f"{count(number, 'case')} in {iterations}, {count(summary.total, 'result')}"
    parts = (f"{summary.passed:,} passed", f"{summary.failed:,} failed", count(summary.errors, "error"))
    return f"{cases}: {', '.join(parts)}, {summary.undecided:,} undecided"
