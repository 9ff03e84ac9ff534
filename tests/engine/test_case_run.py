from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

from engine.builders import TOPIC, Agent, answer_orders, case
from evalmeta import limits
from evalmeta.engine.case_run import CasePolicy, run_case
from evalmeta.engine.deadline import TimeLimit
from evalmeta.engine.scorers import SCORERS
from evalmeta.errors import SubjectBusy, SubjectError, SubjectRefused, SubjectUnavailable, SubjectUnreachable
from evalmeta.model.evaluation import Case, Turn, WorkItem
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, ErrorOrigin, Verdict


def ask(agent: Agent, asked: Case | None = None, *, seconds: float = 5.0) -> CaseResult:
    return asyncio.run(run_case(WorkItem(1, asked or case()), agent, CasePolicy(SCORERS, TimeLimit(seconds))))


async def hang(_utterance: str) -> GeneratedData:
    await asyncio.Event().wait()
    return GeneratedData("x")


async def exit_process(_utterance: str) -> GeneratedData:
    raise SystemExit(3)


async def cancel_itself(_utterance: str) -> GeneratedData:
    raise asyncio.CancelledError


async def time_out(_utterance: str) -> GeneratedData:
    raise TimeoutError("the model is slow")


async def say_nothing(_utterance: str) -> GeneratedData:
    return None


async def say_nan(_utterance: str) -> GeneratedData:
    return GeneratedData("x", latency_ms=float("nan"))


async def refuse(_utterance: str) -> GeneratedData:
    raise SubjectError("the agent is not available")


async def refuse_and_advise(utterance: str) -> GeneratedData:
    raise SubjectError("nothing answers", actions=[f"Add this row to rows.yaml:\n\n- {utterance}"])


async def break_at_second(utterance: str) -> GeneratedData:
    if utterance == "second":
        raise ValueError("not valid")
    return await answer_orders(utterance)


def test_a_case_is_sent_and_scored() -> None:
    agent = Agent(answer_orders)
    result = ask(agent)
    assert (result.number, result.iteration, result.utterance, result.verdict) == (1, 1, "Where is it?", Verdict.PASS)
    assert result.generated.outcome == "An answer to Where is it?"
    assert result.started <= result.ended
    assert (agent.opened, agent.closed_sessions) == (1, 1)


@pytest.mark.parametrize(
    ("utterance", "error"),
    [
        ("Hi", "nothing answers\n→ Add this row to rows.yaml:\n\n- Hi"),
        ("sk-abcdefghijklmnop1234567890", "nothing answers\n→ Add this row to rows.yaml:\n\n- [secret]"),
        ("x" * 2_000, "nothing answers"),
    ],
)
def test_an_error_says_what_to_do_without_secrets_if_that_fits_in_whole(utterance: str, error: str) -> None:
    assert ask(Agent(refuse_and_advise), Case(1, (Turn(utterance, ()),))).error == error


def test_the_latency_only_includes_the_answer() -> None:
    class SlowToOpen(Agent):
        async def open(self, case: Case) -> object:
            await asyncio.sleep(0.05)
            return await super().open(case)

    result = ask(SlowToOpen(answer_orders))
    assert (result.ended - result.started) * 1000 - result.generated.latency_ms > 40


def test_a_latency_that_the_agent_reports_is_kept() -> None:
    async def answer(_utterance: str) -> GeneratedData:
        return GeneratedData("x", latency_ms=1234.0)

    assert ask(Agent(answer)).generated.latency_ms == 1234.0


def test_turns_share_a_session_and_their_results_are_joined() -> None:
    agent = Agent(answer_orders)
    result = ask(agent, case("first", "second"))
    assert (agent.opened, agent.asked) == (1, ["first", "second"])
    assert len(result.results) == 2
    assert (result.utterance, result.generated.outcome) == ("second", "An answer to second")
    assert [(each.utterance, each.generated.outcome) for each in result.earlier] == [("first", "An answer to first")]
    assert [each.turn for each in result.results] == [1, 2]


def test_a_case_that_fails_keeps_the_answers_of_earlier_turns() -> None:
    result = ask(Agent(break_at_second), case("first", "second"))
    assert (result.verdict, result.error) == (Verdict.ERROR, "ValueError: not valid")
    assert [judged.verdict for judged in result.results] == [Verdict.PASS]
    assert (result.utterance, result.generated) == ("second", None)
    assert [each.utterance for each in result.earlier] == ["first"]


def test_a_time_out_makes_the_case_an_error() -> None:
    agent = Agent(hang)
    result = ask(agent, seconds=0.5)
    assert (result.verdict, result.error) == (Verdict.ERROR, "no answer within 0.5 s")
    assert agent.closed_sessions == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refuse, "the agent is not available"),
        (exit_process, "SystemExit: 3"),
        (cancel_itself, "the agent cancelled itself"),
        (time_out, "TimeoutError: the model is slow"),
        (say_nothing, "the agent returned nothing (None)"),
        (say_nan, "latency_ms is nan"),
    ],
)
def test_a_fault_of_the_agent_only_affects_its_case(answer: object, error: str) -> None:
    agent = Agent(answer)
    result = ask(agent)
    assert result.verdict is Verdict.ERROR
    assert error in result.error
    assert agent.closed_sessions == 1


def test_an_agent_that_cannot_be_opened_makes_the_case_an_error() -> None:
    class Closed(Agent):
        async def open(self, _case: Case) -> object:
            raise ConnectionError("connection refused")

    result = ask(Closed(answer_orders))
    assert (result.verdict, result.error, result.results) == (Verdict.ERROR, "ConnectionError: connection refused", ())


@pytest.mark.parametrize("failure", [ValueError("no"), asyncio.CancelledError(), SystemExit(1), None])
def test_a_session_that_cannot_be_closed_does_not_change_the_result(
    failure: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CLOSE_SECONDS", 0.05)

    class Sticky(Agent):
        async def open(self, case: Case) -> object:
            session = await super().open(case)
            session.close = self.keep
            return session

        async def keep(self) -> None:
            if failure:
                raise failure
            await asyncio.Event().wait()

    assert ask(Sticky(answer_orders)).verdict is Verdict.PASS


def test_a_case_without_expectations_is_undecided() -> None:
    assert ask(Agent(answer_orders), Case(1, (Turn("Hello"),))).verdict is Verdict.UNDECIDED
    assert ask(Agent(answer_orders), Case(1, ())).verdict is Verdict.UNDECIDED


def test_a_scorer_may_be_a_coroutine_function() -> None:
    async def judge(expectation: object, exchange: object) -> object:
        await asyncio.sleep(0)
        return SCORERS[TOPIC.name](expectation, exchange)

    item = WorkItem(1, case())
    result = asyncio.run(run_case(item, Agent(answer_orders), CasePolicy({TOPIC.name: judge}, TimeLimit(5))))
    assert result.verdict is Verdict.PASS


@pytest.mark.parametrize("failure", [None, ValueError("interrupted")])
def test_an_answer_after_a_cancellation_is_ignored(failure: Exception | None) -> None:
    async def answer(_utterance: str) -> GeneratedData:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if failure:
                raise failure from None
        return GeneratedData("interrupted")

    async def main() -> None:
        task = asyncio.create_task(run_case(WorkItem(1, case()), Agent(answer), CasePolicy(SCORERS, TimeLimit(5))))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


async def block(_utterance: str) -> GeneratedData:
    time.sleep(0.2)  # noqa: ASYNC251 - that it blocks is the point
    return GeneratedData("x", "Orders")


async def swallow(_utterance: str) -> GeneratedData:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(5)
    return GeneratedData("x", "Orders")


@pytest.mark.parametrize("answer", [block, swallow])
def test_an_answer_after_the_time_limit_is_an_error(answer: object) -> None:
    result = ask(Agent(answer), seconds=0.05)
    assert (result.verdict, result.error) == (Verdict.ERROR, "no answer within 0.05 s")


def test_a_session_has_time_to_close() -> None:
    class Slow(Agent):
        async def close(self) -> None:
            await asyncio.sleep(0.7)
            await super().close()

    agent = Slow(answer_orders)
    ask(agent)
    assert agent.closed_sessions == 1


def test_a_case_that_cannot_be_run_is_an_error_and_the_agent_is_not_asked() -> None:
    agent = Agent(answer_orders)
    result = ask(agent, Case(1, (Turn("Hi"),), label="sim", not_run="it has a conversation scenario"))

    assert (result.verdict, result.error, result.label) == (Verdict.ERROR, "it has a conversation scenario", "sim")
    assert agent.asked == []


async def _raise(error: Exception) -> GeneratedData:
    raise error


@pytest.mark.parametrize(
    ("answer", "origin"),
    [
        (answer_orders, None),
        (break_at_second, None),
        (exit_process, ErrorOrigin.CRASH),
        (cancel_itself, ErrorOrigin.CRASH),
        (lambda _: _raise(ValueError("not valid")), ErrorOrigin.CRASH),
        (say_nothing, ErrorOrigin.INVALID),
        (lambda _: _raise(SubjectUnreachable("no route")), ErrorOrigin.UNREACHABLE),
        (lambda _: _raise(SubjectBusy("too many")), ErrorOrigin.BUSY),
        (lambda _: _raise(SubjectUnavailable("closed")), ErrorOrigin.UNAVAILABLE),
        (lambda _: _raise(SubjectRefused("no such agent", status=404)), ErrorOrigin.REFUSED),
        (hang, ErrorOrigin.TIME_OUT),
    ],
)
def test_it_is_known_what_ended_a_case_in_an_error(answer: object, origin: ErrorOrigin | None) -> None:
    result = ask(Agent(answer), seconds=0.05 if answer is hang else 5.0)
    assert result.origin is origin
    assert (result.verdict is Verdict.ERROR) == (origin is not None)


def test_a_case_that_cannot_be_run_is_the_fault_of_its_test() -> None:
    asked = Case(1, (Turn("Where is it?", ()),), not_run="the file names no agent")
    assert ask(Agent(answer_orders), asked).origin is ErrorOrigin.TEST
