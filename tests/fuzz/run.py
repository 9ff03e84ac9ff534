"""Feeds every target its share of inputs, on all cores, and prints what came of it.

python -m fuzz.run [INPUTS] [FIRST]: inputs have numbers, FIRST is the first one's, and a
number always stands for the same bytes. Exits with 1 when an error came out that nobody
promised; the number of an input that leads to it is printed.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

from fuzz.harness import Tally, feed, united
from fuzz.targets import TARGETS

_PIECE = 2_500


def main(inputs: int = 1_000_000, first: int = 0) -> int:
    """Prints a line for every target and gives the exit code."""
    share = -(-inputs // len(TARGETS))
    started = time.perf_counter()
    total = Tally()
    sys.stdout.write(f"{'inputs':>9}  {'inputs/s':>8}  {'slowest':>9}  {'foreign':>7}  target\n")
    with ProcessPoolExecutor() as pool:
        for name in TARGETS:
            pieces = [range(at, min(at + _PIECE, first + share)) for at in range(first, first + share, _PIECE)]
            tally = united(pool.map(feed, [name] * len(pieces), pieces))
            sys.stdout.write(_line(tally, tally.seconds, name))
            sys.stdout.writelines(f"    input {number:,}: {kind}\n" for kind, number in tally.foreign.items())
            sys.stdout.flush()
            total = united([total, tally])
    sys.stdout.write(_line(total, time.perf_counter() - started, "all, on every core"))
    return 1 if total.foreign else 0


def _line(tally: Tally, seconds: float, name: str) -> str:
    rate, slowest = tally.inputs / seconds, tally.slowest * 1_000
    return f"{tally.inputs:9,}  {rate:8,.0f}  {slowest:6,.1f} ms  {len(tally.foreign):7}  {name}\n"


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
