"""Timing two things in turn, so that a machine that gets slower gets slower for both."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROUNDS = 5
USAGE = str(Path(__file__).with_name("usage.py"))


class Usage(NamedTuple):
    """What some work took: seconds on the clock, seconds of the processor, and peak memory in MB."""

    wall: float
    cpu: float
    megabytes: float = 0.0


class Pair(NamedTuple):
    """The medians of two things that were measured in turn, and the medians of their ratios."""

    ours: Usage
    other: Usage
    ratio: Usage


def compare(ours: Callable[[], Usage], other: Callable[[], Usage], *, rounds: int = ROUNDS) -> Pair:
    """Measure two things alternately."""
    taken = [(ours(), other()) for _ in range(rounds)]
    ratios = [Usage(*(a / b if b else 0.0 for a, b in zip(*each, strict=True))) for each in taken]
    return Pair(medians([mine for mine, _ in taken]), medians([theirs for _, theirs in taken]), medians(ratios))


def medians(usages: list[Usage]) -> Usage:
    """Return the median of each number."""
    return Usage(*map(statistics.median, zip(*usages, strict=True)))


def of_work(work: Callable[[], object]) -> Usage:
    """Call a function of this process; its child processes do not count as processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Usage(time.perf_counter() - wall, time.process_time() - cpu)


def of_process(
    *command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, codes: tuple[int, ...] = (0,)
) -> Usage:
    """Run a program and return what it and the processes that it waited for took."""
    done = subprocess.run(
        [sys.executable, "-I", USAGE, *command], cwd=cwd, env=env, check=True, capture_output=True, text=True
    )
    code, *usage = json.loads(done.stdout)
    assert code in codes, f"{command} ended with {code}: {done.stderr[-2_000:]}"
    return Usage(*usage)


def of_report(*command: str, cwd: Path | None = None) -> Usage:
    """Run a program that measures itself and prints its seconds on the clock and of the processor as JSON."""
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr[-2_000:]}"
    return Usage(*json.loads(done.stdout))
