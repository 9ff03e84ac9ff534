"""The plugin for pytest: cases of definitions and other files as test items, and test functions as evaluations.

pytest loads it at its start, whatever is tested: nothing heavy is imported here.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.pytest_plugin.evaluations import ITERATION, MARKER, Evaluations, repeat

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.pytest_plugin.evaluations import WorkerNode
    from evalmeta.pytest_plugin.files import EvaluationFile

__all__: list[str] = []

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json", ".jsonl", ".csv", ".parquet"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings of the plugin."""
    group = parser.getgroup("evalmeta", "evaluations of agents")
    group.addoption("--evalmeta", action="store_true", help="collect definitions and eval sets in folders too")
    group.addoption("--evalmeta-subject", metavar="MODULE:NAME", help="the agent that files ask")
    group.addoption("--evalmeta-iterations", metavar="N", type=_iterations, help="how often each case is asked")
    group.addoption(
        "--evalmeta-min-pass-rate", metavar="RATE", type=_rate, help="the share of a case's iterations that must pass"
    )
    group.addoption(
        "--evalmeta-report-dir",
        metavar="DIR",
        help="write a report of the evaluations, named by its time, into a folder",
    )
    group.addoption("--evalmeta-baseline", metavar="FILE", help="compare evaluations with such a report")
    parser.addini("evalmeta_collect", "collect definitions and eval sets in folders too", type="bool", default=False)
    parser.addini("evalmeta_subject", "the agent that files ask, as MODULE:NAME", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Start to count evaluations."""
    config.addinivalue_line("markers", f"{MARKER}: the test is part of an evaluation, made by @evalmeta.evaluation")
    config.pluginmanager.register(Evaluations(config), "evalmeta-evaluations")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> EvaluationFile | None:
    """Collect files that were named, and in folders definitions, ADK's and Ballerina's if that was asked for."""
    config = parent.config
    if parent.session.isinitpath(file_path):
        is_wanted = _is_evaluation(file_path)
    else:
        is_asked_for = config.getoption("evalmeta") or config.getini("evalmeta_collect")
        is_wanted = is_asked_for and _is_called_evaluation(file_path.name)
    if not is_wanted:
        return None
    from evalmeta.pytest_plugin.files import evaluation_file  # noqa: PLC0415 - only where there are such files

    return evaluation_file(file_path, parent)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the tests of an evaluation, the last of all parameters being the iteration."""
    repeat(metafunc)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerNode) -> None:
    """Return a worker of pytest-xdist how tests are distributed, which it is not told otherwise."""
    node.workerinput["evalmeta_dist"] = node.config.getoption("dist")


@pytest.fixture(name=ITERATION)
def evalmeta_iteration(request: pytest.FixtureRequest) -> int:
    """Return the iteration of an evaluation, from 1."""
    iteration: int = getattr(request, "param", 1)
    return iteration


def _is_evaluation(path: Path) -> bool:
    """Return a file that was named by its name, or by its content where others have such names too."""
    if _is_called_evaluation(path.name):
        return True
    if path.suffix not in _SUFFIXES:
        return False
    from evalmeta.formats.files import looks_like_evaluation  # noqa: PLC0415 - few files come here

    return looks_like_evaluation(path)


def _is_called_evaluation(name: str) -> bool:
    if name.endswith((".test.json", ".evalset.json")):
        return True
    if "Definition" not in name:
        return False
    from evalmeta.package.convert import named_by  # noqa: PLC0415 - few files come here

    return named_by(name) is not None


def _iterations(text: str) -> int:
    return int(_checked("iterations", text))


def _rate(text: str) -> float:
    return _checked("min_pass_rate", text)


def _checked(name: str, text: str) -> float:
    from evalmeta.pytest_plugin.evaluations import check_terms  # noqa: PLC0415 - few calls have these options

    try:
        number = int(text) if name == "iterations" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if fault := check_terms(**{name: number}):
        raise argparse.ArgumentTypeError(fault)
    return number
