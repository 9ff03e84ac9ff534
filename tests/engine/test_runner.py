from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from engine.builders import TOPIC, Agent, MemoryJournal, answer_orders, case_result, evaluation, run
from evalmeta import limits
from evalmeta.engine.event_loop import DELAYS
from evalmeta.engine.runner import execute
from evalmeta.errors import SubjectBusy, SubjectError, SubjectUnreachable, TooManyErrors
from evalmeta.model.evaluation import Evaluation, Quarantine, Quarantines, today
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.evaluation import Case


class FullJournal(MemoryJournal):
    def append(self, _results: Sequence[CaseResult]) -> None:
        raise OSError("no space left on the device")


class BatchJournal(MemoryJournal):
    def __init__(self, *, keeps_nothing: bool = False) -> None:
        super().__init__()
        self.keeps_nothing = keeps_nothing
        self.batches: list[int] = []

    def append(self, results: Sequence[CaseResult]) -> None:
        super().append(results)
        self.batches.append(len(results))


class SomeHang(Agent):
    """Answer odd questions, and never even ones."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.hanging = asyncio.Event()

    async def _answer(self, utterance: str) -> GeneratedData:
        if int(utterance.split()[1]) % 2 == 0:
            self.hanging.set()
            await asyncio.Event().wait()
        return await answer_orders(utterance)


async def raise_always(_utterance: str) -> GeneratedData:
    raise ValueError("broken")


async def wait_a_little(utterance: str) -> GeneratedData:
    await asyncio.sleep(0.001)
    return await answer_orders(utterance)


@pytest.mark.parametrize("answer", [answer_orders, wait_a_little])
@pytest.mark.parametrize("concurrency", [0, 1, 7, 1000])
def test_every_case_of_every_iteration_is_asked_once(answer: object, concurrency: int) -> None:
    agent = Agent(answer)
    results = run(agent, evaluation(20), iterations=2, concurrency=concurrency)
    assert [(result.iteration, result.number) for result in results] == [(i, n) for i in (1, 2) for n in range(1, 21)]
    assert {result.verdict for result in results} == {Verdict.PASS}
    assert (len(agent.asked), agent.closed_sessions, agent.closed) == (40, 40, 1)


class Draft(Agent):
    """An agent that is prepared with an error."""

    def __init__(self, error: SubjectError) -> None:
        super().__init__(answer_orders)
        self.error = error

    async def prepare(self) -> None:
        raise self.error


def test_a_subject_that_cannot_be_prepared_ends_the_run_before_the_first_case() -> None:
    agent = Draft(SubjectError("line 6"))
    with pytest.raises(SubjectError, match="line 6"):
        run(agent, evaluation(3))
    assert (agent.asked, agent.closed) == ([], 1)


@pytest.mark.parametrize("error", [SubjectBusy("later"), SubjectUnreachable("nobody there")])
def test_a_subject_that_does_not_answer_yet_is_asked_by_the_cases(error: SubjectError) -> None:
    assert {result.verdict for result in run(Draft(error), evaluation(3))} == {Verdict.PASS}


class LateDraft(Agent):
    """An agent whose preparation does not end."""

    async def prepare(self) -> None:
        await asyncio.Event().wait()


def test_a_preparation_ends_with_the_time_limit_of_a_case() -> None:
    results = run(LateDraft(answer_orders), evaluation(3), case_timeout=0.2)
    assert {result.verdict for result in results} == {Verdict.PASS}


def test_a_run_without_cases_ends() -> None:
    agent = Agent(answer_orders)
    assert run(agent, evaluation(0)) == []
    assert agent.closed == 1


def test_no_more_cases_than_the_concurrency_are_asked_at_the_same_time() -> None:
    at_once = [0, 0]

    async def answer(_utterance: str) -> GeneratedData:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.001)
        at_once[0] -= 1
        return GeneratedData("x")

    run(Agent(answer), evaluation(30), concurrency=4)
    assert at_once == [0, 4]


def test_finished_cases_are_not_sent_again() -> None:
    agent, journal = Agent(answer_orders), MemoryJournal()
    run(agent, evaluation(5), journal)
    run(agent, evaluation(8), journal)
    assert len(agent.asked) == 8


def test_results_are_committed_before_they_are_reported() -> None:
    journal, reported = BatchJournal(), []

    def on_results(results: Sequence[CaseResult]) -> None:
        reported.extend(results)
        assert journal.results == reported

    asyncio.run(execute(evaluation(600), Agent(answer_orders), journal, options=RunOptions(), on_results=on_results))
    assert len(reported) == 600


def test_results_are_committed_in_batches_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOURNAL_SECONDS", 60)
    monkeypatch.setattr(limits, "INSTANT_SECONDS", 60)
    journal = BatchJournal()
    run(Agent(answer_orders), evaluation(2_500), journal)
    assert sum(journal.batches) == 2_500
    assert max(journal.batches) == limits.JOURNAL_BATCH


@pytest.mark.parametrize(
    ("delays", "keeps_nothing", "batches"), [(0.0, False, [1] * 5), (60.0, False, [5]), (0.0, True, [5])]
)
def test_an_answer_that_took_time_is_committed_before_the_next_question_and_delays_do_not_count(
    delays: float, *, keeps_nothing: bool, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(utterance: str) -> GeneratedData:
        await asyncio.sleep(2 * limits.INSTANT_SECONDS)
        DELAYS.set(DELAYS.get() + delays)
        return await answer_orders(utterance)

    monkeypatch.setattr(limits, "JOURNAL_SECONDS", 60)
    journal = BatchJournal(keeps_nothing=keeps_nothing)
    run(Agent(answer), evaluation(5), journal, concurrency=1)
    assert journal.batches == batches


def test_a_case_that_fails_does_not_affect_the_others() -> None:
    async def answer(utterance: str) -> GeneratedData:
        if utterance == "question 3":
            raise ValueError("not this one")
        return await answer_orders(utterance)

    verdicts = [result.verdict for result in run(Agent(answer), evaluation(5))]
    assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.ERROR, Verdict.PASS, Verdict.PASS]


@pytest.mark.parametrize(
    "agent", [Agent(answer_orders), Agent(wait_a_little), SomeHang()], ids=["instant", "slow", "hung"]
)
def test_a_journal_that_fails_stops_the_run_with_its_error(agent: Agent) -> None:
    with pytest.raises(OSError, match="no space left"):
        run(agent, evaluation(3 * limits.JOURNAL_BATCH), FullJournal())
    assert agent.closed == 1
    assert len(agent.asked) < 3 * limits.JOURNAL_BATCH


def test_a_run_stops_after_as_many_errors_as_it_may_have() -> None:
    agent, journal = Agent(answer_orders), MemoryJournal()

    async def answer(utterance: str) -> GeneratedData:
        if int(utterance.split()[1]) >= 10:
            raise ValueError("broken")
        return await answer_orders(utterance)

    agent.answer = answer
    with pytest.raises(TooManyErrors):
        run(agent, evaluation(1000), journal, max_errors=3, concurrency=2)
    errors = [result.number for result in journal.results if result.verdict is Verdict.ERROR]
    assert errors[:3] == [10, 11, 12]
    assert (len(journal.results), agent.closed) == (len(agent.asked), 1)
    assert len(journal.results) <= 13


def test_each_result_has_the_quarantine_that_its_case_had_when_the_run_started() -> None:
    first, second, third = evaluation(3).cases
    own = Quarantine("flaky", date(2026, 1, 31))
    listed = {3: Quarantine("broken", date(2026, 1, 30))}
    known = replace(
        evaluation(3),
        cases=(first, replace(second, quarantine=own), third),
        quarantines=Quarantines(date(2026, 1, 31), listed),
    )
    results = run(Agent(answer_orders), known)
    assert [result.is_quarantined for result in results] == [False, True, False]
    assert [result.quarantine and result.quarantine.has_ended for result in results] == [None, False, True]


def test_errors_of_quarantined_cases_do_not_stop_a_run() -> None:
    quarantine = Quarantine("the service is down", today())
    known = replace(evaluation(5), quarantines=Quarantines(today(), dict.fromkeys((1, 2, 3), quarantine)))
    results = run(Agent(raise_always), known, max_errors=3)
    assert [result.verdict for result in results] == [Verdict.ERROR] * 5


def test_agents_that_answer_at_once_do_not_block_the_event_loop() -> None:
    async def main() -> int:
        journal = MemoryJournal()
        task = asyncio.create_task(execute(evaluation(10_000), Agent(answer_orders), journal, options=RunOptions()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return len(journal.results)

    assert asyncio.run(main()) < 10_000


def test_a_worker_that_has_waited_asks_its_next_question_before_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # The event loop counts as blocked at any time.
    monkeypatch.setattr(limits, "TURN_SECONDS", 0.0)
    steps: list[str] = []

    async def answer(utterance: str) -> GeneratedData:
        number = utterance.removeprefix("question ")
        steps.append(f"{number} asked")
        await asyncio.sleep(0)
        steps.append(f"{number} answered")
        return GeneratedData("x")

    run(Agent(answer), evaluation(6), concurrency=3)
    assert steps[:3] == ["1 asked", "2 asked", "3 asked"]
    assert steps[3:9] == ["1 answered", "4 asked", "2 answered", "5 asked", "3 answered", "6 asked"]


def test_an_exception_of_on_results_stops_the_run() -> None:
    def on_results(_results: Sequence[CaseResult]) -> None:
        raise BrokenPipeError("not readable")

    with pytest.raises(BrokenPipeError):
        asyncio.run(
            execute(evaluation(5), Agent(answer_orders), MemoryJournal(), options=RunOptions(), on_results=on_results)
        )


async def _cancelled(agent: SomeHang, journal: MemoryJournal) -> None:
    task = asyncio.create_task(execute(evaluation(7), agent, journal, options=RunOptions(concurrency=7)))
    await agent.hanging.wait()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancelled_run_keeps_what_is_finished_and_closes_the_rest() -> None:
    agent, journal = SomeHang(), MemoryJournal()
    asyncio.run(_cancelled(agent, journal))
    assert {result.number for result in journal.results} == {1, 3, 5, 7}
    assert (agent.closed_sessions, agent.closed) == (7, 1)


def test_results_that_were_waiting_when_the_run_was_cancelled_are_committed() -> None:
    journal, tasks = MemoryJournal(), []

    async def answer(utterance: str) -> GeneratedData:
        tasks[0].cancel()
        return await answer_orders(utterance)

    async def main() -> None:
        run = execute(evaluation(9), agent, journal, options=RunOptions(concurrency=1))
        tasks.append(asyncio.create_task(run))
        await asyncio.wait(tasks)

    agent = Agent(answer)
    asyncio.run(main())
    assert tasks[0].cancelled()
    # On a busy machine, the cancellation comes between two results.
    assert 1 <= len(journal.results) == len(agent.asked)


@pytest.mark.slow
def test_a_cancelled_run_abandons_sessions_that_do_not_close() -> None:
    class Stuck(SomeHang):
        async def open(self, case: object) -> object:
            session = await super().open(case)
            session.close = asyncio.Event().wait
            return session

        async def close(self) -> None:
            await asyncio.Event().wait()

    agent = Stuck()
    asyncio.run(_cancelled(agent, MemoryJournal()))
    assert (agent.opened, agent.closed_sessions) == (7, 0)


def test_scorers_can_be_given() -> None:
    journal = MemoryJournal()
    asyncio.run(execute(evaluation(1), Agent(answer_orders), journal, options=RunOptions(), scorers={}))
    assert journal.results[0].results[0].error.startswith(repr(TOPIC.name))


def test_cases_that_cannot_be_read_stop_the_run_and_close_the_agent() -> None:
    def cases() -> Iterator[Case]:
        yield from evaluation(4).cases
        raise OSError("the file is gone")

    async def main() -> set[asyncio.Task[object]]:
        with pytest.raises(OSError, match="the file is gone"):
            await execute(Evaluation("Orders_Test", "Order_Agent", cases()), agent, journal, options=RunOptions())
        return asyncio.all_tasks() - {asyncio.current_task()}

    agent, journal = SomeHang(), MemoryJournal()
    assert asyncio.run(main()) == set()
    assert {result.number for result in journal.results} == {1, 3}
    assert (agent.closed_sessions, agent.closed) == (4, 1)


def test_a_journal_that_fails_after_too_many_errors_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOURNAL_SECONDS", 60)
    monkeypatch.setattr(limits, "INSTANT_SECONDS", 60)
    with pytest.raises(OSError, match="no space left"):
        run(Agent(raise_always), evaluation(3), FullJournal(), max_errors=1)


def test_a_memory_journal_knows_what_is_finished() -> None:
    journal = MemoryJournal()
    journal.append([case_result(Verdict.PASS, number=1), case_result(Verdict.FAILURE, number=2)])
    assert journal.finished() == {(1, 1), (1, 2)}


def test_a_new_memory_journal_has_nothing_finished() -> None:
    assert MemoryJournal().finished() == frozenset()
