"""Runs a program; prints its exit code, its seconds on the clock and of the processor, and its peak memory in MB.

A process of its own, because a child's peak begins with the memory of the process that starts it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main(command: list[str]) -> None:
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps([child.returncode, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))


if __name__ == "__main__":
    main(sys.argv[1:])
