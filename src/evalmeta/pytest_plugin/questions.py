"""Asking the agents of evaluation files: files run together, while pytest waits for the result of a case."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from evalmeta.api.evaluating.evaluate import Evaluator
from evalmeta.engine.event_loop import EventLoop
from evalmeta.errors import EvalmetaError, TooManyErrors
from evalmeta.model.evaluation import iterations_of, select_cases
from evalmeta.model.run import Verdict
from evalmeta.store.agent_limits import FolderPace

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from evalmeta.api.evaluating.loaded import LoadedEvaluation
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.model.run import CaseResult
    from evalmeta.model.run_options import RunOptions

    Answers = Sequence[CaseResult] | EvalmetaError


class Questions:
    """The runs of a session. Those that wait together share their agents; each file has a run of its own.

    Agents only work during `answers`, so that they and other tests do not disturb each other.
    """

    def __init__(self, subject: Mapping[str, str] | None) -> None:
        self._subject = subject
        self._loop = EventLoop()
        self._stack = AsyncExitStack()
        self._evaluator = Evaluator(self._stack, subject)
        self._runs: list[FileRun] = []

    def ask(self, loaded: LoadedEvaluation, options: RunOptions) -> FileRun:
        """Begin a run of the cases that the options select; they are asked after those of earlier runs."""
        run = self._loop.run(self._start(loaded, options))
        self._runs.append(run)
        return run

    def answers(self, run: FileRun, number: int) -> Answers:
        """Wait for the results of a case, one for each iteration; return the error that prevented them, if any."""
        return self._loop.run(run.answers(number))

    def close(self) -> None:
        """Stop all runs, and close agents and raters."""
        try:
            self._loop.run(self._stop())
        finally:
            self._loop.close()

    async def _start(self, loaded: LoadedEvaluation, options: RunOptions) -> FileRun:
        run = FileRun({case.number: iterations_of(case, options) for case in select_cases(loaded.evaluation, options)})
        pace = self._pace(loaded, options)
        run.start(self._evaluator.run(loaded, options=options, on_results=run.add, shared=pace))
        return run

    def _pace(self, loaded: LoadedEvaluation, options: RunOptions) -> FolderPace | None:
        """Return the agent's pace, which it shares with the other processes of its project."""
        if loaded.store is None or not options.rate_limit:
            return None
        agent = loaded.evaluation.subject_name if self._subject is None else self._subject["target"]
        pace = FolderPace(loaded.store, agent)
        self._stack.callback(pace.close)
        return pace

    async def _stop(self) -> None:
        await asyncio.gather(*(run.stop() for run in self._runs))
        await self._stack.aclose()


class FileRun:
    """The run of one file, and its results by case number; `iterations` has how often each case is asked."""

    _task: asyncio.Future[FinishedRun]

    def __init__(self, iterations: Mapping[int, int]) -> None:
        self._iterations = iterations
        self._results: dict[int, list[CaseResult]] = {}
        self._changed = asyncio.Event()

    def start(self, work: Coroutine[None, None, FinishedRun]) -> None:
        """Begin the run, which reports its results by `add`."""
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(lambda _: self._changed.set())

    def add(self, results: Sequence[CaseResult]) -> None:
        """Add results that are new."""
        for result in results:
            self._results.setdefault(result.number, []).append(result)
        self._changed.set()

    async def answers(self, number: int) -> Answers:
        """Wait for the results of a case."""
        while not (self._task.done() or len(self._results.get(number, ())) == self._iterations[number]):
            self._changed.clear()
            await self._changed.wait()
        results = sorted(self._results.get(number, ()), key=lambda result: result.iteration)
        iterations = self._iterations[number]
        if len(results) == iterations or any(result.verdict is Verdict.ERROR for result in results):
            return results
        try:
            run = self._task.result().run
        except EvalmetaError as error:
            return error
        times = f"run {len(results):,} of {iterations:,} times" if results else "not run"
        return TooManyErrors(f"the case was {times}: {run.error}")

    async def stop(self) -> None:
        """Cancel the run, unless it is over."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
