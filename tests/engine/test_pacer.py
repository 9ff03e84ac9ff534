from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from engine.builders import Agent, answer_orders, evaluation, run
from evalmeta import limits
from evalmeta.engine.pacer import Pacer
from evalmeta.errors import SubjectBusy, SubjectUnreachable
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import ErrorOrigin, Verdict

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)


class Flaky(Agent):
    """Raise the errors one after the other, then answer."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(self._answer)
        self.errors = list(errors)

    async def _answer(self, utterance: str) -> GeneratedData:
        if self.errors:
            raise self.errors.pop(0)
        return await answer_orders(utterance)


def test_a_busy_agent_gets_the_same_utterance_in_the_same_session() -> None:
    agent = Flaky(SubjectBusy("later", after=0.01), SubjectBusy("later"))
    [result] = run(agent, evaluation(1))
    assert result.verdict is Verdict.PASS
    assert (len(agent.asked), agent.opened) == (3, 1)


def test_a_case_whose_agent_cannot_be_reached_is_retried_in_a_new_session() -> None:
    agent = Flaky(SubjectUnreachable("gone"))
    [result] = run(agent, evaluation(1))
    assert result.verdict is Verdict.PASS
    assert (len(agent.asked), agent.opened, agent.closed_sessions) == (2, 2, 2)


def test_a_case_whose_actions_must_not_happen_twice_is_not_retried() -> None:
    agent = Flaky(SubjectUnreachable("gone", is_retried=False))
    [result] = run(agent, evaluation(1))
    assert (result.verdict, result.error, result.origin) == (Verdict.ERROR, "gone", ErrorOrigin.UNREACHABLE)
    assert len(agent.asked) == 1


@pytest.mark.parametrize("kind", [SubjectBusy, SubjectUnreachable])
def test_too_many_failures_are_an_error_with_their_number(kind: type[Exception]) -> None:
    agent = Flaky(*(kind("not now") for _ in range(9)))
    [result] = run(agent, evaluation(1), retries=2)
    assert (result.verdict, result.error) == (Verdict.ERROR, "not now (tried 3 times)")
    assert len(agent.asked) == 3


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("no"), ConnectionError("no")])
def test_other_exceptions_are_not_retried(error: Exception) -> None:
    agent = Flaky(error)
    [result] = run(agent, evaluation(1))
    assert (result.verdict, len(agent.asked)) == (Verdict.ERROR, 1)


def test_without_retries_the_first_failure_is_final() -> None:
    [result] = run(Flaky(SubjectBusy("not now")), evaluation(1), retries=0)
    assert (result.verdict, result.error) == (Verdict.ERROR, "not now")


def test_a_retry_after_that_is_too_long_is_not_honoured() -> None:
    agent = Flaky(SubjectBusy("tomorrow", after=limits.MAX_RETRY_AFTER_SECONDS + 1))
    [result] = run(agent, evaluation(1))
    assert (result.verdict, result.error) == (Verdict.ERROR, "tomorrow")


def test_all_cases_wait_while_the_agent_is_busy() -> None:
    asked: list[float] = []

    async def answer(utterance: str) -> GeneratedData:
        asked.append(time.monotonic())
        if len(asked) == 1:
            raise SubjectBusy("later", after=0.1)
        await asyncio.sleep(0)
        return await answer_orders(utterance)

    results = run(Agent(answer), evaluation(5), concurrency=3)
    assert {result.verdict for result in results} == {Verdict.PASS}
    assert len(asked) == 6
    # Requests that were sent already are not cancelled.
    assert [moment for moment in asked[3:] if moment < asked[0] + 0.1] == []


@pytest.mark.slow
def test_pauses_do_not_count_towards_the_time_limit() -> None:
    [result] = run(Flaky(SubjectBusy("later", after=1.2)), evaluation(1), case_timeout=1)
    assert result.verdict is Verdict.PASS
    assert result.generated.latency_ms < 1000


def test_opening_a_session_is_retried_too() -> None:
    class Full(Agent):
        async def open(self, case: Case) -> object:
            session = await super().open(case)
            if self.opened < 3:
                raise SubjectBusy("no seat")
            return session

    agent = Full(answer_orders)
    [result] = run(agent, evaluation(1))
    assert (result.verdict, agent.opened) == (Verdict.PASS, 3)


def test_a_busy_agent_reduces_the_concurrency_and_answers_increase_it() -> None:
    async def main() -> list[int]:
        pacer, seen = Pacer(concurrency=8), []

        async def ask_all() -> int:
            entered = [asyncio.create_task(pacer.enter()) for _ in range(8)]
            await asyncio.sleep(0.02)
            inside = [task for task in entered if task.done()]
            for task in entered:
                task.cancel()
            await asyncio.gather(*entered, return_exceptions=True)
            for _ in inside:
                pacer.leave()
            return len(inside)

        pacer.back_off(SubjectBusy("later", after=0), attempt=1)
        seen.append(await ask_all())
        for _ in range(40):
            pacer.speed_up()
        seen.append(await ask_all())
        assert pacer.is_free
        return seen

    assert asyncio.run(main()) == [4, 8]


def test_utterances_are_spread_over_time() -> None:
    moments = []

    async def answer(_utterance: str) -> GeneratedData:
        moments.append(asyncio.get_running_loop().time())
        return GeneratedData("x")

    begun = time.monotonic()
    run(Agent(answer), evaluation(5), rate_limit=50.0, concurrency=5)
    assert all(moment - begun > place / 50 - 0.001 for place, moment in enumerate(moments))


def test_the_rate_only_limits_utterances() -> None:
    async def main() -> None:
        pacer = Pacer(rate=0.001)
        await pacer.enter()
        await asyncio.wait_for(pacer.enter(is_utterance=False), 5)

    asyncio.run(main())


async def _queued(pacer: Pacer, entered: list[int], number: int) -> None:
    await pacer.enter()
    entered.append(number)
    await asyncio.sleep(0)
    pacer.leave()


def test_requests_are_admitted_in_their_order() -> None:
    async def main() -> list[int]:
        pacer, entered = Pacer(concurrency=1), []
        await pacer.enter()
        waiting = [asyncio.create_task(_queued(pacer, entered, number)) for number in range(3)]
        await asyncio.sleep(0)
        pacer.leave()
        # A request that comes again is at the end of the queue.
        await _queued(pacer, entered, 3)
        await asyncio.gather(*waiting)
        return entered

    assert asyncio.run(main()) == [0, 1, 2, 3]


@pytest.mark.parametrize("is_admitted", [True, False])
def test_a_cancelled_request_releases_its_place(*, is_admitted: bool) -> None:
    async def main() -> list[int]:
        pacer, entered = Pacer(concurrency=1), []
        await pacer.enter()
        waiting = [asyncio.create_task(_queued(pacer, entered, number)) for number in range(2)]
        await asyncio.sleep(0)
        if is_admitted:
            pacer.leave()
        waiting[0].cancel()
        await asyncio.sleep(0)
        if not is_admitted:
            pacer.leave()
        await asyncio.wait(waiting)
        await pacer.enter()
        return entered

    assert asyncio.run(main()) == [1]
