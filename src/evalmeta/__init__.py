"""Test AI agents: keep tests as files, run them, judge the answers and compare runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from evalmeta.version import __version__ as __version__

if TYPE_CHECKING:
    from evalmeta.api.agent_tests import list_tests
    from evalmeta.api.deployments import deploy
    from evalmeta.api.evaluating.evaluate import evaluate, evaluate_async
    from evalmeta.api.file_checks import Validation
    from evalmeta.api.files import read, validate, write
    from evalmeta.api.judging.judge import judge
    from evalmeta.api.org_targets import connect
    from evalmeta.api.retrievals import retrieve
    from evalmeta.api.runs.org import finish_run
    from evalmeta.api.selections import resolve
    from evalmeta.client.connection import Connection
    from evalmeta.client.runs import start_run
    from evalmeta.engine.scorers.functions import Check
    from evalmeta.errors import EvalmetaError
    from evalmeta.model.definition import ContextVariable, Definition, Expectation, Inputs, TestCase
    from evalmeta.model.definition import HistoryMessage as HistoryMessage
    from evalmeta.model.definition import Parameter as Parameter
    from evalmeta.model.definition import PromptInput as PromptInput
    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.problem import Problem
    from evalmeta.model.run_options import RunOptions
    from evalmeta.package.project import Project, find_project
    from evalmeta.package.selection import Selection
    from evalmeta.pytest_plugin import evaluation


__all__ = [
    "Action",
    "Check",
    "Connection",
    "ContextVariable",
    "Definition",
    "EvalmetaError",
    "Expectation",
    "GeneratedData",
    "Inputs",
    "Problem",
    "Project",
    "RunOptions",
    "Selection",
    "TestCase",
    "Validation",
    "connect",
    "deploy",
    "evaluate",
    "evaluate_async",
    "evaluation",
    "find_project",
    "finish_run",
    "judge",
    "list_tests",
    "read",
    "resolve",
    "retrieve",
    "start_run",
    "validate",
    "write",
]

_HOMES: Final = {
    "evalmeta.api.evaluating.evaluate": ("evaluate", "evaluate_async"),
    "evalmeta.api.file_checks": ("Validation",),
    "evalmeta.api.files": ("read", "validate", "write"),
    "evalmeta.api.deployments": ("deploy",),
    "evalmeta.api.judging.judge": ("judge",),
    "evalmeta.api.org_targets": ("connect",),
    "evalmeta.api.retrievals": ("retrieve",),
    "evalmeta.api.selections": ("resolve",),
    "evalmeta.api.agent_tests": ("list_tests",),
    "evalmeta.api.runs.org": ("finish_run",),
    "evalmeta.client.connection": ("Connection",),
    "evalmeta.client.runs": ("start_run",),
    "evalmeta.engine.scorers.functions": ("Check",),
    "evalmeta.errors": ("EvalmetaError",),
    "evalmeta.model.definition": (
        "ContextVariable",
        "Definition",
        "Expectation",
        "HistoryMessage",
        "Inputs",
        "Parameter",
        "PromptInput",
        "TestCase",
    ),
    "evalmeta.model.generated_data": ("Action", "GeneratedData"),
    "evalmeta.model.problem": ("Problem",),
    "evalmeta.model.run_options": ("RunOptions",),
    "evalmeta.package.project": ("Project", "find_project"),
    "evalmeta.package.selection": ("Selection",),
    "evalmeta.pytest_plugin": ("evaluation",),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name's module when the name is first used, so that `import evalmeta` is instant."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'evalmeta' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
