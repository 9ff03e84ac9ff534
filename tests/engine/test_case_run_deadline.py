from __future__ import annotations

import asyncio

import pytest

from evalmeta.engine.case_run import Deadline


async def wait(seconds: float, *, result: str = "done") -> str:
    await asyncio.sleep(seconds)
    return result


async def answer_at_once() -> str:
    return "done"


async def break_at_once() -> str:
    raise ValueError("broken")


async def break_later() -> str:
    await asyncio.sleep(0)
    raise ValueError("broken")


def test_work_in_time_returns_its_result() -> None:
    async def main() -> list[str]:
        return [await Deadline(5).run(work) for work in (answer_at_once(), wait(0), wait(0.01))]

    assert asyncio.run(main()) == ["done"] * 3


@pytest.mark.parametrize("work", [break_at_once, break_later])
def test_exceptions_are_raised(work: object) -> None:
    deadline = Deadline(5)
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(deadline.run(work()))
    assert not deadline.has_expired


def test_work_that_takes_too_long_is_cancelled() -> None:
    cancelled = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    deadline = Deadline(0.01)
    with pytest.raises(TimeoutError):
        asyncio.run(deadline.run(work()))
    assert deadline.has_expired
    assert cancelled == [True]


def test_work_may_wait_several_times() -> None:
    async def work() -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        return 5

    assert asyncio.run(Deadline(5).run(work())) == 5


def test_work_may_catch_what_it_waits_for() -> None:
    async def work() -> str:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        except TimeoutError:
            return await wait(0, result="caught")
        return "never"

    assert asyncio.run(Deadline(5).run(work())) == "caught"


def test_a_pause_stops_the_clock() -> None:
    async def main() -> str:
        deadline = Deadline(0.5)

        async def work() -> str:
            with deadline.pause():
                await wait(0.3)
            await wait(0.01)
            with deadline.pause():
                await wait(0.3)
            return "done"

        result = await deadline.run(work())
        assert deadline.paused > 0.59
        return result

    assert asyncio.run(main()) == "done"


def test_the_clock_continues_after_a_pause() -> None:
    deadline = Deadline(0.05)

    async def work() -> None:
        with deadline.pause():
            await wait(0.01)
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(deadline.run(work()))
