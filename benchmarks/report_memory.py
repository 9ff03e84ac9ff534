"""Peak memory of the command line for a run with large results, in each report format: growth over a small run."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.report import FORMATS
from projects import FOLDER, PASSED_OR_FAILED, Project, open_project
from rows import Goal, Result, Row

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"cases": 1_000, "iterations": 10, "characters": 10_000}
RUN = "{cases:,} cases x {iterations} iterations, {characters:,} characters in each answer"
FLAT = Goal("at most", 64, " MB")
SMALL = "10 short results"
TINY = {"cases": 10, "iterations": 2, "characters": 1_000}
_open_projects = ExitStack()


class Finished(NamedTuple):
    """A project with one finished run, and the peak memory of the command that ran it."""

    project: Project
    megabytes: float


@cache
def _finished(cases: int, iterations: int, characters: int) -> Finished:
    """Run the cases once; all rows use the same results."""
    project = _open_projects.enter_context(open_project(definitions=1, cases=cases, characters=characters))
    words = ("test", "run", FOLDER, "--wait", "--iterations", str(iterations), "--result-format", "json")
    return Finished(project, project.run(*words, codes=PASSED_OR_FAILED).megabytes)


def measure_run(*, cases: int, iterations: int, characters: int) -> Result:
    return _growth(_finished(10, 1, 100).megabytes, _finished(cases, iterations, characters).megabytes)


def _growth(few: float, many: float) -> Result:
    return Result(f"{many:.0f} MB", f"{few:.0f} MB", many - few)


def close() -> None:
    """Delete the projects."""
    _finished.cache_clear()
    _open_projects.close()


def _of_format(name: str) -> Callable[..., Result]:
    def measure(*, cases: int, iterations: int, characters: int) -> Result:
        words = ("test", "results", "--use-most-recent", "--result-format", name)
        both = (_finished(10, 1, 100), _finished(cases, iterations, characters))
        return _growth(*(each.project.run(*words, codes=PASSED_OR_FAILED).megabytes for each in both))

    return measure


ROWS = (
    Row(
        "memory-run",
        f"`evalmeta test run --wait --result-format json`: {RUN}",
        SMALL,
        measure_run,
        SIZES,
        TINY,
        FLAT,
        unit=" MB",
        clock="-",
    ),
    *(
        Row(
            f"memory-{name}",
            f"`evalmeta test results --result-format {name}`, the same run",
            SMALL,
            _of_format(name),
            SIZES,
            TINY,
            FLAT,
            unit=" MB",
            clock="-",
        )
        for name in FORMATS
    ),
)
