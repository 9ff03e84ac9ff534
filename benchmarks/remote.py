"""What runs on a cluster of Ray cost, whose two or three nodes are processes of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ray_nodes import BIN, ray_nodes
from rows import Goal, Result, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ray_nodes import Nodes
    from remote_run import Work

HEAD, *OTHERS = "127.0.0.2", "127.0.0.3", "127.0.0.4"
PROGRAM = Path(__file__).with_name("remote_run.py")
INSTANT: Work = {"cases": 0, "concurrency": 500, "seconds": 0, "rate": 0, "every": 1, "on": "ray"}
_open = ExitStack()
_nodes: list[Nodes] = []


class Question(NamedTuple):
    """What a process of the agent noted when it was asked."""

    time: float  # seconds since the epoch
    count: float  # of this process's questions, with this one
    cpu: float  # seconds of this process
    order: float  # the case


class Asked(NamedTuple):
    """How a run went: times in seconds since the epoch, and the questions that each process of the agent noted."""

    begun: float
    ended: float  # when the last result was reported
    megabytes: float  # of the process that holds the results
    processes: tuple[tuple[Question, ...], ...]

    @property
    def questions(self) -> list[Question]:
        """Return the questions in the order of their times."""
        return sorted(question for process in self.processes for question in process)

    @property
    def microseconds(self) -> float:
        """Return the processor time of the agent's processes for each case, without their start."""
        spent = sum(process[-1].cpu - process[0].cpu for process in self.processes)
        return spent / sum(process[-1].count - process[0].count for process in self.processes) * 1e6

    @property
    def rate(self) -> float:
        """Return how many cases were asked in a second."""
        first, last = self.questions[0], self.questions[-1]
        return sum(process[-1].count for process in self.processes) / (last.time - first.time)


def cluster(nodes: int) -> Nodes:
    """Return the cluster, in which as many nodes run."""
    if not _nodes:
        _nodes.append(_open.enter_context(ray_nodes(HEAD)))
    _nodes[0].start(HEAD, *OTHERS[: nodes - 1])
    return _nodes[0]


def close() -> None:
    """End the nodes."""
    _nodes.clear()
    _open.close()


def ask(work: Work, *, nodes: int = 2, killed_after: int = 0) -> tuple[Asked, float]:
    """Run cases in a program of their own, and kill a node after some; return how it went, and when it was killed."""
    environment = (cluster(nodes).environment if work["on"] else dict(os.environ)) | {"PYTHONPATH": str(PROGRAM.parent)}
    with tempfile.TemporaryDirectory() as name, Path(name, "errors").open("w+") as errors:
        folder, killed = Path(name), 0.0
        with subprocess.Popen(
            [BIN / "python", PROGRAM, json.dumps(work), name],
            env=environment, stdout=errors, stderr=errors, text=True,
        ) as program:  # fmt: skip
            if killed_after:
                while program.poll() is None and sum(map(len, _noted(folder))) < killed_after:
                    time.sleep(0.05)
                killed = time.time()
                cluster(nodes).kill(OTHERS[-1])
            program.wait()
        errors.seek(0)
        assert program.returncode == 0, errors.read()[-2_000:]
        told = json.loads((folder / "told.json").read_text())
        processes = tuple(process for process in _noted(folder) if process)
        return Asked(told["begun"], told["ended"], told["megabytes"], processes), killed


def _noted(folder: Path) -> Iterator[tuple[Question, ...]]:
    for file in folder.glob("asked/*.asked"):
        # The last line of a process that was killed may be a part of one.
        lines = file.read_text().rpartition("\n")[0].splitlines()
        yield tuple(Question(*map(float, line.split())) for line in lines)


def measure_memory(*, cases: int) -> Result:
    """Return the peak memory of the program whose cases the cluster asks."""
    asked, _ = ask({**INSTANT, "cases": cases, "every": _every(cases)})
    return Result(f"{asked.megabytes:.0f} MB", "-", asked.megabytes, f"{asked.rate:,.0f} cases a second")


def measure_processors(*, cases: int) -> Result:
    """Return the processor time of the workers for a case, in relation to a run in one process with all its work."""
    work: Work = {**INSTANT, "cases": cases, "every": _every(cases)}
    (remote, _), (here, _) = ask(work), ask({**work, "on": ""})
    ours, other = remote.microseconds, here.microseconds
    rates = f"{remote.rate:,.0f} and {here.rate:,.0f} cases a second"
    return Result(f"{ours:.0f} us", f"{other:.0f} us", ours / other, rates)


def measure_waves(*, cases: int, concurrency: int, seconds: float) -> Result:
    """Return how long a slow agent's cases take, in relation to the time if no place were ever idle."""
    asked, _ = ask({**INSTANT, "cases": cases, "concurrency": concurrency, "seconds": seconds})
    taken, ideal = asked.ended - asked.questions[0].time, cases / concurrency * seconds
    started = f"asked for the first time {asked.questions[0].time - asked.begun:.1f} s after the start"
    return Result(f"{taken:.1f} s", f"{ideal:.1f} s", taken / ideal, started)


def measure_rate(*, cases: int, rate: int) -> Result:
    """Return how far the rate of all nodes together is from the one that is allowed, in percent."""
    asked, _ = ask({**INSTANT, "cases": cases, "rate": rate}, nodes=3)
    times = [question.time for question in asked.questions]
    mean = (cases - 1) / (times[-1] - times[0])
    most = max(sum(1 for other in times[place:] if other < begun + 1) for place, begun in enumerate(times))
    # A slice is what 0.2 s allow.
    assert most <= rate * 1.2 + 1, f"{most} questions in a second, {rate} are allowed"
    return Result(
        f"{mean:.1f} a second", f"{rate} a second", abs(mean / rate - 1) * 100, f"at most {most} in one second"
    )


def measure_recovery(*, cases: int) -> Result:
    """Return how long after the death of a node the first of its cases is asked again."""
    work: Work = {**INSTANT, "cases": cases, "seconds": 0.05, "concurrency": 50}
    asked, killed = ask(work, nodes=3, killed_after=cases // 4)
    orders = set[float]()
    again = list[float]()
    for question in asked.questions:
        if question.order in orders:
            again.append(question.time - killed)
        orders.add(question.order)
    assert len(orders) == cases
    # Few cases may all have been answered before the node died.
    seconds = again[0] if again else 0.0
    return Result(f"{seconds:.1f} s", "-", seconds, f"{len(again)} cases asked again")


def _every(cases: int) -> int:
    """Return which questions are noted, when noting all would take longer than asking."""
    return max(1, cases // 1_000)


ROWS = tuple(
    row._replace(is_possible=(BIN.parent / "ready").exists)
    for row in (
        Row(
            "scale-ray-memory",
            "the program that keeps {cases:,} results of a cluster of Ray",
            "a fixed amount of memory",
            measure_memory,
            {"cases": 1_000_000},
            {"cases": 200},
            Goal("at most", 150, " MB"),
            unit=" MB",
            clock="-",
        ),
        Row(
            "scale-ray-processors",
            "the workers of a cluster ask {cases:,} cases",
            "one process asks them and keeps their results",
            measure_processors,
            {"cases": 100_000},
            {"cases": 200},
            Goal("at most", 1.25),
            clock="CPU",
        ),
        Row(
            "scale-ray-waves",
            "{cases:,} cases of an agent of {seconds} s on a cluster, {concurrency} at a time",
            "no place is ever idle",
            measure_waves,
            {"cases": 1_000, "concurrency": 250, "seconds": 3},
            {"cases": 20, "concurrency": 10, "seconds": 0.1},
            Goal("at most", 1.1),
        ),
        Row(
            "scale-ray-rate",
            "{cases:,} cases on three nodes with a shared rate of {rate} a second",
            "the rate",
            measure_rate,
            {"cases": 1_200, "rate": 40},
            {"cases": 100, "rate": 40},
            Goal("at most", 5, " % from it"),
            unit=" % from it",
        ),
        Row(
            "scale-ray-recovery",
            "a node dies: until its cases are asked again, of {cases:,}",
            "-",
            measure_recovery,
            {"cases": 6_000},
            {"cases": 1_000},
            unit=" s",
        ),
    )
)
