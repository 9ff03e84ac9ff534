"""Whole programs with large definitions: validating them, running them, and the time to the first question."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from lxml import etree

from evalmeta import validate
from evalmeta.xmlio.structure import schema_dir
from evaluations import ours as evaluate_apart
from projects import FOLDER, PASSED_OR_FAILED, open_project
from rows import Goal, Result, Row, seconds
from timing import ROUNDS, compare, of_process, of_work

SCHEMA = schema_dir() / "AiEvaluationDefinition.xsd"
FLOOR = """
import pathlib, sys
from lxml import etree
schema = etree.XMLSchema(etree.parse(sys.argv[1]))
for path in pathlib.Path(sys.argv[2]).iterdir():
    assert schema.validate(etree.fromstring(path.read_bytes()))
"""
FIRST_QUESTION = """
import os, sys
import evalmeta
from evalmeta.model.evaluation import Case, Turn

async def answer(utterance):
    sys.stderr.write(str(len(sys.modules)))
    sys.stderr.flush()
    os._exit(0)

evalmeta.evaluate([Case(1, (Turn("Where is it?", (evalmeta.Expectation("topic_sequence_match", "Orders"),)),))], answer)
"""


def measure_validate(*, rounds: int, definitions: int, cases: int) -> Result:
    with open_project(definitions=definitions, cases=cases) as project:
        floor = (sys.executable, "-c", FLOOR, str(SCHEMA), FOLDER)
        pair = compare(
            lambda: project.run("validate", FOLDER), lambda: of_process(*floor, cwd=project.root), rounds=rounds
        )
    return seconds(pair)


def measure_validate_call(*, rounds: int, definitions: int, cases: int) -> Result:
    schema = etree.XMLSchema(etree.parse(SCHEMA))
    with open_project(definitions=definitions, cases=cases) as project:
        files = sorted((project.root / FOLDER).iterdir())

        def ours() -> None:
            assert validate(files).problems == ()

        def floor() -> None:
            for path in files:
                assert schema.validate(etree.fromstring(path.read_bytes()))

        return seconds(compare(lambda: of_work(ours), lambda: of_work(floor), rounds=rounds))


def measure_run(*, rounds: int, definitions: int, cases: int, deployed: bool) -> Result:
    """Return the time of the whole command over that of only running the cases, in a program that is warm."""
    with open_project(definitions=definitions, cases=cases) as project:
        if deployed:
            project.run("deploy")
        what = () if deployed else (FOLDER,)
        pair = compare(
            lambda: project.run("test", "run", *what, "--wait", codes=PASSED_OR_FAILED),
            lambda: evaluate_apart(definitions=definitions, cases=cases, journal=True),
            rounds=rounds,
        )
    return seconds(pair)


def measure_first_question(*, rounds: int) -> Result:
    """Return the seconds until the agent is called, with those in which Python itself starts."""
    with tempfile.TemporaryDirectory() as folder:
        mine, floor = (sys.executable, "-c", FIRST_QUESTION), (sys.executable, "-c", "import asyncio")
        pair = compare(
            lambda: of_process(*mine, cwd=Path(folder)), lambda: of_process(*floor, cwd=Path(folder)), rounds=rounds
        )
        modules = subprocess.run(mine, cwd=folder, check=True, capture_output=True, text=True).stderr
    note = f"{modules} modules; CPU time {pair.ours.cpu:.2f} s; {pair.ratio.wall:.1f} times the other"
    return Result(f"{pair.ours.wall:.3f} s", f"{pair.other.wall:.3f} s", pair.ours.wall, note)


LARGEST = {"definitions": 5, "cases": 1_000, "rounds": ROUNDS}
TINY = {"definitions": 2, "cases": 10, "rounds": 1}
SIZES = "{definitions} definitions x {cases:,} cases with criteria"
ENGINE_TIME = "`evaluate(the same cases, journal=...)` in a program that is warm"
FOUR = Goal("at most", 4)
TWICE = Goal("at most", 2)

ROWS = (
    Row(
        "validate-program",
        f"`evalmeta validate` of {SIZES}",
        "Python program with lxml: parsing, XSD",
        measure_validate,
        LARGEST,
        TINY,
        FOUR,
    ),
    Row(
        "validate-call",
        "`evalmeta.validate(files)`, the same files",
        "lxml in the same program",
        measure_validate_call,
        LARGEST,
        TINY,
        FOUR,
    ),
    Row(
        "run-files",
        f"`evalmeta test run FOLDER --wait` of {SIZES}, agent answers at once, 1 in 10 cases fails",
        ENGINE_TIME,
        measure_run,
        {**LARGEST, "rounds": 3, "deployed": False},
        TINY,
        TWICE,
    ),
    Row(
        "run-deployed",
        "`evalmeta test run --wait`, the same tests, deployed",
        ENGINE_TIME,
        measure_run,
        {**LARGEST, "rounds": 3, "deployed": True},
        TINY,
        TWICE,
    ),
    Row(
        "first-question",
        "Python program: `import evalmeta`, `evaluate`, until the agent is asked",
        "Python program: `import asyncio`",
        measure_first_question,
        {"rounds": 9},
        {"rounds": 1},
        Goal("at most", 0.2, " s"),
        unit=" s",
    ),
)
