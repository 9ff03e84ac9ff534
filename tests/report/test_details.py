from __future__ import annotations

import report_runs as make
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import EarlierTurn, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.report.details import blocks, case_name, case_text, group_cases, group_name, not_passed, why_not_passed


def test_failures_come_before_undecided_results() -> None:
    results = not_passed(make.MIXED_CASES[1])
    assert [result.name for result in results] == ["topic_sequence_match", "action_sequence_match", "coherence"]


def test_iterations_are_named_only_when_there_are_several() -> None:
    case = make.case(7, Verdict.PASS, iteration=2)
    assert case_name(case, make.run(case)) == "7: Question 7?"
    assert case_name(case, make.run(case, options=RunOptions(iterations=2))) == "7: Question 7? (iteration 2)"


def test_iterations_with_the_same_details_are_shown_once() -> None:
    failed, other = (make.TOPIC_FAILED._replace(actual=actual) for actual in ("Orders", "Fees"))
    results = [(1, failed), (2, other), (3, failed)]
    cases = [make.case(1, Verdict.FAILURE, each, iteration=iteration) for iteration, each in results]
    cases += [make.case(2, Verdict.PASS, make.TOPIC_PASSED, iteration=iteration) for iteration in (1, 2, 3)]
    groups = list(group_cases(make.report(*cases, options=RunOptions(iterations=3))))
    assert [group_name(group) for group in groups] == [
        "1 (in 2 of 3 iterations: 1, 3)",
        "1 (iteration 2)",
        "2 (in 3 of 3 iterations)",
    ]
    assert [group_name(case) for case in group_cases(make.report(*make.MIXED_CASES))] == ["1", "2", "3", "4", "5"]


def test_a_failed_case_shows_its_first_failure() -> None:
    told = "topic_sequence_match: expected the topic Returns, got Orders (and 2 more)"
    assert why_not_passed(make.MIXED_CASES[1]) == told


def test_a_case_with_an_error_shows_the_error() -> None:
    assert why_not_passed(make.MIXED_CASES[2]) == "the agent did not answer within 120 s"


def test_a_case_without_results_has_no_expectations() -> None:
    assert why_not_passed(make.case(1, Verdict.UNDECIDED)) == "the case has no expectations"


def test_a_case_that_only_the_org_failed_says_so() -> None:
    case = make.case(1, Verdict.FAILURE, make.TOPIC_PASSED, make.COHERENCE_UNDECIDED)
    why = "the org failed the case, although no result failed"
    assert why_not_passed(case) == f"{why} (and 1 more)"
    assert ("why", why) in next(blocks(case))[1]


def test_an_error_equal_to_the_explanation_is_shown_once() -> None:
    result = TestResult("factuality", Verdict.ERROR, explanation="the scorer failed", error="the scorer failed")
    [_, (title, fields)] = blocks(make.case(1, Verdict.ERROR, result))
    assert title == "Factuality (factuality): ERROR"
    assert fields == [("why", "the scorer failed")]


def test_an_error_beside_an_explanation_is_shown_too() -> None:
    result = TestResult("a", Verdict.ERROR, explanation="cannot be judged", error="no key")
    [_, (_, fields)] = blocks(make.case(1, Verdict.ERROR, result))
    assert fields == [("why", "cannot be judged"), ("error", "no key")]


def test_an_answer_that_a_result_compares_is_not_shown_twice() -> None:
    result = make.TOPIC_FAILED._replace(actual="You may return it.")
    [(_, fields), _] = blocks(make.case(1, Verdict.FAILURE, result))
    assert [field.label for field in fields] == ["utterance"]


def test_a_label_of_the_author_names_the_result() -> None:
    result = make.TOPIC_FAILED._replace(name="string_comparison", label="Gives the fee")
    [_, (title, _)] = blocks(make.case(1, Verdict.FAILURE, result))
    assert title == "Gives the fee (string_comparison): FAILURE"


def test_undecided_results_with_the_same_reason_are_shown_once() -> None:
    undecided = [TestResult(name, Verdict.UNDECIDED, explanation="it needs a judge") for name in ("safety", "grade")]
    case = make.case(1, Verdict.FAILURE, undecided[0], make.TOPIC_FAILED, undecided[1])
    titles = [(title, [field.label for field in fields]) for title, fields in blocks(case) if title]
    assert titles == [
        ("Topic (topic_sequence_match): FAILURE", ["expected", "actual", "why"]),
        ("2 results: UNDECIDED", ["which", "why"]),
    ]


def calls(expected: str, actual: str) -> str:
    why = "A.input.id: expected 1, got 2"
    result = TestResult("action_sequence_match", Verdict.FAILURE, expected, actual, 0.0, why)
    return case_text(make.case(1, Verdict.FAILURE, result), indent=" " * 10)


def test_calls_stand_beside_the_expected_ones_in_80_columns() -> None:
    long = "Find(" + ", ".join(f'argument_{number}="{"x" * number}"' for number in range(40)) + ")"
    text = calls(f"Login()\n{long}\n-", 'Login(user="ada")\nFind(id=2)\nLog_Out()')
    assert max(map(len, text.splitlines())) <= 80
    assert "calls     expected                     actual\n" in text
    assert 'Login()                      Login(user="ada")\n' in text
    assert "\n                      -                            Log_Out()\n" in text
    assert "why       A.input.id: expected 1, got 2" in text


def test_lists_of_names_are_shown_as_people_write_them() -> None:
    text = calls("['A', 'B']", "['A']")
    assert "expected  A, B\n" in text
    assert "actual    A\n" in text


def test_of_many_results_in_turns_the_failures_are_shown_and_the_rest_is_counted() -> None:
    failures = [TestResult("contains", Verdict.FAILURE, str(turn), "no", turn=turn) for turn in (1, 2)]
    undecided = [TestResult("coherence", Verdict.UNDECIDED, explanation="no rater", turn=1) for _ in range(3)]
    earlier = (EarlierTurn("One", GeneratedData("no")),)
    result = make.case(1, Verdict.FAILURE, *undecided, *failures)._replace(earlier=earlier)

    assert case_text(result, most=2).count("FAILURE") == 2
    assert "... and 3 more results: 3 UNDECIDED" in case_text(result, most=2)
    assert "more result" not in case_text(result, most=3)
