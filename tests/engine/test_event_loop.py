from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import threading
import warnings
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.event_loop import run_to_end

if TYPE_CHECKING:
    from collections.abc import Coroutine


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


# In a thread whose event loop is running, as in a notebook.

PLACE: contextvars.ContextVar[str] = contextvars.ContextVar("PLACE")


def in_running_loop(work: Coroutine[object, None, object]) -> object:
    async def cell() -> object:
        return run_to_end(work)

    return asyncio.run(cell())


def test_work_runs_in_a_thread_with_the_context_of_its_caller() -> None:
    async def work() -> tuple[str, bool]:
        await asyncio.to_thread(int)
        return PLACE.get(), threading.current_thread() is threading.main_thread()

    PLACE.set("notebook")
    assert in_running_loop(work()) == ("notebook", False)


def test_work_in_a_running_loop_can_contain_more_of_it() -> None:
    async def inner() -> str:
        await asyncio.sleep(0)
        return "inner"

    async def outer() -> str:
        await asyncio.sleep(0)
        return run_to_end(inner())

    assert in_running_loop(outer()) == "inner"


@pytest.mark.parametrize("error", [TimeoutError("late"), SystemExit(3), KeyError("name")])
def test_errors_of_work_in_a_running_loop_reach_its_caller(error: BaseException) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise error

    with pytest.raises(type(error)) as caught:
        in_running_loop(work())
    assert caught.value is error


def test_warnings_of_work_in_a_running_loop_can_be_caught() -> None:
    async def work() -> None:
        warnings.warn("unknown column", UserWarning, stacklevel=1)

    with pytest.warns(UserWarning, match="unknown column"):
        in_running_loop(work())


def test_ctrl_c_in_a_notebook_cancels_the_work_and_waits_for_its_end() -> None:
    """In ipykernel, cells run with Python's own handler, which raises KeyboardInterrupt in the main thread."""
    cleaned: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("cleaned")

    async def cell() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run_to_end(work())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert cleaned == ["cleaned"]


def test_ctrl_c_in_asyncio_run_cancels_the_work_too() -> None:
    """There the first Ctrl-C only cancels the task, which is blocked."""
    cleaned: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("cleaned")

    with pytest.raises(KeyboardInterrupt):
        in_running_loop(work())
    assert cleaned == ["cleaned"]
