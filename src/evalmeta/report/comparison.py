"""Comparisons of runs and differences of definitions, as lines for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.model.difference import ChangeKind
from evalmeta.model.statistics import Standing
from evalmeta.report.text import and_more, count, one_line, percent, quote, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.difference import Change, Difference
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.statistics import CaseComparison, CaseCounts, Comparison, FailOn, Shortage, Significance


Style = Literal["title", "plain", "worse", "better", "old", "new"]
_ALWAYS_COUNTED: Final = (Standing.BROKEN, Standing.FIXED, Standing.STILL_FAILING, Standing.STILL_PASSING)
_SHOWN: Final = (Standing.BROKEN, Standing.FIXED, Standing.ERROR, Standing.UNDECIDED, Standing.NEW, Standing.GONE)
_SHOWN_WHEN_CHANGED: Final = (Standing.FLAKY, Standing.STILL_FAILING, Standing.STILL_PASSING)
_SHOWN_NUMBERS: Final = 10
_STYLES: Final[dict[Standing, Style]] = {Standing.BROKEN: "worse", Standing.FIXED: "better"}
_STANDING_CHARS: Final = max(map(len, Standing))
_TESTS: Final = {"mcnemar": "McNemar's exact test", "fisher": "Fisher's exact test"}
_SMALLEST_P: Final = 0.001


class StyledLine(NamedTuple):
    """A line of clean text and its style."""

    style: Style
    text: str


def comparison_lines(comparison: Comparison, *, fail_on: FailOn = "broken") -> Iterator[StyledLine]:
    """Yield the lines of a comparison: a title, each case that changed, the counts, and the conclusion.

    With `fail_on="significant"`, a line warns if there are too few iterations to show a change.
    """
    title = f"{comparison.name}: {comparison.after} against {comparison.before}"
    yield StyledLine("title", one_line(title, chars=400))
    for standing in (*_SHOWN, *_SHOWN_WHEN_CHANGED):
        for case in comparison.of(standing):
            if standing in _SHOWN or case.rate_changed:
                yield _case_line(case)
    numbers = [(standing, len(comparison.of(standing))) for standing in Standing]
    counts = [_counted(number, standing) for standing, number in numbers if number or standing in _ALWAYS_COUNTED]
    yield StyledLine("plain", f"  {', '.join(counts)}")
    for number, when in zip(comparison.not_asked, (" before", ""), strict=True):
        if number:
            verb = "was" if number == 1 else "were"
            yield StyledLine("plain", f"  {count(number, 'case')} {verb} not asked{when}")
    if fail_on == "significant" and comparison.shortage is not None:
        yield StyledLine("plain", f"  {_shortage(comparison.shortage)}")
    yield StyledLine("plain", f"  {_conclusion(comparison)}")


def comparison_json(comparison: Comparison, *, fail_on: FailOn) -> JsonObject:
    """Return a comparison as JSON values; shares are 0 to 1, or null if no case was judged."""
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
    """Return `p = 0.031`, or `p < 0.001`."""
    return f"p < {_SMALLEST_P:g}" if p_value < _SMALLEST_P else f"p = {p_value:.2g}"


def _case_line(case: CaseComparison) -> StyledLine:
    rates = f"{_rate(case.before)} -> {_rate(case.after)}"
    chance = "" if case.p_value is None else f"  ({p_text(case.p_value)})"
    style = "worse" if case.is_new_failure else _STYLES.get(case.standing, "plain")
    text = f"  {case.standing:{_STANDING_CHARS}} {case.number:>4}  {rates:15}{chance}  {one_line(case.utterance)}"
    return StyledLine(style, text.rstrip())


def _counted(number: int, standing: Standing) -> str:
    return count(number, "error") if standing is Standing.ERROR else f"{number:,} {standing}"


def _rate(case: CaseCounts | None) -> str:
    if case is None:
        return "-"
    if case.decided:
        return f"{case.passed:,}/{case.decided:,}"
    return "error" if case.errors else "undecided"


def _conclusion(comparison: Comparison) -> str:
    before, after = (None if rate is None else percent(rate) for rate in comparison.rates)
    significance = comparison.significance
    if significance is None or before is None or after is None:
        return "no case was judged in both runs, so there is nothing to compare"
    numbers = [f"{each.number}" for each in comparison.cases if each.is_significant]
    which = f"{'case' if len(numbers) == 1 else 'cases'} {and_more(numbers, _SHOWN_NUMBERS)}"
    changed = f"{which} changed significantly" if numbers else ""
    if before == after and not comparison.of(Standing.BROKEN):
        return f"{after} of the cases pass, as before{f', but {changed}' if changed else ''}"
    test = f"{_TESTS[significance.test]} of {count(significance.cases, 'case')}, {p_text(significance.p_value)}"
    rates = f"pass rate: {before} before, {after} now"
    if significance.is_significant:
        return f"{rates}: significant at p < 0.05 ({test})"
    if changed:
        return f"{rates}: {changed}, but the cases together did not ({test})"
    return f"{rates}: could be noise ({test})"


def _shortage(shortage: Shortage) -> str:
    iterations, one = count(shortage.iterations, "iteration"), "a case" if shortage.cases == 1 else "one case"
    among = "" if shortage.cases == 1 else f" of {shortage.cases:,}"
    return f"{iterations} cannot show that {one}{among} broke; run both with at least {shortage.needed:,}"


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


def difference_lines(difference: Difference) -> Iterator[StyledLine]:
    """Yield the lines of a difference: a title, then the changes of each test case, `-` old and `+` new."""
    yield StyledLine("title", one_line(_title(difference), chars=400))
    if difference.is_form_only:
        yield StyledLine("plain", "  same content; only order, layout, escaping or comments differ")
    case: int | None = None
    for change in difference.changes:
        if change.case is not None and change.case != case and change.what:
            yield StyledLine("plain", f"  test case {change.case}")
        case = change.case
        yield from _change(change)


def difference_json(difference: Difference) -> JsonObject:
    """Return a difference as JSON values, without its problems."""
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
    versions = f"- {difference.before}, + {difference.after}"
    return f"{difference.name} ({versions})" if difference.name else versions


def _change(change: Change) -> Iterator[StyledLine]:
    what = one_line(", ".join(change.what) or f"test case {change.case}", chars=400)
    indent = "  " if change.case is None or not change.what else "    "
    word = "" if change.kind is ChangeKind.CHANGED else f": {change.kind}"
    yield StyledLine("plain", f"{indent}{what}{word}")
    before, after = change.before, change.after
    # Texts that differ only in blanks are quoted, so that the blanks can be seen.
    exact = before is not None and after is not None and before.split() == after.split()
    if before is not None:
        yield StyledLine("old", _text(before, first=f"{indent}  - ", exact=exact))
    if after is not None:
        yield StyledLine("new", _text(after, first=f"{indent}  + ", exact=exact))


def _text(text: str, *, first: str, exact: bool) -> str:
    shown = quote(text) if exact or text != text.strip() or not text else text
    return wrap(shown, first=first, indent=" " * len(first))
