"""Running cases, every result on disk: beside the fastest peer, against an agent that takes its time, and in memory."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from timing import Pair

HERE = Path(__file__).parent
PEER = Path(sys.prefix) / "peers" / "bin" / "python"
CASES = 5_000
ROUNDS = 5
SLOW_CASES, SLOW_SECONDS, CONCURRENCY = 1_000, 0.1, 100


def is_possible() -> bool:
    """Tells whether the peer is installed; `make bench` does it."""
    return PEER.exists()


def measure_peer() -> tuple[str, Pair]:
    times = [(_ours(CASES)[0], _theirs(CASES)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(each) for each in zip(*times, strict=True))
    pair = Pair(ours, theirs, statistics.median(mine / other for mine, other in times))
    what = f"run {CASES:,} cases, 3 checks each, on disk ({CASES / ours:,.0f} cases/s, {1 / pair.ratio:.1f} times)"
    return f"{what} / pydantic-evals, which keeps nothing ({CASES / theirs:,.0f} cases/s)", pair


def measure_slow() -> tuple[str, Pair]:
    ideal = SLOW_CASES * SLOW_SECONDS / CONCURRENCY
    ours = statistics.median(_ours(SLOW_CASES, SLOW_SECONDS)[0] for _ in range(ROUNDS))
    what = f"run {SLOW_CASES:,} cases, {CONCURRENCY} at a time, agent takes {SLOW_SECONDS:g} s / nothing but the agent"
    return what, Pair(ours, ideal, ours / ideal)


def measure_memory() -> tuple[str, Pair]:
    """The seconds are megabytes here: at their peak."""
    few, many = (_ours(count)[1] for count in (1_000, 100_000))
    return f"MB: run 100,000 cases (+{many - few:.0f} MB) / 1,000 cases", Pair(many, few, many / few)


def _ours(count: int, seconds: float = 0) -> tuple[float, float]:
    taken, megabytes = _printed(sys.executable, "engine_run.py", str(count), str(seconds))
    return taken, megabytes


def _theirs(count: int) -> float:
    return _printed(str(PEER), "peers/pydantic_evals_run.py", str(count))[0]


def _printed(python: str, script: str, *arguments: str) -> list[float]:
    done = subprocess.run([python, HERE / script, *arguments], check=True, capture_output=True, text=True)
    return [float(each) for each in done.stdout.split()]
