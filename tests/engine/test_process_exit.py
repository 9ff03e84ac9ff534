from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from evalmeta.engine.process_exit import ProcessExit, exits_refused

EARLIER_THREAD = """
import os, threading
from evalmeta.engine.process_exit import exits_refused
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
