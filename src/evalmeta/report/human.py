"""Runs for people: what did not pass in full, counts of what passed, a list of the failures, and the verdict last.

`evalmeta.report.terminal` prints the same parts on a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from evalmeta.model.aggregation import is_failing
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.report.details import (
    SHOWN_RESULTS,
    case_text,
    group_cases,
    group_name,
    group_of,
    group_title,
    grouped_by,
    passed_text,
    why_not_passed,
)
from evalmeta.report.matrix import matrix_lines
from evalmeta.report.report import PARTLY, STATE_WORDS, VERDICT_WORDS, Report
from evalmeta.report.results import missed_averages
from evalmeta.report.summary import fact_lines, heading, passed_count, suite_lines, undecided_lines, verdict_lines
from evalmeta.report.text import count, number_ranges, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from evalmeta.report.details import CaseGroup


Detail: TypeAlias = Literal["verdict", "failures", "all"]
"""What is shown of the cases: nothing; those that did not pass, up to a limit; or all in full."""

# The largest numbers of cases of a report, over all its runs.
_FAILING: Final = 50
_UNDECIDED: Final = 10
_FAILURE_CHARS: Final = len(VERDICT_WORDS[Verdict.FAILURE])
_WORD_CHARS: Final = max(map(len, VERDICT_WORDS.values()))
_DETAILS_INDENT: Final = " " * (_WORD_CHARS + 1)
_SHOWN_RUNS: Final = 20
_RANGES_CHARS: Final = 60


class Line(NamedTuple):
    """A line, and how a terminal shows it.

    `word` colours the verdict that it begins with, and indents the rest of a long line; `whole` is never broken.
    """

    text: str = ""
    style: Literal["", "title", "dim", "good", "bad", "word", "whole"] = ""


class CaseDetails(NamedTuple):
    """A case that is shown in full, with the traceback of its error and the agent's steps, or without them."""

    report: Report
    group: CaseGroup
    is_verbose: bool = False


class Limits(NamedTuple):
    """How many cases that fail a run, and how many other undecided cases, are shown in full."""

    failing: int = _FAILING
    undecided: int = _UNDECIDED


class Findings(NamedTuple):
    """What is shown of a run: cases in full, a line for each of them that fails the run, the numbers of other cases.

    `known` are the cases that fail as in the baseline.
    """

    groups: Sequence[CaseGroup]
    lines: Sequence[str]
    failing: Sequence[int]
    undecided: Sequence[int]
    known: Sequence[int] = ()


def stream(reports: Sequence[Report], *, detail: Detail = "failures", closing: Sequence[str] = ()) -> Iterator[str]:
    """Yield plain lines: the cases that did not pass in full, a list of them, `closing`, and the verdict."""
    for part in human_parts(reports, detail=detail, closing=closing):
        yield f"{part.text if isinstance(part, Line) else _details(part)}\n"


def human_parts(
    reports: Sequence[Report], *, detail: Detail = "failures", closing: Sequence[str] = ()
) -> Iterator[Line | CaseDetails]:
    """Yield the parts of a report in order; `closing` has sentences that follow the list of failures."""
    is_first = True
    for paragraph in _paragraphs(reports, detail, closing):
        for place, part in enumerate(paragraph):
            if not place and not is_first:
                yield Line()
            is_first = False
            yield part


def _paragraphs(
    reports: Sequence[Report], detail: Detail, closing: Sequence[str]
) -> Iterator[Iterable[Line | CaseDetails]]:
    if detail == "verdict":
        yield _verdict(reports, is_short=True)
        return
    is_suite, is_all = len(reports) > 1, detail == "all"
    is_short = is_suite and not is_all
    brief = [report for report in reports if is_short and report.is_brief]
    others = [report for report in reports if not (is_short and report.is_brief)]
    yield [Line(_passed_run(report), "word") for report in brief]
    yield map(Line, undecided_lines(brief))
    listed: list[Line] = []
    for report, limits in zip(others, limits_of(others), strict=True):
        findings = find(report, limits)
        yield _heading(report, has_places=bool(findings.groups) and not is_all)
        yield _cases(report, findings, is_all=is_all)
        yield map(Line, fact_lines(report))
        if is_suite:
            yield _run_verdict(report)
        listed += [Line(line, "word") for line in findings.lines]
        if findings.failing:
            listed.append(Line(f"... and {_others(findings.failing)} of {one_line(report.run.definition)}"))
    yield listed
    yield [Line(text, "whole") for report in reports if report.matrix for text in matrix_lines(report.matrix)]
    yield [Line(text, "whole") for text in closing]
    yield _verdict(reports)


def _passed_run(report: Report) -> str:
    run, summary = report.run, report.summary
    undecided = f", {summary.undecided:,} undecided" if summary.undecided else ""
    name, run_id = one_line(run.definition), one_line(run.id)
    took = seconds(report.duration)
    return f"{VERDICT_WORDS[Verdict.PASS]} {name}: {passed_count([summary])}{undecided}, run {run_id}, took {took}"


def _heading(report: Report, *, has_places: bool) -> Iterator[Line]:
    """Yield the heading, and the path of a definition unless cases follow with it."""
    yield Line(heading(report), "title")
    shows_path = has_places and not report.has_long_path
    if report.file and report.file != report.run.definition and not shows_path:
        yield Line(one_line(report.file, chars=400), "dim")


def _cases(report: Report, findings: Findings, *, is_all: bool) -> Iterator[Line | CaseDetails]:
    for group in group_cases(report) if is_all else findings.groups:
        if group.verdict is Verdict.PASS:
            word = STATE_WORDS[PARTLY] if report.is_partly_judged(group.case) else VERDICT_WORDS[group.verdict]
            name = group_title(report, group) if group.case.is_quarantined else group_name(group)
            start = f"{word:{_WORD_CHARS}} {name}"
            yield Line(f"{start} {passed_text(group.case)}".rstrip(), "word")
        else:
            yield CaseDetails(report, group, is_verbose=is_all)
    if is_all:
        return
    for numbers, what in ((findings.failing, "did not pass"), (findings.undecided, "undecided")):
        if numbers:
            yield Line(f"... and {_others(numbers)} {what}; -v or the html report shows them in full")
    if findings.known and report.baseline:
        label, number = one_line(report.baseline.comparison.before), len(findings.known)
        cases = f"{'case' if number == 1 else 'cases'} {one_line(number_ranges(findings.known), chars=_RANGES_CHARS)}"
        yield Line(f"{count(number, 'known failure')}, in {label}: {cases}; -v or the html report has all")
    if any(group.case.traceback for group in findings.groups):
        yield Line("Add -v to see the traceback of each error.", "dim")


def _others(numbers: Sequence[int]) -> str:
    return f"{count(len(numbers), 'more case')} ({one_line(number_ranges(numbers), chars=_RANGES_CHARS)})"


def _run_verdict(report: Report) -> Iterator[Line]:
    first, *others = verdict_lines(report)
    yield Line(first, "good" if report.counts_as_passed else "bad")
    yield from map(Line, others)


def _verdict(reports: Sequence[Report], *, is_short: bool = False) -> Iterator[Line]:
    """Yield the verdict on one run, or on a suite; a short report also has one line for each run that did not pass."""
    if len(reports) == 1:
        yield from _run_verdict(reports[0])
        return
    bad = [report for report in reports if not report.counts_as_passed]
    for report in bad[:_SHOWN_RUNS] if is_short else ():
        yield Line(next(verdict_lines(report)), "bad")
    if is_short and len(bad) > _SHOWN_RUNS:
        yield Line(f"... and {count(len(bad) - _SHOWN_RUNS, 'more run')} did not pass")
    first, *others = suite_lines(reports)
    yield Line(first, "bad" if bad else "good")
    yield from map(Line, others)


def _details(part: CaseDetails) -> str:
    report, (case, verdict, *_), is_verbose = part
    start = f"{VERDICT_WORDS[verdict]:{_WORD_CHARS}} {group_title(report, part.group)}"
    where = report.place_in_list(case)
    head = f"{start} {one_line(where, chars=400)}" if where else start
    most = None if is_verbose else SHOWN_RESULTS
    details = case_text(case, report.summary, indent=_DETAILS_INDENT, traceback=is_verbose, steps=is_verbose, most=most)
    return f"{head}\n{details}"


def limits_of(reports: Sequence[Report]) -> list[Limits]:
    """Return the limits of each run; the runs of a report share its limits."""
    summaries = [report.summary for report in reports]
    judged = [summary.judges_enough and summary.pass_rate is not None for summary in summaries]
    failing = [
        summary.failed + summary.errors if enough else summary.total
        for summary, enough in zip(summaries, judged, strict=True)
    ]
    undecided = [summary.undecided if enough else 0 for summary, enough in zip(summaries, judged, strict=True)]
    return list(map(Limits, _shares(failing, _FAILING), _shares(undecided, _UNDECIDED)))


def _shares(needs: Sequence[int], total: int) -> list[int]:
    """Divide a total: small needs are met first, and all others get the same."""
    shares = [0] * len(needs)
    for done, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        shares[place] = min(needs[place], total // (len(needs) - done))
        total -= shares[place]
    return shares


def has_failing(report: Report) -> bool:
    """Return whether a case of the run fails it, as in `Findings.lines`."""
    return any(_is_failing(report, case) for case in report.run.cases)


def _is_failing(report: Report, case: CaseResult) -> bool:
    return is_failing(report.summary, case, report.run.options) and not report.is_known(case)


def find(report: Report, limits: Limits) -> Findings:
    """Read the case results of a run once, and keep only what is shown."""
    groups: dict[Hashable, tuple[CaseResult, list[int]]] = {}
    failing, undecided, known = _First(limits.failing), _First(limits.undecided), set[int]()
    for case in report.run.cases:
        if case.is_quarantined:
            continue
        if report.is_known(case):
            known.add(case.number)
            continue
        if _is_failing(report, case):
            is_kept = failing.add(case)
        else:
            is_kept = report.verdict_of(case) is Verdict.UNDECIDED and undecided.add(case)
        if is_kept:
            key: Hashable = grouped_by(report, case) if report.is_repeated else len(groups)
            groups.setdefault(key, (case, []))[1].append(case.iteration)
    return Findings(
        [group_of(report, *same) for same in groups.values()],
        [_line(report, group_of(report, *same)) for _, same in sorted(failing.kept.items())],
        sorted(failing.others),
        sorted(undecided.others),
        sorted(known),
    )


class _First:
    """The first result and the iterations of each of the first cases, and the numbers of the others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.kept: dict[int, tuple[CaseResult, list[int]]] = {}
        self.others: set[int] = set()

    def add(self, case: CaseResult) -> bool:
        """Count the result if its case is one of the first, and return whether it is."""
        if case.number not in self.kept and len(self.kept) >= self._limit:
            self.others.add(case.number)
            return False
        self.kept.setdefault(case.number, (case, []))[1].append(case.iteration)
        return True


def _line(report: Report, group: CaseGroup) -> str:
    """Return verdict and place of a case that fails its run, its number, and why it did not pass."""
    case, verdict = group.case, group.verdict
    place, why = (
        one_line(report.place_in_list(case) or report.run.definition, chars=400),
        why_not_passed(case, report.summary),
    )
    if verdict is Verdict.PASS:
        # The run judged too few results.
        verdict = Verdict.UNDECIDED
    elif case.verdict in {Verdict.PASS, Verdict.UNDECIDED} and not missed_averages(report.summary, case):
        why = f"undecided: {why}" if verdict is Verdict.FAILURE else why
    if forgiven := report.why_not_counted(case):
        why = f"{one_line(forgiven)}: {why}"
    return f"{VERDICT_WORDS[verdict]:{_FAILURE_CHARS}} {place}  case {group_name(group, place=place)}  {why}"
