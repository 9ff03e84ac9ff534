"""Problems as JUnit XML: a test case for each problem, or one that passed when there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.xmlio.writer import node
from evalmeta.xmlio.writer import render as render_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.problem import Problem
    from evalmeta.xmlio.writer import Node

__all__ = ["render"]


def render(problems: Sequence[Problem], *, files: int) -> str:
    """Writes one suite; errors are failures, warnings are test cases with their text as output."""
    cases = [_case(problem) for problem in problems] or [node("testcase", name=f"{files} files", classname="validate")]
    failures = str(sum(problem.is_error for problem in problems))
    counts = {"tests": str(len(cases)), "failures": failures, "errors": "0"}
    suite = node("testsuite", cases, name="evalmeta validate", **counts, skipped="0", time="0.000")
    return render_xml(node("testsuites", [suite], name="evalmeta validate", **counts), indent=2).decode()


def _case(problem: Problem) -> Node:
    location = problem.location
    text = f"{problem.message}\n{problem.hint}".strip()
    found = (
        node("failure", f"{location}: {text}", message=problem.message, type=problem.code)
        if problem.is_error
        else node("system-out", f"{location}: warning: {text}")
    )
    name = f"{problem.code} at {location.line}:{location.column}"
    return node("testcase", [found], name=name, classname=location.path, file=location.path, line=str(location.line))
