"""Shifts the clock of a process by the seconds in a file, from its start on: PYTHONPATH names this folder."""

import os
import time
from pathlib import Path

_true = time.time
_file = Path(os.environ["CLOCK"])

time.time = lambda: _true() + float(_file.read_text(encoding="ascii"))
