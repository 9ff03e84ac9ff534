from __future__ import annotations

from dataclasses import replace

import pytest

from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.fingerprints import CheckChanges, checks_of, compare_checks, fingerprint, options_of
from evalmeta.model.run_options import Origin, RunOptions, Scoring, Setup

CONTAINS = Expectation("contains", "Paris", "contains Paris")
POLITE = Expectation("rubric", terms={"guidelines": ["Be polite."], "threshold": 0.8})


def checks(*expectations: Expectation, turns: int = 1) -> str:
    return checks_of(Case(1, (Turn("Hi", expectations),) * turns))


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    assert fingerprint("contains", {"b": 1, "a": "ü"}) == "fd3003cc"
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert len({fingerprint("\ud800"), fingerprint(object()), fingerprint(1), fingerprint("1")}) == 4


def test_a_case_has_the_hash_of_each_expectation_and_its_threshold_beside_it() -> None:
    first, second = checks(CONTAINS, POLITE).split()
    assert second.endswith("@0.8")
    assert (len(first), len(second)) == (8, 12)
    assert checks() == "-"


@pytest.mark.parametrize(
    "other",
    [
        replace(CONTAINS, expected_value="Rome"),
        replace(CONTAINS, name="contains_any"),
        replace(CONTAINS, terms={"exact": True}),
        replace(CONTAINS, parameters=(Parameter("operator", "equals"),)),
        replace(CONTAINS, scorer_type="Custom"),
    ],
)
def test_whatever_decides_is_part_of_the_fingerprint(other: Expectation) -> None:
    assert compare_checks(checks(CONTAINS, POLITE), checks(other, POLITE)) == CheckChanges(changed=1)


def test_labels_and_the_order_of_expectations_do_not_count_as_changes() -> None:
    labelled = replace(CONTAINS, label="the capital")
    assert compare_checks(checks(CONTAINS, POLITE), checks(POLITE, labelled)) == CheckChanges()


def test_a_removed_expectation_and_a_lower_threshold_are_weaker() -> None:
    lower = replace(POLITE, terms={**POLITE.terms, "threshold": 0.5})
    only_reported = replace(POLITE, terms={"guidelines": ["Be polite."]})
    assert compare_checks(checks(CONTAINS, POLITE), checks(POLITE)) == CheckChanges(weaker=1)
    assert compare_checks(checks(CONTAINS, POLITE), checks()) == CheckChanges(weaker=2)
    assert compare_checks(checks(CONTAINS, POLITE), checks(CONTAINS, lower)) == CheckChanges(weaker=1)
    assert compare_checks(checks(POLITE), checks(only_reported)) == CheckChanges(weaker=1)


def test_an_added_expectation_and_a_higher_threshold_are_new() -> None:
    higher = replace(POLITE, terms={**POLITE.terms, "threshold": 0.9})
    assert compare_checks(checks(), checks(CONTAINS)) == CheckChanges(new=1)
    assert compare_checks(checks(POLITE), checks(higher)) == CheckChanges(new=1)


def test_expectations_of_another_turn_are_others() -> None:
    assert compare_checks(checks(CONTAINS, turns=2), checks(CONTAINS)) == CheckChanges(weaker=1)


def test_nothing_is_said_about_expectations_that_are_not_known() -> None:
    assert compare_checks("", checks(CONTAINS)) == compare_checks(checks(CONTAINS), "") == CheckChanges()


def test_options_are_those_that_decide_about_results() -> None:
    neutral = RunOptions(iterations=5, min_pass_rate=0.5, origin=Origin("a"), setup=Setup("b"))
    strict = RunOptions(undecided="fail", scoring=Scoring(threshold=4, rater="judge"))
    assert (options_of(neutral), options_of(strict)) == ("default", "threshold=4 undecided=fail")
