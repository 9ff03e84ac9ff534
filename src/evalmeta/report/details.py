"""The details of a case: its turns, the results that did not pass, and why, as labelled texts."""

from __future__ import annotations

from array import array
from collections import Counter
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.aggregation import coverage_of, mean_name
from evalmeta.model.expectations import ACTIONS, canonical_name, expectation_kind
from evalmeta.model.json_value import json_text
from evalmeta.model.run import Average, CaseResult, Run, Summary, TestResult, Verdict
from evalmeta.plugins import is_check
from evalmeta.report.report import VERDICT_WORDS, Report
from evalmeta.report.results import (
    averages_of,
    both_verdicts,
    label_of,
    mean_text,
    missed_averages,
    plain_text,
    score_text,
)
from evalmeta.report.steps import STEPS_LABEL, steps_text
from evalmeta.report.text import LINE_CHARS, clean, count, one_line, side_by_side, wrap

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject


_LABEL_CHARS: Final = 10
_INNER_INDENT: Final = 2
_LISTED_ITERATIONS: Final = 10
CALLS: Final = frozenset({ACTIONS, "tool_trajectory_avg_score"})
"""The expectations of calls, which are shown in columns."""
SHOWN_RESULTS: Final = 20
"""How many results of a case people see, if they do not ask for all."""
_ORDER: Final = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED)


class Field(NamedTuple):
    """A label and a text that is not cleaned yet."""

    label: str
    text: str


class CaseGroup(NamedTuple):
    """The iterations of a case with the same details: the first, how each counts, and their numbers.

    `iterations` is empty if the run has only one; `total` is the number of all iterations of the case.
    """

    case: CaseResult
    verdict: Verdict
    iterations: tuple[int, ...] = ()
    total: int = 1


class Exchange(NamedTuple):
    """One turn of a case: its number from 1, the utterance, the answer if there is one, or what is known without it."""

    turn: int
    utterance: str
    generated: GeneratedData | None
    unanswered: GeneratedData | None = None


def group_cases(report: Report) -> Iterator[CaseGroup]:
    """Yield the case results of a run in order; iterations of a case with the same details are one group.

    The results are read twice, so that only a digest of each group is in memory.
    """
    if not report.is_repeated:
        yield from (group_of(report, case) for case in report.run.cases)
        return
    iterations_of: dict[bytes, array[int]] = {}
    for case in report.run.cases:
        iterations_of.setdefault(_digest(report, case), array("q")).append(case.iteration)
    for case in report.run.cases:
        iterations = iterations_of.pop(_digest(report, case), None)
        if iterations is not None:
            yield group_of(report, case, iterations)


def _digest(report: Report, case: CaseResult) -> bytes:
    return blake2b(repr(grouped_by(report, case)).encode(errors="surrogatepass"), digest_size=16).digest()


def grouped_by(report: Report, case: CaseResult) -> tuple[int, Verdict, str]:
    """Return what reports show of a case result: of one that passed, the utterances and what was not judged."""
    verdict = report.verdict_of(case)
    return case.number, verdict, passed_text(case) if verdict is Verdict.PASS else case_text(case, report.summary)


def group_of(report: Report, case: CaseResult, iterations: Iterable[int] = ()) -> CaseGroup:
    """Return the group of these iterations of a case, which begins with this result."""
    if not report.is_repeated:
        return CaseGroup(case, report.verdict_of(case))
    return CaseGroup(case, report.verdict_of(case), tuple(iterations), report.times.results[case.number])


def passed_text(case: CaseResult) -> str:
    """Return the utterances of a case that passed, and the names of its undecided results, on one line."""
    return f"{one_line(all_utterances(case))} {undecided_note(case)}".rstrip()


def undecided_note(case: CaseResult) -> str:
    """Return `(undecided: coherence)`; empty if all results were judged."""
    names = dict.fromkeys(result.name for result in not_passed(case) if result.verdict is Verdict.UNDECIDED)
    return f"(undecided: {one_line(', '.join(names))})" if names else ""


def judged_text(case: CaseResult) -> str:
    """Return `1 of 2 results were judged (undecided: coherence)`."""
    judged, total, _ = coverage_of(case)
    verb = "was" if total == 1 else "were"
    return f"{judged:,} of {count(total, 'result')} {verb} judged {undecided_note(case)}".rstrip()


def group_name(group: CaseGroup, *, place: str = "") -> str:
    """Return the number of a group's case, its label, and its iterations if the run has several."""
    name = numbered_case(group.case, place=place)
    return f"{name} ({iterations_text(group.iterations, group.total)})" if group.iterations else name


def group_title(report: Report, group: CaseGroup) -> str:
    """Return the name of a group, and why its result does not count, if it does not."""
    forgiven, name = report.why_not_counted(group.case), group_name(group, place=report.location(group.case) or "")
    return f"{name} ({one_line(forgiven)})" if forgiven else name


def iterations_text(iterations: Sequence[int], total: int) -> str:
    """Return `iteration 2`, `in 3 of 3 iterations` or `in 2 of 3 iterations: 1, 3`."""
    if len(iterations) == 1 < total:
        return f"iteration {iterations[0]}"
    which = f": {', '.join(map(str, iterations))}" if len(iterations) < total <= _LISTED_ITERATIONS else ""
    return f"in {len(iterations):,} of {count(total, 'iteration')}{which}"


def result_text(case: CaseResult, summary: Summary) -> str:
    """Return `passed`, or the verdict of a case and why it did not pass."""
    if case.verdict is Verdict.PASS:
        return "passed"
    return f"{VERDICT_WORDS[case.verdict]}: {why_not_passed(case, summary)}"


def counted_reason(report: Report, case: CaseResult) -> str:
    """Return on one line why a case did not pass, and before it why this does not count, if it does not."""
    forgiven = clean(report.why_not_counted(case))
    why = result_text(case, report.summary) if case.is_quarantined else why_not_passed(case, report.summary)
    return f"{forgiven}: {why}" if forgiven else why


def case_name(case: CaseResult, run: Run) -> str:
    """Return number, label and utterances of a case on one line, and the iteration if the run has several."""
    name = case_title(case)
    return f"{name} (iteration {case.iteration})" if run.options.is_repeated else name


def case_title(case: CaseResult) -> str:
    """Return number, label and utterances of a case on one line."""
    return f"{numbered_case(case)}: {one_line(all_utterances(case)) or '(no utterance)'}"


def numbered_case(case: CaseResult, *, place: str = "") -> str:
    """Return the number of a case, and its label if it has one; not a label that repeats the place beside it."""
    label = "" if f"/{place}".endswith(f"/{case.label}") else one_line(case.label)
    return f"{case.number} {label}".rstrip()


def why_not_passed(case: CaseResult, summary: Summary | None = None) -> str:
    """Return on one line why a case did not pass: the first reason, missed means first, and the number of others."""
    if case.error:
        return one_line(case.error_message)
    missed = missed_averages(summary, case) if summary else ()
    reasons = [
        *_orgs_verdict(case),
        *(f"{average.name}: {mean_text(average)}{_unjudged(case, average)}" for average in missed),
    ]
    for result in not_passed(case):
        # A missed mean stands for the results that it is the mean of.
        if missed and result.verdict is Verdict.FAILURE and result.threshold is not None:
            continue
        if result.score is None and any(mean.score is None and mean.name == mean_name(result) for mean in missed):
            continue
        turn = f" in turn {result.turn}" if result.turn else ""
        reasons.append(f"{result.name}{turn}: {result.explanation or result.error or result.verdict.lower()}")
    if reasons:
        others = len(reasons) - 1
        return f"{one_line(reasons[0])} (and {others} more)" if others else one_line(reasons[0])
    if any(result.is_measured for result in case.results):
        return "the results are only measured, not judged"
    return "another iteration did not pass" if case.results else "the case has no expectations"


def _unjudged(case: CaseResult, mean: Average) -> str:
    """Return why a mean has no score; empty if it has one."""
    reasons = (result.explanation for result in case.results if result.score is None and mean_name(result) == mean.name)
    return f": {reason}" if mean.score is None and (reason := next(reasons, "")) else ""


def _orgs_verdict(case: CaseResult) -> list[str]:
    """Return that the org failed a case none of whose results failed."""
    has_failures = any(result.verdict is Verdict.FAILURE or result.threshold is not None for result in case.results)
    if case.verdict is not Verdict.FAILURE or has_failures or not case.results:
        return []
    return ["the org failed the case, although no result failed"]


def not_passed(case: CaseResult) -> tuple[TestResult, ...]:
    """Return the judged results that did not pass: failures first, then errors, then undecided ones."""
    judged = [result for result in case.results if not result.is_measured]
    return tuple(result for verdict in _ORDER for result in judged if result.verdict is verdict)


def case_text(
    case: CaseResult,
    summary: Summary | None = None,
    *,
    indent: str = "",
    traceback: bool = False,
    steps: bool = False,
    most: int | None = None,
) -> str:
    """Return everything in `blocks` as clean, indented, wrapped lines."""
    lines = []
    steps_chars = LINE_CHARS - len(indent) - _INNER_INDENT - _LABEL_CHARS if steps else 0
    for title, fields in blocks(case, summary, traceback=traceback, steps_chars=steps_chars, most=most):
        inner = indent + " " * _INNER_INDENT * bool(title)
        if title:
            lines.append(indent + one_line(title))
        for field in fields:
            first = f"{inner}{field.label:{_LABEL_CHARS}}"
            lines.append(wrap(field.text, first=first, indent=" " * len(first)))
    return "\n".join(lines)


def blocks(
    case: CaseResult,
    summary: Summary | None = None,
    *,
    traceback: bool = False,
    steps_chars: int = 0,
    most: int | None = None,
) -> Iterator[tuple[str, list[Field]]]:
    """Yield titles with fields: first those of the case, without a title, then those of each result that did not pass.

    A case of several turns has a title for each turn, followed by its results. The case's means in the run's `summary`
    come with the case. The steps of the agent, in lines of `steps_chars`, come last in a turn, beside its results; they
    are left out by default. At most `most` results are shown, failures first, and the others are counted; undecided
    results with the same reason are one.
    """
    groups = _with_same_reason(not_passed(case))
    more = _more_results(groups[len(groups[:most]) :])
    errors = [Field("error", case.error)] if case.error else [Field("why", text) for text in _orgs_verdict(case)]
    if traceback and case.traceback:
        errors.append(Field("traceback", case.traceback))
    averages = averages_of(summary, case) if summary else ()
    if case.metadata:
        errors.append(Field("metadata", metadata_text(case.metadata)))
    means = [Field("mean", f"{average.name} {mean_text(average)}: {average.verdict}") for average in averages]
    if not case.earlier:
        first, *others = _exchange_fields(exchanges(case)[-1], chain.from_iterable(groups[:most]))
        yield "", [first, *errors, *others, *means, *_steps_fields(exchanges(case)[-1], steps_chars)]
        yield from map(_block, groups[:most])
        yield from more
        return
    yield "", [*errors, *means]
    for exchange in exchanges(case):
        own = [group for group in groups[:most] if exchange_of(case, group[0]).turn == exchange.turn]
        fields = _exchange_fields(exchange, chain.from_iterable(own))
        yield f"turn {exchange.turn}", [*fields, *_steps_fields(exchange, steps_chars)]
        yield from map(_block, own)
    yield from more


def _more_results(groups: Iterable[Sequence[TestResult]]) -> Iterator[tuple[str, list[Field]]]:
    counts = Counter(result.verdict for group in groups for result in group)
    if counts:
        verdicts = ", ".join(f"{number:,} {verdict}" for verdict, number in counts.items())
        yield f"... and {count(counts.total(), 'more result')}: {verdicts}; the json report has all", []


def metadata_text(metadata: JsonObject) -> str:
    """Return `owner: ann, region: EU`."""
    return ", ".join(f"{name}: {json_text(value)}" for name, value in metadata.items())


def exchanges(case: CaseResult) -> list[Exchange]:
    """Return the turns of a case in order."""
    earlier = [Exchange(turn, exchange.utterance, exchange.generated) for turn, exchange in enumerate(case.earlier, 1)]
    return [*earlier, Exchange(len(earlier) + 1, case.utterance, case.generated, case.unanswered)]


def exchange_of(case: CaseResult, result: TestResult) -> Exchange:
    """Return the turn that a result judges: the last one for results that judge the whole case."""
    turns = exchanges(case)
    return turns[result.turn - 1] if 0 < result.turn < len(turns) else turns[-1]


def results_of(exchange: Exchange, case: CaseResult, results: Iterable[TestResult]) -> list[TestResult]:
    """Return those of a case's results that judge a turn; the last turn has those of the whole case too."""
    return [result for result in results if exchange_of(case, result).turn == exchange.turn]


def all_utterances(case: CaseResult) -> str:
    """Return the utterances of all turns in one text."""
    return " / ".join(exchange.utterance for exchange in exchanges(case)) if case.earlier else case.utterance


def _with_same_reason(results: Iterable[TestResult]) -> list[list[TestResult]]:
    """Group undecided results with the same explanation; each other result is a group of its own."""
    alike: dict[Hashable, list[TestResult]] = {}
    for position, result in enumerate(results):
        is_shared = result.verdict is Verdict.UNDECIDED and result.explanation
        alike.setdefault((result.turn, result.explanation) if is_shared else position, []).append(result)
    return list(alike.values())


def _block(results: Sequence[TestResult]) -> tuple[str, list[Field]]:
    first = results[0]
    turn = f" in turn {first.turn}" if first.turn else ""
    if len(results) == 1:
        return f"{_title(first)}{turn}: {first.verdict}", list(_result_fields(first))
    names = Field("which", ", ".join(map(_title, results)))
    return f"{len(results):,} results{turn}: {first.verdict}", [names, Field("why", first.explanation)]


def _title(result: TestResult) -> str:
    label = label_of(result.name, result.label)
    if label and is_check(result.name):
        return label
    return f"{label} ({result.name})" if label and label != result.name else result.name


def _exchange_fields(exchange: Exchange, results: Iterable[TestResult]) -> Iterator[Field]:
    yield Field("utterance", exchange.utterance or "(no utterance)")
    answer = exchange.generated.outcome if exchange.generated else None
    if answer and not any(_is_comparable(result) and result.actual == answer for result in results):
        yield Field("answer", answer)


def _steps_fields(exchange: Exchange, chars: int) -> Iterator[Field]:
    known = exchange.generated or exchange.unanswered
    if chars and known and (text := steps_text(known, chars=chars)):
        yield Field(STEPS_LABEL, text)


def _result_fields(result: TestResult) -> Iterator[Field]:
    if _has_rows(result):
        yield Field("calls", side_by_side(result.expected, result.actual, titles=("expected", "actual")))
    elif _is_comparable(result):
        yield Field("expected", plain_text(result, result.expected) or "(empty)")
        # An undecided result without an actual text has nothing that could be compared.
        if result.actual or result.verdict is not Verdict.UNDECIDED:
            yield Field("actual", plain_text(result, result.actual) or "(empty)")
    if result.threshold is not None:
        yield Field("score", score_text(result))
    if result.explanation:
        yield Field("why", result.explanation)
    if both := both_verdicts(result):
        yield Field("checked", both)
    if result.error and result.error != result.explanation:
        yield Field("error", result.error)
    if result.detail is not None:
        yield Field("partial", f"{result.detail:.2f}")
    if result.rater:
        yield Field("rated", f"{_rating_text(result)}by {result.rater}")


def _has_rows(result: TestResult) -> bool:
    """Return whether the lines of expected and actual are calls that stand beside each other."""
    if canonical_name(result.name) not in CALLS or result.verdict is not Verdict.FAILURE:
        return False
    expected, actual = result.expected.splitlines(), result.actual.splitlines()
    return len(expected) == len(actual) > 0 and not any(text.startswith("[") for text in (*expected, *actual))


def _rating_text(result: TestResult) -> str:
    """Return a rating with the best possible one; a score with a threshold is shown next to it."""
    if result.score is None or result.threshold is not None:
        return ""
    return f"{result.score:g} of {5 if expectation_kind(result.name) else 1} "


def _is_comparable(result: TestResult) -> bool:
    """Return whether to show expected and actual; quality metrics have no expected text."""
    return result.verdict is Verdict.FAILURE or bool(result.expected)
