"""Interrupts `evalmeta test resume` with Ctrl-C at random moments, again and again; says as JSON what that did.

python interrupted_runs.py PROJECT RUN_ID TIMES SEED: `codes` counts how the commands ended, `slow` those that took
longer than a person waits, `traces` those that showed a traceback.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

# What a command imports late is imported here, once for all that are interrupted.
import evalmeta.api.deployments
import evalmeta.api.runs.org
import evalmeta.cli.commands.agent_test.jobs
import evalmeta.engine.runner
import evalmeta.engine.subjects.objects
import evalmeta.org.app
import evalmeta.report.human
from evalmeta.cli.main import main as evalmeta

LONGEST = 10.0


def begin(run_id: str, said: Path) -> int:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        file = os.open(said, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(file, 1)
        os.dup2(file, 2)
        evalmeta(["test", "resume", "--job-id", run_id])
    return child


def interrupt(child: int, log: Path, chance: random.Random) -> int | None:
    """Gives the exit code, None when it did not end in time."""
    size, until = log.stat().st_size if log.exists() else 0, time.monotonic() + LONGEST
    while chance.random() < 0.99 and (not log.exists() or log.stat().st_size <= size) and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(chance.uniform(0, 0.1))
    os.kill(child, signal.SIGINT)
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main(project: str, run_id: str, times: str, seed: str) -> None:
    os.chdir(project)
    chance, codes, traces = random.Random(seed), Counter(), 0  # noqa: S311 - not for secrets
    said = Path("said.txt")
    for _ in range(int(times)):
        codes[interrupt(begin(run_id, said), Path("asked.txt"), chance)] += 1
        traces += "Traceback" in said.read_text()
    slow = codes.pop(None, 0)
    sys.stdout.write(json.dumps({"codes": codes, "slow": slow, "traces": traces, "last": said.read_text()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
