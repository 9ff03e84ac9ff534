from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from evalmeta.engine.event_loop import run_to_end


async def leave() -> None:
    sys.exit(0)


def test_a_task_that_exits_is_an_error_of_its_waiter_and_the_loop_goes_on() -> None:
    async def work() -> list[str]:
        answers = []
        for _ in range(2):
            try:
                await asyncio.gather(leave(), asyncio.sleep(0))
            except SystemExit as error:
                answers.append(f"exit {error.code}")
            await asyncio.sleep(0)
        return answers

    assert run_to_end(work()) == ["exit 0", "exit 0"]


def test_work_that_exits_itself_ends() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        sys.exit(3)

    with pytest.raises(SystemExit, match="3"):
        run_to_end(work())


def test_an_interrupt_cancels_the_work_after_a_task_exited() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        with pytest.raises(SystemExit):
            await asyncio.create_task(leave())
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("cleaned")

    with pytest.raises(KeyboardInterrupt):
        run_to_end(work())
    assert cleaned == ["cleaned"]
