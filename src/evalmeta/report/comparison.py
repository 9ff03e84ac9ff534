"""Comparisons of runs for people and for programs: what became worse first.

Differences of definitions for people and for programs: by test case, old above new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.model.difference import ChangeKind
from evalmeta.model.statistics import Standing
from evalmeta.report.text import count, one_line, percent, quote, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.difference import Change, Difference
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.statistics import CaseComparison, CaseCounts, Comparison, FailOn, Shortage, Significance


_Style = Literal["title", "plain", "worse", "better"]
_ALWAYS_COUNTED: Final = (Standing.BROKEN, Standing.FIXED, Standing.STILL_FAILING, Standing.STILL_PASSING)
_SHOWN: Final = (Standing.BROKEN, Standing.FIXED, Standing.ERROR, Standing.UNDECIDED, Standing.NEW, Standing.GONE)
_SHOWN_WHEN_CHANGED: Final = (Standing.FLAKY, Standing.STILL_FAILING, Standing.STILL_PASSING)
_SHOWN_NUMBERS: Final = 10
_STYLES: Final[dict[Standing, _Style]] = {Standing.BROKEN: "worse", Standing.FIXED: "better"}
_STANDING_CHARS: Final = max(map(len, Standing))
_TESTS: Final = {"mcnemar": "McNemar's exact test", "fisher": "Fisher's exact test"}
_SMALLEST_P: Final = 0.001


class ComparisonLine(NamedTuple):
    """Clean text, and how it is to look."""

    style: _Style
    text: str


def comparison_lines(comparison: Comparison, *, fail_on: FailOn = "broken") -> Iterator[ComparisonLine]:
    """Writes a comparison: a title, a line for each case of which something became, the counts, what they prove.

    Where only what is significant fails, it says whether the iterations are enough for that.
    """
    title = f"{comparison.name}: {comparison.after} against {comparison.before}"
    yield ComparisonLine("title", one_line(title, chars=400))
    for standing in (*_SHOWN, *_SHOWN_WHEN_CHANGED):
        for case in comparison.of(standing):
            if standing in _SHOWN or case.rate_changed:
                yield _case_line(case)
    yield ComparisonLine("plain", f"  {_counts(comparison)}")
    for number, when in zip(comparison.not_asked, (" before", ""), strict=True):
        if number:
            yield ComparisonLine(
                "plain", f"  {count(number, 'case')} {'was' if number == 1 else 'were'} not asked{when}"
            )
    if fail_on == "significant" and comparison.shortage is not None:
        yield ComparisonLine("plain", f"  {_shortage(comparison.shortage)}")
    yield ComparisonLine("plain", f"  {_conclusion(comparison)}")


def comparison_json(comparison: Comparison, *, fail_on: FailOn) -> JsonObject:
    """Gives a comparison as JSON values; shares are 0 to 1, null where nothing was decided."""
    before, after = comparison.rates
    return {
        "name": comparison.name,
        "before": comparison.before,
        "after": comparison.after,
        "regression": comparison.is_regression(fail_on),
        "passingShare": {"before": before, "after": after},
        "significance": _significance_json(comparison.significance),
        "iterationsNeeded": None if comparison.shortage is None else comparison.shortage.needed,
        "notAsked": dict(zip(("before", "after"), comparison.not_asked, strict=True)),
        "counts": {standing.value: len(comparison.of(standing)) for standing in Standing},
        "cases": [
            {
                "testNumber": case.number,
                "utterance": case.utterance,
                "standing": case.standing.value,
                "before": _counts_json(case.before),
                "after": _counts_json(case.after),
                "pValue": case.p_value,
            }
            for case in comparison.cases
        ],
    }


def p_text(p_value: float) -> str:
    """Gives `p = 0.031`, or `p < 0.001`."""
    return f"p < {_SMALLEST_P:g}" if p_value < _SMALLEST_P else f"p = {p_value:.2g}"


def _case_line(case: CaseComparison) -> ComparisonLine:
    rates = f"{_rate(case.before)} -> {_rate(case.after)}"
    chance = "" if case.p_value is None else f"  ({p_text(case.p_value)})"
    style = "worse" if case.is_new_failure else _STYLES.get(case.standing, "plain")
    text = f"  {case.standing:{_STANDING_CHARS}} {case.number:>4}  {rates:15}{chance}  {one_line(case.utterance)}"
    return ComparisonLine(style, text.rstrip())


def _rate(case: CaseCounts | None) -> str:
    if case is None:
        return "-"
    if case.decided:
        return f"{case.passed:,}/{case.decided:,}"
    return "error" if case.errors else "undecided"


def _counts(comparison: Comparison) -> str:
    numbers = [(standing, len(comparison.of(standing))) for standing in Standing]
    return ", ".join(f"{number:,} {standing}" for standing, number in numbers if number or standing in _ALWAYS_COUNTED)


def _conclusion(comparison: Comparison) -> str:
    before, after = (None if rate is None else percent(rate) for rate in comparison.rates)
    significance = comparison.significance
    if significance is None or before is None or after is None:
        return "nothing was decided on both sides, so there is nothing to compare"
    telling = _telling_cases(comparison)
    if before == after and not comparison.of(Standing.BROKEN):
        return f"{after} of the cases pass, as before{f', but {telling}' if telling else ''}"
    test = f"{_TESTS[significance.test]} of {count(significance.cases, 'case')}, {p_text(significance.p_value)}"
    rates = f"{before} of the cases passed, now {after}"
    if significance.is_significant:
        return f"{rates}: more than noise at p < 0.05 ({test})"
    return (
        f"{rates}: {telling}, all cases taken together did not ({test})"
        if telling
        else f"{rates}: could be noise ({test})"
    )


def _telling_cases(comparison: Comparison) -> str:
    numbers = [f"{each.number}" for each in comparison.cases if each.is_significant]
    if not numbers:
        return ""
    left = len(numbers) - _SHOWN_NUMBERS
    more = f" and {left:,} more" if left > 0 else ""
    cases = "case" if len(numbers) == 1 else "cases"
    return f"{cases} {', '.join(numbers[:_SHOWN_NUMBERS])}{more} changed by more than noise"


def _shortage(shortage: Shortage) -> str:
    iterations, one = count(shortage.iterations, "iteration"), "a case" if shortage.cases == 1 else "one case"
    among = "" if shortage.cases == 1 else f" of {shortage.cases:,}"
    return f"{iterations} cannot show that {one}{among} broke; {shortage.needed:,} would, on both sides"


def _significance_json(significance: Significance | None) -> JsonObject | None:
    if significance is None:
        return None
    return {
        "test": significance.test,
        "pValue": significance.p_value,
        "cases": significance.cases,
        "significant": significance.is_significant,
    }


def _counts_json(case: CaseCounts | None) -> JsonObject | None:
    if case is None:
        return None
    return {"passed": case.passed, "failed": case.failed, "errors": case.errors, "undecided": case.undecided}


Style = Literal["title", "plain", "old", "new"]


class DifferenceLine(NamedTuple):
    """Clean text, and how it is to look."""

    style: Style
    text: str


def difference_lines(difference: Difference) -> Iterator[DifferenceLine]:
    """Writes a difference: a title, then each change under its test case, `-` old and `+` new."""
    yield DifferenceLine("title", one_line(_title(difference), chars=400))
    if difference.is_form_only:
        yield DifferenceLine("plain", "  the same content in another form: order, layout, escaping or comments")
    case: int | None = None
    for change in difference.changes:
        if change.case is not None and change.case != case and change.what:
            yield DifferenceLine("plain", f"  test case {change.case}")
        case = change.case
        yield from _change(change)


def difference_json(difference: Difference) -> JsonObject:
    """Gives a difference as JSON values, without its problems."""
    return {
        "fullName": difference.name or None,
        "before": difference.before,
        "after": difference.after,
        "formOnly": difference.is_form_only,
        "changes": [
            {
                "kind": change.kind.value,
                "testCase": change.case,
                "what": list(change.what),
                "before": change.before,
                "after": change.after,
            }
            for change in difference.changes
        ],
    }


def _title(difference: Difference) -> str:
    if difference.before is None:
        return f"{difference.name}: only in the project ({difference.after})"
    if difference.after is None:
        return f"{difference.name}: only in {difference.before}"
    sides = f"- {difference.before}, + {difference.after}"
    return f"{difference.name} ({sides})" if difference.name else sides


def _change(change: Change) -> Iterator[DifferenceLine]:
    what = one_line(", ".join(change.what) or f"test case {change.case}", chars=400)
    indent = "  " if change.case is None or not change.what else "    "
    word = "" if change.kind is ChangeKind.CHANGED else f": {change.kind}"
    yield DifferenceLine("plain", f"{indent}{what}{word}")
    exact = _differ_in_blanks(change)
    if change.before is not None:
        yield DifferenceLine("old", _text(change.before, first=f"{indent}  - ", exact=exact))
    if change.after is not None:
        yield DifferenceLine("new", _text(change.after, first=f"{indent}  + ", exact=exact))


def _differ_in_blanks(change: Change) -> bool:
    return change.before is not None and change.after is not None and change.before.split() == change.after.split()


def _text(text: str, *, first: str, exact: bool) -> str:
    shown = quote(text) if exact or text != text.strip() or not text else text
    return wrap(shown, first=first, indent=" " * len(first))
