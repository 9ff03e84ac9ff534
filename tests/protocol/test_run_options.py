from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.run_options import ACTION_MATCHES, SCORING_PROFILES, RunOptions, Scoring
from evalmeta.protocol.run_options import read_options, write_options

NUMBERS = st.integers(1, 1000)
SCORINGS = st.builds(
    Scoring,
    profile=st.sampled_from(SCORING_PROFILES),
    actions=st.none() | st.sampled_from(ACTION_MATCHES),
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
