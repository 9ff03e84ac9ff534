from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING

from evalmeta.cli.runs.observer import agent_output

if TYPE_CHECKING:
    import pytest


def test_lines_of_threads_do_not_mix(capsys: pytest.CaptureFixture[str]) -> None:
    def talk(name: str, meet: threading.Barrier) -> None:
        sys.stdout.write(f"{name} begins ")
        meet.wait(60)
        sys.stdout.write(f"and {name} ends\n")
        sys.stdout.flush()

    with agent_output():
        meet = threading.Barrier(5)
        threads = [threading.Thread(target=talk, args=(str(number), meet)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    out, err = capsys.readouterr()
    assert (out, sorted(err.splitlines())) == ("", [f"{number} begins and {number} ends" for number in range(5)])


def test_lines_of_tasks_do_not_mix(capsys: pytest.CaptureFixture[str]) -> None:
    async def talk(name: str) -> None:
        sys.stdout.write(f"{name} begins ")
        await asyncio.sleep(0)
        sys.stdout.write("and ends\n")

    async def both() -> None:
        await asyncio.gather(talk("A"), talk("B"))

    with agent_output():
        asyncio.run(both())
    assert sorted(capsys.readouterr().err.splitlines()) == ["A begins and ends", "B begins and ends"]


def test_a_text_without_an_end_of_line_is_written_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with agent_output():
        sys.stdout.write("one\ntwo")
        assert capsys.readouterr().err == "one\n"
    assert capsys.readouterr().err == "two\n"


def test_no_line_is_a_command_to_a_ci_system(capsys: pytest.CaptureFixture[str]) -> None:
    with agent_output():
        for text in ("::error::1\n", "x\r", "::error::2\n", "x\r  ::error::3", "\n"):
            sys.stdout.write(text)
    assert capsys.readouterr().err == "\\x3a:error::1\nx\r\\x3a:error::2\nx\r  \\x3a:error::3\n"


def test_agents_can_use_everything_else_of_the_stream(capfd: pytest.CaptureFixture[str]) -> None:
    with agent_output():
        assert sys.stdout.encoding == sys.stderr.encoding
        assert sys.stdout.fileno() == sys.stderr.fileno()
        sys.stdout.writelines(["three\n", "four\n"])
    assert capfd.readouterr() == ("", "three\nfour\n")
