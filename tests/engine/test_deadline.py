from __future__ import annotations

import asyncio

import pytest

from evalmeta.engine.deadline import Deadline, TimeLimit


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
        return [await Deadline(TimeLimit(5)).run(work) for work in (answer_at_once(), wait(0), wait(0.01))]

    assert asyncio.run(main()) == ["done"] * 3


@pytest.mark.parametrize("work", [break_at_once, break_later])
def test_exceptions_are_raised(work: object) -> None:
    deadline = Deadline(TimeLimit(5))
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

    deadline = Deadline(TimeLimit(0.01))
    with pytest.raises(TimeoutError):
        asyncio.run(deadline.run(work()))
    assert deadline.has_expired
    assert cancelled == [True]


def test_work_may_wait_several_times() -> None:
    async def work() -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        return 5

    assert asyncio.run(Deadline(TimeLimit(5)).run(work())) == 5


def test_work_may_catch_what_it_waits_for() -> None:
    async def work() -> str:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        except TimeoutError:
            return await wait(0, result="caught")
        return "never"

    assert asyncio.run(Deadline(TimeLimit(5)).run(work())) == "caught"


def test_a_pause_stops_the_clock() -> None:
    async def main() -> str:
        deadline = Deadline(TimeLimit(0.5))

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
    deadline = Deadline(TimeLimit(0.05))

    async def work() -> None:
        with deadline.pause():
            await wait(0.01)
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(deadline.run(work()))


def test_works_that_share_a_limit_have_each_their_own_time() -> None:
    limit, order = TimeLimit(0.05), list[str]()

    async def work(name: str, seconds: float, *, pause: float = 0) -> None:
        deadline = Deadline(limit)

        async def steps() -> None:
            await asyncio.sleep(0)
            with deadline.pause():
                await asyncio.sleep(pause)
            await asyncio.sleep(seconds)

        try:
            await deadline.run(steps())
        except TimeoutError:
            order.append(f"{name} is late")
        else:
            order.append(name)

    async def main() -> None:
        for _ in range(2):
            first, second = (asyncio.ensure_future(work(name, 60)) for name in ("first", "second"))
            await asyncio.sleep(0.02)
            await asyncio.gather(first, second, work("third", 60), work("paused", 60, pause=0.3), work("quick", 0))

    asyncio.run(main())
    for quick, first, second, *others in (order[:5], order[5:]):
        assert (quick, others) == ("quick", ["third is late", "paused is late"])
        # They began at the same time.
        assert {first, second} == {"first is late", "second is late"}


def test_a_cancellation_from_outside_is_no_time_out_and_time_outs_leave_no_cancellation() -> None:
    async def main() -> tuple[bool, bool, int]:
        outside, inside = Deadline(TimeLimit(60)), Deadline(TimeLimit(0.01))
        task = asyncio.ensure_future(outside.run(wait(60)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        with pytest.raises(TimeoutError):
            await inside.run(wait(60))
        current = asyncio.current_task()
        return task.cancelled(), outside.has_expired, current.cancelling() if current else -1

    assert asyncio.run(main()) == (True, False, 0)


def test_work_that_ignores_its_time_out_returns_its_result() -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "late"
        return "never"

    async def main() -> tuple[str, bool]:
        deadline = Deadline(TimeLimit(0.01))
        return await deadline.run(work()), deadline.has_expired

    assert asyncio.run(main()) == ("late", True)
