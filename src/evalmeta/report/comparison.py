"""Comparisons of runs and differences of definitions, as lines for people and as JSON."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from evalmeta.model.comparison import SUSPECTS, CaseComparison, Comparison, Significance, Standing, SuiteComparison
from evalmeta.model.difference import Change, ChangeKind, Difference
from evalmeta.report.text import attributes_json, count, one_line, percent, quote, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.fingerprints import ChangesOfTest
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.statistics import CaseCounts


Explain: TypeAlias = "Callable[[Comparison], Mapping[int, Sequence[str]]]"
NO_REASONS: Final[Mapping[int, Sequence[str]]] = MappingProxyType({})
Style = Literal["title", "plain", "worse", "better", "old", "new"]
_ALWAYS_COUNTED: Final = (Standing.BROKEN, Standing.SUSPECT, Standing.STILL_FAILING, Standing.STILL_PASSING)
_SHOWN: Final = (
    *(Standing.BROKEN, Standing.ERROR, *SUSPECTS, Standing.FLAKY_NOW, Standing.FIXED, Standing.MAYBE_FIXED),
    *(Standing.BACK, Standing.UNDECIDED, Standing.NEW, Standing.GONE),
)
_SHOWN_WHEN_CHANGED: Final = (Standing.FLAKY, Standing.STILL_FAILING, Standing.STILL_PASSING)
WORST_FIRST: Final = (*_SHOWN, *_SHOWN_WHEN_CHANGED)
"""The order of standings in lists."""
_STYLES: Final[dict[Standing, Style]] = {
    Standing.BROKEN: "worse",
    Standing.SUSPECT: "worse",
    Standing.UNJUDGED: "worse",
    Standing.FIXED: "better",
    Standing.MAYBE_FIXED: "better",
}
_STANDING_CHARS: Final = max(map(len, Standing))
_REASON_INDENT: Final = " " * (_STANDING_CHARS + 9)
_TESTS: Final = {"permutation": "permutation test", "fisher": "Fisher's exact test"}
_SMALLEST_P: Final = 0.001
_WERE: Final = {True: "was", False: "were"}
_ARE: Final = {True: "is", False: "are"}


class StyledLine(NamedTuple):
    """A line of clean text and its style."""

    style: Style
    text: str


def suite_lines(
    suite: SuiteComparison, *, suspects_fail: bool = False, explain: Explain = lambda _: {}
) -> Iterator[list[StyledLine]]:
    """Yield the lines of the tests of a command, in blocks; tests in which nothing changed are only counted.

    `explain` returns the reasons why cases of a test changed, by their numbers.
    """
    tests = [test for test in suite.tests if len(suite.tests) == 1 or not is_unchanged(test)]
    same = len(suite.tests) - len(tests)
    head = [StyledLine("plain", f"{same:,} of {count(len(suite.tests), 'test')}: no change")] if same else []
    if suite.significance:
        together = f"{count(len(suite.tests), 'test')} together: {_rates(suite.significance)}"
        head.append(StyledLine("worse" if suite.is_significantly == "worse" else "plain", together))
    blocks = [head, *([*comparison_lines(test, suspects_fail=suspects_fail, reasons=explain(test))] for test in tests)]
    for place, block in enumerate(filter(None, blocks)):
        yield [StyledLine("plain", ""), *block] if place else block


def comparison_lines(
    comparison: Comparison, *, suspects_fail: bool = False, reasons: Mapping[int, Sequence[str]] = NO_REASONS
) -> Iterator[StyledLine]:
    """Yield the lines of a comparison: the verdict, the pass rates, each case that changed, and the counts.

    Below a case come the `reasons` of its number.
    """
    labels = f"({comparison.after} against {comparison.before})"
    title = f"{comparison.name}: {verdict(comparison, suspects_fail=suspects_fail)} {labels}"
    yield StyledLine("title", one_line(title, chars=400))
    yield StyledLine("plain", f"  {rates_text(comparison)}")
    for standing in WORST_FIRST:
        for case in comparison.of(standing):
            if standing in _SHOWN or case.change != "same":
                yield _case_line(case)
                yield from (StyledLine("plain", f"{_REASON_INDENT}{reason}") for reason in _reasons(case, reasons))
    yield from (StyledLine("plain", f"  {line}") for line in remark_lines(comparison))


def remark_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what a comparison says behind its cases: the counts, the cases that were not run, changes of the test."""
    numbers = [(standing, len(comparison.of(standing))) for standing in Standing]
    counts = [
        count(number, "error") if standing is Standing.ERROR else f"{number:,} {standing}"
        for standing, number in numbers
        if number or standing in _ALWAYS_COUNTED
    ]
    yield ", ".join(counts)
    for number, when in zip(comparison.not_asked, (" before", ""), strict=True):
        if number:
            verb = "was" if number == 1 else "were"
            yield f"{count(number, 'case')} {verb} not run{when}"
    yield from change_texts(comparison.changes)
    yield from _explanations(comparison)


def _reasons(case: CaseComparison, reasons: Mapping[int, Sequence[str]]) -> Sequence[str]:
    # The number of a removed case may be that of another one now.
    return () if case.after is None else reasons.get(case.number, ())


def change_texts(changes: ChangesOfTest) -> Iterator[str]:
    """Yield sentences about what changed in a test itself; none if nothing did."""
    if changes.removed:
        yield f"{count(changes.removed, 'case')} {_WERE[changes.removed == 1]} removed."
    counts = (changes.weaker, "weaker"), (changes.changed, "changed"), (changes.new, "new or stricter")
    if counted := [(number, word) for number, word in counts if number]:
        first, *others = (f"{number:,} {_ARE[number == 1]} {word}" for number, word in counted)
        noun = "expectation" if counted[0][0] == 1 else "expectations"
        yield f"{', '.join([first.replace(' ', f' {noun} ', 1), *others])}."
    for what, before, after in changes.parts:
        kind = "Other" if what.startswith("options") else "Another"
        yield f"{kind} {what}: {one_line(before)} before, {one_line(after)} now."


def is_unchanged(comparison: Comparison) -> bool:
    """Return whether all cases are as before, so that a suite need not show them."""
    return not any((*comparison.not_asked, *comparison.changes)) and all(map(_is_as_before, comparison.cases))


def _is_as_before(case: CaseComparison) -> bool:
    if case.standing is Standing.UNDECIDED and case.before and case.after:
        return not (case.before.decided or case.after.decided)
    return case.standing in {Standing.STILL_PASSING, Standing.STILL_FAILING} and case.change == "same"


def verdict(comparison: Comparison, *, suspects_fail: bool = False) -> str:
    """Return in a few words whether the test became worse, and why."""
    text, new = _verdict(comparison, suspects_fail=suspects_fail), sum(case.is_new_failure for case in comparison.cases)
    return f"{text}; {count(new, 'new case')} {'fails' if new == 1 else 'fail'}" if new else text


def _verdict(comparison: Comparison, *, suspects_fail: bool) -> str:
    broken, suspects, lost = comparison.of(Standing.BROKEN), comparison.suspects, comparison.lost
    counted = (broken, "broken"), (suspects, "suspect"), (lost, "passed before and ended in errors")
    reasons = [f"{len(cases):,} {what}" for cases, what in counted if cases]
    if comparison.is_regression(suspects_fail=suspects_fail):
        return ", ".join(["WORSE", *reasons])
    if reasons:
        return f"not significantly worse, but {', '.join(reasons)}"
    if comparison.significance is None:
        return "nothing to compare"
    if comparison.is_significantly == "better" or comparison.of(Standing.FIXED):
        return "better"
    if any(comparison.of(standing) for standing in (Standing.MAYBE_FIXED, Standing.BACK)):
        return "no significant change"
    return "no change" if comparison.significance.change == "same" else "no significant change"


def comparison_json(comparison: Comparison, *, suspects_fail: bool) -> JsonObject:
    """Return a comparison as JSON values; rates are 0 to 1, and significance is null if no case was judged."""
    changes = comparison.changes
    return {
        **attributes_json(comparison, "name", "before", "after"),
        "regression": comparison.is_regression(suspects_fail=suspects_fail),
        "significance": _significance_json(comparison.significance),
        "baselineRuns": comparison.runs,
        "alikeWithinRun": comparison.is_alike,
        "notAsked": dict(zip(("before", "after"), comparison.not_asked, strict=True)),
        "changes": {
            "casesRemoved": changes.removed,
            "expectationsWeaker": changes.weaker,
            "expectationsChanged": changes.changed,
            "expectationsNew": changes.new,
            "others": [part._asdict() for part in changes.parts],
        },
        "counts": {standing.value: len(comparison.of(standing)) for standing in Standing},
        "cases": [
            {
                "testNumber": case.number,
                **attributes_json(case, "utterance", "standing"),
                "before": _counts_json(case.before),
                "after": _counts_json(case.after),
                "askedAgain": _counts_json(case.again),
                **attributes_json(case, "left_to_ask", "p_value"),
            }
            for case in comparison.cases
        ],
    }


def p_text(p_value: float) -> str:
    """Return `p = 0.031`, or `p < 0.001`."""
    return f"p < {_SMALLEST_P:g}" if p_value < _SMALLEST_P else f"p = {p_value:.2g}"


def rates_text(comparison: Comparison) -> str:
    """Return how the pass rate of both runs changed."""
    significance = comparison.significance
    if significance is None:
        return "no case was judged in both runs"
    shared = sum(case.before is not None and case.after is not None for case in comparison.cases)
    both = significance.cases < shared
    return _rates(
        significance, f"the {significance.cases:,} of {count(shared, 'case')} that both runs judged" if both else ""
    )


def _rates(significance: Significance, cases: str = "") -> str:
    """Return how the pass rate of the first answers changed; suspect cases that are asked again do not change it."""
    before, after = map(percent, significance.rates)
    cases = cases or count(significance.cases, "case")
    test = f"{_TESTS[significance.test]} of {cases}, {p_text(significance.p_value)}"
    if significance.change == "same":
        return f"pass rate {after}, as before ({cases})"
    meaning = "significant" if significance.is_significant else "chance could explain it"
    return f"pass rate {before} before, {after} now: {meaning} ({test})"


def _case_line(case: CaseComparison) -> StyledLine:
    again = "" if case.again is None else f", again {_rate(case.again)}"
    rates = f"{_rate(case.before)} -> {_rate(case.after)}{again}"
    # The answers to asking again decide about a case, whatever p its first answers have.
    chance = "" if case.p_value is None or case.again is not None else f"  ({p_text(case.p_value)})"
    style = "worse" if case.is_new_failure or case.is_lost else _STYLES.get(case.standing, "plain")
    text = f"  {case.standing:{_STANDING_CHARS}} {case.number:>4}  {rates:15}{chance}  {one_line(case.utterance)}"
    return StyledLine(style, text.rstrip())


def _rate(case: CaseCounts | None) -> str:
    if case is None:
        return "-"
    errors = f" + {count(case.errors, 'error')}" if case.errors else ""
    if case.decided:
        return f"{case.passed:,}/{case.decided:,}{errors}"
    return "error" if case.errors else "undecided"


def _explanations(comparison: Comparison) -> Iterator[str]:
    """Yield what the suspect and broken cases mean."""
    suspects = comparison.suspects
    if comparison.is_alike:
        yield "Answers to a case are alike within a run, so a suspect case counts only after failing in several runs."
    elif suspects and any(case.again for case in suspects):
        yield "A suspect case did not pass again, but was asked too rarely to show that it broke."
    elif suspects:
        yield "A suspect case passed before and does not pass now, but chance could explain it."
    if any(case.needed is None for case in suspects) and not comparison.is_alike:
        yield "A case that passed rarely before cannot be shown to be broken by asking it again."
    if comparison.may_be_noise:
        yield (
            "The baseline has one run, and no answers differed within a run. An agent that varies from run to run would"
            " look the same: use a baseline of several runs."
        )


def _significance_json(significance: Significance | None) -> JsonObject | None:
    return (
        None
        if significance is None
        else {
            **attributes_json(significance, "test", "change"),
            "passRate": dict(zip(("before", "after"), significance.rates, strict=True)),
            **attributes_json(significance, "p_value", "cases"),
            "significant": significance.is_significant,
        }
    )


def _counts_json(case: CaseCounts | None) -> JsonObject | None:
    return None if case is None else attributes_json(case, "passed", "failed", "errors", "undecided")


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
    texts = ("before", "after")
    return {
        "fullName": difference.name or None,
        **attributes_json(difference, *texts),
        "formOnly": difference.is_form_only,
        "changes": [
            {"kind": change.kind, "testCase": change.case, "what": [*change.what], **attributes_json(change, *texts)}
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
