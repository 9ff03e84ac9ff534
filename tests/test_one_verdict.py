"""The same answers through all doors: every one says the same about whether the test has passed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import evalmeta
from cli.conftest import evalmeta as program
from evalmeta.api.runs.saved import history
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

__all__ = ["program"]

pytest_plugins = ["pytester"]


AGENT = """
def answer(question):
    if question == "broken":
        raise OSError("down")
    return "Yes, on Friday."
"""
JUDGED, WRONG, BROKEN = (
    {"input": "When?", "contains": "Friday"},
    {"input": "When?", "contains": "Sunday"},
    {"input": "broken", "contains": "Friday"},
)
NEEDS_MODEL = {"input": "When?", "rubric": "It is polite."}
PARTLY = JUDGED | {"rubric": ["Polite.", "Short.", "Kind."]}
OPEN = {"input": "When?", "topic": "Orders"}
# What an agent that returns text does not report is undecided, with a judge too.
MOSTLY_OPEN = JUDGED | {"topic": "Orders", "actions": ["Find"]}
TABLE = {
    "all judged": ([JUDGED, JUDGED], {}, True),
    "partly judged": ([PARTLY], {}, True),
    "partly judged, and one that failed": ([PARTLY, WRONG], {}, False),
    "nothing judged": ([NEEDS_MODEL], {}, False),
    "nothing judged without a limit": ([NEEDS_MODEL, OPEN], {"min_decided": 0.0}, False),
    "half judged": ([JUDGED, OPEN], {}, True),
    "less than half judged": ([MOSTLY_OPEN], {}, False),
    "less than half judged without a limit": ([MOSTLY_OPEN], {"min_decided": 0.0}, True),
    "less judged than asked for": ([JUDGED, PARTLY], {"min_decided": 0.8}, False),
    "undecided results that fail": ([JUDGED, PARTLY], {"undecided": "fail"}, False),
    "failed": ([JUDGED, WRONG], {}, False),
    "an error": ([JUDGED, BROKEN], {}, False),
}


ROWS = pytest.mark.parametrize("row", TABLE, ids=lambda each: each.replace(" ", "-"))


def write(row: str, folder: Path) -> tuple[Path, bool]:
    """Write a project with the cases of a row, and return the test and whether it passes."""
    cases, options, passes = TABLE[row]
    settings = ["[run]", "retries = 0", *(f"{name} = {json.dumps(value)}" for name, value in options.items())]
    path = folder / "orders.yaml"
    path.write_text(json.dumps({"subject": "desk:answer", "cases": cases}))
    (folder / "desk.py").write_text(AGENT)
    (folder / "evalmeta.toml").write_text("\n".join(settings))
    return path, passes


@ROWS
def test_every_door_has_the_same_verdict(
    row: str, tmp_path: Path, program: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, passes = write(row, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = program("run", "orders.yaml", "--report", "junit.xml")
    finished, several = evalmeta.evaluate(path), evalmeta.evaluate([path])
    [listed] = history(find_project(tmp_path))
    junit = (tmp_path / "junit.xml").read_text()
    doors = {
        "command": done.code == 0,
        "evaluate": bool(finished),
        "evaluate with several files": bool(several),
        "lists": listed.verdict == "PASS",
        "junit": "<failure" not in junit and "<error" not in junit,
    }
    assert doors == dict.fromkeys(doors, passes)
    assert listed.summary.partly_judged == finished.summary.partly_judged


@pytest.mark.slow
@ROWS
def test_pytest_has_the_verdict_of_the_command(row: str, pytester: pytest.Pytester) -> None:
    path, passes = write(row, pytester.path)
    assert (pytester.runpytest_subprocess("-p", "no:cacheprovider", str(path)).ret == 0) == passes
