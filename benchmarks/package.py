"""Resolving and zipping a project against zlib on the same bytes, and the memory that the program needs for it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from definitions import make_definition
from evalmeta.package.archive import build_zip, package_entries
from evalmeta.package.project import find_project
from evalmeta.package.resolver import resolve
from timing import Pair, compare

FILES = 5_000
IGNORED = "package.xml\n**/drafts/**\n**/jsconfig.json\n**/.eslintrc.json\n**/__tests__/**\n"
PEAK = """
import resource, subprocess, sys
subprocess.run([sys.argv[1], "package", "build"], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measure() -> tuple[str, Pair]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "aiEvaluationDefinitions").mkdir()
        (root / ".forceignore").write_text(IGNORED)
        contents = [make_definition(number) for number in range(FILES)]
        for number, data in enumerate(contents):
            (root / f"aiEvaluationDefinitions/Order_Desk_{number}.aiEvaluationDefinition").write_bytes(data)

        def ours() -> None:
            build_zip(package_entries(resolve(find_project(root))))

        def floor() -> None:
            for data in contents:
                zlib.compress(data)

        pair = compare(ours, floor, rounds=3)
        return f"resolve + zip {FILES:,} components / zlib; as a process it peaks at {_peak(root):.0f} MB", pair


def _peak(root: Path) -> float:
    """Gives the most memory, in MB, that `evalmeta package build` held; Linux counts in kB, macOS in bytes."""
    program = Path(sys.executable).parent / "evalmeta"
    done = subprocess.run([sys.executable, "-c", PEAK, program], cwd=root, check=True, capture_output=True, text=True)
    return int(done.stdout) / (1_000_000 if sys.platform == "darwin" else 1_000)
