"""`evalmeta.evaluate` with a Python function: compared with pydantic-evals, the agent alone, and more cases."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from evalmeta import write
from orders import make_tests
from rows import Goal, Result, Row
from timing import ROUNDS, Pair, Usage, compare, medians, of_report

HERE = Path(__file__).parent
PEER = Path(sys.prefix) / "peers" / "bin" / "python"
DEFAULTS = {
    "cases": 1_000,
    "definitions": 1,
    "concurrency": 10,
    "seconds": 0,
    "journal": False,
    "is_async": True,
    "file": "",
}


def is_possible() -> bool:
    """Return whether the peer is installed; `make bench` does it."""
    return PEER.exists()


def peer_version() -> str:
    """Return the peer's name and version, as benchmarks/peers/requirements.txt fixes it."""
    return (HERE / "peers/requirements.txt").read_text().strip().replace("==", " ")


def ours(**work: object) -> Usage:
    return of_report(sys.executable, str(HERE / "evaluate_run.py"), json.dumps({**DEFAULTS, **work}))


def theirs(**work: object) -> Usage:
    return of_report(str(PEER), str(HERE / "peers/pydantic_evals_run.py"), json.dumps({**DEFAULTS, **work}))


def measure_peer(*, rounds: int = ROUNDS, clock: str = "cpu", peer_concurrency: int = 10, **work: object) -> Result:
    """Return how many times as many cases a second as the peer, which gets the same work."""
    pair = compare(lambda: ours(**work), lambda: theirs(**{**work, "concurrency": peer_concurrency}), rounds=rounds)
    return _times_as_fast(pair, int(str(work["cases"])), clock)


def measure_file(*, rounds: int = ROUNDS, cases: int) -> Result:
    """Like `measure_peer`, from a file of each one's own format to the finished results."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Orders.aiEvaluationDefinition"
        write(make_tests("Orders", cases), file)
        work = {"cases": cases, "file": str(file)}
        return _times_as_fast(compare(lambda: ours(**work), lambda: theirs(**work), rounds=rounds), cases, "cpu")


def _times_as_fast(pair: Pair, cases: int, clock: str) -> Result:
    mine, other = (cases / getattr(each, clock) for each in (pair.ours, pair.other))
    note = f"on the wall clock {1 / pair.ratio.wall:.1f}x" if clock == "cpu" else f"CPU time {1 / pair.ratio.cpu:.1f}x"
    return Result(f"{mine:,.0f} cases/s", f"{other:,.0f} cases/s", 1 / getattr(pair.ratio, clock), note)


def measure_slow_agent(*, rounds: int, cases: int, seconds: float, concurrency: int) -> Result:
    ideal = cases * seconds / concurrency
    taken = medians([ours(cases=cases, seconds=seconds, concurrency=concurrency) for _ in range(rounds)]).wall
    return Result(f"{taken:.3f} s", f"{ideal:.3f} s", taken / ideal)


def measure_slow_agent_peer(*, rounds: int, **work: object) -> Result:
    pair = compare(lambda: ours(**work), lambda: theirs(**work), rounds=rounds)
    return Result(f"{pair.ours.wall:.3f} s", f"{pair.other.wall:.3f} s", pair.ratio.wall)


def measure_growth(*, rounds: int, few: int, some: int, many: int, journal: bool) -> Result:
    """Return how a case's cost grows: the processor time of one of many cases, over that of one of few."""
    counts = (few, some, many)
    taken = [[ours(cases=count, journal=journal).cpu / count for count in counts] for _ in range(rounds)]
    first, middle, last = (sorted(each)[rounds // 2] * 1e6 for each in zip(*taken, strict=True))
    return Result(f"{last:.0f} µs", f"{first:.0f} µs", last / first, f"{middle:.0f} µs with {some:,}")


TINY = {"cases": 40, "rounds": 1}
FOUR = Goal("at least", 4)
FIVE = Goal("at least", 5)
SIX = Goal("at least", 6)
EIGHT = Goal("at least", 8)
SLOW = {"cases": 1_000, "seconds": 0.1, "concurrency": 100, "rounds": 5}
SLOW_TINY = {"cases": 20, "seconds": 0.01, "concurrency": 10, "rounds": 1}
SAME = "pydantic-evals, which keeps nothing"
CHECKS = "3 checks, 1 in 10 fails"


def _peer_row(name: str, what: str, goal: Goal | None = None, *, against: str = SAME, **sizes: int | str | bool) -> Row:
    wall = sizes.get("clock") == "wall"
    return Row(
        f"evaluate-{name}",
        f"`evaluate({{cases:,}} cases, {what}`, {CHECKS}",
        against,
        measure_peer,
        {"cases": 5_000, "rounds": 5, "is_async": True, **sizes},
        TINY,
        goal,
        clock="wall" if wall else "CPU",
        is_possible=is_possible,
    )


ROWS = (
    _peer_row("memory", "async function)", EIGHT),
    _peer_row("journal", "async function, journal=...)", FIVE, journal=True, clock="wall"),
    _peer_row("memory-sync", "function)", SIX, is_async=False),
    _peer_row("journal-sync", "function, journal=...)", FOUR, is_async=False, journal=True, clock="wall"),
    _peer_row("memory-1000", "async function)", cases=1_000),
    _peer_row("journal-1000", "async function, journal=...)", cases=1_000, journal=True, clock="wall"),
    _peer_row(
        "defaults", "async function)", EIGHT, against=f"{SAME}; its default is all cases at once", peer_concurrency=0
    ),
    Row(
        "evaluate-file",
        f"`evaluate(definition file of {{cases:,}} cases, async function)`, {CHECKS}",
        "pydantic-evals, from its JSON file",
        measure_file,
        {"cases": 1_000, "rounds": 5},
        TINY,
        FOUR,
        clock="CPU",
        is_possible=is_possible,
    ),
    Row(
        "evaluate-slow",
        "`evaluate({cases:,} cases, async function)`, which takes {seconds} s, concurrency {concurrency}",
        "the agent alone",
        measure_slow_agent,
        SLOW,
        SLOW_TINY,
        Goal("at most", 1.03),
    ),
    Row(
        "evaluate-slow-peer",
        "the same",
        "pydantic-evals",
        measure_slow_agent_peer,
        SLOW,
        SLOW_TINY,
        Goal("at most", 1),
        is_possible=is_possible,
    ),
    *(
        Row(
            f"growth-{'journal' if journal else 'memory'}",
            f"time of one of {{many:,}} cases {'with a journal' if journal else 'in memory'}",
            "of one of {few:,}",
            measure_growth,
            {"few": 1_000, "some": 5_000, "many": 20_000, "rounds": 3, "journal": journal},
            {"few": 10, "some": 20, "many": 40, "rounds": 1},
            Goal("at most", 1.1),
            clock="CPU",
        )
        for journal in (False, True)
    ),
)
