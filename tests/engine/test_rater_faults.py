"""Raters and scorers that fail in every way: each failure only affects its own result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import TOPIC, Agent, MemoryJournal, answer_orders, case, evaluation
from evalmeta.engine.case_run import CasePolicy, rescore_case, run_case
from evalmeta.engine.deadline import TimeLimit
from evalmeta.engine.interfaces import Rating
from evalmeta.engine.runner import execute
from evalmeta.engine.scorers import SCORERS, make_scorers
from evalmeta.errors import RaterError
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import WorkItem
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.model.run_options import RunOptions, Scoring
from evalmeta.protocol.connect import read_case, write_case
from evalmeta.report import FORMATS, render
from evalmeta.store.stored_cases import decode_case, encode_case
from report_runs import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.engine.interfaces import Rubric, Scorer

RATED = Expectation("bot_response_rating", "It is on its way.")
FLUENT = Expectation("coherence")
EXPECTED = (TOPIC, RATED, FLUENT)
GOOD = Rating(5.0, Verdict.PASS, "well said", "tester")
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 1e308, -1e308, 5e-324, 10**400)


class Moody:
    """Rate coherence correctly, and anything else as given."""

    def __init__(self, mood: object) -> None:
        self._mood = mood

    def __call__(self, rubric: Rubric, /) -> object:
        if rubric.metric == "coherence":
            return GOOD
        return self._mood() if callable(self._mood) else self._mood

    async def close(self) -> None:
        """Do nothing."""


class MoodyLater(Moody):
    """Do the same after waiting, like a rater that asks a model."""

    def __call__(self, rubric: Rubric, /) -> object:
        return self._later(rubric)

    async def _later(self, rubric: Rubric) -> object:
        await asyncio.sleep(0)
        return super().__call__(rubric)


class Hanging(Moody):
    """Never rate anything but coherence."""

    async def _hang(self) -> object:
        await asyncio.Event().wait()

    def __call__(self, rubric: Rubric, /) -> object:
        return GOOD if rubric.metric == "coherence" else self._hang()


def raising(error: BaseException) -> object:
    def fail() -> None:
        raise error

    return fail


def judged(scorers: Mapping[str, Scorer], *turns: str, seconds: float = 5) -> CaseResult:
    item = WorkItem(1, case(*turns, expectations=EXPECTED))
    return asyncio.run(run_case(item, Agent(answer_orders), CasePolicy(scorers, TimeLimit(seconds))))


def scorers_of(rater: object) -> Mapping[str, Scorer]:
    return make_scorers(Scoring(), rater)  # type: ignore[arg-type] # a rater that keeps no promise


@pytest.mark.parametrize("kind", [Moody, MoodyLater])
@pytest.mark.parametrize(
    ("mood", "words"),
    [
        (raising(RaterError("no more credit")), "no more credit"),
        (raising(ValueError("\x1b[2J\ud800")), "ValueError: \x1b[2J?"),
        (raising(SystemExit(3)), "SystemExit: 3"),
        (raising(asyncio.CancelledError()), "the scorer failed"),
        (raising(TimeoutError("slow")), "TimeoutError: slow"),
        ("5", "the rater returned str, which is not a Rating"),
        (5, "the rater returned int"),
        ({"score": 5}, "the rater returned dict"),
        (Rating(7.0, Verdict.PASS, "", "tester"), "tester returned the rating 7.0, which is not from 0 to 5"),
        (Rating(-1.0, Verdict.FAILURE, "", "tester"), "the rating -1.0"),
        (Rating(float("nan"), Verdict.PASS, "", "tester"), "the rating nan"),
        (Rating(float("inf"), Verdict.PASS, "", "tester"), "the rating inf"),
        (Rating("5", Verdict.PASS, "", "tester"), "TypeError"),
        (Rating(5.0, "PASSED", "", "tester"), "its verdict is 'PASSED'"),
        (Rating(5.0, Verdict.PASS, b"well", "tester"), "its result contains b'well'"),
        (Rating(5.0, Verdict.PASS, "\ud800", "tester"), "its result contains '\\ud800'"),
        (Rating(5.0, Verdict.PASS, "well", 7), "its result contains 7"),
    ],
)
def test_a_rater_that_fails_only_affects_its_result(kind: type[Moody], mood: object, words: str) -> None:
    result = judged(scorers_of(kind(mood)))
    assert [each.verdict for each in result.results] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS]
    assert words in (result.results[1].error or "")
    assert (result.verdict, result.error) == (Verdict.ERROR, None)
    assert decode_case(encode_case(result)) == result


def test_a_rater_that_hangs_only_affects_its_result() -> None:
    result = judged(scorers_of(Hanging(None)), seconds=0.5)
    assert [each.verdict for each in result.results] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS]
    assert "not scored within the time limit of its case (case_timeout)" in (result.results[1].error or "")
    assert (result.verdict, result.error) == (Verdict.ERROR, None)
    assert result.generated is not None


def test_further_turns_are_not_sent_if_a_rater_hangs() -> None:
    result = judged(scorers_of(Hanging(None)), "first", "second", seconds=0.5)
    assert (result.verdict, len(result.results), result.utterance) == (Verdict.ERROR, 3, "first")
    assert "turns were not sent" in (result.error or "")


def test_a_rater_that_hangs_is_stopped_when_answers_are_rescored() -> None:
    item, scorers = WorkItem(1, case(expectations=EXPECTED)), scorers_of(Hanging(None))
    again = asyncio.run(rescore_case(item, judged(scorers_of(Moody(GOOD))), scorers, seconds=0.5))
    assert [result.verdict for result in again.results] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS]
    assert again.verdict is Verdict.ERROR


def test_turns_after_the_time_limit_are_errors_when_answers_are_rescored() -> None:
    item, scorers = WorkItem(1, case("first", "second", expectations=EXPECTED)), scorers_of(Hanging(None))
    recorded = judged(scorers_of(Moody(GOOD)), "first", "second")
    again = asyncio.run(rescore_case(item, recorded, scorers, seconds=0.5))
    assert [(result.turn, result.verdict) for result in again.results] == [
        (1, Verdict.PASS), (1, Verdict.ERROR), (1, Verdict.PASS), *[(2, Verdict.ERROR)] * 3,
    ]  # fmt: skip


def test_a_run_that_is_stopped_while_a_rater_hangs_stops() -> None:
    async def stop() -> None:
        run = execute(
            evaluation(3, expectations=EXPECTED),
            Agent(answer_orders),
            journal,
            options=RunOptions(),
            scorers=scorers_of(Hanging(None)),
        )
        task = asyncio.create_task(run)
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    journal = MemoryJournal()
    asyncio.run(stop())
    assert journal.results == []


def test_raters_that_wait_are_waited_for_together() -> None:
    both = asyncio.Barrier(2)

    class Meeting(Moody):
        def __call__(self, rubric: Rubric, /) -> object:
            return self._meet(rubric)

        async def _meet(self, _rubric: Rubric) -> Rating:
            await both.wait()
            return GOOD

    assert judged(scorers_of(Meeting(None))).verdict is Verdict.PASS


def test_a_rater_that_cancels_itself_only_affects_its_result() -> None:
    async def cancel() -> Rating:
        asyncio.current_task().cancel()
        await asyncio.sleep(0)
        return GOOD

    result = judged(scorers_of(Moody(cancel)))
    assert [each.verdict for each in result.results] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS]


@pytest.mark.parametrize("number", SPECIAL)
@pytest.mark.parametrize("place", ["score", "detail"])
def test_a_number_that_cannot_be_kept_is_an_error_and_never_a_pass(number: float, place: str) -> None:
    def score(expectation: Expectation, _exchange: object) -> TestResult:
        return TestResult(expectation.name, Verdict.PASS, **{place: number})

    result = judged({**SCORERS, RATED.name: score})
    second = result.results[1]
    if abs(number) <= 1e308:
        assert (second.verdict, getattr(second, place)) == (Verdict.PASS, number)
    else:
        assert (second.verdict, f"its score is {number!r:.50}" in (second.error or "")) == (Verdict.ERROR, True)
    assert decode_case(encode_case(result)) == result
    assert read_case(write_case(result)).results[1].verdict is second.verdict


@given(st.floats() | st.sampled_from(SPECIAL[:-1]), st.sampled_from(Verdict))
def test_no_report_makes_a_pass_or_a_zero_of_a_number(number: float, verdict: Verdict) -> None:
    result = TestResult("output_latency_milliseconds", verdict, score=number, detail=number)
    case_of = CaseResult(1, 1, "?", verdict, 0.0, 1.0, (result,))
    for name in FORMATS:
        text = render(name, [report(case_of)])
        assert "NaN" not in text or name not in {"json", "jsonl", "ctrf"}
    assert read_case(write_case(case_of)).results[0].verdict is verdict
    kept = decode_case(encode_case(case_of)).results[0]
    finite = number if abs(number) <= 1.7976931348623157e308 else None
    assert (kept.verdict, kept.score, kept.detail) == (verdict, finite, finite)
