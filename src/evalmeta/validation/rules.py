"""All rules: their policy in a project, which of them apply to what, and the pages that explain them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.errors import NotFound, SettingsError, did_you_mean, nearest_word
from evalmeta.model.expectations import expectation_kind, known_names
from evalmeta.model.problem import Severity
from evalmeta.model.registry import SCORER_DEFINITION, TESTING_DEFINITION, MetadataType
from evalmeta.validation.agent_rules import AGENTS, SUBJECTS, VARIABLES
from evalmeta.validation.bundle_rules import BUNDLES
from evalmeta.validation.case_rules import CASES, EXPECTATIONS
from evalmeta.validation.definition_rules import AGENT_SCORERS, DEFINITIONS, PROJECTS, TESTING_DEFINITIONS
from evalmeta.validation.org_rules import ORGS
from evalmeta.validation.rule import ERROR, WARNING, Checks, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.definition import Definition, Expectation, TestCase
    from evalmeta.model.settings import Profile, RuleSetting, Settings
    from evalmeta.validation.definition_rules import DefinitionScope
    from evalmeta.validation.project_agents import ProjectAgents


PROFILES: Final[tuple[Profile, ...]] = ("orgs", "documented")

NO_ORG_RULES: Final[Mapping[str, RuleSetting]] = dict.fromkeys(ORGS.rules(), "off")

FIXED_CODES: Final = {
    "xml-malformed": "The file is well-formed XML.",
    "xml-doctype": "The file has no DOCTYPE.",
    "xml-encoding": "The file is UTF-8.",
    "xml-too-large": "The file does not exceed the limits on size and number of elements.",
    "xml-too-deep": "Elements are not nested deeper than the limit.",
    "xml-root": "The root element and its namespace match the file's type.",
    "element-unknown": "Every element is defined by the type.",
    "element-missing": "Every required element is present.",
    "element-repeated": "An element that may occur once occurs once.",
    "attribute-unknown": "Elements have no attributes.",
    "text-stray": "There is no text between elements.",
    "value-invalid": "Numbers, booleans and enumerated values are valid.",
    "number-duplicate": "A test case's number is unique in its definition.",
    "full-name-duplicate": "Each full name belongs to one file of the project.",
    "full-name-unsafe": "A full name is a valid file name, and a file's name is a valid full name.",
    "manifest-type-other": "A manifest names types that evalmeta supports; other types are skipped.",
    "manifest-type-unknown": "A manifest names metadata types that exist and that evalmeta supports.",
    "manifest-member-missing": "Every member of a manifest has a file.",
    "manifest-member-empty": "A member of a manifest is not blank.",
    "manifest-selects-nothing": "A manifest selects at least one component.",
    "destructive-wildcard": "Destructive changes name every component to delete.",
    "manifest-version-missing": "A manifest has an API version.",
    "manifest-version-invalid": "A manifest's version is a valid API version.",
    "manifest-version-old": "A manifest's API version supports the types that it names.",
    "replacement-missing": "A value that sfdx-project.json puts into a file is set, and its pattern can be read.",
    "refused": "The org accepts the deployed component.",
    "conflict": "A deploy or retrieve does not overwrite changes made on the other side.",
    "review-pending": "A person has reviewed each case of a test spec: none is marked `review: true`.",
    "script-syntax": "A script of Agent Script can be read.",
    "forceignore-backslash": "Paths in .forceignore use slashes.",
}
"""Codes whose severity is fixed, with what they demand."""

_PAGES: Final = Path(__file__).parent / "pages"
_FIXED_WARNINGS: Final = frozenset(
    {"forceignore-backslash", "manifest-type-other", "replacement-missing", "review-pending"}
)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every configurable rule."""
    # Most projects have no scripts: their rules take 10 ms to load.
    from evalmeta.validation.script_rules import SCRIPTS

    tests = (DEFINITIONS, TESTING_DEFINITIONS, CASES, EXPECTATIONS, PROJECTS)
    agents = (SUBJECTS, VARIABLES, AGENTS, SCRIPTS, BUNDLES)
    return tuple(rule for table in (*tests, AGENT_SCORERS, ORGS, *agents) for rule in table.rules().values())


@dataclass(frozen=True, slots=True)
class RulePolicy:
    """The severity of each rule: a profile, and severities of single rules that override it."""

    profile: Profile = "orgs"
    rules: Mapping[str, RuleSetting] = field(default_factory=dict)
    own_subjects: frozenset[str] = frozenset()  # agents that evalmeta runs: no Salesforce org judges their tests
    agents: ProjectAgents | None = field(default=None, compare=False)  # None if no project is around the tests

    @property
    def is_complete(self) -> bool:
        """Return whether no rule is off, except for those about Salesforce orgs."""
        return all(setting != "off" or code in NO_ORG_RULES for code, setting in self.rules.items())

    def for_subject(self, name: str) -> RulePolicy:
        """Return the policy for the tests of an agent."""
        return replace(self, rules={**NO_ORG_RULES, **self.rules}) if name in self.own_subjects else self

    def severity(self, rule: Rule) -> Severity | None:
        """Return a rule's severity, None if the rule is off."""
        setting = self.rules.get(rule.code)
        if setting == "off":
            return None
        return Severity(setting) if setting else rule.severity(self.profile)


def rule_policy(
    settings: Settings | None, *, profile: Profile | None = None, agents: ProjectAgents | None = None
) -> RulePolicy:
    """Return the policy of a project's settings; raise SettingsError if a code is unknown or cannot be set.

    `profile` overrides the profile of the settings.
    """
    if settings is None:
        return RulePolicy(profile or "orgs", agents=agents)
    from evalmeta.model.login import EMBEDDED

    for code in settings.validate_.rules:
        if code in FIXED_CODES:
            message = f"evalmeta.toml: [validate.rules] sets {code!r}, whose severity is fixed"
            raise SettingsError(message, actions=[f"Remove {code!r}."])
        codes = {rule.code for rule in all_rules()}
        if code not in codes:
            message = f"evalmeta.toml: [validate.rules] sets an unknown rule, {code!r}"
            raise SettingsError(message, actions=[did_you_mean(code, sorted(codes))])
    names = (name for name, subject in settings.subjects.items() if subject.adapter != "agentforce")
    own = frozenset(names) if settings.org.default in {"", EMBEDDED} else frozenset()
    return RulePolicy(profile or settings.validate_.profile, settings.validate_.rules, own, agents)


def list_rules() -> tuple[Rule, ...]:
    """Return every rule, those that can be set before those that are fixed."""
    fixed = []
    for code, demand in FIXED_CODES.items():
        severity = WARNING if code in _FIXED_WARNINGS else ERROR
        fixed.append(Rule(code, severity, severity, demand, is_fixed=True))
    return (*all_rules(), *fixed)


def find_rule(code: str) -> Rule:
    """Return a rule by its code; raise NotFound, with the nearest code, if there is none."""
    known = {rule.code: rule for rule in list_rules()}
    if code not in known:
        near = nearest_word(code, known)
        actions = [f"Did you mean {near}?"] if near else []
        raise NotFound(f"the rule {code!r} cannot be found", actions=[*actions, "List all rules: evalmeta rule"])
    return known[code]


def read_page(rule: Rule) -> str:
    """Return a rule's page: Markdown that begins with the code as its heading and ends with a line break."""
    return (_PAGES / f"{rule.code}.md").read_text(encoding="utf-8")


def rules_for_definition(definition: Definition) -> Checks[DefinitionScope, Finding]:
    """Return the rules about a definition as a whole that apply to its type."""
    return _BY_TYPE.get(definition.type.name, _OF_DEFINITIONS)


def rules_for_case(case: TestCase, *, subject_type: str) -> Checks[TestCase, Finding]:
    """Return the rules that apply to a test case, without those about its expectations."""
    checks = () if subject_type == "PROMPT" else _OF_UTTERANCES
    if case.inputs.context_variables:
        checks += _OF_VARIABLES
    if case.inputs.conversation_history:
        checks += _OF_HISTORY
    return checks


def rules_for(expectation: Expectation, kind: MetadataType) -> Checks[Expectation, Finding]:
    """Return the rules that apply to an expectation in a definition of a type."""
    if kind == TESTING_DEFINITION:
        return _OF_CUSTOM_SCORERS if expectation.is_custom else _OF_SCORERS
    return _BY_NAME.get(expectation.name, _OF_UNKNOWN)


# The rules are chosen once, not per expectation: this decides how fast files are validated.
_OF_DEFINITIONS: Final = DEFINITIONS.checks()
_BY_TYPE: Final = {
    TESTING_DEFINITION.name: (*_OF_DEFINITIONS, *TESTING_DEFINITIONS.checks()),
    SCORER_DEFINITION.name: (*DEFINITIONS.checks("scorer"), *AGENT_SCORERS.checks()),
}
OF_ALL_EXPECTATIONS: Final = CASES.checks("expectations")
"""The rules that look at all expectations of a test case, and at nothing else of it."""
_OF_UTTERANCES: Final = CASES.checks("utterance")
_OF_VARIABLES, _OF_HISTORY = CASES.checks("variables"), CASES.checks("history")
_OF_SCORERS, _OF_CUSTOM_SCORERS = EXPECTATIONS.checks("scorer"), EXPECTATIONS.checks("custom scorer")
_OF_UNKNOWN: Final = EXPECTATIONS.checks("unknown")
_BY_NEED: Final = {need: EXPECTATIONS.checks(need) for need in ("value", "nothing", "parameters")}
_BY_NAME: Final = {name: _BY_NEED[kind.needs] for name in known_names() if (kind := expectation_kind(name))}
