from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from evalmeta.engine.event_loop import run_to_end

LEAVING = """\
import asyncio, time
from evalmeta.engine.event_loop import run_to_end

async def main():
    asyncio.ensure_future(asyncio.to_thread(time.sleep, 3600))
    await asyncio.sleep(0.01)
    print("over")

run_to_end(main())
"""


async def stubborn() -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


def test_it_returns_the_result() -> None:
    async def work() -> str:
        return await asyncio.to_thread(lambda: "done")

    assert run_to_end(work()) == "done"


def test_it_does_not_represent_the_result() -> None:
    class Result:
        def __repr__(self) -> str:
            raise AssertionError("this may take long")

    async def work() -> Result:
        return Result()

    assert isinstance(run_to_end(work()), Result)


def test_it_raises_exceptions() -> None:
    async def work() -> None:
        await asyncio.to_thread(int, "seven")

    with pytest.raises(ValueError, match="seven"):
        run_to_end(work())


def test_tasks_that_are_left_are_cancelled() -> None:
    left: list[asyncio.Task[None]] = []

    async def work() -> None:
        left.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.sleep(0)

    run_to_end(work())
    assert left[0].cancelled()


def test_tasks_that_ignore_their_cancellation_are_abandoned() -> None:
    async def work() -> str:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        return task.get_name()

    assert run_to_end(work())


def test_a_cancelled_call_does_not_start() -> None:
    async def work() -> bool:
        free, calls = threading.Event(), []
        waiting = asyncio.get_running_loop().run_in_executor(None, free.wait, 10)
        calls.append(waiting.cancel())
        free.set()
        await asyncio.sleep(0)
        return calls == [True]

    assert run_to_end(work())


def test_a_thread_that_blocks_does_not_keep_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("over\n", "")
