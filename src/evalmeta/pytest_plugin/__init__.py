"""The pytest plugin: cases of definitions and other files as test items, and test functions as evaluations.

pytest loads it at every start, so it imports nothing heavy.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.pytest_plugin.evaluations import ITERATION, MARKER, Evaluations, range_error, repeat

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.pytest_plugin.evaluations import WorkerNode
    from evalmeta.pytest_plugin.files import EvaluationFile

__all__: list[str] = []

_SUFFIXES_IN_FOLDERS: Final = (".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv")
_SUFFIXES: Final = (*_SUFFIXES_IN_FOLDERS, ".parquet")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings of the plugin."""
    group = parser.getgroup("evalmeta", "evaluations of agents")
    group.addoption("--evalmeta", action="store_true", help="collect tests of all formats in folders too")
    group.addoption("--evalmeta-subject", metavar="MODULE:NAME", help="agent under test for evaluation files")
    number, rate = partial(_checked, "iterations"), partial(_checked, "min_pass_rate")
    decided = partial(_checked, "min_decided")
    group.addoption("--evalmeta-iterations", metavar="N", type=number, help="number of times to run each case")
    group.addoption(
        "--evalmeta-min-pass-rate", metavar="RATE", type=rate, help="share of a case's iterations that must pass"
    )
    group.addoption(
        "--evalmeta-min-decided", metavar="SHARE", type=decided, help="share of a file's results that must be judged"
    )
    group.addoption(
        "--evalmeta-report-dir", metavar="DIR", help="write a report of the evaluations with a time in its name"
    )
    group.addoption("--evalmeta-baseline", metavar="FILE", help="compare evaluations with an earlier report")
    parser.addini("evalmeta_collect", "collect tests of all formats in folders too", type="bool", default=False)
    parser.addini("evalmeta_subject", "agent under test for evaluation files, as MODULE:NAME", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the plugin for evaluations."""
    config.addinivalue_line("markers", f"{MARKER}: the test is part of an evaluation, made by @evalmeta.evaluation")
    config.pluginmanager.register(Evaluations(config), "evalmeta-evaluations")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> EvaluationFile | None:
    """Collect files named on the command line; in folders all tests, also invalid ones, if that is enabled."""
    name, is_named = file_path.name, parent.session.isinitpath(file_path)
    if not (is_named or parent.config.getoption("evalmeta") or parent.config.getini("evalmeta_collect")):
        return None
    # Only such names are checked further, because the check imports most of evalmeta.
    if not ("Definition" in name or name.lower().endswith(_SUFFIXES if is_named else _SUFFIXES_IN_FOLDERS)):
        return None
    from evalmeta.pytest_plugin.files import evaluation_file

    return evaluation_file(file_path, parent, is_named=is_named)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the tests of an evaluation; the iteration is the last parameter."""
    repeat(metafunc)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerNode) -> None:
    """Send the distribution mode to a worker of pytest-xdist, which does not know it."""
    node.workerinput["evalmeta_dist"] = node.config.getoption("dist")


@pytest.fixture(name=ITERATION)
def evalmeta_iteration(request: pytest.FixtureRequest) -> int:
    """Return the iteration of an evaluation, from 1."""
    iteration: int = getattr(request, "param", 1)
    return iteration


def _checked(name: str, text: str) -> float:
    try:
        number = int(text) if name == "iterations" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if error := range_error(name, number):
        raise argparse.ArgumentTypeError(error)
    return number
