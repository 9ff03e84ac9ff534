from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.builders import Agent, MemoryJournal, case, evaluation
from engine.raters.llm.model_server import failing, judging, model_serving, saying
from evalmeta import limits
from evalmeta.engine.interfaces import Rubric
from evalmeta.engine.prices import Prices
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.rater import bind_llm
from evalmeta.engine.runner import execute, rescore
from evalmeta.engine.spending import CURRENT, CostLimit, Ledger, Spending
from evalmeta.engine.subjects.replay import bind_recorded
from evalmeta.errors import (
    CostLimitReached,
    RaterError,
    SubjectBusy,
    SubjectError,
    SubjectRefused,
    SubjectUnreachable,
    TooManyErrors,
)
from evalmeta.model.evaluation import Case, Evaluation, Turn, WorkItem
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run_options import RunOptions
from evalmeta.model.settings import PriceSettings
from evalmeta.model.spending import Spent, merged, total_of
from evalmeta.model.tally import detail
from evalmeta.store.judgements import MemoryRatings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.run import CaseResult

SPENDING = Spending(Prices({"m": PriceSettings(input=Decimal(1), output=Decimal(2))}), "m")
REPORTED = Tokens(10, 5)
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
    [other, own] = [GeneratedData("x", tokens=tokens) for tokens in (replace(REPORTED, model="other"), REPORTED)]
    first, second = run(agent(own, other), evaluation(2), concurrency=1)

    assert first.spent == (Spent("agent", "m", 1, 0, 10, 5, 0, COST),)
    # The model in the settings has the price if the reported name has none.
    assert second.spent == (Spent("agent", "other", 1, 0, 10, 5, 0, COST),)


def test_every_turn_counts() -> None:
    [result] = run(agent(GeneratedData("x", tokens=REPORTED)), Evaluation("E", "A", (case("a", "b", "c"),)))

    assert total_of(result.spent, "agent").amount == 3 * COST


def test_an_attempt_that_came_to_nothing_counts_too() -> None:
    told = GeneratedData("x", tokens=REPORTED)
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
    [result] = run(agent(GeneratedData("x", tokens=REPORTED), error), Evaluation("E", "A", (case("a", "b"),)))

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
    recorded = GeneratedData("x", tokens=REPORTED)
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


def judged(*replies: bytes, cached: bool = False, **settings: object) -> tuple[list[Spent], str]:
    """Return what one judgement costs, and the error that it came to."""
    cache = MemoryRatings()
    table = {"adapter": "llm", "model": "judge-1", **settings}
    rubric = Rubric("bot_response_rating", "Where is it?", "It was shipped.", "Says that it was shipped.")

    async def go(url: str) -> str:
        rater = bind_llm(LlmRater.model_validate({**table, "url": url}), root=Path(), cache=cache)
        error = ""
        for _ in range(1 + cached):
            CURRENT.set(Ledger())
            try:
                await rater(rubric)  # type: ignore[misc] # there is a prompt for the metric
            except RaterError as refused:
                error = str(refused)
        await rater.close()
        ledger = CURRENT.get()
        assert ledger is not None
        rows.extend(ledger.rows())
        return error

    rows: list[Spent] = []
    with model_serving(*replies) as server:
        return rows, asyncio.run(go(server.url))


def test_every_reply_of_a_judge_counts_also_those_of_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RETRY_PAUSE_SECONDS", 0.001)
    told = Spent("rater", "judge-1", 1, 0, 700, 90)

    assert judged(judging(5)) == ([told], "")
    # A request that was refused with status 503 used nothing; unreadable replies are paid, and asked for once more.
    assert judged(failing(503, "later"), judging(5)) == ([told], "")
    assert judged(saying("nonsense"), judging(5)) == ([told, told], "")
    rows, error = judged(saying("nonsense"), samples=3)
    assert (merged(rows)[0].replies >= 4, "readable" in error) == (True, True)
    assert judged(judging(5), samples=3)[0] == [told, told]
    rows, error = judged(saying(None, refusal="No."))
    assert (rows, "refuses" in error) == ([Spent("rater", "judge-1", replies=1, unknown=1)], True)
    assert judged(judging(5), cached=True)[0] == [Spent("rater", "judge-1", reused=1)]


def test_what_other_processes_spend_stops_a_run_and_they_learn_what_it_spends() -> None:
    told: list[int] = []

    def exchange(spent: int) -> int:
        told.append(spent)
        # The others spend 2 answers' worth with each look.
        return 2 * COST * len(told)

    limit = CostLimit(7 * COST, run="mine", here={}, exchange=exchange)
    journal = MemoryJournal()

    async def answer(_: str) -> GeneratedData:
        await asyncio.sleep(0.02)
        return GeneratedData("x", tokens=REPORTED)

    options, spending = RunOptions(concurrency=1), replace(SPENDING, limit=limit)
    with pytest.raises(CostLimitReached, match=r"cost limit of \$0.00014 reached"):
        asyncio.run(execute(evaluation(9), Agent(answer), journal, options=options, spending=spending))
    # After 2 answers of its own, and 3 looks: at the start, and when each answer was committed.
    assert (len(journal.results), told[:3]) == (2, [0, COST, 2 * COST])


class SlowPrices(Prices):
    """A list of prices that takes until `released` to load."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.released = threading.Event(), threading.Event()

    def load(self) -> None:
        self.begun.set()
        assert self.released.wait(30)

    def amount(self, _: Iterable[str], used: Spent) -> int | None:
        return COST * used.replies


def test_a_run_that_stops_while_the_prices_are_loaded_keeps_and_counts_the_paid_answer() -> None:
    prices, journal, here = SlowPrices(), MemoryJournal(), {}
    limit = CostLimit(9 * COST, run="mine", here=here)

    async def answer(utterance: str) -> GeneratedData:
        if utterance == "question 1":
            return GeneratedData("x", tokens=REPORTED)
        while not prices.begun.is_set():
            await asyncio.sleep(0.001)
        raise SubjectError("broken")

    options, spending = RunOptions(concurrency=2, max_errors=1), Spending(prices, "m", limit)
    stopped = execute(
        *(evaluation(2), Agent(answer), journal),
        options=options,
        on_results=lambda _: prices.released.set(),
        spending=spending,
    )
    with pytest.raises(TooManyErrors):
        asyncio.run(stopped)
    assert sorted(result.number for result in journal.results) == [1, 2]
    assert here == {"mine": COST}


def test_what_a_run_has_spent_before_it_starts_counts_once() -> None:
    item = WorkItem(1, case())
    stored, here = {"first": 3 * COST, "second": 3 * COST}, {}

    def elsewhere(_: int) -> int:
        return sum(spent for run, spent in stored.items() if run not in here)

    first = CostLimit(7 * COST, run="first", here=here, spent=stored["first"], exchange=elsewhere)
    assert len([*first.items(iter([item]))]) == 1
    CostLimit(7 * COST, run="second", here=here, spent=stored["second"], exchange=elsewhere)
    assert len([*first.items(iter([item]))]) == 1
