"""What must be known about a case that did not pass, as labelled texts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.expectations import expectation_kind
from evalmeta.model.run import Verdict
from evalmeta.report.plain import one_line, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.run import CaseResult, Run, TestResult
    from evalmeta.report.report import Report

__all__ = [
    "Field",
    "Reasons",
    "blocks",
    "case_name",
    "case_number",
    "case_text",
    "open_results",
    "shows_iterations",
    "undecided_reasons",
    "what_failed",
]

_LABEL_CHARS: Final = 10
_ORDER: Final = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED)


class Field(NamedTuple):
    """A labelled text, as it came: whoever shows it cleans it."""

    label: str
    text: str


class Reasons(NamedTuple):
    """How many results of one name were undecided, and the commonest reason that was given."""

    name: str
    number: int
    reason: str


def open_results(case: CaseResult) -> tuple[TestResult, ...]:
    """Gives the results that are no PASS: failures first, then errors, then what is undecided."""
    return tuple(result for verdict in _ORDER for result in case.results if result.verdict is verdict)


def shows_iterations(run: Run) -> bool:
    """Says whether cases must be told apart by their iteration."""
    return run.options.iterations > 1


def case_number(case: CaseResult, run: Run) -> str:
    """Gives a case's number and, where there are several, its iteration."""
    return f"{case.number} (iteration {case.iteration})" if shows_iterations(run) else f"{case.number}"


def case_name(case: CaseResult, run: Run) -> str:
    """Gives a case's name on one line: number, utterance and, where there are several, the iteration."""
    name = f"{case.number}: {one_line(case.utterance) or '(no utterance)'}"
    return f"{name} (iteration {case.iteration})" if shows_iterations(run) else name


def what_failed(case: CaseResult) -> str:
    """Says on one line what was not passed and why: the first result in full, the others by number."""
    if case.error:
        return one_line(case.error)
    results = open_results(case)
    if not results:
        return "nothing was expected"
    first, others = results[0], len(results) - 1
    line = one_line(f"{first.name}: {first.explanation or first.error or first.verdict.lower()}")
    return f"{line} (and {others} more)" if others else line


def blocks(case: CaseResult) -> Iterator[tuple[str, list[Field]]]:
    """Yields a title and fields: first, without a title, those of the case, then those of each open result."""
    results = open_results(case)
    yield "", list(_case_fields(case, results))
    for result in results:
        yield f"{_title(result)}: {result.verdict}", list(_result_fields(result))


def case_text(case: CaseResult, *, indent: str = "") -> str:
    """Gives everything in `blocks` as indented, wrapped lines; the text is clean."""
    lines = []
    for title, fields in blocks(case):
        inner = indent + "  " * bool(title)
        if title:
            lines.append(indent + one_line(title))
        lines += [_line(field, inner) for field in fields]
    return "\n".join(lines)


def undecided_reasons(report: Report) -> tuple[Reasons, ...]:
    """Gives the undecided results of a run by name, as the summary counts them, with their commonest reason."""
    found: dict[str, Counter[str]] = {}
    for case in report.run.cases:
        for result in case.results:
            if result.verdict is Verdict.UNDECIDED:
                found.setdefault(result.name, Counter())[one_line(result.explanation)] += 1
    return tuple(
        Reasons(name, number, _commonest(found.get(name))) for name, number in report.summary.undecided_results
    )


def _commonest(reasons: Counter[str] | None) -> str:
    [(reason, _)] = (reasons or Counter([""])).most_common(1)
    return reason or "nothing able to judge it was there"


def _case_fields(case: CaseResult, results: tuple[TestResult, ...]) -> Iterator[Field]:
    yield Field("utterance", case.utterance or "(no utterance)")
    if case.error:
        yield Field("error", case.error)
    answer = case.generated.outcome if case.generated else None
    if answer and not any(_is_comparable(result) and result.actual == answer for result in results):
        yield Field("answer", answer)


def _result_fields(result: TestResult) -> Iterator[Field]:
    if _is_comparable(result):
        yield Field("expected", result.expected or "(empty)")
        yield Field("actual", result.actual or "(empty)")
    if result.explanation:
        yield Field("why", result.explanation)
    if result.error and result.error != result.explanation:
        yield Field("error", result.error)
    if result.detail is not None:
        yield Field("partial", f"{result.detail:.2f}")
    if result.rater:
        yield Field("rated", f"by {result.rater}" if result.score is None else f"{result.score:g} by {result.rater}")


def _is_comparable(result: TestResult) -> bool:
    """Says whether expected and actual stand beside each other; quality metrics have nothing to compare with."""
    return result.verdict is Verdict.FAILURE or bool(result.expected)


def _title(result: TestResult) -> str:
    kind = expectation_kind(result.name)
    label = result.label or (kind.label if kind else "")
    return f"{label} ({result.name})" if label and label != result.name else result.name


def _line(field: Field, indent: str) -> str:
    first = f"{indent}{field.label:{_LABEL_CHARS}}"
    return wrap(field.text, first=first, indent=" " * len(first))
