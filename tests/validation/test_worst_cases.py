"""The worst files within the limits are told what is wrong with them; `make bench` says how long it takes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.formatter import format_definition
from examples import slow_but
from worst_cases import DEFINITIONS, Worst, worst_definitions, worst_manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.problem import Problem

MAX_MESSAGE_CHARS = 6_000
GROUPS = slow_but("attributes", DEFINITIONS)


def check(worst: Worst, problems: Sequence[Problem]) -> None:
    assert worst.code in {each.code for each in problems}, worst.name
    assert len(problems) <= 2 * limits.MAX_PROBLEMS, worst.name
    for problem in problems:
        assert min(problem.location.line, problem.location.column, len(problem.hint)) > 0, (worst.name, problem.code)
        assert len(problem.message) < MAX_MESSAGE_CHARS, (worst.name, problem.code)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_the_worst_definitions_are_reported_with_a_problem(group: str) -> None:
    for worst in worst_definitions(group):
        check(worst, validate_component(EVALUATION_DEFINITION, worst.data, label="d", full_name="D"))


@pytest.mark.slow
def test_the_worst_manifests_are_reported_with_a_problem() -> None:
    for worst in worst_manifests():
        check(worst, validate_manifest(worst.data, label="package.xml")[1])


@pytest.mark.parametrize("group", GROUPS)
def test_the_worst_definitions_are_formatted_or_refused(group: str) -> None:
    for worst in worst_definitions(group):
        if worst.code.startswith("expectation"):
            assert format_definition(worst.data, label="d")
        else:
            with pytest.raises(InvalidMetadata):
                format_definition(worst.data, label="d")


GROWTH = """
import resource, sys
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_component

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1_000_000 if sys.platform == "darwin" else 1_000)

def check(name, actions):
    value = "[" + ",".join(["'A'"] * actions) + "]"
    expectation = f"<expectation><name>action_sequence_match</name><expectedValue>{value}</expectedValue></expectation>"
    case = f"<testCase><inputs><utterance>u</utterance></inputs>{expectation}</testCase>"
    head = f"<name>{name}</name><subjectName>s</subjectName><subjectType>AGENT</subjectType>"
    root = "AiEvaluationDefinition"
    data = f'<{root} xmlns="http://soap.sforce.com/2006/04/metadata">{head}{case}</{root}>'.encode()
    validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D")

check("n", 1)
before = peak()
check("n" * int(sys.argv[1]), int(sys.argv[2]))
print(peak() - before)
"""


@pytest.mark.parametrize(("name_chars", "actions"), [(4_000_000, 1), (1, 400_000)])
def test_a_long_name_or_list_takes_little_memory(name_chars: int, actions: int) -> None:
    command = [sys.executable, "-c", GROWTH, str(name_chars), str(actions)]
    child = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert 0 <= int(child.stdout) <= 50
