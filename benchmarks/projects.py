"""Projects with definitions and an agent, as users have them, and the commands that run there."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import write
from orders import make_tests
from timing import Usage, of_process

if TYPE_CHECKING:
    from collections.abc import Iterator

EVALMETA = str(Path(sys.executable).parent / "evalmeta")
FOLDER = "aiEvaluationDefinitions"
PASSED_OR_FAILED = (0, 100)
AGENT = """\
import asyncio, os, pathlib, time

log = open(pathlib.Path(__file__).with_name("asked.txt"), "a", buffering=1) if {logged} else None
in_flight = 0


async def answer(utterance):
    global in_flight
    in_flight += 1
    if log:
        log.write(f"{{time.time()}} {{os.getpid()}} {{in_flight}}\\n")
    if {seconds}:
        await asyncio.sleep({seconds})
    in_flight -= 1
    return {{
        "outcome": "Your order was sent to Paris." + "." * {characters},
        "topic": "Orders",
        "actions": [{{"name": "Find_Order", "input": {{"question": utterance}}}}],
    }}
"""


class Asked(NamedTuple):
    """A question that the agent wrote down: when, in which process, and how many were in flight there."""

    time: float
    process: int
    in_flight: int


class Project(NamedTuple):
    """A folder with definitions and an agent."""

    root: Path

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> Usage:
        """Run evalmeta in the project, with nothing of the user's own settings."""
        return of_process(EVALMETA, *words, cwd=self.root, env=self.environment(), codes=codes)

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVALMETA_", "SF_"))}
        return {**kept, "HOME": str(self.root)}

    def asked(self) -> list[Asked]:
        """Return the questions since the last call."""
        path = self.root / "asked.txt"
        lines = [line.split() for line in path.read_text().splitlines()]
        path.write_text("")
        return [Asked(float(when), int(process), int(count)) for when, process, count in lines]


@contextmanager
def open_project(
    *, definitions: int, cases: int, seconds: float = 0, characters: int = 0, logged: bool = False
) -> Iterator[Project]:
    """Make a project in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / FOLDER).mkdir()
        for number in range(1, definitions + 1):
            definition = make_tests(f"Orders_{number}", cases)
            write(definition, root / FOLDER / f"Orders_{number}.aiEvaluationDefinition")
        (root / "desk.py").write_text(AGENT.format(seconds=seconds, characters=characters, logged=logged))
        (root / "evalmeta.toml").write_text('[subjects.Order_Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
        yield Project(root)
