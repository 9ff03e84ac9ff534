"""The worst files within the limits are told what is wrong with them; `make bench` says how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.formatter import format_definition
from worst_cases import DEFINITIONS, Worst, worst_definitions, worst_manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.problem import Problem

MAX_MESSAGE_CHARS = 6_000


def check(worst: Worst, problems: Sequence[Problem]) -> None:
    assert worst.code in {each.code for each in problems}, worst.name
    assert len(problems) <= 2 * limits.MAX_PROBLEMS, worst.name
    for problem in problems:
        assert min(problem.location.line, problem.location.column, len(problem.hint)) > 0, (worst.name, problem.code)
        assert len(problem.message) < MAX_MESSAGE_CHARS, (worst.name, problem.code)


@pytest.mark.parametrize("group", DEFINITIONS)
def test_the_worst_definitions_are_told_what_is_wrong(group: str) -> None:
    for worst in worst_definitions(group):
        check(worst, validate_component(EVALUATION_DEFINITION, worst.data, label="d", full_name="D"))


def test_the_worst_manifests_are_told_what_is_wrong() -> None:
    for worst in worst_manifests():
        check(worst, validate_manifest(worst.data, label="package.xml")[1])


@pytest.mark.parametrize("group", DEFINITIONS)
def test_the_worst_definitions_are_formatted_or_refused(group: str) -> None:
    for worst in worst_definitions(group):
        if worst.code.startswith("expectation"):
            assert format_definition(worst.data, label="d")
        else:
            with pytest.raises(InvalidMetadata):
                format_definition(worst.data, label="d")
