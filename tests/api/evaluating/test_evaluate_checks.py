from __future__ import annotations

import dataclasses
import json
import threading
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pydantic import BaseModel

import evalmeta
from evalmeta import Check, evaluate
from evalmeta.errors import SettingsError, UsageError
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue

ANSWER = {"outcome": "Sent.", "actions": [{"name": "find", "input": {"id": 7}}], "trace": {"steps": 2}}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def echo(question: str) -> str:
    return question


def judged(check: object, *, answer: object = ANSWER, **case: object) -> TestResult:
    finished = evaluate([{"input": "Where?", **case}], lambda _: answer, checks=[check])
    return finished.run.cases[0].results[-1]


def test_a_check_receives_only_the_parameters_that_it_declares() -> None:
    seen: dict[str, object] = {}

    def is_short(answer: str, *, expected: JsonValue, case: Case, actions: list[object], trace: JsonValue) -> bool:
        seen.update(answer=answer, expected=expected, case=case.number, actions=actions, trace=trace)
        return len(answer) < 10

    result = judged(is_short, equals="Sent.")
    assert (result.verdict, result.label) == (Verdict.PASS, "function is_short")
    assert seen == {
        "answer": "Sent.",
        "expected": "Sent.",
        "case": 1,
        "actions": [{"name": "find", "input": {"id": 7}, "output": None}],
        "trace": {"steps": 2},
    }


def test_a_check_sees_why_an_action_failed() -> None:
    failed = {"name": "find", "input": {}, "output": None, "error": "no such order"}
    result = judged(lambda actions: actions == [failed], answer={"outcome": "Sorry.", "actions": [failed]})
    assert result.verdict is Verdict.PASS


def _no_tools(actions: list[object]) -> bool:
    return actions == []


def _only_keywords(*, topic: str | None, utterance: str) -> bool:
    return topic is None and utterance == "Where?"


def _by_any_name(text: str) -> bool:
    return text == "Sent."


def _everything(text: str, **others: object) -> bool:
    return text == "Sent." and others.keys() >= {"expected", "case", "actions", "trace", "generated"}


async def _waits(answer: str) -> bool:
    return answer == "Sent."


class _Length:
    def __call__(self, answer: str) -> bool:
        return len(answer) < 10


@dataclasses.dataclass
class _AtMost:
    most: int

    def __call__(self, answer: str) -> bool:
        return len(answer) <= self.most


def _at_most(most: int, answer: str) -> bool:
    return len(answer) <= most


@pytest.mark.parametrize(
    ("check", "name", "verdict"),
    [
        (_no_tools, "_no_tools", Verdict.FAILURE),
        (_only_keywords, "_only_keywords", Verdict.PASS),
        (_by_any_name, "_by_any_name", Verdict.PASS),
        (_everything, "_everything", Verdict.PASS),
        (_waits, "_waits", Verdict.PASS),
        (lambda answer: answer == "Lost.", "<lambda>", Verdict.FAILURE),
        (_Length(), "_Length", Verdict.PASS),
        (_AtMost(3), "_AtMost", Verdict.FAILURE),
        (partial(_at_most, 3), "_at_most", Verdict.FAILURE),
        ("Sent.".startswith, "startswith", Verdict.PASS),
    ],
)
def test_anything_that_can_be_called_with_the_answer_is_a_check(check: object, name: str, verdict: Verdict) -> None:
    result = judged(check)
    assert (result.verdict, result.label) == (verdict, f"function {name}"), result.explanation


@pytest.mark.parametrize(
    ("returned", "verdict", "score", "reason"),
    [
        (True, Verdict.PASS, 1.0, "check returned True"),
        (np.bool_(False), Verdict.FAILURE, 0.0, "check returned False"),
        (np.float64(0.5), Verdict.UNDECIDED, 0.5, "check returned 0.5; reported, not judged"),
        (7, Verdict.UNDECIDED, 7.0, "check returned 7.0; reported, not judged"),
        (Check(passed=False, score=0.2, reason="too rude"), Verdict.FAILURE, 0.2, "too rude"),
        (Check(passed=np.bool_(True), score=np.float32(0.5)), Verdict.PASS, 0.5, "check returned True"),  # type: ignore[arg-type]
        (Check(score=3), Verdict.UNDECIDED, 3.0, "check returned 3.0; reported, not judged"),
        ({"passed": True, "reason": "polite"}, Verdict.PASS, 1.0, "polite"),
    ],
)
def test_a_check_returns_a_verdict_a_number_or_both(
    returned: object, verdict: Verdict, score: float, reason: str
) -> None:
    def check() -> object:
        return returned

    result = judged(check)
    assert (result.verdict, result.score, result.explanation) == (verdict, score, reason)


@pytest.mark.parametrize("returned", [None, "yes", object(), Check(), [True], float("nan"), np.array([1, 2])])
def test_any_other_value_is_an_error_that_says_what_to_return(returned: object) -> None:
    result = judged(lambda: returned)
    assert result.verdict is Verdict.ERROR
    assert "Return" in str(result.error)
    if returned is None:
        assert "it returned nothing (None). Return True or False, a number, evalmeta.Check(" in str(result.error)


def test_a_check_that_returns_a_list_has_a_result_for_each_under_its_name() -> None:
    def style(answer: str) -> list[Check]:
        return [
            Check(passed="Sent" in answer, name="says it"),
            Check(label="short", name="length", reason=f"token={KEY}"),
            Check(error="no dictionary", name="spelling"),
        ]

    run = evaluate([{"input": "Send it", "equals": "Sent."}], lambda _: "Sent.", checks=[style, lambda: True])
    [case] = run.run.cases
    found = [(result.label, result.verdict) for result in case.results if result.name == "function"]
    assert found == [
        ("function says it", Verdict.PASS),
        ("function length", Verdict.UNDECIDED),
        ("function spelling", Verdict.ERROR),
        ("function <lambda>", Verdict.PASS),
    ]
    assert case.verdict is Verdict.ERROR
    assert not run.succeeded
    assert KEY not in run.report("json")


def test_results_of_a_turn_that_are_several_do_not_replace_those_of_the_turns_behind_it() -> None:
    def two(answer: str) -> list[Check]:
        return [Check(passed=True, name="a"), Check(passed="2" not in answer, name="b")]

    turns = [{"input": "1", "equals": "1"}, {"input": "2", "equals": "2"}]
    [case] = evaluate([{"turns": turns}], lambda utterance: utterance, checks=[two]).run.cases
    assert [(result.turn, result.verdict) for result in case.results] == [
        *((1, Verdict.PASS),) * 3,
        *((2, Verdict.PASS), (2, Verdict.PASS), (2, Verdict.FAILURE)),
    ]


def test_an_exception_is_an_error_and_an_assertion_that_fails_is_a_failure() -> None:
    def divides(answer: str) -> bool:
        return 1 / len(answer.strip("Sent.")) > 0

    def asserts(answer: str) -> bool:
        assert "Lost" in answer, "nothing is lost"
        return True

    assert judged(divides).verdict is Verdict.ERROR
    assert "ZeroDivisionError" in str(judged(divides).error)
    assert (judged(asserts).verdict, judged(asserts).explanation) == (Verdict.FAILURE, "nothing is lost")


def test_checks_that_cannot_be_called_are_all_named_before_the_first_question() -> None:
    asked: list[str] = []

    def unknown(answer: str, *, expcted: object) -> bool: ...

    def nothing(answer: str) -> None: ...

    with pytest.raises(SettingsError) as caught:
        evaluate([{"input": "Where?", "checks": unknown}], asked.append, checks=[nothing])
    assert "the check 'unknown' cannot be called: missing a required argument: 'expcted'" in str(caught.value)
    assert "the check 'nothing' returns nothing: its result is annotated as None" in str(caught.value)
    assert asked == []


@pytest.mark.parametrize("checks", [_no_tools, "checks:is_short", ["is_short"], [3], [dict], [None]])
def test_what_is_not_a_check_is_refused(checks: object) -> None:
    with pytest.raises(UsageError, match=r"is not a check|must be a list"):
        evaluate([{"input": "Where?"}], echo, checks=checks)  # type: ignore[arg-type]


def labels(finished: FinishedRun) -> list[list[str | None]]:
    return [[result.label for result in case.results] for case in finished.run.cases]


def test_checks_of_a_case_a_turn_and_of_all_stand_beside_named_ones(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("def is_text(answer, expected):\n    return answer == expected\n")
    cases: list[dict[str, object]] = [
        {"input": "a", "equals": "a", "checks": [_by_any_name, "rules:is_text"]},
        {"turns": [{"input": "b", "checks": _waits}, {"input": "c", "function": "rules:is_text", "equals": "c"}]},
    ]
    finished = evaluate(cases, echo, checks=[_Length()])
    assert labels(finished) == [
        ['equals "a"', "function rules:is_text", "function _by_any_name", "function _Length"],
        ["function _waits", "function _Length", 'equals "c"', "function rules:is_text", "function _Length"],
    ]
    assert [result.verdict for result in finished.run.cases[1].results[2:]] == [Verdict.PASS] * 3


def test_functions_with_the_same_name_have_a_number_and_those_of_one_lambda_share_a_figure() -> None:
    cases = [{"input": f"{size}", "checks": lambda answer, size=size: len(answer) + size} for size in (1, 2)]
    finished = evaluate(cases, echo, checks=[lambda: 1, lambda: 2])
    assert labels(finished) == [["function <lambda> 3", "function <lambda>", "function <lambda> 2"]] * 2
    assert "function <lambda> 3  2.5 over 2 results" in finished.report()
    assert [result.score for result in finished.run.cases[1].results] == [3, 1, 2]


def test_checks_judge_definitions_files_and_evaluations_too(tmp_path: Path) -> None:
    spec = tmp_path / "shop.yaml"
    spec.write_text("testCases:\n- input: a\n  contains: a\n")
    inputs = evalmeta.Inputs("b")
    definition = evalmeta.Definition("Shop", "Desk", test_cases=(evalmeta.TestCase(inputs),))
    finished = evaluate([spec, definition], echo, checks=[_Length()])
    assert [labels(run) for run in finished] == [[['contains "a"', "function _Length"]], [["function _Length"]]]


def test_a_structured_answer_reaches_a_check_as_its_value() -> None:
    class City(BaseModel):
        name: str

    result = judged(
        lambda answer, expected: answer == expected == {"name": "Rom"}, answer=City(name="Rom"), equals={"name": "Rom"}
    )
    assert result.verdict is Verdict.PASS, result.explanation


def test_a_journal_knows_the_checks_and_does_not_call_them_again(tmp_path: Path) -> None:
    called: list[str] = []

    def counts(answer: str) -> bool:
        called.append(answer)
        return True

    def run(*checks: Callable[..., object]) -> FinishedRun:
        return evaluate([{"input": "a"}, {"input": "b"}], echo, checks=checks, journal=tmp_path / "runs")

    assert [run(counts).summary.passed, run(counts).summary.passed, len(called)] == [2, 2, 2]
    with pytest.raises(UsageError, match="the cases are different"):
        run(counts, _by_any_name)


def test_the_thread_of_checks_is_used_again_and_ends_with_the_run() -> None:
    threads: set[threading.Thread] = set()

    def is_short(_: str) -> bool:
        threads.add(threading.current_thread())
        return True

    evaluate(
        [{"input": f"{number}"} for number in range(20)], echo, checks=[is_short], options=RunOptions(concurrency=1)
    )
    [thread] = threads
    thread.join(10)
    assert not thread.is_alive()


def _longer_than(least: int) -> Callable[[str], bool]:
    return lambda answer: len(answer) > least


def _named_check(text: str) -> Callable[..., object]:
    names: dict[str, Callable[..., object]] = {}
    exec(text, names)  # noqa: S102 - code without a file, as in a console
    return names["check"]


def _returns_true(answer: str) -> bool:
    return bool(answer) or True


def _is_long(answer: str) -> bool:
    return len(answer) > 100


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_returns_true, _is_long),
        (_named_check("def check(answer): return True"), _named_check("def check(answer): return len(answer) > 100")),
        (_longer_than(0), _longer_than(100)),
        (_AtMost(3), _AtMost(4)),
        (partial(_at_most, 3), partial(_at_most, 4)),
    ],
)
def test_a_journal_with_the_results_of_a_check_that_has_changed_is_refused(
    tmp_path: Path, before: Callable[..., object], after: Callable[..., object]
) -> None:
    def run(check: Callable[..., object], *, of_case: bool) -> FinishedRun:
        case: dict[str, object] = {"input": "a"}
        if of_case:
            return evaluate([{**case, "checks": check}], echo, journal=tmp_path / "of_case")
        return evaluate([case], echo, checks=[check], journal=tmp_path / "of_all")

    for of_case in (True, False):
        assert run(before, of_case=of_case).summary.total == 1
        assert run(before, of_case=of_case).summary.total == 1
        with pytest.raises(UsageError, match=r"(?s)the cases are different.*resume=False"):
            run(after, of_case=of_case)


def test_a_check_that_was_changed_by_hand_since_its_run_is_refused(tmp_path: Path) -> None:
    check = _AtMost(3)
    assert evaluate([{"input": "a"}], echo, checks=[check], journal=tmp_path / "runs").summary.total == 1
    check.most = 0
    with pytest.raises(UsageError, match="the cases are different: a check"):
        evaluate([{"input": "a"}], echo, checks=[check], journal=tmp_path / "runs")


KEY = "sk-proj-abcdefghijklmnopqrstuvwx1234567890abcdefgh"


def _asserts_with_key(answer: str) -> bool:
    raise AssertionError(f"key {KEY} of {answer}")


@pytest.mark.parametrize(
    "check",
    [
        _asserts_with_key,
        lambda: Check(passed=False, reason=f"Authorization: Bearer {KEY}"),
        lambda: {"score": 2, "reason": f"key {KEY}"},
        lambda: f"key {KEY}",
        lambda: Check(score=KEY),  # type: ignore[arg-type]
    ],
)
def test_secrets_in_what_a_check_says_are_in_no_report_and_no_journal(tmp_path: Path, check: object) -> None:
    finished = evaluate([{"input": "a"}], echo, checks=[check], journal=tmp_path / "runs")
    result = finished.run.cases[0].results[-1]
    assert "[secret]" in f"{result.explanation} {result.error}"
    shown = finished.report() + finished.report("json")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert KEY[:30] not in shown
    assert KEY[:30].encode() not in kept


def test_a_check_is_true_only_if_it_passed() -> None:
    assert [bool(Check(passed)) for passed in (True, False, None)] == [True, False, False]


def test_objects_cannot_be_sent_to_a_cluster() -> None:
    with pytest.raises(UsageError, match="the check '_by_any_name' is a Python object"):
        evaluate([{"input": "a"}], echo, checks=[_by_any_name], on="ray")


def test_reports_have_one_pass_rate_for_each_function_over_cases_turns_and_iterations() -> None:
    def is_short(answer: str) -> bool:
        return len(answer) < 3

    cases: list[dict[str, object]] = [{"input": "a"}, {"turns": [{"input": "bbbb"}, {"input": "c"}]}]
    options = evalmeta.RunOptions(iterations=2)
    finished = evaluate(cases, echo, checks=[is_short, lambda answer: {}[answer]], options=options)
    assert "  checked by functions:\n    function is_short  66.66 % of 6 results passed\n" in finished.report()
    shares = json.loads(finished.report("json"))["evalmeta"]["statistics"]["functions"]
    assert shares == [{"name": "function is_short", "mean": 4 / 6, "count": 6}]
