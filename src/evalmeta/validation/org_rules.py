"""Rules about tests that Salesforce orgs cannot judge, although they accept them.

Source: the platform defects that agentforce-test-kit (github.com/simon2432/agentforce-test-kit) measured in three orgs,
knowledge/02-known-issues.md; each rule names its defects.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.expectations import ACTIONS, OUTCOME, TOPIC, canonical_name, expectation_kind
from evalmeta.model.problem import quote
from evalmeta.plugins import plugin_names
from evalmeta.validation.project_agents import STANDARD_CONTEXT_VARIABLES, is_unread, plain_variable
from evalmeta.validation.rule import WARNING, Finding, RuleTable, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Definition, Expectation
    from evalmeta.validation.project_agents import ProjectAgents
    from evalmeta.xmlio.reader import Step


_NO_ACTIONS: Final = re.compile(r"\s*\[\s*\]\s*")
_COMPARISONS: Final = frozenset({"string_comparison", "numeric_comparison"})
_METRICS: Final = frozenset({"coherence", "completeness"})
_VERDICT: Final = "let evalmeta's verdict count: evalmeta test run --verdict local."
# The topics that orgs give to every agent, whose instructions are to refuse.
_REFUSING_TOPICS: Final = frozenset({"inappropriate_content", "off_topic", "prompt_injection", "reverse_engineering"})
_REFUSAL: Final = re.compile(
    r"\W*(?:(?:the |an? )?(?:ai |virtual )?(?:agent|assistant|bot|response|answer|reply) )?"
    r"(?:(?:should|must|will|shall) )?(?:(?:always|clearly|firmly|kindly|politely|respectfully) )?"
    r"(?:refuses?|declines?|rejects?)(?: to | the (?:request|question|task)\b|\W*$)"
    r"|\W*(?:(?:i(?:'m| am) )?sorry,? )?(?:but )?i (?:can't|cannot|can not|won't|am (?:unable|not able) to) "
    r"(?:help|assist|provide|share|disclose|reveal|discuss|answer|recommend|do (?:that|this))\b",
    re.IGNORECASE,
)
# What is expected besides the refusal can be coherent and complete.
_BESIDES: Final = re.compile(r"\b(?:and|but|then|also|while|instead|offer\w*|suggest\w*|explain\w*)\b", re.IGNORECASE)
# A reference of run-eval into the output of a step, such as {gs.response.planner_response.lastExecution.topic}.
_STEP_REFERENCE: Final = re.compile(r"\s*\{[A-Za-z_]\w*(?:\.[\w\[\]*-]+)+\}\s*")


class OrgScope(NamedTuple):
    """A definition, and the agents of its project, if there is one.

    `expectations` has the different expectations of its test cases, in the order of the file, each with the indices of
    the cases that share them.
    """

    definition: Definition
    expectations: Sequence[tuple[Sequence[Expectation], Sequence[int]]]
    agents: ProjectAgents | None = None


def expectations_of_cases(definition: Definition) -> Sequence[tuple[Sequence[Expectation], Sequence[int]]]:
    """Return the `expectations` of an `OrgScope`."""
    shared: dict[int, tuple[Sequence[Expectation], list[int]]] = {}
    for index, case in enumerate(definition.test_cases):
        shared.setdefault(id(case.expectations), (case.expectations, []))[1].append(index)
    return [*shared.values()]


# These rules do not apply to agents that evalmeta runs.
ORGS: Final[RuleTable[OrgScope, Finding]] = RuleTable()


@rule("actions-unchecked", ORGS, documented=WARNING, orgs=WARNING)
def find_actions_unchecked(scope: OrgScope) -> Iterator[Finding]:
    """Expected actions are not `[]`: test runs of orgs pass `[]` whatever actions the agent takes.

    Defect D5: the actions of the agent must contain the expected ones, so there is nothing to compare.
    """
    places = sorted(
        _place(case, place)
        for expectations, cases in scope.expectations
        for place, expectation in enumerate(expectations)
        if expectation.expected_value
        and canonical_name(expectation.name) == ACTIONS
        and _NO_ACTIONS.fullmatch(expectation.expected_value)
        for case in cases
    )
    if places:
        message = "[] checks nothing in an org: test runs pass it whatever actions the agent takes"
        hint = f"Name the expected actions, or {_VERDICT}"
        yield Finding(places[0], f"{message}{_other_cases(places)}", hint)


@rule("comparison-twice", ORGS, documented=WARNING, orgs=WARNING)
def find_comparisons_twice(scope: OrgScope) -> Iterator[Finding]:
    """A test case has at most one comparison of each kind: test runs of orgs may return the result of only one.

    Defect D3: of five `string_comparison`, a run returned one, without an error.
    """
    for name in sorted(_COMPARISONS):
        repeated: list[tuple[tuple[Step, ...], int]] = []
        for expectations, cases in scope.expectations:
            places = [place for place, other in enumerate(expectations) if other.name == name]
            if len(places) > 1:
                repeated += ((_place(case, places[1]), len(places)) for case in cases)
        if repeated:
            steps, count = min(repeated)
            message = f"the test case has {count} {name}; test runs of orgs may return the result of only one"
            hint = f"Give each a test case of its own, or {_VERDICT}"
            yield Finding(steps, f"{message}{_other_cases(repeated)}", hint)


@rule("metric-refusal", ORGS, documented=WARNING, orgs=WARNING)
def find_metrics_of_refusals(scope: OrgScope) -> Iterator[Finding]:
    """A test case that expects a refusal uses neither coherence nor completeness: orgs often fail them for refusals.

    Defect D21: the judge expects the answer that the agent rightly refuses.
    """
    for expectations, cases in scope.expectations:
        metrics = [(place, other.name) for place, other in enumerate(expectations) if other.name in _METRICS]
        if metrics and any(map(_expects_refusal, expectations)):
            place, name = metrics[0]
            message = f"the test case expects a refusal; test runs of orgs often fail {name} for right refusals"
            for case in cases:
                yield Finding(_place(case, place), message, "Remove coherence and completeness from this test case.")


@rule("expectation-one-engine", ORGS, documented=WARNING, orgs=WARNING)
def find_one_engine(scope: OrgScope) -> Iterator[Finding]:
    """Test runs of orgs can judge the expectation: it does not need run-eval or a scorer of an installed package.

    Defect D4: a test run compares the text of a run-eval reference, not its value.
    """
    seen: set[str] = set()
    for expectations, cases in scope.expectations:
        for place, expectation in enumerate(expectations):
            if (
                expectation.name not in seen
                and expectation_kind(expectation.name) is None
                and expectation.name in plugin_names("scorers")
            ):
                seen.add(expectation.name)
                message = f"only evalmeta can judge {quote(expectation.name)}, a scorer of an installed package"
                hint = "Run the test with evalmeta; orgs refuse the expectation."
                yield Finding(_place(cases[0], place), message, hint)
            for parameter in expectation.parameters:
                if parameter.value.lstrip().startswith("{") and _STEP_REFERENCE.fullmatch(parameter.value):
                    message = f"only sf agent test run-eval resolves {quote(parameter.value.strip())}"
                    hint = "Write a JSONPath such as $.generatedData.outcome; test runs compare the text in braces."
                    for case in cases:
                        yield Finding(_place(case, place), message, hint)


@rule("context-variable-undeclared", ORGS, documented=WARNING, orgs=WARNING)
def find_variables_undeclared(scope: OrgScope) -> Iterator[Finding]:
    """The agent declares the context variable, if the project contains the agent.

    Defect D11: test cases with an undeclared variable hung for 18 to 22 minutes, then failed.
    """
    used: dict[str, list[tuple[Step, ...]]] = {}
    for index, test_case in enumerate(scope.definition.test_cases):
        for place, variable in enumerate(test_case.inputs.context_variables):
            steps = (("testCase", index), ("inputs", 0), ("contextVariable", place), ("variableName", 0))
            used.setdefault(plain_variable(variable.name), []).append(steps)
    agent = scope.definition.subject_name
    declared = scope.agents.declared_variables(agent) if used and scope.agents else None
    if declared is None or scope.agents is None:
        return
    for name, places in used.items():
        if not name or name in STANDARD_CONTEXT_VARIABLES or name.casefold() in declared:
            continue
        # The rule variable-unknown reports it.
        if is_unread(name, agent, scope.agents):
            continue
        message = f"the project's files of {agent} do not declare the context variable {quote(name)}"
        hint = "Remove it, or declare it in the agent; with an undeclared variable, a case hangs for 18 to 22 minutes."
        yield Finding(places[0], f"{message}{_other_cases(places)}", hint)


def _place(case: int, expectation: int) -> tuple[Step, ...]:
    return ("testCase", case), ("expectation", expectation)


def _expects_refusal(expectation: Expectation) -> bool:
    value = (expectation.expected_value or "").strip()
    if not value:
        return False
    name = canonical_name(expectation.name)
    if name == TOPIC:
        return value.casefold() in _REFUSING_TOPICS
    refusal = _REFUSAL.match(value) if name == OUTCOME else None
    return refusal is not None and _BESIDES.search(value, refusal.end()) is None


def _other_cases(places: Sequence[object]) -> str:
    others = len(places) - 1
    return f", as in {others} other test case{'s' if others > 1 else ''}" if others else ""
