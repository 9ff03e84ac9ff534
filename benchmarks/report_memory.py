"""Peak memory of the command line for a run with large results, in each report format: growth over a small run."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

from evalmeta.report import FORMATS
from projects import FOLDER, PASSED_OR_FAILED, Project, open_project
from rows import Goal, Result, Row

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"cases": 1_000, "iterations": 10, "characters": 10_000}
RUN = "{cases:,} cases x {iterations} iterations, {characters:,} characters in each answer"
TINY = {"cases": 10, "iterations": 2, "characters": 1_000}
_open_projects = ExitStack()


@cache
def _finished(cases: int, iterations: int, characters: int) -> Project:
    """Return a project with one finished run; all formats read the same one."""
    project = _open_projects.enter_context(open_project(definitions=1, cases=cases, characters=characters))
    project.run("test", "run", FOLDER, "--wait", "--iterations", str(iterations), codes=PASSED_OR_FAILED)
    return project


def close() -> None:
    """Delete the projects."""
    _finished.cache_clear()
    _open_projects.close()


def _of_format(name: str) -> Callable[..., Result]:
    def measure(*, cases: int, iterations: int, characters: int) -> Result:
        few, many = (
            project.run(
                "test", "results", "--use-most-recent", "--result-format", name, codes=PASSED_OR_FAILED
            ).megabytes
            for project in (_finished(10, 1, 100), _finished(cases, iterations, characters))
        )
        return Result(f"{many:.0f} MB", f"{few:.0f} MB", many - few)

    return measure


ROWS = tuple(
    Row(
        f"memory-{name}",
        f"`evalmeta test results --result-format {name}`, " + ("the same run" if number else RUN),
        "10 short results",
        _of_format(name),
        SIZES,
        TINY,
        Goal("at most", 64, " MB"),
        unit=" MB",
        clock="-",
    )
    for number, name in enumerate(FORMATS)
)
