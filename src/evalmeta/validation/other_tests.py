"""Validation of tests that are not definitions: the rules about their agent, their cases and their expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.model.problem import Location, Problem
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.plugins import is_check
from evalmeta.validation.agent_rules import AGENTS, SUBJECTS, VARIABLES, AgentScope, SubjectScope, VariableScope
from evalmeta.validation.case_rules import CASES
from evalmeta.validation.rule import Finding
from evalmeta.validation.rules import rules_for
from evalmeta.validation.validator import applied, hint_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.model.evaluation import Case
    from evalmeta.validation.project_agents import ProjectAgents
    from evalmeta.validation.rule import Rule
    from evalmeta.validation.rules import RulePolicy

CONTEXT_KEY: Final = "contextVariables"
"""The key of a test case with its context variables."""
_EXPECTATIONS_MISSING: Final = CASES.rules()["expectations-missing"]


class FindPlace(Protocol):
    """Finds a word in a test."""

    def __call__(self, number: int, name: str, word: str) -> tuple[int, int] | None:
        """Return line and column of a word below a check or a key of a case; None if it is not there."""
        ...


def check_expectations(
    cases: Iterable[Case],
    policy: RulePolicy,
    *,
    label: str,
    lines: Mapping[int, int],
    files: Mapping[int, str],
    place_of: FindPlace,
    subject: str = "",
) -> list[Problem]:
    """Return what rules say about cases that no definition contains: their expectations, and what their agent lacks.

    `subject` is the agent that the cases test.
    `lines` has the line of each case by its number, and `files` the other files that have some of them. `place_of`
    returns line and column of a word below a check or a key of a case in the file itself, None if it is not there.
    """
    agents = policy.agents if subject else None
    problems: list[Problem] = []
    for case in cases:
        of_case = Location(files.get(case.number, label), lines.get(case.number, 0))
        for rule, finding, key in _findings_in_case(case, subject, agents):
            if severity := policy.severity(rule):
                place = place_of(case.number, key, finding.word) if finding.word and case.number not in files else None
                location = Location(label, *place) if place else of_case
                hint = hint_of(rule, finding, severity, policy)
                problems.append(Problem(rule.code, severity, location, finding.message, hint))
    return problems


def _findings_in_case(case: Case, subject: str, agents: ProjectAgents | None) -> Iterator[tuple[Rule, Finding, str]]:
    """Yield findings, each with its rule and the name of the check or the key that it is about."""
    expectations = [expectation for turn in case.turns for expectation in turn.expectations]
    if not expectations:
        hint = "Add a check, such as contains; without one, nothing is tested."
        yield _EXPECTATIONS_MISSING, Finding((), "the test case has no expectation", hint), ""
    if agents:
        for variable in case.context_variables:
            for rule, finding in applied(VARIABLES.checks(), VariableScope(variable.name, subject, agents)):
                yield rule, finding, CONTEXT_KEY
    names = agents.agent_names(subject) if agents else None
    for expectation in expectations:
        name = expectation.name
        kind = TESTING_DEFINITION if expectation.scorer_type else EVALUATION_DEFINITION
        if not is_check(name):
            yield from ((rule, found, name) for rule, found in applied(rules_for(expectation, kind), expectation))
        if names:
            scope = AgentScope(expectation, subject, names)
            yield from ((rule, found, name) for rule, found in applied(AGENTS.checks(), scope))


def check_subject(subject: str, policy: RulePolicy, location: Location) -> list[Problem]:
    """Return what rules say about the agent that a test names that is not a definition."""
    if policy.agents is None or not subject:
        return []
    return [
        Problem(rule.code, severity, location, finding.message, hint_of(rule, finding, severity, policy))
        for rule, finding in applied(SUBJECTS.checks(), SubjectScope(subject, policy.agents))
        if (severity := policy.severity(rule))
    ]
