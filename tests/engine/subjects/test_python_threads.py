from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from evalmeta.engine.subjects.python import in_thread


def _raise(error: BaseException) -> None:
    raise error


def test_the_result_comes_from_another_thread() -> None:
    assert asyncio.run(in_thread(threading.get_ident)) != threading.get_ident()


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
        asyncio.run(in_thread(lambda: _raise(error)))


def test_a_hung_thread_can_be_left() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_thread(threading.Event().wait), 0.01)

    asyncio.run(main())


def test_a_late_answer_is_dropped() -> None:
    begun, finish, threads = threading.Event(), threading.Event(), []

    def answer() -> None:
        threads.append(threading.current_thread())
        begun.set()
        finish.wait()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_thread(answer), 0.01)

    asyncio.run(main())
    begun.wait(60)
    finish.set()
    threads[0].join(60)
    assert not threads[0].is_alive()


def test_a_hung_thread_does_not_keep_the_process() -> None:
    code = (
        f"import asyncio, sys, threading; sys.path[:] = {sys.path!r}\n"
        "from evalmeta.engine.subjects.python import in_thread\n"
        "try: asyncio.run(asyncio.wait_for(in_thread(threading.Event().wait), 0.01))\n"
        "except TimeoutError: print('left')\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert process.stdout == "left\n"
