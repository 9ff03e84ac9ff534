from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from engine.builders import Agent, MemoryJournal, case, evaluation
from evalmeta.engine.prices import Prices
from evalmeta.engine.runner import execute, rescore
from evalmeta.engine.spending import CURRENT, Spending
from evalmeta.engine.subjects.replay import bind_recorded
from evalmeta.errors import SubjectBusy, SubjectError, SubjectRefused, SubjectUnreachable
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run_options import RunOptions
from evalmeta.model.settings import PriceSettings
from evalmeta.model.spending import Spent, total_of
from evalmeta.model.tally import detail

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.run import CaseResult

SPENDING = Spending(Prices({"m": PriceSettings(input=Decimal(1), output=Decimal(2))}), "m")
TOLD = Tokens(10, 5)
COST = 20_000_000


def run(subject: Subject, of: Evaluation, **options: object) -> list[CaseResult]:
    journal = MemoryJournal()
    asyncio.run(execute(of, subject, journal, options=RunOptions(**options), spending=SPENDING))
    return sorted(journal.results, key=lambda result: result.number)


def agent(*replies: GeneratedData | Exception) -> Agent:
    waiting = [*replies]

    async def answer(_: str) -> GeneratedData:
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    return Agent(answer)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalmeta.engine.case_run.retry_pause", lambda _: 0.0)


def test_an_answer_costs_what_its_model_does() -> None:
    [other, own] = [GeneratedData("x", tokens=tokens) for tokens in (replace(TOLD, model="other"), TOLD)]
    first, second = run(agent(own, other), evaluation(2), concurrency=1)

    assert first.spent == (Spent("agent", "m", 1, 0, 10, 5, 0, COST),)
    # The model in the settings has the price if the reported name has none.
    assert second.spent == (Spent("agent", "other", 1, 0, 10, 5, 0, COST),)


def test_every_turn_counts() -> None:
    [result] = run(agent(GeneratedData("x", tokens=TOLD)), Evaluation("E", "A", (case("a", "b", "c"),)))

    assert total_of(result.spent, "agent").amount == 3 * COST


def test_an_attempt_that_came_to_nothing_counts_too() -> None:
    told = GeneratedData("x", tokens=TOLD)
    # The second turn of the first attempt breaks; the second attempt asks both turns again.
    subject = agent(told, SubjectUnreachable("reset"), told, told)
    [result] = run(subject, Evaluation("E", "A", (case("a", "b"),)), retries=1)

    total = total_of(result.spent, "agent")
    assert (result.error, total.amount, total.replies, total.unknown) == (None, 3 * COST, 4, 1)


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (SubjectError("broken"), 1),
        (ValueError("broken"), 1),
        (SubjectRefused("no", status=400), 0),
        (SubjectBusy("later", after=10**9), 0),
    ],
)
def test_an_error_keeps_what_was_spent(error: Exception, unknown: int) -> None:
    [result] = run(agent(GeneratedData("x", tokens=TOLD), error), Evaluation("E", "A", (case("a", "b"),)))

    total = total_of(result.spent, "agent")
    assert (result.generated, total.amount, total.unknown) == (None, COST, unknown)


def test_an_answer_that_comes_too_late_has_no_price() -> None:
    async def never(_: str) -> GeneratedData:
        await asyncio.sleep(60)
        raise AssertionError

    [result] = run(Agent(never), evaluation(1), case_timeout=0.01)

    assert result.spent == (Spent("agent", "m", replies=1, unknown=1),)


def test_answers_without_tokens_take_no_room_and_have_no_price() -> None:
    results = run(agent(GeneratedData("x")), evaluation(3))

    assert [result.spent for result in results] == [()] * 3
    assert detail(results, RunOptions()).spent == (Spent("agent", replies=3, unknown=3),)


def test_half_known_tokens_have_no_price() -> None:
    [result] = run(agent(GeneratedData("x", tokens=Tokens(10))), evaluation(1))

    assert result.spent == (Spent("agent", "m", 1, 1, 10),)


def test_recorded_answers_cost_nothing_now() -> None:
    recorded = GeneratedData("x", tokens=TOLD)
    given = Evaluation("E", "A", (Case(1, (Turn("a", recorded=recorded),)),))
    [replayed] = run(bind_recorded(), given)
    journal = MemoryJournal()
    asyncio.run(rescore(given, lambda *_: replayed, journal, options=RunOptions(), spending=SPENDING))
    [rescored] = journal.results

    assert replayed.spent == (Spent("agent", "m", reused=1),)
    assert rescored.spent == (Spent("agent", "m", reused=1),)


def test_no_ledger_is_left_to_others() -> None:
    run(agent(GeneratedData("x")), evaluation(1))

    assert CURRENT.get() is None
