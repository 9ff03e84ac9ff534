"""What the check of another org's verdicts found, in words that all reports share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.text import count, number_ranges, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult, Run, TestResult
    from evalmeta.model.run_options import Deciding
    from evalmeta.model.tally import Difference

_SHOWN: Final = 20
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
    yield from texts[:_SHOWN]
    if len(texts) > _SHOWN:
        yield f"and {count(len(texts) - _SHOWN, others)}"


def _difference_text(run: Run, difference: Difference) -> str:
    """Return on one line how the org and evalmeta judge a result."""
    case, result = difference
    which = f" (iteration {case.iteration})" if run.options.iterations > 1 else ""
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


def verdicts_json(result: TestResult) -> JsonObject:
    """Return both verdicts of a result as JSON values; empty if it was not checked."""
    return {"verdicts": dict(result.verdicts._asdict())} if result.verdicts else {}
