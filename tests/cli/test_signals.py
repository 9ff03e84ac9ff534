"""Signals end every command: the first lets it clean up, the second ends it at once."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from org.parts import asked, definition, deploy, make_project, opened_of, package, started

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.package.project import Project

WAIT = 60
RUN = "4KB000000000001GAA"
RESUME = ("test", "resume", "--job-id", RUN)
# Asked, the agent never answers: waiting, refusing to be cancelled, or keeping the event loop from running.
WAITING = "await asyncio.sleep(3600)"
STUBBORN = """while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass"""
BLOCKING = "time.sleep(3600)"
AGENT = """\
import asyncio, pathlib, time

async def answer(utterance):
    (pathlib.Path(__file__).parent / "asked.txt").open("a").write(f"{utterance}\\n")
    BODY
"""
# A program that answers no line and never reads to the end of its input.
PROGRAM = "import pathlib, sys, time\npathlib.Path('asked.txt').write_text(sys.stdin.readline())\ntime.sleep(3600)\n"


def project_with(folder: Path, body: str) -> Project:
    project = make_project(folder / "project", agent=AGENT.replace("BODY", body))
    assert started(project, cases=2) == RUN
    return project


def begin(project: Project, **streams: int) -> subprocess.Popen[str]:
    """Start the command, and wait until the agent is asked."""
    words = [sys.executable, "-m", "evalmeta", *RESUME]
    streams = streams or {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(words, cwd=project.root, text=True, start_new_session=True, **streams)
    until = time.monotonic() + WAIT
    while not (project.root / "asked.txt").exists():
        assert (running.poll(), time.monotonic() < until) == (None, True)
        time.sleep(0.02)
    return running


def end(running: subprocess.Popen[str], *signals: int) -> tuple[int, str]:
    """Send signals, the second one as soon as the first had its effect, and return the exit code and stderr."""
    for number in signals:
        running.send_signal(number)
        time.sleep(0.1)
    _, err = running.communicate(timeout=WAIT)
    return running.returncode, err


def worker_of(project: Project) -> str | None:
    with opened_of(project) as org:
        return org.runs.lease(RUN).worker


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_releases_the_run_and_says_how_to_go_on(tmp_path: Path, number: int) -> None:
    project = project_with(tmp_path, WAITING)
    code, err = end(begin(project), number)
    assert (code, worker_of(project)) == (130, None)
    assert f"Resume: evalmeta {' '.join(RESUME)}" in err


@pytest.mark.slow
@pytest.mark.parametrize("body", [WAITING, STUBBORN, BLOCKING])
def test_a_second_signal_ends_the_command_at_once(tmp_path: Path, body: str) -> None:
    code, err = end(begin(project_with(tmp_path, body)), signal.SIGINT, signal.SIGINT)
    assert (code, "Traceback" in err) == (130, False), err
    assert err.endswith("Error (Interrupted): interrupted\n")


@pytest.mark.slow
def test_a_closed_terminal_releases_the_run(tmp_path: Path) -> None:
    project = project_with(tmp_path, WAITING)
    ours, theirs = pty.openpty()
    # The program becomes the leader of the terminal's session, which gets SIGHUP when the terminal closes.
    script = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", script, sys.executable, "-m", "evalmeta", *RESUME]
    with subprocess.Popen(
        words, cwd=project.root, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as running:
        os.close(theirs)
        until = time.monotonic() + WAIT
        while not asked(project):
            assert time.monotonic() < until
            time.sleep(0.02)
        os.close(ours)
        assert running.wait(WAIT) == 130
    assert worker_of(project) is None


@pytest.mark.slow
def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    project = project_with(tmp_path, WAITING)
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = begin(project)
    finally:
        signal.signal(signal.SIGHUP, old)
    running.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.5)
    assert end(running, signal.SIGTERM)[0] == 130


@pytest.mark.slow
@pytest.mark.parametrize("signals", [(signal.SIGHUP,), (signal.SIGINT, signal.SIGINT)])
def test_a_program_that_never_reads_its_input_ends_with_the_command(tmp_path: Path, signals: Sequence[int]) -> None:
    running = begin_program(tmp_path, "import os\nopen('pid', 'w').write(str(os.getpid()))\n")
    code, err = end(running, *signals)
    assert code == 130, err
    pid = int((tmp_path / "project" / "pid").read_text())
    until = time.monotonic() + WAIT
    while (state := _state_of(pid)) not in {"", "Z"}:
        assert time.monotonic() < until, state
        time.sleep(0.02)


@pytest.mark.slow
def test_a_process_in_a_session_of_its_own_causes_no_traceback(tmp_path: Path) -> None:
    """It holds the pipes of the program open, also after evalmeta has ended."""
    start = "subprocess.Popen(['sleep', '60'], start_new_session=True)"
    running = begin_program(tmp_path, f"import subprocess\nopen('pid', 'w').write(str({start}.pid))\n")
    code, err = end(running, signal.SIGINT)
    os.kill(int((tmp_path / "project" / "pid").read_text()), signal.SIGKILL)
    assert (code, "Traceback" in err, "Resume: " in err) == (130, False, True), err


def begin_program(folder: Path, before: str) -> subprocess.Popen[str]:
    """Start a run whose agent is a program, with some lines of its own, and wait until it is asked."""
    settings = f'[subjects.Desk]\nadapter = "command"\ncommand = ["{sys.executable}", "agent.py"]\n'
    project = make_project(folder / "project", settings=settings)
    (project.root / "agent.py").write_text(before + PROGRAM)
    with opened_of(project) as org:
        deploy(org, package({"Orders": definition("Orders")}))
    words = [sys.executable, "-m", "evalmeta", "test", "run", "--wait"]
    running = subprocess.Popen(words, cwd=project.root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + WAIT
    while not (project.root / "asked.txt").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    return running


def _state_of(pid: int) -> str:
    """Return the state of a process as ps shows it, empty if it does not exist."""
    words = [shutil.which("ps") or "ps", "-o", "stat=", "-p", str(pid)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()[:1]


ABSORBED = """
import asyncio, os, signal, time
from evalmeta.cli import signals
from evalmeta.cli.orgs import run_async

async def work():
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        asyncio.current_task().uncancel()

signals._CLEAN_UP_SECONDS = 0.2
signals.catch_signals()
run_async(work())
time.sleep(0.4)
print("written")
"""


@pytest.mark.slow
def test_what_follows_work_that_a_signal_usually_ends_may_take_longer_than_cleaning_up() -> None:
    ended = subprocess.run([sys.executable, "-c", ABSORBED], capture_output=True, text=True, timeout=WAIT, check=False)
    assert (ended.returncode, ended.stdout) == (0, "written\n"), ended.stderr
