"""The engine alone, through its own classes: beside the fastest peer, an agent that takes its time, and in memory."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluations import CHECKS, SAME, SLOW, SLOW_TINY, is_possible, theirs
from rows import Goal, Result, Row
from timing import Usage, compare, medians, of_process, of_report

SCRIPT = str(Path(__file__).with_name("engine_run.py"))


def ours(count: int, seconds: float = 0, concurrency: int = 10) -> Usage:
    return of_report(sys.executable, SCRIPT, str(count), str(seconds), str(concurrency))


def measure_peer(*, rounds: int, cases: int) -> Result:
    pair = compare(lambda: ours(cases), lambda: theirs(cases=cases), rounds=rounds)
    mine, other = cases / pair.ours.wall, cases / pair.other.wall
    note = f"CPU time {1 / pair.ratio.cpu:.1f}x"
    return Result(f"{mine:,.0f} cases/s", f"{other:,.0f} cases/s", 1 / pair.ratio.wall, note)


def measure_slow(*, rounds: int, cases: int, seconds: float, concurrency: int) -> Result:
    ideal = cases * seconds / concurrency
    taken = medians([ours(cases, seconds, concurrency) for _ in range(rounds)]).wall
    return Result(f"{taken:.3f} s", f"{ideal:.3f} s", taken / ideal)


def measure_memory(*, few: int, many: int) -> Result:
    small, large = (of_process(sys.executable, SCRIPT, str(count), "0", "10").megabytes for count in (few, many))
    return Result(f"{large:.0f} MB", f"{small:.0f} MB", large - small)


ROWS = (
    Row(
        "engine-peer",
        f"engine alone: {{cases:,}} cases, {CHECKS}, every result on disk",
        SAME,
        measure_peer,
        {"cases": 5_000, "rounds": 5},
        {"cases": 50, "rounds": 1},
        Goal("at least", 5),
        is_possible=is_possible,
    ),
    Row(
        "engine-slow",
        "engine alone: {cases:,} cases, agent takes {seconds} s, concurrency {concurrency}",
        "the agent alone",
        measure_slow,
        SLOW,
        SLOW_TINY,
        Goal("at most", 1.05),
    ),
    Row(
        "engine-memory",
        "engine alone: peak memory of {many:,} cases",
        "of {few:,} cases",
        measure_memory,
        {"few": 1_000, "many": 100_000},
        {"few": 10, "many": 50},
        Goal("at most", 64, " MB"),
        unit=" MB",
        clock="-",
    ),
)
