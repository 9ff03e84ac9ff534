"""What must be known about a case that did not pass, as labelled texts.

Cases of several turns: what was asked and answered in each, and which results belong to it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.expectations import expectation_kind
from evalmeta.model.run import Verdict
from evalmeta.report.averages import averages_of, missed_averages, result_text
from evalmeta.report.report import mean_text, verdict_of
from evalmeta.report.text import count, one_line, wrap

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run import Average, CaseResult, Run, Summary, TestResult
    from evalmeta.report.report import Report


_LABEL_CHARS: Final = 10
_LISTED_ITERATIONS: Final = 10
_ORDER: Final = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED)


class Field(NamedTuple):
    """A labelled text, as it came: whoever shows it cleans it."""

    label: str
    text: str


class CaseGroup(NamedTuple):
    """The first of several iterations of a case that say the same.

    Attributes:
        verdict: what each counts as.
        iterations: empty where the run has one only.
        total: how many iterations of the case there are.
    """

    case: CaseResult
    verdict: Verdict
    iterations: tuple[int, ...] = ()
    total: int = 1


class Reasons(NamedTuple):
    """How many results of one name were undecided, and the commonest reason that was given."""

    name: str
    number: int
    reason: str


def open_results(case: CaseResult) -> tuple[TestResult, ...]:
    """Gives the results that are no PASS: failures first, then errors, then what is undecided."""
    found = [result for result in case.results if not result.is_measured]
    return tuple(result for verdict in _ORDER for result in found if result.verdict is verdict)


def shows_iterations(run: Run) -> bool:
    """Says whether cases must be told apart by their iteration."""
    return run.options.iterations > 1


def grouped(report: Report) -> list[CaseGroup]:
    """Gives the results of a run as reports show them: iterations of a case that say the same are one, at the first."""
    run = report.run
    if not shows_iterations(run):
        return [CaseGroup(case, verdict_of(report, case)) for case in run.cases]
    found: dict[Hashable, list[CaseResult]] = {}
    for case in run.cases:
        found.setdefault((case.number, *_told_of(report, case)), []).append(case)
    total = Counter(case.number for case in run.cases)
    return [
        CaseGroup(same[0], verdict_of(report, same[0]), tuple(case.iteration for case in same), total[same[0].number])
        for same in found.values()
    ]


def iterations_text(iterations: Sequence[int], total: int) -> str:
    """Gives `iteration 2`, `in 3 of 3 iterations` or `in 2 of 3 iterations: 1, 3`."""
    if len(iterations) == 1 < total:
        return f"iteration {iterations[0]}"
    which = f": {', '.join(map(str, iterations))}" if len(iterations) < total <= _LISTED_ITERATIONS else ""
    return f"in {len(iterations):,} of {count(total, 'iteration')}{which}"


def group_number(group: CaseGroup) -> str:
    """Gives the number of a group's case, its label if it has one and, where there are several, its iterations."""
    name = f"{group.case.number} {one_line(group.case.label)}".rstrip()
    return f"{name} ({iterations_text(group.iterations, group.total)})" if group.iterations else name


def case_number(case: CaseResult, run: Run) -> str:
    """Gives a case's number, its label if it has one and, where there are several, its iteration."""
    name = f"{case.number} {one_line(case.label)}".rstrip()
    return f"{name} (iteration {case.iteration})" if shows_iterations(run) else name


def case_name(case: CaseResult, run: Run) -> str:
    """Gives a case's name on one line: number, label, utterances and, where there are several, the iteration."""
    name = f"{case.number} {one_line(case.label)}".rstrip() + f": {one_line(asked(case)) or '(no utterance)'}"
    return f"{name} (iteration {case.iteration})" if shows_iterations(run) else name


def what_failed(case: CaseResult, summary: Summary | None = None) -> str:
    """Says on one line what was not passed and why: the first in full, the others by number.

    What a case counts by in the run's `summary` comes first: the means that it misses.
    """
    if case.error:
        return one_line(case.error)
    missed = _missed(case, summary)
    results = [each for each in open_results(case) if not (missed and _is_averaged(each))]
    told = [f"{each.name}: {mean_text(each)}" for each in missed] + [_told(each) for each in results]
    if told:
        others = len(told) - 1
        return f"{one_line(told[0])} (and {others} more)" if others else one_line(told[0])
    if any(each.is_measured for each in case.results):
        return "nothing was judged, only measured"
    return "another iteration did not pass" if case.results else "nothing was expected"


def blocks(case: CaseResult, summary: Summary | None = None) -> Iterator[tuple[str, list[Field]]]:
    """Yields a title and fields: first, without a title, those of the case, then those of each open result.

    In a case of several turns each turn has a title, and its results follow. The means by which a case counts
    in the run's `summary` come with the case.
    """
    results = open_results(case)
    means = [Field("mean", f"{each.name} {mean_text(each)}: {each.verdict}") for each in _averages(case, summary)]
    if not case.earlier:
        yield "", [*_case_fields(case, results), *means]
        yield from map(_block, _alike(results))
        return
    yield "", [*_errors(case), *means]
    for exchange in exchanges(case):
        own = results_of(exchange, case, results)
        yield f"turn {exchange.turn}", list(_exchange_fields(exchange, own))
        yield from map(_block, _alike(own))


def _alike(results: Iterable[TestResult]) -> list[list[TestResult]]:
    """Puts together what nobody could judge for the same reason; all else is by itself."""
    found: dict[Hashable, list[TestResult]] = {}
    for place, result in enumerate(results):
        is_open = result.verdict is Verdict.UNDECIDED and result.explanation
        found.setdefault((result.turn, result.explanation) if is_open else place, []).append(result)
    return list(found.values())


def _block(alike: Sequence[TestResult]) -> tuple[str, list[Field]]:
    first = alike[0]
    place = f" in turn {first.turn}" if first.turn else ""
    if len(alike) == 1:
        return f"{_title(first)}{place}: {first.verdict}", list(_result_fields(first))
    names = Field("which", ", ".join(map(_title, alike)))
    return f"{len(alike):,} results{place}: {first.verdict}", [names, Field("why", first.explanation)]


def case_text(case: CaseResult, summary: Summary | None = None, *, indent: str = "") -> str:
    """Gives everything in `blocks` as indented, wrapped lines; the text is clean."""
    lines = []
    for title, fields in blocks(case, summary):
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
            if result.verdict is Verdict.UNDECIDED and not result.is_measured:
                found.setdefault(result.name, Counter())[one_line(result.explanation)] += 1
    return tuple(
        Reasons(name, number, _commonest(found.get(name))) for name, number in report.summary.undecided_results
    )


def _told_of(report: Report, case: CaseResult) -> tuple[Hashable, ...]:
    """Gives what a report shows of a case: of one that passed, no more than what was asked."""
    verdict = verdict_of(report, case)
    if verdict is Verdict.PASS:
        return verdict, asked(case)
    return verdict, case_text(case, report.summary)


def _commonest(reasons: Counter[str] | None) -> str:
    [(reason, _)] = (reasons or Counter([""])).most_common(1)
    return reason or "nothing able to judge it was there"


def _case_fields(case: CaseResult, results: tuple[TestResult, ...]) -> Iterator[Field]:
    first, *others = _exchange_fields(exchanges(case)[-1], results)
    yield first
    yield from _errors(case)
    yield from others


def _errors(case: CaseResult) -> Iterator[Field]:
    if case.error:
        yield Field("error", case.error)


def _exchange_fields(exchange: Exchange, results: Sequence[TestResult]) -> Iterator[Field]:
    yield Field("utterance", exchange.utterance or "(no utterance)")
    answer = exchange.generated.outcome if exchange.generated else None
    if answer and not any(_is_comparable(result) and result.actual == answer for result in results):
        yield Field("answer", answer)


def _result_fields(result: TestResult) -> Iterator[Field]:
    if _is_comparable(result):
        yield Field("expected", result.expected or "(empty)")
        yield Field("actual", result.actual or "(empty)")
    if result.threshold is not None:
        yield Field("score", result_text(result))
    if result.explanation:
        yield Field("why", result.explanation)
    if result.error and result.error != result.explanation:
        yield Field("error", result.error)
    if result.detail is not None:
        yield Field("partial", f"{result.detail:.2f}")
    if result.rater:
        yield Field("rated", f"by {result.rater}" if result.score is None else f"{result.score:g} by {result.rater}")


def _missed(case: CaseResult, summary: Summary | None) -> tuple[Average, ...]:
    return () if summary is None else missed_averages(summary, case)


def _averages(case: CaseResult, summary: Summary | None) -> tuple[Average, ...]:
    return () if summary is None else averages_of(summary, case)


def _is_averaged(result: TestResult) -> bool:
    return result.verdict is Verdict.FAILURE and result.threshold is not None


def _told(result: TestResult) -> str:
    place = f" in turn {result.turn}" if result.turn else ""
    return f"{result.name}{place}: {result.explanation or result.error or result.verdict.lower()}"


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


class Exchange(NamedTuple):
    """One turn of a case: its number from 1, what was asked, and what came back, None for nothing."""

    turn: int
    utterance: str
    generated: GeneratedData | None


def exchanges(case: CaseResult) -> list[Exchange]:
    """Gives the turns of a case that were asked, in their order."""
    earlier = [Exchange(turn, each.utterance, each.generated) for turn, each in enumerate(case.earlier, 1)]
    return [*earlier, Exchange(len(earlier) + 1, case.utterance, case.generated)]


def exchange_of(case: CaseResult, result: TestResult) -> Exchange:
    """Gives the turn that a result judges: the last for one that says none, because it judges the whole."""
    found = exchanges(case)
    return found[result.turn - 1] if 0 < result.turn < len(found) else found[-1]


def results_of(exchange: Exchange, case: CaseResult, results: Iterable[TestResult]) -> list[TestResult]:
    """Gives those of a case's results that judge a turn, and with the last turn's those of the whole case."""
    return [result for result in results if exchange_of(case, result).turn == exchange.turn]


def asked(case: CaseResult) -> str:
    """Gives everything that was asked, in one text; of one turn its utterance as it is."""
    return " / ".join(each.utterance for each in exchanges(case)) if case.earlier else case.utterance
