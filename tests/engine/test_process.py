from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta.engine.process import ProcessExit, exits_refused, rare_collections

if TYPE_CHECKING:
    from collections.abc import Iterator


EARLIER_THREAD = """
import os, threading
from evalmeta.engine.process import exits_refused
go = threading.Event()
threading.Thread(target=lambda: (go.wait(), os._exit(7)), daemon=True).start()
with exits_refused():
    go.set()
    threading.Event().wait(60)
"""


def test_an_exit_is_an_error_until_the_last_block_ends() -> None:
    before = os._exit
    with exits_refused(), exits_refused(), pytest.raises(ProcessExit, match=r"os\._exit\(3\) was called"):
        os._exit(3)
    assert os._exit is before


def test_an_exit_in_a_thread_of_the_block_is_an_error() -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            os._exit(0)
        except ProcessExit as error:
            raised.append(error)

    with exits_refused():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(raised) == 1


def test_a_forked_process_still_ends() -> None:
    with exits_refused():
        child = os.fork()
        if child == 0:
            os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


def test_a_thread_that_was_there_before_can_still_end_the_process() -> None:
    assert subprocess.run([sys.executable, "-c", EARLIER_THREAD], check=False).returncode == 7


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_searches_are_rare_while_cases_run_and_as_before_afterwards() -> None:
    seen: list[int] = []

    def answer(utterance: str) -> str:
        seen.append(gc.get_threshold()[0])
        return utterance

    evalmeta.evaluate([{"input": "Hello", "contains": "Hello"}], answer)
    assert (seen, gc.get_threshold()) == ([50_000], (700, 10, 10))


def test_blocks_may_overlap() -> None:
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 50_000
    second.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 700


@pytest.mark.parametrize("objects", [0, 1_000_000])
def test_a_program_that_searches_less_keeps_its_thresholds(objects: int) -> None:
    gc.set_threshold(objects, 5, 5)
    with rare_collections():
        assert gc.get_threshold() == (objects, 5, 5)
    assert gc.get_threshold() == (objects, 5, 5)


def test_thresholds_that_the_agent_sets_stay() -> None:
    with rare_collections():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)
