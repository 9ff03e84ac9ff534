"""Starting the program against starting Python with the libraries it cannot do without."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from definitions import make_definition
from timing import Pair, compare

EVALMETA = str(Path(sys.executable).parent / "evalmeta")


def measure_version() -> tuple[str, Pair]:
    pair = compare(lambda: _run(EVALMETA, "--version"), lambda: _run(sys.executable, "-c", "import click"), rounds=9)
    return "evalmeta --version / import click", pair


def measure_validate() -> tuple[str, Pair]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Order_Desk_1.aiEvaluationDefinition"
        path.write_bytes(make_definition(1))
        floor = (sys.executable, "-c", "import click, lxml.etree")
        pair = compare(lambda: _run(EVALMETA, "validate", str(path)), lambda: _run(*floor), rounds=9)
    return "evalmeta validate ONE_FILE / import click, lxml.etree", pair


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
