from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import FormatError, NotFound, SettingsError, SubjectNotBound, UsageError
from evalmeta.model.run_options import ActionMatch, RunOptions, Scoring, ScoringProfile
from evalmeta.protocol.runs import RunFault, joined_error, read_faults, read_options, write_faults, write_options

NUMBERS = st.integers(1, 1000)
SCORINGS = st.builds(
    Scoring,
    profile=st.sampled_from(get_args(ScoringProfile)),
    actions=st.none() | st.sampled_from(get_args(ActionMatch)),
    topics=st.sampled_from(("exact", "contains")),
    matches=st.sampled_from(("first", "any", "all")),
    threshold=st.floats(0, 5),
    rater=st.sampled_from(("rules", "judge")),
)
OPTIONS = st.builds(
    RunOptions,
    iterations=NUMBERS,
    min_pass_rate=st.floats(0, 1),
    undecided=st.sampled_from(("ignore", "fail")),
    concurrency=NUMBERS,
    case_timeout=st.floats(0.1, 100),
    rate_limit=st.none() | st.floats(0.1, 100),
    retries=NUMBERS,
    max_errors=st.none() | NUMBERS,
    max_cost=st.none() | st.floats(0.01, 100),
    seed=st.none() | st.integers(-9, 9),
    cases=st.none() | st.lists(NUMBERS).map(tuple),
    shard=st.none() | st.tuples(NUMBERS, NUMBERS),
    scoring=SCORINGS,
)


@given(OPTIONS)
def test_options_come_back_as_they_were_written(options: RunOptions) -> None:
    assert read_options(write_options(options)) == options


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"cases": "3", "shard": [1], "undecided": "maybe", "scoring": {"actions": "most", "rater": "", "topics": 3}},
        {"cases": None, "shard": "1/2", "scoring": []},
    ],
)
def test_a_value_that_is_not_valid_gets_the_default(source: dict[str, object]) -> None:
    assert read_options(source) == RunOptions()


def test_only_whole_numbers_are_cases() -> None:
    assert read_options({"cases": [1, True, "2", 3]}).cases == (1, 3)


DESK = SubjectNotBound("no adapter for Desk", actions=["Add these lines:\n\n[subjects.Desk]\nadapter = 1"])
SHOP = SubjectNotBound("no adapter for Shop", actions=["Add these lines:\n\n[subjects.Shop]\nadapter = 1"])
KEY = SettingsError("KEY is not set", actions=["Set KEY."])


def test_faults_are_read_as_they_were_written() -> None:
    faults = [RunFault(DESK, (0, 2)), RunFault(NotFound("no test"), (1,))]
    again = read_faults(write_faults(faults))
    assert [(type(error), str(error), error.actions, runs) for error, runs in again] == [
        (type(error), str(error), error.actions, runs) for error, runs in faults
    ]


def test_texts_are_cleaned_before_they_are_sent() -> None:
    [fault] = read_faults(write_faults([RunFault(KEY, (0,))], clean=lambda text: text.replace("KEY", "[secret]")))
    assert (str(fault.error), fault.error.actions) == ("[secret] is not set", ("Set [secret].",))


def test_a_single_fault_of_all_tests_is_the_error_itself() -> None:
    error = joined_error([RunFault(DESK, (0, 1))], ["A", "B"])
    assert (type(error), str(error), error.actions) == (SubjectNotBound, str(DESK), DESK.actions)


def test_every_fault_has_its_line_with_the_tests_that_it_affects() -> None:
    error = joined_error([RunFault(DESK, (0,)), RunFault(KEY, (1,)), RunFault(KEY, (0,))], ["A", "B"])
    expected = "no test was run, for 2 reasons:\n  no adapter for Desk (A)\n  KEY is not set"
    assert (type(error), str(error)) == (SettingsError, expected)


def test_the_lines_to_add_stand_together_after_the_other_advice() -> None:
    error = joined_error([RunFault(DESK, (0,)), RunFault(KEY, (1,)), RunFault(SHOP, (1,))], ["A", "B"])
    lines = "Add these lines:\n\n[subjects.Desk]\nadapter = 1\n\n[subjects.Shop]\nadapter = 1"
    assert error.actions == ("Set KEY.", lines)


def test_many_tests_are_counted() -> None:
    error = joined_error([RunFault(KEY, tuple(range(8)))], [f"T{number}" for number in range(9)])
    assert str(error) == "KEY is not set (T0, T1, T2, T3, T4 and 3 more)"


def test_other_errors_are_usage_errors_together() -> None:
    assert type(joined_error([RunFault(FormatError("odd"), (0,))], ["A"])) is UsageError
