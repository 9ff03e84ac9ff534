from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import evaluation
from evalmeta import limits
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    PromptInput,
    TestCase,
)
from evalmeta.model.evaluation import (
    Case,
    Evaluation,
    Quarantine,
    Quarantines,
    Turn,
    day_of,
    end_fault,
    evaluation_of,
    names_of_test,
    parse_day,
    select_cases,
    today,
    work_items,
    workload,
)
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.run_options import IterationsBy, RunOptions

if TYPE_CHECKING:
    from collections.abc import Collection

unique_or_none = st.lists(st.none() | st.integers(1, 9), max_size=8).filter(
    lambda numbers: len({number for number in numbers if number}) == sum(number is not None for number in numbers)
)


def numbered(*numbers: int | None) -> list[int]:
    cases = tuple(TestCase(Inputs("u"), number=number) for number in numbers)
    return [case.number for case in evaluation_of(Definition("n", "s", test_cases=cases), name="N").cases]


@pytest.mark.parametrize(
    ("given_numbers", "numbers"),
    [
        ((), []),
        ((None, None, None), [1, 2, 3]),
        ((9, 14), [9, 14]),
        ((None, 1), [2, 1]),
        ((None, None, 2), [1, 3, 2]),
        ((None, 1, 2, 3), [4, 1, 2, 3]),
        ((5, None, None), [5, 2, 3]),
        ((-1, 0, None), [-1, 0, 3]),
    ],
)
def test_a_case_without_number_gets_the_next_free_one(
    given_numbers: tuple[int | None, ...], numbers: list[int]
) -> None:
    assert numbered(*given_numbers) == numbers


@given(unique_or_none)
def test_numbers_are_unique_and_those_given_are_kept(numbers: list[int | None]) -> None:
    found = numbered(*numbers)
    assert len(set(found)) == len(numbers)
    assert all(number in {None, kept} for number, kept in zip(numbers, found, strict=True))


def test_a_definition_becomes_what_the_engine_runs() -> None:
    history = (HistoryMessage("user", "Hello"), HistoryMessage("agent", "Hi"))
    variables, expectations = (ContextVariable("Tier", "Gold"),), (Expectation("coherence"),)
    case = TestCase(Inputs("And then?", variables, history), expectations, 3)
    assert evaluation_of(Definition("A label", "Agent", subject_version="v2", test_cases=(case,)), name="Api_Name") == (
        Evaluation(
            "Api_Name",
            "Agent",
            (Case(3, (Turn("And then?", expectations),), history, variables),),
            "v2",
            title="A label",
        )
    )


@pytest.mark.parametrize(
    ("indices", "said"),
    [((2, 0, 1), "bca"), ((None, None, None), "abc"), ((1, 0, None), "abc"), ((2, 1, 3), "abc"), ((0, 0, 1), "abc")],
)
def test_the_history_has_the_order_of_complete_indices(indices: tuple[int | None, ...], said: str) -> None:
    history = tuple(HistoryMessage("user", text, None, index) for text, index in zip("abc", indices, strict=True))
    definition = Definition("n", "s", test_cases=(TestCase(Inputs("u", (), history)),))
    assert "".join(message.message or "" for message in evaluation_of(definition, name="N").cases[0].history) == said


def scored(*scorers: Expectation) -> tuple[Expectation, ...]:
    definition = Definition("n", "s", test_cases=(TestCase(Inputs("u"), scorers, 1),), type=TESTING_DEFINITION)
    return evaluation_of(definition, name="N").cases[0].turns[0].expectations


@pytest.mark.parametrize(
    ("value", "actions"),
    [(" Find\n", "['Find']"), ("['A', 'B']", "['A', 'B']"), ("[]", "[]"), ("[A]", "[A]"), ("", ""), (None, None)],
)
def test_one_action_of_a_scorer_is_a_list_of_one(value: str | None, actions: str | None) -> None:
    assert scored(Expectation("action_sequence_match", value)) == (Expectation("action_sequence_match", actions),)


def test_a_scorer_that_is_not_standard_is_the_orgs_own() -> None:
    standard, other = scored(Expectation("coherence"), Expectation("hallucination_score"))
    assert (standard.is_custom, other.is_custom) == (False, True)


def test_a_prompt_template_gets_its_inputs_as_text_and_as_context() -> None:
    inputs = Inputs("", prompt_inputs=(PromptInput("Input:Title", "Harbour"), PromptInput("Input:Year", "1887")))
    definition = Definition("n", "s", "PROMPT", test_cases=(TestCase(inputs, (), 1),), type=TESTING_DEFINITION)
    evaluation = evaluation_of(definition, name="N")
    [case] = evaluation.cases
    assert evaluation.subject_type == "PROMPT"
    assert case.turns[0].utterance == "Input:Title: Harbour\nInput:Year: 1887"
    assert case.context_variables == (ContextVariable("Input:Title", "Harbour"), ContextVariable("Input:Year", "1887"))


def _numbers(finished: set[tuple[int, int]]) -> list[tuple[int, int]]:
    items = work_items(evaluation(3), RunOptions(iterations=2), finished)
    return [(item.iteration, item.case.number) for item in items]


def test_every_case_comes_once_in_every_iteration() -> None:
    assert _numbers(set()) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_finished_cases_are_left_out() -> None:
    assert _numbers({(1, 1), (2, 3)}) == [(1, 2), (1, 3), (2, 1), (2, 2)]


def _own(*iterations: int | None) -> Evaluation:
    """Return an evaluation whose cases have these numbers of iterations, and can be read only once."""
    cases = enumerate(iterations, 1)
    return Evaluation("e", "s", iter([Case(number, (Turn("?"),), iterations=own) for number, own in cases]))


def _places(evaluation: Evaluation, options: RunOptions, finished: Collection[tuple[int, int]] = ()) -> list[str]:
    return [f"{item.case.number}.{item.iteration}" for item in work_items(evaluation, options, finished)]


def test_a_cases_own_iterations_are_more_or_fewer_than_those_of_the_run() -> None:
    assert _places(_own(3, None, 1), RunOptions()) == ["1.1", "2.1", "3.1", "1.2", "1.3"]
    kept = replace(_own(), cases=tuple(_own(3, None, 1).cases))
    assert _places(kept, RunOptions(iterations=2)) == ["1.1", "2.1", "3.1", "1.2", "2.2", "1.3"]
    assert _places(kept, RunOptions(iterations=2, iterations_by="run")) == ["1.1", "2.1", "3.1", "1.2", "2.2", "3.2"]
    assert _places(kept, RunOptions(iterations=2, cases=(3,))) == ["3.1"]


def test_a_case_that_was_asked_sometimes_is_asked_the_other_times() -> None:
    assert _places(_own(3, None), RunOptions(), {(1, 1), (1, 2), (3, 1)}) == ["1.2"]


def test_a_seed_shuffles_the_cases_that_are_left_in_an_iteration() -> None:
    places = _places(_own(*[3] * 9, 1), RunOptions(seed=7))
    assert sorted(places) == sorted(["10.1", *(f"{number}.{n}" for n in (1, 2, 3) for number in range(1, 10))])
    assert places[10:19] != sorted(places[10:19])


def test_cases_without_further_iterations_are_not_read_again() -> None:
    assert _places(_own(1, 1), RunOptions(iterations=1000)) == ["1.1", "2.1"]


@given(
    st.lists(st.none() | st.integers(1, 5), max_size=6),
    st.integers(1, 4),
    st.sampled_from(["case", "run"]),
    st.none() | st.integers(0, 3),
    st.integers(1, 3),
)
def test_the_workload_is_what_is_asked(
    own: list[int | None], iterations: int, by: IterationsBy, seed: int | None, shards: int
) -> None:
    kept = replace(_own(), cases=tuple(_own(*own).cases))
    options = RunOptions(iterations=iterations, iterations_by=by, seed=seed, shard=(1, shards))
    items = [(item.case.number, item.iteration) for item in work_items(kept, options, ())]
    known = workload(kept, options)
    assert len({*items}) == len(items) == known.results
    if known.most_iterations:
        assert max(iteration for _, iteration in items) == known.most_iterations
    else:
        assert len(items) == iterations * len({number for number, _ in items})


def test_cases_are_read_lazily() -> None:
    items = work_items(evaluation(1), RunOptions(iterations=10**9), ())
    assert next(items).iteration == 1


@given(st.integers(1, 9), st.integers(1, 60))
def test_every_case_is_in_exactly_one_shard(parts: int, count: int) -> None:
    shards = [select_cases(evaluation(count), RunOptions(shard=(part, parts))) for part in range(1, parts + 1)]
    assert sorted(case.number for shard in shards for case in shard) == list(range(1, count + 1))


def test_a_case_stays_in_its_shard_when_others_are_added() -> None:
    few, many = ({case.number for case in select_cases(evaluation(n), RunOptions(shard=(2, 3)))} for n in (10, 40))
    assert few == {number for number in many if number <= 10}


def test_only_the_chosen_cases_are_sent() -> None:
    assert [case.number for case in select_cases(evaluation(9), RunOptions(cases=(7, 2, 11)))] == [2, 7]


def _order(seed: int | None) -> list[list[int]]:
    items = work_items(evaluation(20), RunOptions(iterations=2, seed=seed), ())
    numbers = [item.case.number for item in items]
    return [numbers[:20], numbers[20:]]


def test_a_seed_shuffles_each_iteration_differently_and_reproducibly() -> None:
    first, second = _order(7)
    assert _order(7) == [first, second]
    assert first != second
    assert sorted(first) == sorted(second) == list(range(1, 21))
    assert _order(8) != [first, second]
    assert _order(None) == [sorted(first)] * 2


END = date(2027, 1, 31)
LISTED = Quarantine("flaky since the move", END)


@pytest.mark.parametrize(
    ("day", "is_quarantined"), [(END - timedelta(days=1), True), (END, True), (END + timedelta(days=1), False)]
)
def test_a_quarantine_lasts_to_the_end_of_its_last_day(day: date, *, is_quarantined: bool) -> None:
    found = Quarantines(day, {1: LISTED}).find(None, 1)
    result = CaseResult(1, 1, "Hi", Verdict.FAILURE, 0.0, 0.0, quarantine=found)
    assert (result.is_quarantined, found.has_ended) == (is_quarantined, not is_quarantined)


def test_days_are_days_in_utc() -> None:
    last_second = datetime(2027, 1, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert (day_of(last_second), day_of(last_second + 1)) == (END, END + timedelta(days=1))


@pytest.mark.parametrize("key", [1, "late", "Where is it?"])
def test_a_listed_case_is_known_by_number_label_or_utterance(key: int | str) -> None:
    quarantines = Quarantines(END, {key: LISTED})
    assert quarantines.find(None, 1, "late", "Where is it?") == LISTED
    assert quarantines.find(None, 2, "", "Who?") is None


def test_of_two_quarantines_the_later_one_counts() -> None:
    own = Quarantine("known", END - timedelta(days=9))
    assert Quarantines(END, {1: LISTED}).find(own, 1) == LISTED
    assert Quarantines(END, {1: own}).find(LISTED, 1) == LISTED


@pytest.mark.parametrize("text", ["", "soon", "2027-1-31", "20270131", "2027-02-30", "2027-01-31T00:00", "2027-W04-7"])
def test_only_a_whole_date_is_a_day(text: str) -> None:
    assert parse_day(text) is None


def test_an_end_is_at_most_a_year_away() -> None:
    latest = today() + timedelta(days=limits.MAX_QUARANTINE_DAYS)
    assert end_fault(latest) == ""
    assert end_fault(latest + timedelta(days=1)) == (
        f"{latest + timedelta(days=1)} is more than 366 days away; the latest is {latest}"
    )


def test_the_names_of_a_test_are_those_that_commands_take() -> None:
    assert names_of_test("tests/desk.yaml", "X") == {"tests/desk.yaml", "X:tests/desk.yaml", "desk.yaml", "desk"}
    assert names_of_test("Desk", "AiEvaluationDefinition") == {"Desk", "AiEvaluationDefinition:Desk"}
