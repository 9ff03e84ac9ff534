"""Validation of tests that are not definitions: the rules about their agent, their cases and their expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

_EXPECTATIONS_MISSING: Final = CASES.rules()["expectations-missing"]


def check_expectations(
    cases: Iterable[Case],
    policy: RulePolicy,
    *,
    label: str,
    lines: Mapping[int, int],
    files: Mapping[int, str],
    subject: str = "",
) -> list[Problem]:
    """Return what rules say about cases that no definition contains: their expectations, and what their agent lacks.

    `subject` is the agent that the cases test.
    `lines` has the line of each case by its number, and `files` the other files that have some of them.
    """
    agents = policy.agents if subject else None
    return [
        Problem(rule.code, severity, location, finding.message, hint_of(rule, finding, severity, policy))
        for case in cases
        for location in [Location(files.get(case.number, label), lines.get(case.number, 0))]
        for rule, finding in _findings_in_case(case, subject, agents)
        if (severity := policy.severity(rule))
    ]


def _findings_in_case(case: Case, subject: str, agents: ProjectAgents | None) -> Iterator[tuple[Rule, Finding]]:
    expectations = [expectation for turn in case.turns for expectation in turn.expectations]
    if not expectations:
        hint = "Add a check, such as contains; without one, nothing is tested."
        yield _EXPECTATIONS_MISSING, Finding((), "the test case has no expectation", hint)
    if agents:
        for variable in case.context_variables:
            yield from applied(VARIABLES.checks(), VariableScope(variable.name, subject, agents))
    names = agents.agent_names(subject) if agents else None
    for expectation in expectations:
        if is_check(expectation.name):
            continue
        kind = TESTING_DEFINITION if expectation.scorer_type else EVALUATION_DEFINITION
        yield from applied(rules_for(expectation, kind), expectation)
        if names:
            yield from applied(AGENTS.checks(), AgentScope(expectation, subject, names))


def check_subject(subject: str, policy: RulePolicy, location: Location) -> list[Problem]:
    """Return what rules say about the agent that a test names that is not a definition."""
    if policy.agents is None or not subject:
        return []
    return [
        Problem(rule.code, severity, location, finding.message, hint_of(rule, finding, severity, policy))
        for rule, finding in applied(SUBJECTS.checks(), SubjectScope(subject, policy.agents))
        if (severity := policy.severity(rule))
    ]
