"""The machine of a measurement, and how busy other programs kept it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import NamedTuple

STAT = Path("/proc/stat")


class Load(NamedTuple):
    """Seconds of all processors since the machine started, and those of this program and its children."""

    busy: float
    total: float
    own: float

    @classmethod
    def now(cls) -> Load | None:
        """Return the counters of now; None if the system has no /proc/stat."""
        if not STAT.exists():
            return None
        user, nice, system, idle, wait, *others = map(int, STAT.read_text().split("\n", 1)[0].split()[1:9])
        busy, ticks = user + nice + system + sum(others), os.sysconf("SC_CLK_TCK")
        return cls(busy / ticks, (busy + idle + wait) / ticks, sum(os.times()[:4]))


def describe() -> str:
    """Return the machine in one line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores ({_processor()}), {platform.system()} {platform.machine()}, {_python()}"


def others_since(before: Load | None) -> str:
    """Return what other programs used of the processors since then; empty if it is unknown."""
    now = Load.now()
    if before is None or now is None or now.total == before.total:
        return ""
    others = (now.busy - before.busy) - (now.own - before.own)
    return f"Other programs used {max(0.0, others) / (now.total - before.total):.0%} of the processors' time."


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"
