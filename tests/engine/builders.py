"""Small real parts for tests of the engine: cases, exchanges, subjects and journals."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalmeta.engine.interfaces import Exchange
from evalmeta.engine.runner import execute
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.model.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from evalmeta.engine.interfaces import Subject

TOPIC = Expectation("topic_sequence_match", "Orders")


class MemoryJournal:
    """A journal that keeps results in memory."""

    def __init__(self) -> None:
        self.results: list[CaseResult] = []

    def finished(self) -> frozenset[tuple[int, int]]:
        """Return (iteration, case number) of every result so far."""
        return frozenset((result.iteration, result.number) for result in self.results)

    def append(self, results: Sequence[CaseResult]) -> None:
        """Append results in their order."""
        self.results.extend(results)


def case(*utterances: str, number: int = 1, expectations: tuple[Expectation, ...] = (TOPIC,)) -> Case:
    return Case(number, tuple(Turn(utterance, expectations) for utterance in utterances or ("Where is it?",)))


def evaluation(count: int, *, expectations: tuple[Expectation, ...] = (TOPIC,)) -> Evaluation:
    cases = tuple(
        case(f"question {number}", number=number, expectations=expectations) for number in range(1, count + 1)
    )
    return Evaluation("Orders_Test", "Order_Agent", cases)


def exchange(generated: GeneratedData, utterance: str = "Where is it?") -> Exchange:
    return Exchange(case(utterance), utterance, generated)


def criterion(name: str, operator: str, actual: str, expected: str, *, reference: bool = True) -> Expectation:
    return Expectation(
        name,
        label="a label",
        parameters=(
            Parameter("operator", operator),
            Parameter("actual", actual, reference),
            Parameter("expected", expected, False),
        ),
    )


def result(verdict: Verdict, name: str = "topic_sequence_match") -> TestResult:
    return TestResult(name, verdict)


def case_result(verdict: Verdict, *results: TestResult, number: int = 1) -> CaseResult:
    return CaseResult(number, 1, "Where is it?", verdict, 0.0, 1.0, results)


class Agent:
    """A subject that answers with a coroutine function and remembers what was opened and closed."""

    def __init__(self, answer: Callable[[str], Awaitable[GeneratedData]]) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.opened = self.closed_sessions = self.closed = 0

    async def open(self, _case: Case) -> AgentSession:
        self.opened += 1
        return AgentSession(self)

    async def close(self) -> None:
        self.closed += 1


class AgentSession:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def ask(self, utterance: str) -> GeneratedData:
        self.agent.asked.append(utterance)
        return await self.agent.answer(utterance)

    async def close(self) -> None:
        self.agent.closed_sessions += 1


async def answer_orders(utterance: str) -> GeneratedData:
    return GeneratedData(f"An answer to {utterance}", "Orders")


def run(
    subject: Subject, subject_evaluation: Evaluation, journal: MemoryJournal | None = None, **options: object
) -> list[CaseResult]:
    journal = journal or MemoryJournal()
    asyncio.run(execute(subject_evaluation, subject, journal, options=RunOptions(**options)))
    return sorted(journal.results, key=lambda result: (result.iteration, result.number))
