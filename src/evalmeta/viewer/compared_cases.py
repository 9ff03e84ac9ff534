"""The cases of a comparison: which are shown and why they changed, their order, and their columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.runs.result_pairs import ResultPair, result_pairs
from evalmeta.model.aggregation import named_results, results_called
from evalmeta.model.case_faults import fault_of
from evalmeta.model.comparison import SUSPECTS, CaseComparison, Comparison, Standing
from evalmeta.report.case_differences import TurnDifference, reasons, score_change, turn_differences
from evalmeta.report.comparison import WORST_FIRST, p_text
from evalmeta.store.case_lists import has_tag, texts_of
from evalmeta.viewer.pages import Query, text_of
from evalmeta.viewer.tables import Column, Layout, by_rank, layout_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from evalmeta.model.run import CaseResult, Run
    from evalmeta.model.statistics import CaseCounts

# The filters that need the results of all cases.
_FILTERS: Final = ("text", "expectation", "fault", "tag")
# How cases are sorted, by the word in the address.
ORDERS: Final = {"": "worst first", "score": "by difference of scores", "number": "by number"}
_CHOSEN_ORDERS: Final = {word: title for word, title in ORDERS.items() if word}


class ComparedCase(NamedTuple):
    """A case of a comparison with its results, why it changed, and its turns side by side; empty if not known."""

    comparison: CaseComparison
    p_value: str
    fault: str
    before: CaseResult | None
    after: CaseResult | None
    reasons: tuple[str, ...]
    turns: Sequence[TurnDifference]

    @property
    def first_turn(self) -> int:
        """Return the number of the first turn that differs; 0 if none does."""
        return next((turn.turn for turn in self.turns if not turn.is_same), 0)


def _counts(counts: CaseCounts | None) -> str:
    """Return how often a case passed of the times that it was decided; empty if the run does not have it."""
    return f"{counts.passed} of {counts.decided}" if counts else ""


def _rate(counts: CaseCounts | None) -> float | None:
    return counts.pass_rate if counts else None


COMPARED_COLUMNS: Final[tuple[Column[ComparedCase], ...]] = (
    Column(
        "Change",
        "text",
        lambda row: row.comparison.standing.value,
        "words",
        rank=lambda row: WORST_FIRST.index(row.comparison.standing),
    ),
    Column("Case", "compared_number", lambda row: row.comparison, "number", plain=lambda row: row.comparison.number),
    Column("Utterance", "long_text", lambda row: row.comparison.utterance, "wide"),
    Column(
        "Passed before",
        "text",
        lambda row: _counts(row.comparison.before),
        "number",
        rank=lambda row: _rate(row.comparison.before),
    ),
    Column(
        "Passed after",
        "text",
        lambda row: _counts(row.comparison.after),
        "number",
        rank=lambda row: _rate(row.comparison.after),
    ),
    Column("Fault", "text", lambda row: row.fault, "words", rank=lambda row: row.fault or None),
    Column("Why", "long_text", lambda row: "; ".join(row.reasons), "wide dim"),
)
# The reasons of all cases take too long to be sorted by them.
_SORTABLE: Final = frozenset(column.name for column in COMPARED_COLUMNS if column.name != "why")


def wanted_in(query: Query) -> dict[str, str]:
    """Return the filters of cases and their order in a query."""
    return {name: text_of(query, name) for name in ("standing", "sort", *_FILTERS)}


def compared_layout(query: Query) -> Layout:
    """Return how an address shows the cases of a comparison as a table."""
    names = ("before", "after", "org", "before_org", "standing", *_FILTERS)
    given = {name: value for name in names if (value := text_of(query, name))}
    layout = layout_of(query, "compared", given, COMPARED_COLUMNS, sheet="compare.csv", sortable=_SORTABLE)
    order = text_of(query, "sort")
    # The page of the comparison has these orders too; the next page of the table goes on in them.
    return replace(layout, orders=_CHOSEN_ORDERS, sort=order if order in _CHOSEN_ORDERS else layout.sort)


def cases_of_comparison(
    comparison: Comparison, before: Run | None, after: Run, query: Query, start: int, limit: int
) -> tuple[list[ComparedCase], int]:
    """Return a part of the cases to show, and the number of all; filters and two orders read the results of all."""
    wanted, layout = wanted_in(query), compared_layout(query)
    shown = [case for case in comparison.cases if _is_shown(case, wanted["standing"])]
    shown.sort(key=lambda case: (WORST_FIRST.index(case.standing), case.number))
    parts = [part.what for part in comparison.changes.parts]
    reads_all = any(wanted[name] for name in _FILTERS) or wanted["sort"] == "score" or layout.sort == "fault"
    pairs = result_pairs(shown, before, after) if reads_all else [ResultPair(None, None)] * len(shown)
    known = zip(shown, pairs, strict=True)
    found = [(case, pair) for case, pair in known if not reads_all or _matches(case, pair, parts, wanted)]
    if wanted["sort"] == "score":
        found.sort(key=lambda known: -_score_change(*known))
    if wanted["sort"] == "number":
        found.sort(key=lambda known: known[0].number)
    if column := next((column for column in COMPARED_COLUMNS if column.name == layout.sort), None):
        rows = [ComparedCase(case, "", _fault(case, pair, parts), *pair, (), ()) for case, pair in found]
        found = by_rank(zip(map(column.rank_of, rows), found, strict=True), is_descending=layout.is_descending)
    part = found[start : start + limit]
    if not reads_all:
        cases = [case for case, _ in part]
        part = [*zip(cases, result_pairs(cases, before, after), strict=True)]
    return [_compared(case, pair, parts) for case, pair in part], len(found)


def _is_shown(case: CaseComparison, standing: str) -> bool:
    if standing:
        return case.standing.value == standing
    if case.standing is Standing.ERROR and case.before and case.before.has_mostly_errors:
        return not (case.after and case.after.has_mostly_errors)
    return case.standing not in {Standing.STILL_PASSING, Standing.STILL_FAILING, Standing.UNDECIDED}


def _matches(case: CaseComparison, pair: ResultPair, parts: Collection[str], wanted: Mapping[str, str]) -> bool:
    text, expectation, fault = wanted["text"].casefold(), wanted["expectation"], wanted["fault"]
    known = [result for result in pair if result is not None]
    if expectation and not any(_is_changed(name, pair) for name in _names(known, expectation)):
        return False
    if fault and _fault(case, pair, parts) != fault:
        return False
    if not any(has_tag(result, wanted["tag"]) for result in known):
        return False
    return not text or any(text in shown.casefold() for result in known for shown in texts_of(result))


def _names(results: Iterable[CaseResult], wanted: str) -> set[str]:
    return {named.name for result in results for named in results_called(named_results(result), wanted)}


def _is_changed(name: str, pair: ResultPair) -> bool:
    """Return whether a result of this name is another one than before; a case that is only in one run has changed."""
    if pair.before is None or pair.after is None:
        return True
    turns = turn_differences(pair.before, pair.after)
    return any(known.has_changed for turn in turns for known in turn.expectations if known.name == name)


def _score_change(case: CaseComparison, pair: ResultPair) -> float:
    """Return how much the scores of a case differ; over its iterations, its pass rate can differ more."""
    rates = [0.0 if side is None else side.pass_rate or 0.0 for side in (case.before, case.after)]
    scores = score_change(pair.before, pair.after) if pair.before and pair.after else 0.0
    return max(abs(rates[0] - rates[1]), scores)


def _fault(case: CaseComparison, pair: ResultPair, parts: Collection[str]) -> str:
    """Return whose fault it is that a case became worse; empty if it did not, or that is not known."""
    is_worse = case.standing in {Standing.BROKEN, *SUSPECTS} or case.is_lost
    return fault_of(case, pair.before, pair.after, parts)[0].value if is_worse and pair.after else ""


def _compared(case: CaseComparison, pair: ResultPair, parts: Collection[str]) -> ComparedCase:
    before, after = pair
    p_value = "" if case.p_value is None else p_text(case.p_value)
    why = tuple(reasons(before, after)) if after else ()
    turns = turn_differences(before, after) if before and after else ()
    return ComparedCase(case, p_value, _fault(case, pair, parts), before, after, why, turns)
