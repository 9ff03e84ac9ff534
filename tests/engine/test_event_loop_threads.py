from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.event_loop import DELAYS, Threads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


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


async def hurry(threads: Threads) -> None:
    """Make so many quick calls that further ones are handed to one thread."""
    for _ in range(20):
        await asyncio.gather(*(threads.call(threading.get_ident) for _ in range(10)))
    while len(set(await asyncio.gather(*(threads.call(threading.get_ident) for _ in range(10))))) > 1:
        pass


def test_quick_calls_are_made_in_their_order_by_one_thread() -> None:
    begun: list[int] = []

    def answer(number: int) -> int:
        begun.append(number)
        return threading.get_ident()

    async def main() -> list[int]:
        with closing(Threads()) as threads:
            await hurry(threads)
            return await asyncio.gather(*(threads.call(partial(answer, number)) for number in range(10)))

    assert len(set(asyncio.run(main()))) == 1
    assert begun == [*range(10)]


def test_after_quick_calls_a_call_never_waits_for_one_that_blocks() -> None:
    barrier = threading.Barrier(8)

    async def main() -> list[int]:
        with closing(Threads()) as threads:
            await hurry(threads)
            return await asyncio.gather(*(threads.call(barrier.wait) for _ in range(8)))

    assert sorted(asyncio.run(main())) == [*range(8)]


@pytest.mark.parametrize("place", [0, 5, 9])
def test_quick_calls_end_while_one_beside_them_blocks(place: int) -> None:
    finish = threading.Event()

    async def main() -> list[object]:
        with closing(Threads()) as threads:
            await hurry(threads)
            calls = [
                asyncio.ensure_future(threads.call(finish.wait if number == place else threading.get_ident))
                for number in range(10)
            ]
            blocked = calls.pop(place)
            await asyncio.gather(*calls)
            assert not blocked.done()
            finish.set()
            return [await blocked, await threads.call(name.get)]

    name: ContextVar[str] = ContextVar("name", default="none")
    assert asyncio.run(main()) == [True, "none"]


def test_after_quick_calls_the_time_of_one_that_hangs_ends() -> None:
    async def main() -> int:
        threads = Threads()
        await hurry(threads)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(threads.call(threading.Event().wait), 0.01)
        return await threads.call(threading.active_count)

    assert asyncio.run(main()) > 1


def test_quick_calls_have_errors_and_contexts_of_their_own() -> None:
    name: ContextVar[int] = ContextVar("name")

    def answer() -> int:
        if name.get() == 5:
            raise ValueError("five")
        return name.get()

    async def main() -> list[int | BaseException]:
        async def call(number: int) -> int:
            name.set(number)
            return await threads.call(answer)

        with closing(Threads()) as threads:
            await hurry(threads)
            return await asyncio.gather(*map(call, range(8)), return_exceptions=True)

    assert [f"{answered}" for answered in asyncio.run(main())] == ["0", "1", "2", "3", "4", "five", "6", "7"]


def test_threads_serve_an_event_loop_after_another_that_ended_in_between() -> None:
    async def leave() -> None:
        await hurry(threads)
        task = asyncio.ensure_future(threads.call(threading.get_ident))
        await asyncio.sleep(0)
        task.cancel()

    async def main() -> list[int]:
        return await asyncio.gather(*(threads.call(partial(int, number)) for number in range(10)))

    with closing(Threads()) as threads:
        for _ in range(3):
            asyncio.run(leave())
            assert asyncio.run(main()) == [*range(10)]


def test_event_loops_of_two_threads_share_quick_calls() -> None:
    async def main() -> list[int]:
        answers: list[int] = []
        for _ in range(100):
            answers += await asyncio.gather(*(threads.call(partial(int, number)) for number in range(10)))
        return answers

    with closing(Threads()) as threads, ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(asyncio.run, main()) for _ in range(2)]
        assert [answered.result(60) for answered in answers] == [[*range(10)] * 100] * 2


@pytest.mark.parametrize("prepare", [lambda _: asyncio.sleep(0), hurry])
def test_a_wait_for_the_event_loop_is_a_delay_and_the_call_is_not(
    prepare: Callable[[Threads], Awaitable[None]],
) -> None:
    async def delay(function: Callable[[], object]) -> float:
        before = DELAYS.get()
        await threads.call(function)
        return DELAYS.get() - before

    async def main() -> tuple[float, float]:
        await prepare(threads)
        busy = asyncio.ensure_future(delay(threading.get_ident))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(time.sleep, 0.05)
        begun = time.perf_counter()
        slow = await delay(partial(time.sleep, 0.05))
        return await busy, time.perf_counter() - begun - slow

    with closing(Threads()) as threads:
        busy, seconds = asyncio.run(main())
    assert busy > 0.01
    assert seconds >= 0.05


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
