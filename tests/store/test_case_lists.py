"""Lists of case results: filters, search and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import WORST_FIRST, CaseResult, RunContent, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.store.case_lists import CaseFilter, case_before, case_page, count_verdicts, find_cases, place_of
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, RunJournal, Runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from evalmeta.store.case_lists import CasePage
    from evalmeta.store.database import Database

TEXTS = st.sampled_from(
    ["Where?", "100 %", "a_b", 'say "hi"', "GRÜSSE", "grüße", "\u212aelvin", "back\\slash", "\x07bell", "PASS"]
)
RESULTS = st.tuples(st.sampled_from(["topic", "rating"]), st.sampled_from([*Verdict]), TEXTS, TEXTS, TEXTS).map(
    lambda five: TestResult(*five[:4], explanation=five[4])
)


def case(number: int, verdict: Verdict, utterance: str = "Where?", *results: TestResult) -> CaseResult:
    return CaseResult(number, 1, utterance, verdict, 1.0, 2.0, results, GeneratedData("Here."))


def save(database: Database, *cases: CaseResult) -> str:
    runs = Runs(database)
    run_id = runs.start(
        EVALUATION_DEFINITION, Evaluation("T", "A", ()), RunContent(b"<x/>"), RunOptions(), total=len(cases), now=1
    )
    assert runs.claim(run_id, "w", taken_from=Lease(None, None), until=9e9)
    RunJournal(database, run_id, "w").append(cases)
    return run_id


def numbers(page: CasePage) -> list[int]:
    return [each.case.number for each in page.cases]


def whole_list(database: Database, runs: Sequence[str], wanted: CaseFilter, *, limit: int) -> list[int]:
    found, after = [], None
    while True:
        page = case_page(database, runs, wanted, limit=limit, after=after)
        found += numbers(page)
        if page.after is None:
            return found
        after = page.after


def test_the_worst_results_of_several_runs_come_first(database: Database) -> None:
    first = save(database, case(1, Verdict.PASS), case(2, Verdict.ERROR), case(3, Verdict.FAILURE))
    second = save(database, case(4, Verdict.FAILURE), case(5, Verdict.UNDECIDED))

    page = case_page(database, [first, second], CaseFilter(), limit=10)

    assert numbers(page) == [3, 4, 2, 5, 1]
    assert count_verdicts(database, [first, second])[Verdict.FAILURE] == 2


def test_undecided_finds_results_of_cases_that_passed(database: Database) -> None:
    partly = case(1, Verdict.PASS, "?", TestResult("topic", Verdict.PASS), TestResult("rating", Verdict.UNDECIDED))
    run = save(database, partly, case(2, Verdict.PASS), case(3, Verdict.UNDECIDED))

    assert numbers(case_page(database, [run], CaseFilter(verdict=Verdict.UNDECIDED), limit=10)) == [3, 1]


def test_the_list_can_be_walked_in_both_directions(database: Database) -> None:
    runs = [
        save(database, case(1, Verdict.PASS), case(2, Verdict.FAILURE), case(3, Verdict.FAILURE)),
        save(database, case(4, Verdict.FAILURE), case(5, Verdict.PASS, "last")),
    ]
    listed = case_page(database, runs, CaseFilter(), limit=10).cases

    before = [case_before(database, runs, CaseFilter(), place_of(each, runs)) for each in listed]

    assert before == [None, *listed[:-1]]
    assert case_before(database, runs, CaseFilter(verdict=Verdict.PASS), place_of(listed[3], runs)) is None


def test_a_search_does_not_find_names_of_fields(database: Database) -> None:
    run = save(database, case(1, Verdict.PASS, "Where is my order?"))

    assert numbers(case_page(database, [run], CaseFilter(text="outcome"), limit=10)) == []
    assert numbers(case_page(database, [run], CaseFilter(text="MY ORDER"), limit=10)) == [1]


def test_a_long_search_stops_and_can_be_continued(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SEARCHED_ROWS", 3)
    run = save(database, *(case(number, Verdict.PASS) for number in range(1, 8)), case(8, Verdict.PASS, "the last"))

    page = case_page(database, [run], CaseFilter(text="the last"), limit=10)

    assert (numbers(page), page.is_whole) == ([], False)
    assert whole_list(database, [run], CaseFilter(text="the last"), limit=10) == [8]


def test_a_search_in_large_results_stops_after_their_size(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SEARCHED_BYTES", 1_000)
    run = save(database, *(case(number, Verdict.PASS, "x" * 900) for number in range(1, 8)))

    page = case_page(database, [run], CaseFilter(text="not in them"), limit=10)

    assert (page.after and page.after.number, page.is_whole) == (2, False)
    assert len(numbers(case_page(database, [run], CaseFilter(), limit=10))) == 7


def test_a_named_result_is_found_in_cases_with_another_verdict(database: Database) -> None:
    slow = TestResult("latency", Verdict.FAILURE)
    run = save(database, case(1, Verdict.PASS, "?", slow), case(2, Verdict.FAILURE), case(3, Verdict.ERROR, "?", slow))

    wanted = CaseFilter(Verdict.FAILURE, "latency")
    assert numbers(case_page(database, [run], wanted, limit=10)) == [3, 1]
    assert numbers(case_page(database, [run], CaseFilter(Verdict.PASS, "latency"), limit=10)) == []


@settings(deadline=None)
@given(
    cases=st.lists(st.tuples(st.sampled_from([*Verdict]), TEXTS, st.lists(RESULTS, max_size=2)), max_size=8),
    text=TEXTS | st.just(""),
    verdict=st.none() | st.sampled_from([*Verdict]),
    name=st.sampled_from(["", "rating"]),
    limit=st.integers(1, 4),
)
def test_all_pages_together_are_what_a_plain_filter_finds(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    cases: list[tuple[Verdict, str, list[TestResult]]],
    text: str,
    verdict: Verdict | None,
    name: str,
    limit: int,
) -> None:
    made = [case(number, found, said, *results) for number, (found, said, results) in enumerate(cases, 1)]

    def matches(each: CaseResult) -> bool:
        if name:
            kept = any(result.name == name and verdict in {None, result.verdict} for result in each.results)
        else:
            kept = verdict in {None, each.verdict} or (
                verdict is Verdict.UNDECIDED and any(result.verdict is verdict for result in each.results)
            )
        parts = [
            each.utterance,
            "Here.",
            *(part for r in each.results for part in (r.name, r.expected, r.actual, r.explanation)),
        ]
        return kept and any(text.casefold() in part.casefold() for part in parts)

    expected = [each.number for worst in WORST_FIRST for each in made if each.verdict is worst and matches(each)]
    with open_database(_folder(tmp_path_factory)) as database:
        assert whole_list(database, [save(database, *made)], CaseFilter(verdict, name, text), limit=limit) == expected


def _folder(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("store")


def test_no_places_have_no_cases(tmp_path_factory: pytest.TempPathFactory) -> None:
    with open_database(_folder(tmp_path_factory)) as database:
        assert find_cases(database, "4KB000000000001AAA", [], CaseFilter()) == ([], 0)
