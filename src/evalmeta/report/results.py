"""What all reports say about results: the means that cases are judged by, and the check of another org's verdicts."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from evalmeta.model.expectations import ACTIONS, canonical_name, expectation_kind, parse_actions
from evalmeta.model.run import Average, CaseResult, Run, Summary, TestResult, Verdict
from evalmeta.report.text import count, decimal, distinct_decimals, number_ranges, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run_options import Deciding
    from evalmeta.model.tally import Difference


_SHOWN: Final = 20
# The results whose texts are lists of names, which definitions write as `['A', 'B']`.
_OF_NAMES: Final = frozenset({ACTIONS, "not_actions", "max_actions", "handoffs"})
_LABEL_CHARS: Final = 40


def label_of(name: str, label: str | None = None) -> str:
    """Return the label of a result, or else that of its expectation; empty if it has none."""
    kind = expectation_kind(name)
    return label or (kind.label if kind else "")


def plain_text(result: TestResult, text: str) -> str:
    """Return an expected or actual text as people write it: a list of names as `A, B`, an empty one as `(none)`."""
    names = parse_actions(text) if canonical_name(result.name) in _OF_NAMES else None
    return text if names is None else ", ".join(names) or "(none)"


def averages_of(summary: Summary, case: CaseResult) -> tuple[Average, ...]:
    """Return the means that a case is judged by; none if the case ended in an error."""
    if case.verdict is Verdict.ERROR or case.number not in summary.averaged:
        return ()
    first = bisect_left(summary.averages, case.number, key=lambda average: average.number)
    last = bisect_left(summary.averages, case.number + 1, key=lambda average: average.number)
    return summary.averages[first:last]


def missed_averages(summary: Summary, case: CaseResult) -> tuple[Average, ...]:
    """Return the means of a case that miss their thresholds."""
    return tuple(average for average in averages_of(summary, case) if average.verdict is Verdict.FAILURE)


def shown_averages(summary: Summary) -> tuple[list[Average], int]:
    """Return the means that a summary shows, missed ones first if there are many, and the number left out."""
    averages: Sequence[Average] = summary.averages
    if len(averages) > _SHOWN:
        averages = sorted(averages, key=lambda average: average.verdict is not Verdict.FAILURE)
    return list(averages[:_SHOWN]), max(0, len(averages) - _SHOWN)


def numbered_label(average: Average) -> str:
    """Return the number and label of a mean's case, on one short line."""
    return f"{average.number} {one_line(average.label, chars=_LABEL_CHARS)}".rstrip()


def case_label(average: Average) -> str:
    """Return the label of a mean's case on one line, or `case 3` if it has none."""
    return one_line(average.label) or f"case {average.number}"


def mean_cells(average: Average) -> tuple[str, str]:
    """Return mean and threshold for two columns of a table."""
    if average.score is None:
        return "none", decimal(average.threshold)
    return distinct_decimals(average.score, average.threshold)


def mean_text(average: Average) -> str:
    """Return `0.667, expected 0.8`, or `expected at most` where less is better."""
    if average.score is None:
        what = "not evaluated" if average.verdict is Verdict.FAILURE else "no score"
        return f"{what}, expected {decimal(average.threshold)}"
    score, threshold = mean_cells(average)
    most = "at most " if average.verdict is Verdict.FAILURE and average.score > average.threshold else ""
    return f"{score}, expected {most}{threshold}"


def missed_text(average: Average) -> str:
    """Return `response_match_score of greeting-test: 0.667, expected 0.8`."""
    return f"{one_line(average.name)} of {case_label(average)}: {mean_text(average)}"


def score_text(result: TestResult) -> str:
    """Return the score of an averaged result with the mean that is required; empty for other results."""
    if result.threshold is None:
        return ""
    if result.score is None:
        return f"none (required mean: {decimal(result.threshold)})"
    score, threshold = distinct_decimals(result.score, result.threshold)
    return f"{score} (required mean: {threshold})"


_SHOWN_DIFFERENCES: Final = 20
_TEXT_CHARS: Final = 300
_DECIDING: Final[dict[Deciding, str]] = {
    "org": "the org's verdicts count; --verdict both or local lets evalmeta's count",
    "local": "evalmeta's verdicts count",
    "both": "the worse of both verdicts counts",
}


def check_lines(run: Run, differences: Sequence[Difference]) -> Iterator[str]:
    """Yield what a check found: verdicts that differ, then doubts with their cases; nothing for other runs."""
    doubts = list(_doubt_texts(run))
    if not differences and not doubts:
        return
    yield f"the org's verdicts, checked by evalmeta ({_DECIDING[run.options.decides]}):"
    texts = [_difference_text(run, difference) for difference in differences]
    yield from (f"  {text}" for text in _first(texts, "more verdict"))
    yield from (f"  {text}" for text in _first(doubts, "more doubt"))


def _first(texts: Sequence[str], others: str) -> Iterator[str]:
    yield from texts[:_SHOWN_DIFFERENCES]
    if len(texts) > _SHOWN_DIFFERENCES:
        yield f"and {count(len(texts) - _SHOWN_DIFFERENCES, others)}"


def _difference_text(run: Run, difference: Difference) -> str:
    """Return on one line how the org and evalmeta judge a result."""
    case, result = difference
    which = f" (iteration {case.iteration})" if run.options.is_repeated else ""
    return one_line(f"case {case.number}{which}: {result.name}: {both_verdicts(result)}", chars=_TEXT_CHARS)


def both_verdicts(result: TestResult) -> str:
    """Return `org PASS, evalmeta FAILURE: the topic is Returns`; empty if they agree or nothing was checked."""
    both = result.verdicts
    if both is None or both.org is both.local or both.local is Verdict.UNDECIDED:
        return ""
    org = "none" if both.org is Verdict.UNDECIDED else both.org
    # Where evalmeta's verdict counts, the result has its explanation already.
    why = "" if both.explanation == result.explanation else both.explanation
    return f"org {org}, evalmeta {both.local}" + (f": {why}" if why else "")


def _doubt_texts(run: Run) -> Iterator[str]:
    """Yield each different doubt on one line, with the numbers of its cases and its code."""
    cases: dict[tuple[str, str], set[int]] = {}
    for doubt in run.doubts:
        cases.setdefault((doubt.code, doubt.text), set()).add(doubt.number)
    for (code, text), in_cases in cases.items():
        numbers = sorted(in_cases - {0})
        where = f"{'case' if len(numbers) == 1 else 'cases'} {number_ranges(numbers)}: " if numbers else ""
        yield one_line(f"{where}{text} ({code})", chars=_TEXT_CHARS)


def doubt_codes(run: Run, case: CaseResult) -> list[str]:
    """Return the codes of the doubts about a case result."""
    of_case = (doubt for doubt in run.doubts if doubt.number == case.number and doubt.iteration in {0, case.iteration})
    return list(dict.fromkeys(doubt.code for doubt in of_case))
