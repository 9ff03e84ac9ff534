"""The causes of failures: reasons that differ only in numbers, ids, quoted texts and names are one cause."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.model.case_faults import fault_of
from evalmeta.model.changes import Cause, ChangedCase, Moment
from evalmeta.model.comparison import Standing
from evalmeta.model.run import Verdict
from evalmeta.report.details import all_utterances, not_passed
from evalmeta.report.results import label_of
from evalmeta.report.text import count, number_ranges, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.run import CaseResult
    from evalmeta.report.report import Report

_MASK: Final = "…"
_CHARS: Final = 300
_QUOTED: Final = re.compile(r""""[^"]*"|“[^”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)""")
# A number, or a word with a digit, such as an id; a line of code stays, because it says where the reason is.
_WITH_DIGIT: Final = re.compile(r"(?P<line>[\w./-]+\.py:\d+)|[\w.@-]*\d[\w.@:,-]*")
_NAME: Final = re.compile(r"\b[A-Z][^\W\d_]{2,}\b")
_REPEATED: Final = re.compile(rf"{_MASK}(?:[\s,;]*(?:and )?{_MASK})+")


def reason_of(case: CaseResult) -> str:
    """Return on one line why a case does not pass: its error, or the first result that did not pass."""
    if case.error:
        return one_line(case.error_message, chars=_CHARS)
    result = next(iter(not_passed(case)), None)
    if result is None:
        return "another iteration did not pass" if case.results else "the case has no expectations"
    what = label_of(result.name, result.label) or result.name
    return one_line(f"{what}: {result.explanation or result.error or result.verdict.lower()}", chars=_CHARS)


def masked(reason: str, case: CaseResult) -> str:
    """Return a reason with `…` for numbers, ids, quoted texts, and names that the case's utterances have too."""
    asked = all_utterances(case)
    text = _QUOTED.sub(_MASK, reason)
    text = _WITH_DIGIT.sub(lambda found: found["line"] or _MASK, text)
    text = _NAME.sub(lambda name: _MASK if name[0] in asked else name[0], text)
    return _REPEATED.sub(_MASK, text)


def causes_in(report: Report) -> tuple[Cause, ...]:
    """Return why cases broke, or end in errors now, that passed in the baseline of a report; empty without one."""
    cases = report.baseline.comparison.cases if report.baseline else ()
    broken = {case.number: case for case in cases if case.standing is Standing.BROKEN or case.is_lost}
    if not report.baseline or not broken:
        return ()
    run, parts = report.run, {part.what for part in report.baseline.comparison.changes.parts}
    moment = Moment.of(run.id, run.started, run.options.origin)
    changed: dict[int, ChangedCase] = {}
    for case in run.cases:
        if case.number not in broken or case.number in changed or case.verdict is Verdict.PASS:
            continue
        compared = broken[case.number]
        fault, badge = fault_of(compared, None, case, parts)
        changed[case.number] = ChangedCase(
            run.definition, compared, moment, None, case, reason_of(case), fault=fault, badge=badge
        )
    return causes_of(changed.values())


def cause_text(cause: Cause) -> str:
    """Return `4 cases (1-4), agent: Actions: missing: Track_Parcel`."""
    numbers = number_ranges(sorted(case.comparison.number for case in cause.cases))
    return f"{count(len(cause.cases), 'case')} ({numbers}), {badge_text(cause)}: {cause.text}"


def badge_text(cause: Cause) -> str:
    """Return the fault of a cause, and what kind of fault it is."""
    if cause.fault is None or cause.badge == cause.fault:
        return cause.badge
    return f"{cause.fault}, {cause.badge}"


def causes_of(cases: Iterable[ChangedCase]) -> tuple[Cause, ...]:
    """Group cases by what made them fail, the most frequent cause first."""
    groups: dict[tuple[object, ...], list[ChangedCase]] = {}
    for case in cases:
        groups.setdefault((case.fault, case.badge, masked(case.reason, case.result)), []).append(case)
    causes = []
    for (*_, text), alike in groups.items():
        reasons = Counter(case.reason for case in alike)
        causes.append(
            Cause(next(iter(reasons)) if len(reasons) == 1 else str(text), alike[0].fault, alike[0].badge, tuple(alike))
        )
    return tuple(sorted(causes, key=lambda cause: -len(cause.cases)))
