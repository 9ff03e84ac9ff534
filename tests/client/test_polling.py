from __future__ import annotations

import asyncio

import pytest

from evalmeta.client.polling import poll
from evalmeta.errors import WaitRanOut


def count_to(last: int, *, wait: float | None = None, every: float = 0.001) -> list[int]:
    seen: list[int] = []

    async def check() -> int:
        seen.append(len(seen) + 1)
        return seen[-1]

    asyncio.run(poll(check, lambda number: number >= last, job_id="0Af", wait=wait, every=every))
    return seen


def test_a_job_that_is_done_is_asked_about_once() -> None:
    assert count_to(1, wait=0, every=3600) == [1]


def test_a_job_is_asked_about_until_it_is_done() -> None:
    assert count_to(5) == [1, 2, 3, 4, 5]


def test_a_wait_that_runs_out_names_the_job_and_says_that_it_goes_on() -> None:
    with pytest.raises(WaitRanOut, match=r"job 0Af is not done after 2\.5 seconds; it goes on in the org") as raised:
        count_to(2, wait=2.5, every=3600)
    assert (raised.value.job_id, raised.value.exit_code) == ("0Af", 69)
