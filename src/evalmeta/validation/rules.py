"""The table of rules: every code with its severities, what checks it, and the page that explains it.

The profile `orgs`, the default, reports as errors what orgs refuse and what no run can judge. It only warns about what
orgs are known to accept, and about what runs can judge and no org is known to refuse. The profile `documented` enforces
the whole metadata reference. The first line of a check's docstring says what the rule demands.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import NotFound, SettingsError
from evalmeta.model.expectations import expectation_kind, known_names
from evalmeta.model.login import EMBEDDED
from evalmeta.model.problem import Severity
from evalmeta.model.registry import SCORER_DEFINITION, TESTING_DEFINITION
from evalmeta.validation import agent_scorer_rules, definition_rules, expectation_rules, org_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.definition import Definition, Expectation, TestCase
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.settings import Profile, RuleSetting, Settings
    from evalmeta.validation.definition_rules import DefinitionScope, Finding, NamedFile
    from evalmeta.validation.org_rules import OrgScope


PROFILES: Final[tuple[Profile, ...]] = ("orgs", "documented")

_ERROR: Final = Severity.ERROR
_WARNING: Final = Severity.WARNING


class Rule(NamedTuple):
    """A rule: its code, and its severity under each profile."""

    code: str
    documented: Severity
    orgs: Severity

    def severity(self, profile: Profile) -> Severity:
        """Return the severity of this rule's findings under a profile."""
        return self.documented if profile == "documented" else self.orgs


DEFINITION_RULES: Final[tuple[tuple[Rule, Callable[[DefinitionScope], Iterator[Finding]]], ...]] = (
    (Rule("full-name-format", _ERROR, _ERROR), definition_rules.find_full_name_format),
    (Rule("name-format", _ERROR, _WARNING), definition_rules.find_name_format),
    (Rule("required-empty", _ERROR, _ERROR), definition_rules.find_empty_required),
    (Rule("test-cases-missing", _WARNING, _WARNING), definition_rules.find_no_test_cases),
    (Rule("test-cases-too-many", _ERROR, _ERROR), definition_rules.find_too_many_test_cases),
    (Rule("type-version", _ERROR, _ERROR), definition_rules.find_type_before_its_version),
    (Rule("parameter-version", _ERROR, _ERROR), definition_rules.find_parameters_before_their_version),
)

TESTING_RULES: Final[tuple[tuple[Rule, Callable[[DefinitionScope], Iterator[Finding]]], ...]] = (
    (Rule("name-mismatch", _ERROR, _WARNING), definition_rules.find_name_elsewhere),
    (Rule("description-too-long", _ERROR, _ERROR), definition_rules.find_description_too_long),
    (Rule("number-gap", _ERROR, _ERROR), definition_rules.find_number_gap),
    (Rule("prompt-inputs-missing", _ERROR, _ERROR), definition_rules.find_prompt_inputs_missing),
    (Rule("scorer-unsupported", _WARNING, _WARNING), definition_rules.find_unsupported_scorers),
    (Rule("scorer-history-missing", _ERROR, _ERROR), definition_rules.find_history_missing),
)
"""Rules about an AiTestingDefinition as a whole, in addition to DEFINITION_RULES."""

AGENT_SCORER_RULES: Final[tuple[tuple[Rule, Callable[[DefinitionScope], Iterator[Finding]]], ...]] = (
    (Rule("scorer-name-too-long", _ERROR, _ERROR), agent_scorer_rules.find_scorer_name_too_long),
    (Rule("scorer-type-unknown", _WARNING, _WARNING), agent_scorer_rules.find_scorer_type_unknown),
    (Rule("scorer-versions", _ERROR, _ERROR), agent_scorer_rules.find_scorer_versions),
    (Rule("scorer-engine", _ERROR, _ERROR), agent_scorer_rules.find_scorer_engine),
    (Rule("scorer-outputs", _ERROR, _ERROR), agent_scorer_rules.find_scorer_outputs),
    (Rule("scorer-associations", _ERROR, _ERROR), agent_scorer_rules.find_scorer_associations),
)
"""Rules about an AiAgentScorerDefinition."""

CASE_RULES: Final[tuple[tuple[Rule, Callable[[TestCase], Iterator[Finding]]], ...]] = (
    (Rule("utterance-empty", _ERROR, _ERROR), definition_rules.find_empty_utterance),
    (Rule("expectations-missing", _WARNING, _WARNING), definition_rules.find_no_expectations),
    (Rule("expectation-twice", _WARNING, _WARNING), definition_rules.find_expectations_twice),
    (Rule("context-variable-twice", _ERROR, _WARNING), definition_rules.find_context_variables_twice),
    (Rule("context-variable-empty", _ERROR, _WARNING), definition_rules.find_context_variables_without_value),
    (Rule("history-role", _ERROR, _ERROR), definition_rules.find_history_role),
    (Rule("history-order", _ERROR, _ERROR), definition_rules.find_history_order),
    (Rule("history-topic", _ERROR, _WARNING), definition_rules.find_history_topic),
    (Rule("history-index", _ERROR, _WARNING), definition_rules.find_history_index),
)

EXPECTATION_RULES: Final[tuple[tuple[Rule, Callable[[Expectation], Iterator[Finding]]], ...]] = (
    (Rule("expectation-unknown", _ERROR, _ERROR), expectation_rules.find_unknown_name),
    (Rule("expected-value-missing", _ERROR, _WARNING), expectation_rules.find_value_missing),
    (Rule("expected-value-unused", _WARNING, _WARNING), expectation_rules.find_value_unused),
    (Rule("actions-unreadable", _ERROR, _WARNING), expectation_rules.find_actions_unreadable),
    (Rule("parameter-missing", _ERROR, _ERROR), expectation_rules.find_parameter_missing),
    (Rule("parameter-unused", _ERROR, _WARNING), expectation_rules.find_parameter_unused),
    (Rule("parameter-unknown", _ERROR, _WARNING), expectation_rules.find_parameter_unknown),
    (Rule("parameter-twice", _ERROR, _ERROR), expectation_rules.find_parameter_twice),
    (Rule("operator-unknown", _ERROR, _ERROR), expectation_rules.find_operator_unknown),
    (Rule("expected-blank", _WARNING, _WARNING), expectation_rules.find_expected_blank),
    (Rule("number-invalid", _ERROR, _ERROR), expectation_rules.find_number_invalid),
    (Rule("reference-invalid", _ERROR, _ERROR), expectation_rules.find_reference_invalid),
    (Rule("reference-root", _ERROR, _ERROR), expectation_rules.find_reference_elsewhere),
    (Rule("reference-unreachable", _WARNING, _WARNING), expectation_rules.find_reference_unreachable),
    (Rule("parameter-too-long", _ERROR, _WARNING), expectation_rules.find_parameter_too_long),
)

_ROWS: Final = {row[0].code: row for row in EXPECTATION_RULES}
SCORER_RULES: Final[tuple[tuple[Rule, Callable[[Expectation], Iterator[Finding]]], ...]] = (
    (Rule("scorer-unknown", _WARNING, _WARNING), expectation_rules.find_unknown_scorer),
    _ROWS["expected-value-missing"],
    _ROWS["expected-value-unused"],
    (_ROWS["actions-unreadable"][0], expectation_rules.find_scorer_actions_unreadable),
)
_CUSTOM_SCORER_RULES: Final = ((_ROWS["expected-value-unused"][0], expectation_rules.find_custom_value),)

PROJECT_RULES: Final[tuple[tuple[Rule, Callable[[Sequence[NamedFile]], Iterator[tuple[NamedFile, str, str]]]], ...]] = (
    (Rule("name-duplicate", _ERROR, _WARNING), definition_rules.find_names_twice),
)
"""Rules about all definitions of a project."""

ORG_RULES: Final[tuple[tuple[Rule, Callable[[OrgScope], Iterator[Finding]]], ...]] = (
    (Rule("actions-unchecked", _WARNING, _WARNING), org_rules.find_actions_unchecked),
    (Rule("comparison-twice", _WARNING, _WARNING), org_rules.find_comparisons_twice),
    (Rule("metric-refusal", _WARNING, _WARNING), org_rules.find_metrics_of_refusals),
    (Rule("expectation-one-engine", _WARNING, _WARNING), org_rules.find_one_engine),
    (Rule("context-variable-undeclared", _WARNING, _WARNING), org_rules.find_variables_undeclared),
)
"""Rules about what Salesforce orgs cannot judge; they do not apply to agents that evalmeta runs."""

NO_ORG_RULES: Final[Mapping[str, RuleSetting]] = {rule.code: "off" for rule, _ in ORG_RULES}

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
    "refused": "The org accepts the deployed component.",
    "conflict": "A deploy or retrieve does not overwrite changes made on the other side.",
    "forceignore-backslash": "Paths in .forceignore use slashes.",
}
"""Codes whose severity is fixed, with what they demand."""

_PAGES: Final = Path(__file__).parent / "pages"
_FIXED_WARNINGS: Final = frozenset({"forceignore-backslash", "manifest-type-other"})


def all_rules() -> tuple[tuple[Rule, str], ...]:
    """Return every configurable rule with what it demands."""
    tests = (DEFINITION_RULES, TESTING_RULES, CASE_RULES, EXPECTATION_RULES, SCORER_RULES[:1], PROJECT_RULES)
    tables = (*tests, AGENT_SCORER_RULES, ORG_RULES)
    return tuple((rule, (check.__doc__ or "").partition("\n")[0]) for table in tables for rule, check in table)


CODES: Final = frozenset(rule.code for rule, _ in all_rules())


@dataclass(frozen=True, slots=True)
class RulePolicy:
    """The severity of each rule: a profile, and severities of single rules that override it.

    Attributes:
        own_subjects: the agents that evalmeta runs, so that no Salesforce org judges their tests.
        declared_variables: returns the context variables of an agent in lower case; None if they are not known.
    """

    profile: Profile = "orgs"
    rules: Mapping[str, RuleSetting] = field(default_factory=dict)
    own_subjects: frozenset[str] = frozenset()
    declared_variables: Callable[[str], frozenset[str] | None] | None = field(default=None, compare=False)

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
    settings: Settings | None,
    *,
    profile: Profile | None = None,
    declared_variables: Callable[[str], frozenset[str] | None] | None = None,
) -> RulePolicy:
    """Return the policy of a project's settings; raise SettingsError if a code is unknown or cannot be set.

    `profile` overrides the profile of the settings.
    """
    if settings is None:
        return RulePolicy(profile or "orgs", declared_variables=declared_variables)
    for code in settings.validate_.rules:
        if code in FIXED_CODES:
            message = f"evalmeta.toml: [validate.rules] sets {code!r}, whose severity is fixed"
            raise SettingsError(message, actions=[f"Remove {code!r}."])
        if code not in CODES:
            close = get_close_matches(code, CODES, n=1)
            action = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(CODES))}."
            raise SettingsError(f"evalmeta.toml: [validate.rules] sets an unknown rule, {code!r}", actions=[action])
    names = (name for name, subject in settings.subjects.items() if subject.adapter != "agentforce")
    own = frozenset(names) if settings.org.default in {"", EMBEDDED} else frozenset()
    return RulePolicy(profile or settings.validate_.profile, settings.validate_.rules, own, declared_variables)


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule as people look it up.

    Attributes:
        demand: what the rule demands, in one or two sentences.
        is_fixed: no profile and no setting changes its severity.
    """

    code: str
    documented: Severity
    orgs: Severity
    demand: str
    is_fixed: bool = False


def list_rules() -> tuple[RuleEntry, ...]:
    """Return every rule, those that can be set before those that are fixed."""
    return tuple(_entries().values())


def find_rule(code: str) -> RuleEntry:
    """Return a rule by its code; raise NotFound, with the nearest code, if there is none."""
    entry = _entries().get(code)
    if entry is None:
        near = get_close_matches(code.lower(), _entries(), n=1)
        actions = [f"Did you mean {text}?" for text in near]
        raise NotFound(f"the rule {code!r} cannot be found", actions=[*actions, "List all rules: evalmeta rule"])
    return entry


def read_page(entry: RuleEntry) -> str:
    """Return a rule's page: Markdown that begins with the code as its heading and ends with a line break."""
    return (_PAGES / f"{entry.code}.md").read_text(encoding="utf-8")


def rules_for_definition(
    definition: Definition,
) -> tuple[tuple[Rule, Callable[[DefinitionScope], Iterator[Finding]]], ...]:
    """Return the rules about a definition as a whole that apply to its type."""
    if definition.type == SCORER_DEFINITION:
        return _ALL_AGENT_SCORER_RULES
    return _ALL_TESTING_RULES if definition.type == TESTING_DEFINITION else DEFINITION_RULES


def rules_for_case(
    case: TestCase, *, subject_type: str
) -> Iterator[tuple[Rule, Callable[[TestCase], Iterator[Finding]]]]:
    """Yield the rules that apply to a test case."""
    yield from _PROMPT_CASE_RULES if subject_type == "PROMPT" else _BASIC_CASE_RULES
    if case.inputs.context_variables:
        yield from _VARIABLE_RULES
    if case.inputs.conversation_history:
        yield from _HISTORY_RULES


def rules_for(
    expectation: Expectation, kind: MetadataType
) -> tuple[tuple[Rule, Callable[[Expectation], Iterator[Finding]]], ...]:
    """Return the rules that apply to an expectation in a definition of a type."""
    if kind == TESTING_DEFINITION:
        return _CUSTOM_SCORER_RULES if expectation.is_custom else SCORER_RULES
    return _RULES_BY_NAME.get(expectation.name, _RULES_BY_NEED["unknown"])


# The rules are chosen once, not per expectation: this decides how fast files are validated.
_ALL_TESTING_RULES: Final = (*DEFINITION_RULES, *TESTING_RULES)
_ALL_AGENT_SCORER_RULES: Final = (
    *(row for row in DEFINITION_RULES if row[0].code in ("full-name-format", "type-version")),
    *AGENT_SCORER_RULES,
)
_HISTORY_RULES: Final = tuple(row for row in CASE_RULES if row[0].code.startswith("history-"))
_VARIABLE_RULES: Final = tuple(row for row in CASE_RULES if row[0].code.startswith("context-variable"))
_BASIC_CASE_RULES: Final = tuple(row for row in CASE_RULES if row not in (*_HISTORY_RULES, *_VARIABLE_RULES))
_PROMPT_CASE_RULES: Final = tuple(row for row in _BASIC_CASE_RULES if row[0].code != "utterance-empty")
# What the expectations need that a rule is about; rules without a row are about parameters.
_NEEDS: Final = {
    "expectation-unknown": ("unknown",),
    "expected-value-missing": ("value",),
    "expected-value-unused": ("nothing", "parameters"),
    "actions-unreadable": ("value",),
    "parameter-unused": ("value", "nothing"),
}
_RULES_BY_NEED: Final = {
    need: tuple(row for row in EXPECTATION_RULES if need in _NEEDS.get(row[0].code, ("parameters", "unknown")))
    for need in ("value", "nothing", "parameters", "unknown")
}
_RULES_BY_NAME: Final = {name: _RULES_BY_NEED[kind.needs] for name in known_names() if (kind := expectation_kind(name))}


@cache
def _entries() -> Mapping[str, RuleEntry]:
    entries = [RuleEntry(rule.code, rule.documented, rule.orgs, demand) for rule, demand in all_rules()]
    for code, demand in FIXED_CODES.items():
        severity = Severity.WARNING if code in _FIXED_WARNINGS else Severity.ERROR
        entries.append(RuleEntry(code, severity, severity, demand, is_fixed=True))
    return {entry.code: entry for entry in entries}
