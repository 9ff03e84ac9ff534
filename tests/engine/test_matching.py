from __future__ import annotations

from evalmeta.engine.matching import changes_of, pair_cases
from evalmeta.model.baseline import KnownTest
from evalmeta.model.comparison import CaseComparison, Standing
from evalmeta.model.fingerprints import ChangesOfTest, PartChange
from evalmeta.model.run_options import Setup
from evalmeta.model.statistics import CaseCounts


def case(number: int, utterance: str = "", passed: int = 1, **others: str) -> CaseCounts:
    return CaseCounts(number, utterance or f"Question {number}", passed, **others)


def paired(before: list[CaseCounts], after: list[CaseCounts]) -> list[tuple[int | None, int | None]]:
    return [(old and old.number, new and new.number) for old, new in pair_cases(before, after)]


def test_a_case_is_the_same_by_number_and_utterance_else_by_utterance() -> None:
    before = [case(1), case(2), case(3), case(4, "twice"), case(5, "twice")]
    after = [case(2), case(3, "Question 1"), case(1, "other"), case(6, "twice")]
    assert paired(before, after) == [(None, 1), (2, 2), (1, 3), (4, 6), (3, None), (5, None)]


def test_cases_that_ask_the_same_are_matched_in_order() -> None:
    before, after = [case(number, "same") for number in (1, 2, 3)], [case(number, "same") for number in (2, 3, 4)]
    assert paired(before, after) == [(2, 2), (3, 3), (1, 4)]
    assert paired(before, [case(7, "same"), case(8, "same")]) == [(1, 7), (2, 8), (3, None)]


def test_a_case_that_got_another_label_is_the_same_case() -> None:
    before = [case(1, "greeting", asked="Hello! / Where is it?"), case(2, "refund", asked="Hi / Refund?")]
    after = [case(1, "welcome", asked="Hello! / Where is it?"), case(3, "Refund?"), case(2, "Hi / Refund?")]
    assert paired(before, after) == [(1, 1), (2, 2), (None, 3)]


def test_a_case_with_the_label_of_an_earlier_baseline_is_the_same_case() -> None:
    assert paired([case(1, "greeting")], [case(4, "greeting", asked="Hello! / Where is it?")]) == [(1, 4)]


def test_a_case_that_ended_in_an_error_before_its_last_turn_is_the_same_case() -> None:
    whole, broken = case(1, "Hello! / Where is it?"), case(1, "Hello!", passed=0)
    assert paired([whole], [broken]) == paired([broken], [whole]) == [(1, 1)]
    assert paired([whole], [case(1, "Hello!")]) == [(None, 1), (1, None)]


def test_many_cases_that_ask_the_same_are_matched_quickly() -> None:
    many = [case(number, "same") for number in range(1, 20_001)]
    moved = [case(number + 1_000_000, "same") for number in range(1, 20_001)]
    assert len(paired(many, moved)) == 20_000


def compared(*pairs: tuple[CaseCounts | None, CaseCounts | None]) -> list[CaseComparison]:
    return [CaseComparison(Standing.NEW, 1, "", *pair) for pair in pairs]


def test_what_changed_in_a_test_is_counted() -> None:
    cases = compared(
        (case(1, checks="aaaaaaaa bbbbbbbb"), case(1, checks="aaaaaaaa")),
        (case(2, checks="aaaaaaaa bbbbbbbb@0.8"), case(2, checks="cccccccc bbbbbbbb@0.5")),
        (case(3, checks="-"), case(3, checks="aaaaaaaa")),
        (case(4), case(4, checks="aaaaaaaa")),
        (case(5, checks="aaaaaaaa"), None),
        (None, case(6, checks="aaaaaaaa")),
    )
    assert changes_of(cases, KnownTest(()), KnownTest(())) == ChangesOfTest(removed=1, weaker=2, changed=1, new=1)


def test_what_answered_or_judged_is_compared_where_both_are_known() -> None:
    old = KnownTest((), "Desk", "default", Setup("python a:b", "1111", "rules", "", "0.1.0"))
    new = KnownTest((), "Desk", "threshold=4", Setup("python a:b", "2222", "llm m", "v2", "0.1.0"))
    assert changes_of([], old, new).parts == (
        PartChange("rater", "rules", "llm m"),
        PartChange("options of judging", "default", "threshold=4"),
        PartChange("version of the agent", "1111", "2222"),
    )
    other = KnownTest((), "Desk", "default", Setup("http POST https://a", "", "rules", "", "0.2.0"))
    assert [part.what for part in changes_of([], old, other).parts] == ["agent", "version of evalmeta"]
    assert changes_of([], KnownTest(()), new) == changes_of([], new, KnownTest(())) == ChangesOfTest()
