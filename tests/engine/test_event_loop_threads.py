from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import closing
from contextvars import ContextVar
from functools import partial

import pytest

from evalmeta.engine.event_loop import Threads


def _raise(error: BaseException) -> None:
    raise error


def test_the_result_comes_from_another_thread() -> None:
    assert asyncio.run(Threads().call(threading.get_ident)) != threading.get_ident()


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("no"), ValueError),
        (SystemExit(3), RuntimeError),
        (KeyboardInterrupt(), RuntimeError),
        (StopIteration(), RuntimeError),
        (asyncio.CancelledError(), RuntimeError),
    ],
)
def test_an_error_is_raised_without_ending_the_loop(error: BaseException, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        asyncio.run(Threads().call(lambda: _raise(error)))


def test_a_hung_thread_can_be_left() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Threads().call(threading.Event().wait), 0.01)

    asyncio.run(main())


def test_a_late_answer_is_dropped() -> None:
    begun, finish, threads = threading.Event(), threading.Event(), []

    def answer() -> None:
        threads.append(threading.current_thread())
        begun.set()
        finish.wait()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(calls.call(answer), 0.01)
        calls.close()

    calls = Threads()
    asyncio.run(main())
    begun.wait(60)
    finish.set()
    threads[0].join(60)
    assert not threads[0].is_alive()


def test_a_hung_thread_does_not_keep_the_process() -> None:
    code = (
        f"import asyncio, sys, threading; sys.path[:] = {sys.path!r}\n"
        "from evalmeta.engine.event_loop import Threads\n"
        "try: asyncio.run(asyncio.wait_for(Threads().call(threading.Event().wait), 0.01))\n"
        "except TimeoutError: print('left')\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert process.stdout == "left\n"


def test_a_thread_is_used_again() -> None:
    async def main() -> set[int]:
        with closing(Threads()) as threads:
            return {await threads.call(threading.get_ident) for _ in range(20)}

    assert len(asyncio.run(main())) == 1


def test_a_call_never_waits_for_another() -> None:
    barrier = threading.Barrier(8)

    async def main() -> list[int]:
        with closing(Threads()) as threads:
            await threads.call(threading.get_ident)
            return await asyncio.gather(*(threads.call(barrier.wait) for _ in range(8)))

    assert sorted(asyncio.run(main())) == [*range(8)]


def test_calls_begin_in_their_order() -> None:
    begun: list[int] = []

    async def main() -> None:
        with closing(Threads()) as threads:
            for _ in range(20):
                await asyncio.gather(*(threads.call(partial(begun.append, number)) for number in range(10)))

    asyncio.run(main())
    assert begun == [*range(10)] * 20


def test_closing_ends_idle_threads_and_the_others_after_their_calls() -> None:
    finish, found = threading.Event(), []

    def answer() -> None:
        found.append(threading.current_thread())
        finish.wait()

    async def main() -> None:
        threads = Threads()
        hung = [asyncio.ensure_future(threads.call(answer)) for _ in range(3)]
        found.append(await threads.call(threading.current_thread))
        threads.close()
        finish.set()
        await asyncio.gather(*hung)

    asyncio.run(main())
    for each in found:
        each.join(60)
    assert [each.is_alive() for each in found] == [False] * 4


def test_a_context_variable_is_set_for_one_call() -> None:
    name: ContextVar[str] = ContextVar("name", default="none")

    async def main() -> list[str]:
        with closing(Threads()) as threads:
            token = name.set("first")
            first = await threads.call(name.get)
            name.reset(token)
            return [first, await threads.call(name.get)]

    assert asyncio.run(main()) == ["first", "none"]
